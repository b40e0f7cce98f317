//! For tests and benchmarks: executions and traces whose shape is known.
#![forbid(unsafe_code)]

pub mod script;
pub mod synthetic;
