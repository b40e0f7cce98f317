//! A run as tables: a Parquet data set for SQL and data frames.
//!
//! **Data flow.** A [`Session`](taskscope_session::Session) and its
//! [`Analysis`](taskscope_analysis::Analysis) are in memory, in columns. [`write_run`] walks over them table by
//! table and pushes rows into [`Rows`](rows::Rows), which hold one row group (131,072 rows at most); a full one is encoded and
//! written. So writing needs memory for one row group, whatever the length of the run. [`DataSet::finish`] writes
//! `views.sql`, and [`MANIFEST`] last.
//!
//! **One list.** [`TABLES`] declares every table and column with type, unit and meaning. The Parquet schemas, the page
//! `docs/tables.md` and the manifest come from it, and a row that does not fit its declaration is an error.
//!
//! **Invariants**, tested over stored traces in `tests/stored_traces.rs` (of row groups, the order within one):
//! - the intervals of `state` tile the time of each selected worker: their sum is the capacity, and by cause it is the
//!   ledger's total, to the nanosecond;
//! - a row group of a table with times is a time bucket, and is sorted by location and start;
//! - numbers of one data set are unique over its runs, and refer to rows of the same data set;
//! - a data set without [`MANIFEST`] is unfinished;
//! - types are signed integers, doubles, booleans and UTF-8, without an Arrow schema, so that every engine reads them.
//!
//! **Modules**, each importing only those named before it:
//!
//! | modules | content | begin at |
//! | --- | --- | --- |
//! | `schema` | the list of tables | [`TABLES`] |
//! | `page` | the list as a page of the book | [`page`] |
//! | `recipes` | stored queries | [`RECIPES`] |
//! | `rows`, `error`, `file` | rows to a Parquet file | [`rows::Rows`] |
//! | `data_set` | the directory | [`DataSet`] |
//! | `numbers`, `by_process` | numbers of a run in its data set; its files | `numbers::Run` |
//! | `names`, `states`, `tasks`, `waits`, `messages`, `devices`, `samples`, `marks`, `results` | the rows of each table | `states::write` |
//! | `run` | all of a run | [`write_run`] |
//! | `graph` | an imported task graph | [`write_graph`] |
//! | `profile` | a profile | [`write_profile`] |
#![forbid(unsafe_code)]

mod by_process;
mod data_set;
mod devices;
mod error;
mod file;
mod graph;
mod marks;
mod messages;
mod names;
mod numbers;
mod page;
mod profile;
mod recipes;
mod results;
pub mod rows;
mod run;
mod samples;
mod schema;
mod states;
mod tasks;
mod waits;

pub use data_set::{ColumnSummary, DataSet, MANIFEST, Summary, TableSummary, VIEWS};
pub use error::TableError;
pub use graph::{GraphRun, write_graph};
pub use page::page;
pub use profile::{ProfileRun, write_profile};
pub use recipes::{RECIPES, Recipe, recipe};
pub use run::write_run;
pub use schema::{Column, TABLES, Table, Type, VERSION, table};
