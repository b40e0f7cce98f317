//! Small files of the user beside a trace, such as notes. Unlike the [cache](crate::cache) they outlive changes of the
//! trace and versions of taskscope.
//!
//! A file is beside the trace (`NAME.trace.ENDING`), or, if that directory is not writable, where the cache would be. Both may
//! exist: a trace of somebody else has the owner's file beside it, and the reader's own one below `XDG_CACHE_HOME`.

use crate::cache::places_beside;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use taskscope_files::{read_regular, remove_regular, write_file};

/// Reads the files of this ending that exist, each of at most `most` bytes, the one beside the trace first.
///
/// # Errors
/// Those of reading a file that exists, with its path.
pub fn read_beside(root: &Path, ending: &str, most: u64) -> io::Result<Vec<(PathBuf, Vec<u8>)>> {
    let mut found = Vec::new();
    for place in places_beside(root, ending) {
        match read_regular(&place, most) {
            Ok(bytes) => found.push((place, bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(named(&place, &error)),
        }
    }
    Ok(found)
}

/// Writes a file of this ending, with what was read of all of them, at the first place that can be written, and returns the place.
/// Later places lose their files, which were written while this one could not be: what is removed must not come back from there.
///
/// # Errors
/// If it can be written nowhere: the error at the last place, with its path.
pub fn write_beside(root: &Path, ending: &str, bytes: &[u8]) -> io::Result<PathBuf> {
    let mut last = io::Error::other("there is no place beside the trace");
    let mut places = places_beside(root, ending).into_iter();
    while let Some(place) = places.next() {
        let written = place.parent().map_or(Ok(()), std::fs::create_dir_all);
        match written.and_then(|()| write_file(&place, |out| out.write_all(bytes))) {
            Ok(()) => {
                places.for_each(|later| remove_regular(&later));
                return Ok(place);
            }
            Err(error) => last = named(&place, &error),
        }
    }
    Err(last)
}

fn named(place: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn files_are_beside_the_trace_and_not_written_through_links() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("x.trace");
        std::fs::create_dir(&root).unwrap();
        assert_eq!(read_beside(&root, ".test-notes", 10).unwrap(), []);
        let place = write_beside(&root, ".test-notes", b"words").unwrap();
        assert_eq!(place, folder.path().canonicalize().unwrap().join("x.trace.test-notes"));
        assert_eq!(read_beside(&root, ".test-notes", 10).unwrap(), [(place.clone(), b"words".to_vec())]);
        assert!(read_beside(&root, ".test-notes", 4).unwrap_err().to_string().contains("x.trace.test-notes"));
        let other = folder.path().join("other");
        std::fs::write(&other, "kept").unwrap();
        std::fs::remove_file(&place).unwrap();
        symlink(&other, &place).unwrap();
        // The place of the cache may or may not be writable.
        if let Ok(elsewhere) = write_beside(&root, ".test-notes", b"words") {
            assert_ne!(elsewhere, place);
            std::fs::remove_file(elsewhere).unwrap();
        }
        assert_eq!(std::fs::read(&other).unwrap(), b"kept");
    }
}
