//! The subcommands, one file each.

pub mod attach;
pub mod check;
mod choices;
pub mod diff;
pub mod doctor;
pub mod dump;
pub mod dump_queue;
pub mod dump_shown;
pub mod emulate;
mod emulate_nanos;
pub mod explain;
pub mod export;
mod export_graph;
mod export_over_time;
mod export_tables;
pub mod generate;
pub mod import;
pub mod import_device_records;
mod import_gpu;
pub mod info;
pub mod no_streams;
pub mod profiles;
pub mod query;
pub mod record;
pub mod report;
mod run_sets;
pub mod slice;
pub mod sort;
pub mod sync;
pub mod top;
pub mod view;

pub use crate::opening::{open, open_part, open_part_watched, open_soon};
pub use no_streams::is_being_recorded;
