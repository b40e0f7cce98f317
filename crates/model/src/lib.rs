//! Events to changes, one module per runtime; no I/O.
#![forbid(unsafe_code)]

pub mod semantic;
