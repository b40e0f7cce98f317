//! Stream files written anew: always a new file first, which then takes the old one's name, so that
//! a crash leaves either the old or the new content.

use crate::stream::{File, Stream};
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::Path;
use taskscope_event::framing::{FILE_HEADER_BYTES, file_header};

/// Writes a file under another name, makes it durable, and gives it its name. Links stay, and what they lead to
/// is replaced; owner and mode stay too, as far as that is permitted.
///
/// # Errors
/// Those of the file system, or that the file is write-protected; the old file is then untouched and the new one
/// removed.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<fs::File>) -> io::Result<()>,
) -> io::Result<()> {
    // Beside the file itself, wherever links to it lie.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    // A rename asks only for the directory's permission, and root's needs none.
    if fs::metadata(path).is_ok_and(|metadata| metadata.permissions().readonly()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is write-protected"));
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let new = path.with_file_name(name);
    let attempt = || {
        let mut out = BufWriter::new(fs::File::create(&new)?);
        write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        if let Ok(metadata) = fs::metadata(path) {
            // Before the mode, which a change of owner cuts.
            let _ = fchown(&file, Some(metadata.uid()), Some(metadata.gid()));
            file.set_permissions(metadata.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&new, path)
    };
    let result = attempt();
    if result.is_err() {
        let _ = fs::remove_file(&new);
    }
    result
}

impl Stream {
    /// Writes the regions of unsorted events of a file in their order. Bytes after the last whole
    /// event stay as they are. Returns whether there was anything to do.
    ///
    /// # Errors
    /// Those of the file system; the file is then as it was.
    pub fn sort_file(&self, which: File) -> io::Result<bool> {
        let Some(file) = self.file(which).filter(|file| file.needs_sorting()) else { return Ok(false) };
        let bytes = file.bytes();
        replace_file(&self.directory.join(which.name()), |out| {
            out.write_all(&file_header())?;
            let mut position = FILE_HEADER_BYTES;
            for (begin, end, order) in file.windows() {
                out.write_all(&bytes[position..begin])?;
                for event in order {
                    out.write_all(&bytes[event])?;
                }
                position = end;
            }
            out.write_all(&bytes[position..])
        })?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    #[test]
    fn links_owners_and_modes_stay() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        // Only root may give files away.
        let _ = chown(&file, Some(1234), Some(1234));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let facts = || fs::metadata(&file).map(|file| (file.uid(), file.gid(), file.mode())).unwrap();
        let before = facts();
        replace_file(&link, |out| out.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!((fs::read(&file).unwrap(), facts()), (b"new".to_vec(), before));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    #[test]
    fn write_protected_files_stay() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("file");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        let error = replace_file(&file, |out| out.write_all(b"new")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read(&file).unwrap(), b"old");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }
}
