//! Foreign files of task-parallel runs to traces.
//!
//! The caller hands over a file's text and gets a [`TaskGraph`](taskscope_execution::graph::TaskGraph) or a run over time
//! ([`spans::Run`]), or every error with its line and field. Each format has a module of its own:
//! - [`chrome`]: Chrome's trace events (PyTorch, viztracer, Taskflow, APEX), a run over time;
//! - [`device_records`]: dumps of device records, in the order of delivery;
//! - [`otf2`]: archives of Score-P and others, a run over time;
//! - [`paraver`]: traces of Paraver, a run over time;
//! - [`perfetto`]: track events of Perfetto, a run over time;
//! - [`starpu`]: the `tasks.rec` of StarPU;
//! - [`neutral`]: the open JSON and CSV form that any runtime can write (`docs/neutral-trace.md`).
//!
//! [`spans`] writes runs over time, [`write_graph`] task graphs: a trace directory that appears when it is complete.
#![forbid(unsafe_code)]

pub mod chrome;
mod delimited;
pub mod device_records;
mod error;
mod graph_trace;
pub mod neutral;
pub mod otf2;
pub mod paraver;
pub mod perfetto;
pub mod spans;
pub mod starpu;

pub use error::{ImportError, ImportErrors};
pub use graph_trace::write_graph;
