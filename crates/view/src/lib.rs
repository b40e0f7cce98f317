//! Reports, `info` and `explain` as terminal text and as JSON; the report as one HTML file ([`html`]) and the
//! local viewer ([`server`]), which both draw the answers of [`page`].
//!
//! The caller passes an opened session and its analysis. Text is returned as lines with ANSI styles, which
//! the caller strips if colour is off. This crate only words results; causes, blame and findings of one name
//! form one row.
#![forbid(unsafe_code)]

mod awaited;
mod call_paths;
mod causes;
pub mod comparison;
mod cpus;
pub mod devices;
pub mod documents;
mod efficiency_factors;
mod efficiency_text;
pub mod explain;
mod explain_report;
mod filter_notes;
mod findings;
pub mod format;
mod hang;
pub mod history;
pub mod html;
pub mod info;
pub mod instrumentation;
mod mpi_calls;
mod named_finding;
mod names;
mod notices;
mod outcome;
pub mod page;
mod profile_waits;
mod ranks;
mod report_json;
mod report_rows;
mod report_text;
mod run_difference;
mod run_difference_ci;
mod run_difference_text;
mod run_lines;
mod run_numbers;
pub mod runtime;
pub mod runtime_names;
mod sarif;
pub mod schemas;
mod section;
pub mod server;
mod sheet;
pub mod source_files;
mod talp;
mod thread_split;
mod thread_waits;
mod thread_waits_text;
mod timeline_text;
mod verdict;
mod words;

pub use call_paths::{
    CallPaths, PathsDifferenceReport, PathsOptions, PathsView, TOP_PATHS, json::CallPathTables,
    json::ProfileReport, json::TableOptions, paths_difference, profile_efficiency, profile_summary,
    profile_times,
};
pub use causes::{CausesOptions, CausesReport, WhatIf, causes_report, causes_text};
pub use devices::order_source;
pub use explain_report::{Explained, NameList};
pub use filter_notes::notes_of_filter;
pub use findings::{Findings, Losses, Whose, findings_of, findings_text, next_text, verdict_text};
pub use named_finding::NamedFinding;
pub use notices::notices;
pub use report_json::{Report, report as report_json, report_of};
pub use report_text::{ReportOptions, report as report_text};
pub use run_difference::{RunDifference, RunDifferenceReport, compare_runs};
pub use run_difference_ci::Gate;
pub use run_numbers::RunNumbers;
pub use sarif::sarif;
pub use section::Section;
pub use talp::{Talp, talp};
pub use thread_split::ThreadSplit;
pub use thread_waits_text::profile_waits_text;
pub use timeline_text::{TimelineReport, timeline_report};
pub use verdict::FLOOR;
pub use words::{blame, causes};
