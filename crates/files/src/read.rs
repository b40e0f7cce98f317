//! Regular files, read.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens a regular file for reading; returns it with its length in bytes. Does not wait for the writer of a pipe.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::InvalidInput`] for pipes, sockets, devices and directories.
pub fn open_regular(path: &Path) -> io::Result<(File, u64)> {
    // A terminal must not become the one that controls this process.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match File::options().read(true).custom_flags(flags).open(path) {
        // Sockets cannot be opened, with this error.
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return Err(not_regular()),
        opened => opened?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(not_regular());
    }
    Ok((file, metadata.len()))
}

pub(crate) fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Longer files are read only if they have a reasonable part of their content on the disk.
const LARGE_BYTES: u64 = 64 << 20;
/// Bytes of a file for one on the disk, with the best compression of file systems.
const MAX_COMPRESSION: u64 = 64;
/// Unit in which the system counts a file's room on the disk.
const BLOCK_BYTES: u64 = 512;

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// Those of [`open_regular`] and of reading; [`io::ErrorKind::InvalidInput`] for longer files, and for large
/// ones that consist mostly of holes.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, length) = open_regular(path)?;
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, format!("it has more than {most} bytes"));
    if length > most {
        return Err(too_long());
    }
    let stored =
        || Ok::<_, io::Error>(file.metadata()?.blocks().saturating_mul(BLOCK_BYTES * MAX_COMPRESSION));
    if length > LARGE_BYTES && stored()? < length {
        let text = format!("its {length} bytes are holes for the most part");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
    }
    let bytes = read_open(file, length, most.saturating_add(1))?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

/// Reads an open file that had this length to its end, or its first `most` bytes. Of a file that did not change the
/// system is asked twice only, as thousands of streams are opened.
///
/// # Errors
/// Those of reading, and [`io::ErrorKind::OutOfMemory`].
pub fn read_open(mut file: File, length: u64, most: u64) -> io::Result<Vec<u8>> {
    let expected = usize::try_from(length.min(most)).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(expected)?;
    bytes.resize(expected, 0);
    match file.read(&mut bytes) {
        Ok(first) => bytes.truncate(first),
        Err(error) if error.kind() == io::ErrorKind::Interrupted => bytes.clear(),
        Err(error) => return Err(error),
    }
    let rest = most - bytes.len() as u64;
    file.take(rest).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    #[test]
    fn only_regular_files_are_opened_and_nothing_blocks() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        std::fs::create_dir(at("directory")).unwrap();
        let _socket = UnixListener::bind(at("socket")).unwrap();
        symlink("/dev/zero", at("zero")).unwrap();
        symlink("pipe", at("to-pipe")).unwrap();
        for name in ["pipe", "directory", "socket", "zero", "to-pipe"] {
            let error = read_regular(&at(name), 10).unwrap_err();
            assert_eq!(error.to_string(), "it is not a regular file", "{name}");
        }
        std::fs::write(at("file"), "words").unwrap();
        assert_eq!(read_regular(&at("file"), 5).unwrap(), b"words");
        assert!(read_regular(&at("file"), 4).unwrap_err().to_string().contains("more than 4 bytes"));
        // Its length is 0 although it has content.
        assert!(!read_regular(Path::new("/proc/self/status"), 1 << 20).unwrap().is_empty());
    }

    #[test]
    fn sparse_giants_are_refused_by_their_length() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("giant");
        File::create(&path).unwrap().set_len(1 << 40).unwrap();
        assert!(read_regular(&path, 1 << 20).unwrap_err().to_string().contains("more than"));
        assert!(read_regular(&path, 1 << 50).unwrap_err().to_string().contains("holes"));
        assert_eq!(open_regular(&path).unwrap().1, 1 << 40);
    }
}
