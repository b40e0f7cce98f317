//! Stream files written anew: always a new file first, which then takes the old one's name, so that
//! a crash leaves either the old or the new content.

use crate::stream::Stream;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::Path;
use taskscope_event::framing::{FILE_HEADER_BYTES, file_header};
use taskscope_event::{StreamFile, layout};
use taskscope_files::{NewFile, write_file};

/// Writes a file under another name, makes it durable, and gives it its name. Owner and mode stay, as far as that is
/// permitted.
///
/// # Errors
/// Those of the file system, that the file is a symbolic link, or that it is write-protected; the old file is then
/// untouched and the new one removed.
pub fn replace_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<NewFile>) -> io::Result<()>,
) -> io::Result<()> {
    let old = path.symlink_metadata().ok();
    // A rename asks only for the directory's permission, and root's needs none.
    if old.as_ref().is_some_and(|old| old.is_file() && old.permissions().readonly()) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is write-protected"));
    }
    write_file(path, |out| {
        write(out)?;
        out.flush()?;
        let file = out.get_ref().file();
        if let Some(old) = old {
            // Before the mode, which a change of owner cuts.
            let _ = fchown(file, Some(old.uid()), Some(old.gid()));
            file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))?;
        }
        file.sync_all()
    })
}

impl Stream {
    /// Writes the regions of unsorted events of a file in their order. Bytes after the last whole
    /// event stay as they are. A link to the file stays; the file that it leads to is replaced. Returns whether there was
    /// anything to do.
    ///
    /// # Errors
    /// Those of the file system, or that the stream is unfinished and has parts in other files, which belong to places of
    /// this one; the file is then as it was.
    pub fn sort_file(&self, which: StreamFile) -> io::Result<bool> {
        let Some(file) = self.file(which).filter(|file| file.needs_sorting()) else { return Ok(false) };
        let path = self.directory.join(which.name());
        let has_part = |extension: &&str| path.with_extension(extension).symlink_metadata().is_ok();
        let parts = [layout::TAIL_EXTENSION, layout::CHECKPOINT_EXTENSION];
        if let Some(part) = parts.into_iter().find(has_part).filter(|_| !self.is_finished()) {
            let text = format!("the stream is unfinished: a part of it is in its .{part} file");
            return Err(io::Error::new(io::ErrorKind::Unsupported, text));
        }
        let bytes = file.bytes();
        replace_file(&path.canonicalize()?, |out| {
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
    use std::os::unix::fs::{chown, symlink};

    #[test]
    fn owners_and_modes_stay_and_links_are_refused() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("file"), directory.path().join("link"));
        fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        // Only root may give files away.
        let _ = chown(&file, Some(1234), Some(1234));
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        let facts = || fs::metadata(&file).map(|file| (file.uid(), file.gid(), file.mode())).unwrap();
        let before = facts();
        assert!(replace_file(&link, |out| out.write_all(b"new")).is_err());
        assert_eq!(fs::read(&file).unwrap(), b"old");
        replace_file(&file, |out| out.write_all(b"new")).unwrap();
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
