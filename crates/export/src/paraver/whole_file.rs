//! Files that are written whole or not at all.

use std::io;
use std::path::Path;
use taskscope_files::{NewFile, write_file};

/// Writes a file, whole or not at all; errors have its name.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut io::BufWriter<NewFile>) -> io::Result<()>,
) -> io::Result<()> {
    write_file(path, write).map_err(|error| naming(path, error))
}

/// The error, prefixed with the file's name.
pub(super) fn naming(path: &Path, error: io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}
