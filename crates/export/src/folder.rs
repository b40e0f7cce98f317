//! Places for formats of several files: a directory, or memory.

use std::collections::BTreeMap;
use std::io;
use taskscope_files::{NewDirectory, append_regular};

/// Receives the files of an export.
pub trait Folder {
    /// Adds bytes to a file, which is new at its first ones.
    ///
    /// # Errors
    /// If they cannot be stored.
    fn append(&mut self, path: &str, bytes: &[u8]) -> io::Result<()>;
}

impl Folder for BTreeMap<String, Vec<u8>> {
    fn append(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        self.entry(path.to_owned()).or_default().extend(bytes);
        Ok(())
    }
}

impl Folder for NewDirectory {
    fn append(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut append_regular(&self.path().join(path))?, bytes)
    }
}
