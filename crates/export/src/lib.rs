//! Observers that write the observed changes in formats of other programs, as they arrive: memory does not
//! grow with the length of a trace.
//!
//! - [`call_paths`]: folded stacks for flame graphs, speedscope, pprof (of a finished tree)
//! - [`timeline`]: a run as records in time order, and the trait of its exports
//! - [`perfetto`], [`chrome`], [`otf2`], [`paje`], [`firefox`], [`csv`]: such exports
//! - [`task_graph`]: DOT, GraphML and JSON
//! - [`paraver`]: `.prv`, `.pcf`, `.row`: of a run, with Extrae's and Nanos++'s numbers, and as ovniemu writes them.
#![forbid(unsafe_code)]

pub mod call_paths;
pub mod chrome;
pub mod csv;
pub mod firefox;
mod folder;
mod ids;
pub mod otf2;
pub mod paje;
pub mod paraver;
pub mod perfetto;
mod range;
mod sorted_lines;
pub mod task_graph;
pub mod timeline;

pub use folder::Folder;
pub use range::RangeObserver;
pub use sorted_lines::SortedLines;
