//! Observers that write the observed changes in formats of other programs, as they arrive: memory does not
//! grow with the length of a trace.
//!
//! - [`call_paths`]: folded stacks for flame graphs, speedscope, pprof (of a finished tree)
//! - [`paraver`]: `.prv`, `.pcf`, `.row` and configurations, as ovniemu writes them.
#![forbid(unsafe_code)]

pub mod call_paths;
pub mod paraver;
mod range;
mod sorted_lines;

pub use range::RangeObserver;
pub use sorted_lines::SortedLines;
