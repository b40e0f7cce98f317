//! The neutral form of a task trace: workers, tasks, data, copies, runtime intervals.
//!
//! `docs/neutral-trace.md` describes it. Times are integers in nanoseconds of one clock, ids are
//! integers from 0 on. [`read_json`] takes one JSON text, [`read_csv`] the tables as CSV texts.

mod csv;
mod json;
mod rows;
mod write;

pub use csv::{CsvTables, read_csv, unread_columns};
pub use json::{Case, read_json};
pub use write::write_json;
