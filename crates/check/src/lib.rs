//! Judges traces, for `taskscope emulate` and `taskscope check`.
//!
//! - [`emulation`] replays a trace through the machine of the models, in ovni's order: violations, and views for exports;
//! - [`verdict`] weighs violations by ovniemu's rules or by taskscope's;
//! - [`device_rules`] holds the rules for device queues.
//!
//! None of the modules imports another one.
#![forbid(unsafe_code)]

pub mod device_rules;
pub mod emulation;
pub mod verdict;
