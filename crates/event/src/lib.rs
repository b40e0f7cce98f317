//! Events of a traced program: codes, fields, meanings and effects.
//!
//! Every event of every model is declared exactly once, in [`models`]. Recorders take codes from there by
//! name, readers take field types, sentences and effects. Codes are written nowhere else.
//!
//! Names of files are in [`layout`], the framing of events in a stream file in [`framing`], the form of an
//! unfinished one in [`tail`], the sign of life of a process in [`alive`]. This crate does no I/O, does not
//! allocate, and has no dependencies, so that it can be part of a traced program.
#![forbid(unsafe_code)]
#![no_std]

#[cfg(test)]
extern crate std;

pub mod alive;
mod code;
mod code_map;
mod counted;
pub mod decode;
mod fnv;
pub mod framing;
pub mod layout;
pub mod models;
pub mod spec;
pub mod tail;

pub use code::Code;
pub use code_map::CodeMap;
pub use counted::{Count, Counted, Noun};
pub use fnv::{FNV_START, fnv1a};
pub use layout::StreamFile;
