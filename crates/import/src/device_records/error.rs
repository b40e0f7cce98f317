//! Errors of an import.

use super::table::ReadError;
use std::path::PathBuf;

/// The reason why nothing was imported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read as a dump.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// No file has a record.
    #[error("there are no records in the files")]
    NoRecords {
        /// Problems of the lines, each with its file and number.
        problems: Vec<String>,
    },
    /// The trace cannot be written.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
}
