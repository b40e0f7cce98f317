//! Profile mode: no trace, but a tree of call paths with metrics, of bounded size, written at an interval
//! and at the end.
//!
//! ```text
//!   handler ─── sample ─────────▶ tree of the thread (samples) ─┐ collected
//!   callbacks ▶ follow ┬ waits ─▶ counts of the thread (counts) ┴─▶ run ─▶ write: HOST.PID.tsprof
//!                      └ account: time by state ─▶ idleness ────────▶ live: HOST.PID.live.jsonl
//! ```
//! Waits of threads for each other, without OpenMP, have a way of their own (`thread_waits`).
//!
//! A path in a thread's tree starts at its *context*: the creation path of the region or task that the
//! thread is in, as a number (`contexts`). Contexts are few: of recursive tasks those that repeat are
//! one. They become frames when counts are collected.

mod account;
mod contexts;
mod counts;
mod double_buffer;
mod files;
mod follow;
mod follower;
mod housekeeper;
mod housekeeping;
mod idleness;
mod integrals;
mod live;
mod locks;
mod no_cpu;
mod open_ends;
mod places;
mod recent;
mod rows;
mod run;
mod samples;
mod sink;
mod states;
mod teams;
mod thread_waits;
mod threads;
mod waits;
mod workers;
mod write;

pub use contexts::{define_path, is_of_tasks};
pub use follow::state_of;
pub use follow::{charge_leaver, charge_so_far, write_so_far};
pub use follower::Follower;
pub use idleness::{SampleOf, share_in_callback};
pub use locks::destroyed;
pub use recent::{Recent, Sampled};
pub use run::{Counted, sample_no_cpu};
pub use samples::{Sample, is_work};
pub use sink::Profile;
pub use states::State;
pub use thread_waits::{RecordedCall, WaitEvent};
#[cfg_attr(test, allow(unused_imports, reason = "tests preload nothing"))]
pub use write::write_before_exit;
pub use write::write_last;

pub use crate::mode::{is_on, start};
