//! A trace directory that appears when it is complete.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Names that are tried for the directory meanwhile.
const ATTEMPTS: u32 = 1000;

/// A trace directory under another name beside its target, which it replaces when it is complete. Dropped before, it is
/// removed.
pub(crate) struct NewTrace {
    directory: PathBuf,
    target: PathBuf,
}

impl NewTrace {
    /// Begins a directory for `target`, which is new or an empty directory. Missing parents are created.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::AlreadyExists`] if the target is not empty, or not a directory of its own.
    pub fn create(target: &Path) -> io::Result<NewTrace> {
        require_free(target)?;
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent)?;
        }
        let process = std::process::id();
        for attempt in 0..ATTEMPTS {
            let mut temporary = name.to_owned();
            match attempt {
                0 => temporary.push(format!(".{process}.part")),
                _ => temporary.push(format!(".{process}.{attempt}.part")),
            }
            let directory = target.with_file_name(temporary);
            match fs::create_dir(&directory) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| NewTrace { directory, target: target.to_owned() }),
            }
        }
        Err(io::ErrorKind::AlreadyExists.into())
    }

    /// The directory to write into.
    pub fn path(&self) -> &Path {
        &self.directory
    }

    /// Gives it the target's name.
    ///
    /// # Errors
    /// Those of the system; the new directory is removed then.
    pub fn commit(mut self) -> io::Result<()> {
        require_free(&self.target)?;
        fs::rename(&self.directory, &self.target)?;
        self.directory = PathBuf::new();
        Ok(())
    }
}

impl Drop for NewTrace {
    fn drop(&mut self) {
        if !self.directory.as_os_str().is_empty() {
            // A directory that cannot be removed is harmless.
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Fails if the target exists, and is not an empty directory.
fn require_free(target: &Path) -> io::Result<()> {
    let taken = |text: &str| Err(io::Error::new(io::ErrorKind::AlreadyExists, text));
    match target.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(metadata) if metadata.is_symlink() => {
            taken("it is a symbolic link, through which nothing is written")
        }
        Ok(metadata) if !metadata.is_dir() => taken("it exists, and is not a directory"),
        Ok(_) if fs::read_dir(target)?.next().is_some() => taken("the directory is not empty"),
        Ok(_) => Ok(()),
    }
}
