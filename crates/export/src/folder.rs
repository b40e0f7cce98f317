//! Places for formats of several files: a directory, or memory.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use taskscope_files::append_regular;

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

/// A new directory for an export.
pub struct NewDirectory(PathBuf);

impl NewDirectory {
    /// Makes the directory, and these directories in it.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::AlreadyExists`] if something has its name.
    pub fn create(path: PathBuf, below: &[&str]) -> io::Result<NewDirectory> {
        std::fs::create_dir(&path)?;
        below.iter().try_for_each(|name| std::fs::create_dir(path.join(name)))?;
        Ok(NewDirectory(path))
    }
}

impl Folder for NewDirectory {
    fn append(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut append_regular(&self.0.join(path))?, bytes)
    }
}
