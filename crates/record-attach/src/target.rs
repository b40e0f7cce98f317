//! A process that was not started here, as its directory below `/proc` shows it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Bytes of a thread's name, without the null behind it (`TASK_COMM_LEN`).
const MAX_NAME_BYTES: usize = 15;

/// The unit of times in `/proc`, on all architectures that Linux runs on today.
const TICKS_PER_SECOND: f64 = 100.0;

/// The process. All threads of it are read through this value.
#[derive(Debug)]
pub struct Target {
    /// Its id.
    pub pid: i32,
    directory: PathBuf,
    memory: File,
}

/// A part of the process's memory that holds code of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mapping {
    /// First address.
    pub start: u64,
    /// First address behind it.
    pub end: u64,
    /// Offset in the file.
    pub offset: u64,
    /// Whether code in it can run.
    pub is_executable: bool,
    /// The file as the process names it; `[vdso]` for the kernel's.
    pub path: String,
}

/// A thread that is in a system call and not on a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InSystemCall {
    /// Number of the call; negative if the thread is blocked outside of one (a page fault).
    pub number: i64,
    /// The first two arguments.
    pub arguments: [u64; 2],
    /// Stack pointer in the program.
    pub stack: u64,
    /// Address in the program behind the call.
    pub address: u64,
}

impl Target {
    /// Opens the process.
    ///
    /// # Errors
    /// If the process does not exist, or the kernel does not let this one read its memory.
    pub fn open(pid: i32) -> io::Result<Target> {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let memory = File::open(directory.join("mem"))?;
        Ok(Target { pid, directory, memory })
    }

    /// A file of the process's directory.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// How long it has run.
    pub fn age(&self) -> Option<Duration> {
        let text = fs::read_to_string(self.file("stat")).ok()?;
        // Field 22, in ticks since boot: the twentieth behind the name.
        let (_, fields) = text.rsplit_once(')')?;
        let began: f64 = fields.split_ascii_whitespace().nth(19)?.parse().ok()?;
        let uptime = fs::read_to_string("/proc/uptime").ok()?;
        let now: f64 = uptime.split_ascii_whitespace().next()?.parse().ok()?;
        Duration::try_from_secs_f64(now - began / TICKS_PER_SECOND).ok()
    }

    /// Ids of its threads; none if it has ended.
    pub fn threads(&self) -> Vec<i32> {
        let entries = fs::read_dir(self.file("task")).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
    }

    /// The command, and the file that runs.
    pub fn command(&self) -> (Vec<String>, PathBuf) {
        let line = fs::read(self.file("cmdline")).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let mut words: Vec<String> = words.collect();
        while words.last().is_some_and(String::is_empty) {
            words.pop();
        }
        (words, fs::read_link(self.file("exe")).unwrap_or_default())
    }

    /// The name of a thread, if it is not that of the program's file, which no thread has chosen.
    pub fn thread_name(&self, tid: i32, program: &Path) -> Option<String> {
        let name = fs::read(self.file(&format!("task/{tid}/comm"))).ok()?;
        let name = name.strip_suffix(b"\n").unwrap_or(&name);
        let file = program.file_name()?.as_encoded_bytes();
        let is_programs = name == &file[..file.len().min(MAX_NAME_BYTES)];
        (!is_programs && !name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
    }

    /// The letter of the thread's state; `None` if it is gone.
    pub fn state(&self, tid: i32) -> Option<char> {
        let text = fs::read(self.file(&format!("task/{tid}/stat"))).ok()?;
        // "tid (name) S": the name may have any bytes.
        let name_end = text.iter().rposition(|byte| *byte == b')')?;
        text.get(name_end + 2).map(|byte| char::from(*byte))
    }

    /// The call that a thread is blocked in; `None` if it runs or is gone, or the kernel does not show it.
    pub fn system_call(&self, tid: i32) -> Option<InSystemCall> {
        in_system_call(&fs::read_to_string(self.file(&format!("task/{tid}/syscall"))).ok()?)
    }

    /// Reads memory; returns the number of bytes up to the first that cannot be read.
    pub fn read(&self, address: u64, bytes: &mut [u8]) -> usize {
        self.memory.read_at(bytes, address).unwrap_or(0)
    }

    /// Mapped files, in the order of their addresses.
    pub fn mappings(&self) -> Vec<Mapping> {
        let text = fs::read(self.file("maps")).unwrap_or_default();
        String::from_utf8_lossy(&text).lines().filter_map(mapping).collect()
    }

    /// A mapped file, by its path in the process's own directories.
    ///
    /// # Errors
    /// If it is gone or cannot be read.
    pub fn open_file(&self, path: &str) -> io::Result<File> {
        let below = path.strip_prefix('/').ok_or(io::ErrorKind::NotFound)?;
        let (file, _) = taskscope_files::open_regular(&self.file("root").join(Path::new(below)))?;
        Ok(file)
    }
}

fn in_system_call(text: &str) -> Option<InSystemCall> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let address = |at: usize| u64::from_str_radix(words.get(at)?.strip_prefix("0x")?, 16).ok();
    let number: i64 = words.first()?.parse().ok()?;
    let last = words.len().checked_sub(1)?;
    // Behind the number, a call has six arguments.
    let arguments = if last >= 8 { [address(1)?, address(2)?] } else { [0; 2] };
    Some(InSystemCall { number, arguments, stack: address(last.checked_sub(1)?)?, address: address(last)? })
}

fn mapping(line: &str) -> Option<Mapping> {
    // start-end permissions offset device inode, blanks, path
    let mut rest = line;
    let mut next = || {
        let trimmed = rest.trim_start_matches(' ');
        let (word, behind) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        rest = behind;
        word
    };
    let (start, end) = next().split_once('-')?;
    let (permissions, offset, _device, _inode) = (next(), next(), next(), next());
    let path = rest.trim_start_matches(' ');
    let hexadecimal = |text| u64::from_str_radix(text, 16).ok();
    let has_file = path.starts_with('/') || path == "[vdso]";
    has_file.then_some(())?;
    Some(Mapping {
        start: hexadecimal(start)?,
        end: hexadecimal(end)?,
        offset: hexadecimal(offset)?,
        is_executable: permissions.as_bytes().get(2) == Some(&b'x'),
        path: path.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_thread_has_its_call_and_its_place() {
        let text = "202 0x7f0a10 0x189 0x0 0x0 0x0 0xffffffff 0x7ffe10 0x7f12ab\n";
        let call =
            InSystemCall { number: 202, arguments: [0x7f_0a10, 0x189], stack: 0x7f_fe10, address: 0x7f_12ab };
        assert_eq!(in_system_call(text), Some(call));
        let outside = InSystemCall { number: -1, arguments: [0; 2], stack: 0x10, address: 0x20 };
        assert_eq!(in_system_call("-1 0x10 0x20\n"), Some(outside));
        for text in ["running\n", "", "202", "x 0x1 0x2", "1 2 3"] {
            assert_eq!(in_system_call(text), None, "{text}");
        }
    }

    #[test]
    fn mappings_keep_blanks_in_their_paths() {
        let line = "7f00-8f00 r-xp 00001000 fd:00 1234                       /opt/my lib/a b.so (deleted)";
        let found = mapping(line).unwrap();
        assert_eq!(
            (found.start, found.end, found.offset, found.is_executable),
            (0x7f00, 0x8f00, 0x1000, true)
        );
        assert_eq!(found.path, "/opt/my lib/a b.so (deleted)");
        for line in [
            "",
            "7f00-8f00",
            "7f00-8f00 rw-p 0 00:00 0",
            "x-y r-xp 0 0 0 /a",
            "7f00-8f00 rw-p 0 00:00 0 [heap]",
        ] {
            assert_eq!(mapping(line), None, "{line}");
        }
    }
}
