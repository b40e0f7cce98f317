//! Reasons of failures.

use crate::rows::Misfit;
use parquet::errors::ParquetError;
use std::io;
use std::path::PathBuf;
use taskscope_session::OpenError;

/// Reason of a failure to write tables.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The directory exists and is not empty.
    #[error("{} is not empty", .0.display())]
    Occupied(PathBuf),
    /// The system refuses.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    /// The trace was there, and is not any more.
    #[error("cannot read the marks of the trace: {0}")]
    Read(#[from] OpenError),
    /// A row does not fit its table.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The file's form cannot hold the data.
    #[error("cannot encode a table: {0}")]
    Encode(#[from] ParquetError),
}
