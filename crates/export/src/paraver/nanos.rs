//! A Paraver trace in Nanos++'s numbers, so that its published configurations work on it.
//!
//! Types: 9000000 states, 9000004 sub-states, 9200000 plus a key's number for bursts and points, each with its
//! value at the start and 0 at the end. Messages are communications: the tag is the domain, the size the
//! value, or the id where there is none. Beside these, state records (1 running, 0 idle, …), which
//! analyses of efficiency need.
//!
//! Paraver wants records in the order of time, and a communication is known only when it is received: the
//! records are kept in memory, some forty bytes each, and written at the end.

use super::{write_pcf, write_whole};
use std::io::{self, Write};
use std::path::Path;
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
}

enum Record {
    State { row: Row, end: u64, state: u32 },
    Events { row: Row, first: usize, count: usize },
    Message { from: Row, to: Row, received: u64, size: u64, tag: u32 },
}

/// Collects records of one trace.
#[derive(Default)]
pub struct NanosTrace {
    records: Vec<(u64, Record)>,
    /// Type and value of all events.
    pairs: Vec<(u32, u64)>,
    end: u64,
}

impl NanosTrace {
    /// No record yet.
    pub fn new() -> NanosTrace {
        NanosTrace::default()
    }

    /// At `time`, types take values, as one record.
    pub fn events(&mut self, row: Row, time: u64, pairs: impl IntoIterator<Item = (u32, u64)>) {
        let first = self.pairs.len();
        self.pairs.extend(pairs);
        let count = self.pairs.len() - first;
        self.end = self.end.max(time);
        if count > 0 {
            self.records.push((time, Record::Events { row, first, count }));
        }
    }

    /// A thread was in a state of Paraver's from `begin` to `end`.
    pub fn state(&mut self, row: Row, begin: u64, end: u64, state: u32) {
        self.end = self.end.max(end);
        if end > begin {
            self.records.push((begin, Record::State { row, end, state }));
        }
    }

    /// A message was sent and received.
    pub fn message(&mut self, from: (Row, u64), to: (Row, u64), size: u64, tag: u32) {
        self.end = self.end.max(from.1).max(to.1);
        self.records.push((from.1, Record::Message { from: from.0, to: to.0, received: to.1, size, tag }));
    }

    /// Writes `nanos.prv`, `.pcf` and `.row` into `directory`. `threads` are the numbers of threads of each
    /// process, `types` what the types and values mean, `rows` the names of all threads in order.
    ///
    /// # Errors
    /// Those of the file system; no file is left half.
    pub fn write(
        mut self,
        directory: &Path,
        threads: &[u32],
        types: Vec<ViewType>,
        rows: Vec<String>,
    ) -> io::Result<()> {
        std::fs::create_dir_all(directory)?;
        self.records.sort_by_key(|(time, record)| (*time, matches!(record, Record::Events { .. })));
        write_whole(&directory.join("nanos.prv"), |out| self.write_records(out, threads))?;
        let description = ViewDescription { rows, types };
        write_whole(&directory.join("nanos.pcf"), |out| {
            write_pcf(out, &description)?;
            writeln!(out, "\n\nSTATES")?;
            STATES.iter().try_for_each(|(number, name)| writeln!(out, "{number:<4} {name}"))
        })?;
        write_whole(&directory.join("nanos.row"), |out| super::write_row(out, &description))
    }

    fn write_records(&self, out: &mut impl Write, threads: &[u32]) -> io::Result<()> {
        let processes: Vec<String> = threads.iter().map(|count| format!("{count}:1")).collect();
        let total: u32 = threads.iter().sum();
        writeln!(
            out,
            "#Paraver (19/01/38 at 03:14):{}_ns:1({total}):1:{}({})",
            self.end,
            threads.len(),
            processes.join(",")
        )?;
        let object = |row: &Row| format!("0:1:{}:{}", row.process + 1, row.thread + 1);
        for (time, record) in &self.records {
            match record {
                Record::State { row, end, state } => {
                    writeln!(out, "1:{}:{time}:{end}:{state}", object(row))?;
                }
                Record::Events { row, first, count } => {
                    write!(out, "2:{}:{time}", object(row))?;
                    for (ty, value) in &self.pairs[*first..first + count] {
                        write!(out, ":{ty}:{value}")?;
                    }
                    writeln!(out)?;
                }
                Record::Message { from, to, received, size, tag } => {
                    writeln!(
                        out,
                        "3:{}:{time}:{time}:{}:{received}:{received}:{size}:{tag}",
                        object(from),
                        object(to)
                    )?;
                }
            }
        }
        Ok(())
    }
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
    fn records_come_in_the_order_of_time() {
        let directory = tempfile::tempdir().unwrap();
        let mut trace = NanosTrace::new();
        let (one, two) = (Row { process: 0, thread: 0 }, Row { process: 1, thread: 1 });
        trace.events(one, 10, [(STATE, 7), (KEYS + 2, 1)]);
        trace.events(two, 20, [(STATE, 0)]);
        trace.message((one, 5), (two, 20), 9, 3);
        trace.state(one, 0, 10, 1);
        trace.events(two, 30, []);
        trace.write(directory.path(), &[1, 2], vec![], vec!["a".into(), "b".into(), "c".into()]).unwrap();
        let text = std::fs::read_to_string(directory.path().join("nanos.prv")).unwrap();
        assert_eq!(
            text,
            "#Paraver (19/01/38 at 03:14):30_ns:1(3):1:2(1:1,2:1)\n\
             1:0:1:1:1:0:10:1\n\
             3:0:1:1:1:5:5:0:1:2:2:20:20:9:3\n\
             2:0:1:1:1:10:9000000:7:9200002:1\n\
             2:0:1:2:2:20:9000000:0\n"
        );
    }
}
