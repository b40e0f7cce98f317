//! Reasons of failures.

use crate::rows::Misfit;
use parquet::errors::ParquetError;
use std::io;
use std::path::PathBuf;

/// Reason of a failure to write tables.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// The directory exists and is not empty.
    #[error("{} is not empty", .0.display())]
    Occupied(PathBuf),
    /// The system refuses.
    #[error("cannot write {}: {}", .0.display(), .1)]
    Write(PathBuf, io::Error),
    /// A row does not fit its table.
    #[error(transparent)]
    Misfit(#[from] Misfit),
    /// The file's form cannot hold the data.
    #[error("cannot encode a table: {0}")]
    Encode(#[from] ParquetError),
}
