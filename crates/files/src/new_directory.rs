//! Directories written under a new name.

use crate::new_file::beside;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// A directory that is being filled beside its target, which it replaces when it is complete. Dropped before, it is removed.
#[derive(Debug)]
pub struct NewDirectory {
    directory: PathBuf,
    target: PathBuf,
}

impl NewDirectory {
    /// Begins a directory for `target`, which is new or an empty directory. Missing parents are created. The name meanwhile
    /// is the target's with `.<process>.part` behind it, or with a number more if that exists.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::AlreadyExists`] if the target is not empty, or not a directory of its own.
    pub fn create(target: &Path) -> io::Result<NewDirectory> {
        require_free(target)?;
        if let Some(parent) = target.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            fs::create_dir_all(parent)?;
        }
        let ((), directory) = beside(target, |path| fs::create_dir(path))?;
        Ok(NewDirectory { directory, target: target.to_owned() })
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

impl Drop for NewDirectory {
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_appears_when_it_is_complete() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("a/b");
        let new = NewDirectory::create(&target).unwrap();
        fs::write(new.path().join("file"), "words").unwrap();
        assert!(!target.exists());
        // A second writer, and one that was killed, have names of their own.
        let second = NewDirectory::create(&target).unwrap();
        assert_ne!(new.path(), second.path());
        new.commit().unwrap();
        assert_eq!(fs::read(target.join("file")).unwrap(), b"words");
        assert_eq!(second.commit().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(
            fs::read_dir(root.path().join("a")).unwrap().count(),
            1,
            "unfinished directories are removed"
        );
    }

    #[test]
    fn only_new_and_empty_directories_are_targets() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        fs::create_dir(at("empty")).unwrap();
        fs::create_dir_all(at("full/x")).unwrap();
        fs::write(at("file"), "").unwrap();
        symlink("empty", at("link")).unwrap();
        for name in ["full", "file", "link"] {
            let error = NewDirectory::create(&at(name)).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::AlreadyExists, "{name}");
        }
        NewDirectory::create(&at("empty")).unwrap().commit().unwrap();
        let long = at(&"x".repeat(250));
        NewDirectory::create(&long).unwrap().commit().unwrap();
        assert!(long.is_dir());
    }
}
