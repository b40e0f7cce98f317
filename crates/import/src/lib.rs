//! Foreign files of task-parallel runs to traces.
//!
//! The caller hands over a file's text and gets a [`TaskGraph`](taskscope_execution::graph::TaskGraph), or every error with the line
//! and the field that it is about. Each format has a module of its own:
//! - [`device_records`]: dumps of device records, in the order of delivery.
//! - [`starpu`]: the `tasks.rec` of StarPU;
//! - [`neutral`]: the open JSON and CSV form that any runtime can write (`docs/neutral-trace.md`).
#![forbid(unsafe_code)]

mod delimited;
pub mod device_records;
mod error;
mod graph_trace;
pub mod neutral;
pub mod starpu;

pub use error::{ImportError, ImportErrors};
pub use graph_trace::write_graph;
