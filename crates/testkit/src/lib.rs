//! Executions and traces of known shape for tests and benchmarks.
#![forbid(unsafe_code)]

pub mod corpus;
pub mod generator;
pub mod graph_names;
pub mod instrumented;
pub mod large_graph;
pub mod paraver_files;
pub mod pic_table;
pub mod ptd;
pub mod script;
pub mod slo_oracle;
pub mod synthetic;
pub mod task_rows;
pub mod trace_builder;

pub use taskscope_prerequisite::dice;
