//! Places for formats of several files: a directory, or memory.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
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

/// A new directory for an export, which gets its name when it is complete. Dropped before, it is removed.
pub struct NewDirectory {
    directory: PathBuf,
    target: PathBuf,
}

impl NewDirectory {
    /// Makes the directory under another name, and these directories in it.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::AlreadyExists`] if something has its name.
    pub fn create(target: PathBuf, below: &[&str]) -> io::Result<NewDirectory> {
        require_free(&target)?;
        let mut name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_owned();
        name.push(format!(".{}.part", std::process::id()));
        let directory = target.with_file_name(name);
        std::fs::create_dir(&directory)?;
        let new = NewDirectory { directory, target };
        below.iter().try_for_each(|name| std::fs::create_dir(new.directory.join(name)))?;
        Ok(new)
    }

    /// Gives it its name.
    ///
    /// # Errors
    /// Those of the system; the new directory is removed then.
    pub fn commit(mut self) -> io::Result<()> {
        require_free(&self.target)?;
        std::fs::rename(&self.directory, &self.target)?;
        self.directory = PathBuf::new();
        Ok(())
    }
}

impl Drop for NewDirectory {
    fn drop(&mut self) {
        if !self.directory.as_os_str().is_empty() {
            // A directory that cannot be removed is harmless.
            let _ = std::fs::remove_dir_all(&self.directory);
        }
    }
}

fn require_free(target: &Path) -> io::Result<()> {
    match target.symlink_metadata() {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

impl Folder for NewDirectory {
    fn append(&mut self, path: &str, bytes: &[u8]) -> io::Result<()> {
        io::Write::write_all(&mut append_regular(&self.directory.join(path))?, bytes)
    }
}
