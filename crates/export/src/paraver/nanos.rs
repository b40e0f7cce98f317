//! A Paraver trace in Nanos++'s numbers, so that its published configurations work on it.
//!
//! Types: 9000000 states, 9000004 sub-states, 9200000 plus a key's number for bursts and points, each with its
//! value at the start and 0 at the end. Messages are communications: the tag is the domain, the size the
//! value, or the id if there is none. In addition there are state records (1 running, 0 idle, …), which
//! analyses of efficiency need.
//!
//! Paraver wants records in the order of time, at equal times states, events, communications. States and
//! communications are known only when they end: all records are sorted beside the file
//! ([`crate::SortedLines`]), so that memory does not grow with the length of a trace.

use super::{write_pcf, write_whole};
use crate::SortedLines;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use taskscope_execution::view::{ViewDescription, ViewType};

/// Type of states.
pub const STATE: u32 = 9_000_000;
/// Type of sub-states.
pub const SUBSTATE: u32 = 9_000_004;
/// Type of the key with number 0.
pub const KEYS: u32 = 9_200_000;

/// A thread: its process and its number in it, both from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Process.
    pub process: u32,
    /// Thread of it.
    pub thread: u32,
    /// Its number over all processes. Each thread has a CPU of its own, since its real CPU is not known and readers
    /// skip records without one.
    pub cpu: u32,
}

/// Records of one time come in this order.
#[derive(Clone, Copy)]
enum Kind {
    State,
    Events,
    Message,
}

/// Collects records of one trace.
pub struct NanosTrace {
    directory: PathBuf,
    lines: SortedLines,
    end: u64,
    /// The first record that could not be kept.
    failed: Option<io::Error>,
}

impl NanosTrace {
    /// No record yet. The files will be in `directory`, which is created.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(directory: &Path) -> io::Result<NanosTrace> {
        std::fs::create_dir_all(directory)?;
        let lines = SortedLines::beside(&directory.join("nanos.prv"));
        Ok(NanosTrace { directory: directory.to_owned(), lines, end: 0, failed: None })
    }

    fn record(&mut self, time: u64, kind: Kind, write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) {
        if self.failed.is_none() {
            let key = time << 2 | kind as u64;
            // Writing to memory does not fail.
            self.failed = self.lines.push(key, |line| drop(write(line))).err();
        }
    }

    /// Whether records can no longer be kept, so that further ones are useless.
    pub fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Writes one record: at `time`, types take values.
    pub fn events(&mut self, row: Row, time: u64, pairs: impl IntoIterator<Item = (u32, u64)>) {
        self.end = self.end.max(time);
        let mut pairs = pairs.into_iter().peekable();
        if pairs.peek().is_none() {
            return;
        }
        self.record(time, Kind::Events, |line| {
            write!(line, "2:{}:{time}", object(row))?;
            pairs.try_for_each(|(ty, value)| write!(line, ":{ty}:{}", value.min(i64::MAX as u64)))?;
            writeln!(line)
        });
    }

    /// A thread was in a state of Paraver's from `begin` to `end`.
    pub fn state(&mut self, row: Row, begin: u64, end: u64, state: u32) {
        self.end = self.end.max(end);
        if end > begin {
            self.record(begin, Kind::State, |line| writeln!(line, "1:{}:{begin}:{end}:{state}", object(row)));
        }
    }

    /// A message was sent and received.
    pub fn message(&mut self, from: (Row, u64), to: (Row, u64), size: u64, tag: u32) {
        let ((from, sent), (to, received)) = (from, to);
        self.end = self.end.max(sent).max(received);
        self.record(sent, Kind::Message, |line| {
            let (from, to) = (object(from), object(to));
            writeln!(line, "3:{from}:{sent}:{sent}:{to}:{received}:{received}:{size}:{tag}")
        });
    }

    /// Writes `nanos.prv`, `.pcf` and `.row`. `threads` are the numbers of threads of each process, `types` the
    /// meanings of types and values, `rows` the names of all threads in order.
    ///
    /// # Errors
    /// Errors of the file system; no incomplete file is left.
    pub fn finish(self, threads: &[u32], types: Vec<ViewType>, rows: Vec<String>) -> io::Result<()> {
        let NanosTrace { directory, lines, end, failed } = self;
        failed.map_or(Ok(()), Err)?;
        write_whole(&directory.join("nanos.prv"), |out| {
            let processes: Vec<String> = threads.iter().map(|count| format!("{count}:1")).collect();
            let (total, tasks) = (threads.iter().sum::<u32>(), threads.len());
            let processes = processes.join(",");
            writeln!(out, "#Paraver (19/01/38 at 03:14):{end}_ns:1({total}):1:{tasks}({processes})")?;
            lines.write_to(out)
        })?;
        let description = ViewDescription { rows, types };
        write_whole(&directory.join("nanos.pcf"), |out| {
            write_pcf(out, &description)?;
            writeln!(out, "\n\nSTATES")?;
            STATES.iter().try_for_each(|(number, name)| writeln!(out, "{number:<4} {name}"))
        })?;
        write_whole(&directory.join("nanos.row"), |out| {
            // Tools that compute efficiencies read the number of CPUs off the first line.
            writeln!(out, "LEVEL CPU SIZE {}", description.rows.len())?;
            (1..=description.rows.len()).try_for_each(|cpu| writeln!(out, "1.{cpu}"))?;
            writeln!(out, "\nLEVEL THREAD SIZE {}", description.rows.len())?;
            description.rows.iter().try_for_each(|row| writeln!(out, "{row}"))
        })
    }
}

/// A thread as records name it.
fn object(row: Row) -> String {
    format!("{}:1:{}:{}", row.cpu + 1, row.process + 1, row.thread + 1)
}

/// Paraver's states, as far as records have them.
const STATES: [(u32, &str); 6] = [
    (0, "Idle"),
    (1, "Running"),
    (3, "Waiting a message"),
    (5, "Synchronization"),
    (7, "Scheduling and Fork/Join"),
    (9, "Blocked"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_in_time_order() {
        let directory = tempfile::tempdir().unwrap();
        let mut trace = NanosTrace::create(directory.path()).unwrap();
        let (one, two) = (Row { process: 0, thread: 0, cpu: 0 }, Row { process: 1, thread: 1, cpu: 2 });
        trace.events(one, 10, [(STATE, 7), (KEYS + 2, 1)]);
        trace.events(two, 20, [(STATE, 0)]);
        trace.message((one, 5), (two, 20), 9, 3);
        trace.state(one, 0, 10, 1);
        trace.events(two, 30, []);
        trace.finish(&[1, 2], vec![], vec!["a".into(), "b".into(), "c".into()]).unwrap();
        let text = std::fs::read_to_string(directory.path().join("nanos.prv")).unwrap();
        assert_eq!(
            text,
            "#Paraver (19/01/38 at 03:14):30_ns:1(3):1:2(1:1,2:1)\n\
             1:1:1:1:1:0:10:1\n\
             3:1:1:1:1:5:5:3:1:2:2:20:20:9:3\n\
             2:1:1:1:1:10:9000000:7:9200002:1\n\
             2:3:1:2:2:20:9000000:0\n"
        );
    }
}
