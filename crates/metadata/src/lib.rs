//! Metadata of a thread's stream (`stream.json`): ovni's attributes and those of taskscope's recorders, one type for
//! all readers. Run files of traces that no recorder wrote.
//!
//! **The caller** passes the bytes of the file to [`ThreadMetadata::parse`], and receives the attributes and a report
//! of every defect. Comments are allowed, as ovni allows them.
//!
//! **Not for** reading files (`taskscope-trace`) or judging attributes (`taskscope-model`).
#![forbid(unsafe_code)]

mod labels;
mod run_file;
mod thread_metadata;

pub use labels::{Labels, SharedLabels};
pub use run_file::{MAX_RUN_FILE_BYTES, run_file_without_command};
pub use thread_metadata::{CpuEntry, Defect, MarkDeclaration, Recorder, ThreadMetadata, without_comments};
