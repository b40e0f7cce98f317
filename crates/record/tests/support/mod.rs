//! For tests that run their program in a child process, the test binary again, and check its trace.
#![allow(dead_code, reason = "every test file uses a part")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use taskscope_event::Code;
use taskscope_event::framing::*;
use taskscope_event::models::{ovni, recorder};
use taskscope_event::tail;
use taskscope_record::{enter, process, thread};

pub const ROLE: &str = "RECORD_TEST_ROLE";

/// Runs the test `name` of this binary again in a child, in which `role()` is true.
pub fn child(name: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]);
    command.env(ROLE, directory).stdout(Stdio::piped()).stderr(Stdio::null());
    // A core file of a program that is to crash is not left in the sources.
    command.current_dir(directory.ancestors().find(|folder| folder.is_dir()).unwrap());
    command
}

pub fn role() -> Option<PathBuf> {
    std::env::var_os(ROLE).map(PathBuf::from)
}

pub fn start(directory: &Path) {
    process::start(process::Config {
        trace_directory: directory.to_owned(),
        app_id: 1,
        require: vec![("ovni", ovni::VERSION)],
        own_require: vec![("taskscope-recorder", recorder::VERSION)],
        attributes: vec![],
    })
    .unwrap();
}

pub fn attach() -> bool {
    thread::attach(std::ptr::null_mut(), Box::new(|r, at| r.end(at, ovni::THREAD_ENDS, [])))
}

/// A directory of a test's own, which the test removes.
pub fn temporary(name: &str) -> PathBuf {
    tempfile::Builder::new().prefix(&format!("taskscope-record-{name}-")).tempdir().unwrap().keep()
}

/// Every directory with a `stream.json` below `root`.
pub fn streams(root: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    let mut todo = vec![root.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            } else if entry.file_name() == "stream.json" {
                found.push(entry.path().parent().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// Decodes by the framing alone: the events, and whether non-zero bytes follow the last one.
pub fn decode(file: &Path) -> (Vec<(Code, u64, Vec<u8>)>, bool) {
    let mut bytes = std::fs::read(file).unwrap();
    if let Ok(tail) = std::fs::read(file.with_extension("tail")) {
        let (base, active) = tail::active(&tail).unwrap();
        bytes.truncate(base as usize);
        assert_eq!(bytes.len(), base as usize);
        bytes.extend_from_slice(active);
    }
    assert_eq!(bytes[..FILE_HEADER_BYTES], file_header());
    let mut at = FILE_HEADER_BYTES;
    let mut events = vec![];
    while at + EVENT_HEADER_BYTES <= bytes.len() && bytes[at + 1] != 0 {
        let size = payload_bytes(bytes[at]);
        let clock = u64::from_le_bytes(bytes[at + 4..at + 12].try_into().unwrap());
        let payload = bytes[at + 12..at + 12 + size].to_vec();
        events.push((Code([bytes[at + 1], bytes[at + 2], bytes[at + 3]]), clock, payload));
        at += EVENT_HEADER_BYTES + size;
    }
    (events, bytes[at..].iter().any(|b| *b != 0))
}

pub fn sequence_numbers(events: &[(Code, u64, Vec<u8>)]) -> Vec<u64> {
    events
        .iter()
        .filter(|(code, ..)| *code == ovni::THREAD_CREATES)
        .map(|(.., payload)| u64::from_le_bytes(payload[4..12].try_into().unwrap()))
        .collect()
}

pub fn numbered(sequence: u64) -> [u8; 12] {
    let mut payload = [0; 12];
    payload[4..].copy_from_slice(&sequence.to_le_bytes());
    payload
}

/// Emits numbered events on the calling thread.
pub fn emit(numbers: impl IntoIterator<Item = u64>) {
    for number in numbers {
        if let Some(mut r) = enter() {
            let at = r.now();
            r.point(at, ovni::THREAD_CREATES, numbered(number));
        }
    }
}

/// Whether the metadata of the stream in `directory` marks it as finished.
pub fn is_finished(directory: &Path) -> bool {
    std::fs::read_to_string(directory.join("stream.json")).unwrap().contains("\"finished\":1")
}

/// The numbers in the standard stream in `directory`.
pub fn numbers(directory: &Path) -> Vec<u64> {
    sequence_numbers(&decode(&directory.join("stream.obs")).0)
}

/// Ends this process immediately: no code of the test harness runs in it.
pub fn leave(code: i32) -> ! {
    // SAFETY: no preconditions.
    unsafe { libc::_exit(code) }
}
