//! The files of one process's profile.

use std::ffi::{CString, OsString};
use std::fs::File;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use taskscope_files::{append_regular, overwrite_regular};
use taskscope_profile::form;
use taskscope_record::limits::check_file_size;

/// More processes than this do not have the same number in one run.
const MAX_COPIES: u32 = 1 << 20;
/// Size of one write.
const BUFFER_BYTES: usize = 64 << 10;

/// Paths of the files: `HOST.PID` with an extension, or `HOST.PID-2` if another process had that pid, such as
/// the program that `exec` replaced, or a process of another container.
pub struct Files {
    /// The profile.
    pub profile: PathBuf,
    /// The one that is being written; between two of them, the one before.
    pub part: PathBuf,
    /// Totals so far.
    pub lines: PathBuf,
}

impl Files {
    fn named(directory: &Path, name: &str, copy: u32) -> Files {
        let mut base = directory.join(name).into_os_string();
        if copy > 1 {
            base.push(format!("-{copy}"));
        }
        // The name has points of its own.
        let with = |extension: &str| -> PathBuf {
            let mut path: OsString = base.clone();
            path.push(format!(".{extension}"));
            path.into()
        };
        Files { profile: with(form::EXTENSION), part: with("part"), lines: with("live.jsonl") }
    }

    /// Chooses the first name that no process has, and claims it by creating [`part`](Self::part). If no file
    /// can be created now, later ones are tried under the first name.
    pub fn choose(directory: &Path, name: &str) -> Files {
        let all = (1..MAX_COPIES).map(|copy| Files::named(directory, name, copy));
        let own = all.into_iter().find(|files| match File::create_new(&files.part) {
            Ok(_) if [&files.profile, &files.lines].iter().any(|path| path.symlink_metadata().is_ok()) => {
                let _ = std::fs::remove_file(&files.part);
                false
            }
            Ok(_) => true,
            Err(why) => why.kind() != ErrorKind::AlreadyExists,
        });
        own.unwrap_or_else(|| Files::named(directory, name, 1))
    }

    /// Replaces the previous profile; its file is overwritten by the next one. Replacing, truncating or
    /// recreating a file is the largest cost of a round on ext4, which then writes it to the disk.
    pub fn replace_profile(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>, is_last: bool) {
        let written = self.write_part(write);
        // Without a previous file, or if the file system cannot exchange them, it is renamed.
        if written.is_ok() && !exchange(&self.part, &self.profile) {
            let _ = std::fs::rename(&self.part, &self.profile);
        }
        if written.is_err() || is_last {
            let _ = std::fs::remove_file(&self.part);
        }
    }

    /// Appends a line to the totals so far, whole or not at all.
    pub fn append_line(&self, line: &str) -> io::Result<()> {
        let file = append_regular(&self.lines)?;
        let length = file.metadata()?.len();
        Limited { file, length }.write_all(line.as_bytes())
    }

    fn write_part(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let file = match overwrite_regular(&self.part) {
            Err(error) if error.kind() == ErrorKind::NotFound => File::create_new(&self.part),
            opened => opened,
        }?;
        let mut buffer = BufWriter::with_capacity(BUFFER_BYTES, Limited { file, length: 0 });
        write(&mut buffer)?;
        let Limited { file, length } = buffer.into_inner()?;
        // The end of a longer one.
        if file.metadata()?.len() > length { file.set_len(length) } else { Ok(()) }
    }
}

/// A file that grows as far as the program's files may.
struct Limited {
    file: File,
    length: u64,
}

impl Write for Limited {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        check_file_size(self.length + bytes.len() as u64)?;
        let written = self.file.write(bytes)?;
        self.length += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Exchanges the names of two files; false on failure.
fn exchange(one: &Path, other: &Path) -> bool {
    let c_string = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (Ok(one), Ok(other)) = (c_string(one), c_string(other)) else { return false };
    let here = libc::AT_FDCWD;
    // SAFETY: two C strings.
    unsafe { libc::renameat2(here, one.as_ptr(), here, other.as_ptr(), libc::RENAME_EXCHANGE) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_profile_is_written_over_the_one_before_the_last() {
        let here = tempfile::tempdir().unwrap();
        let directory = here.path();
        let files = Files::choose(directory, "host.1");
        let mut numbers = Vec::new();
        for text in ["first", "the second", "3rd"] {
            files.replace_profile(|out| out.write_all(text.as_bytes()), false);
            assert_eq!(std::fs::read_to_string(&files.profile).unwrap(), text);
            numbers.push(std::fs::metadata(&files.profile).unwrap().ino());
        }
        // File systems that cannot exchange files have a new one each time.
        if files.part.exists() {
            assert_eq!(numbers[0], numbers[2]);
        }
        let other = Files::choose(directory, "host.1");
        assert_ne!(other.profile, files.profile, "the name is taken");
        let _ = std::fs::remove_file(&other.part);
        files.replace_profile(|out| out.write_all(b"the last"), true);
        let left: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, std::slice::from_ref(&files.profile));
        assert_eq!(std::fs::read_to_string(&files.profile).unwrap(), "the last");
    }

    #[test]
    fn links_that_were_there_before_are_not_followed() {
        let here = tempfile::tempdir().unwrap();
        let directory = here.path();
        let victim = directory.join("victim");
        std::fs::write(&victim, "precious").unwrap();
        let names = ["host.1.part", "host.1-2.live.jsonl", "host.1-3.tsprof"];
        for (name, to) in names.into_iter().zip(["victim", "nowhere", "nowhere"]) {
            std::os::unix::fs::symlink(directory.join(to), directory.join(name)).unwrap();
        }
        let files = Files::choose(directory, "host.1");
        assert!(files.profile.ends_with("host.1-4.tsprof"), "{:?}", files.profile);
        // Made while the process runs.
        std::fs::hard_link(&victim, &files.lines).unwrap();
        assert!(files.append_line("{}\n").is_err());
        std::fs::remove_file(&files.part).unwrap();
        std::fs::hard_link(&victim, &files.part).unwrap();
        for text in ["not written, as the name leads elsewhere", "written"] {
            files.replace_profile(|out| out.write_all(text.as_bytes()), false);
        }
        assert_eq!(std::fs::read_to_string(&files.profile).unwrap(), "written");
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
        assert!(!directory.join("nowhere").exists());
    }
}
