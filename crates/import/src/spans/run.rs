//! The content of a run, as a reader fills it in.

use super::Losses;
use rustc_hash::FxHashMap;

/// Row of [`Run::processes`].
pub type ProcessRow = u32;
/// Row of [`Run::threads`].
pub type ThreadRow = u32;
/// Row of [`Run::queues`].
pub type QueueRow = u32;
/// Row of [`Run::kinds`].
pub type KindRow = u32;

/// A process.
#[derive(Clone, Debug, Default)]
pub struct Process {
    /// Its number in the file, if it is one.
    pub pid: Option<i64>,
    /// Its name; may be empty.
    pub name: String,
    /// Its host; empty if it is not known. Processes of one host share a clock.
    pub host: String,
    /// Its rank and the number of ranks, if it is one of a job.
    pub rank: Option<(u32, u32)>,
}

/// A thread.
#[derive(Clone, Debug, Default)]
pub struct Thread {
    /// Its process.
    pub process: ProcessRow,
    /// Its number in the file, if it is one.
    pub tid: Option<i64>,
    /// Its name; may be empty.
    pub name: String,
    /// Its life, if it is known: begin and end in nanoseconds. Otherwise it is that of its process's contents.
    pub life: Option<(u64, u64)>,
    /// Its spans, in any order.
    pub spans: Vec<Span>,
    /// Its points, in any order.
    pub points: Vec<Point>,
    /// Whether it is a row beside the workers, such as one of asynchronous sections, or a thread that is not a worker: its
    /// sections of the program's code are states, not tasks, and it is never a worker.
    pub is_beside: bool,
}

/// The meaning of a kind's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Activity {
    /// Code of the program: each span is a task.
    Task,
    /// A state of a runtime, of a class of `taskscope_event::models::instrument::class`.
    State(u32),
}

/// The name of spans, and the place in the source.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// Its name.
    pub name: String,
    /// The source file; empty if it is not known.
    pub file: String,
    /// The line, from 1; 0 if it is not known.
    pub line: u32,
    /// The meaning of its time.
    pub activity: Activity,
}

/// An interval of a thread. `start` ≤ `end`, nanoseconds of the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Its kind.
    pub kind: KindRow,
}

/// A named moment of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Time, nanoseconds of the run's clock.
    pub at: u64,
    /// Its name, a kind.
    pub kind: KindRow,
}

/// An order between two threads, or within one. `from_at` ≤ `to_at`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flow {
    /// The thread of its begin.
    pub from: ThreadRow,
    /// Time of its begin, nanoseconds.
    pub from_at: u64,
    /// The thread of its end.
    pub to: ThreadRow,
    /// Time of its end, nanoseconds.
    pub to_at: u64,
    /// Row of [`Run::domains`].
    pub domain: u32,
}

/// A queue of a device.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Its name.
    pub name: String,
    /// The device's name.
    pub device: String,
    /// The process that it belongs to.
    pub process: ProcessRow,
    /// Its operations, in any order.
    pub operations: Vec<Operation>,
}

/// An operation of a queue.
#[derive(Clone, Debug, Default)]
pub struct Operation {
    /// Begin, nanoseconds of the run's clock; not 0.
    pub start: u64,
    /// End; not before the begin.
    pub end: u64,
    /// Row of [`Run::names`].
    pub name: u32,
    /// A kind of `taskscope_event::models::device::kind`.
    pub kind: u32,
    /// The vendor's id; 0 if there is none.
    pub id: u64,
    /// Bytes moved; 0 if that is not known.
    pub bytes: u64,
    /// Row of [`Run::calls`]: the call that submitted it.
    pub call: Option<u32>,
}

/// A call of a thread that concerns a device.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    /// Its thread.
    pub thread: ThreadRow,
    /// Begin, nanoseconds of the run's clock.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Row of [`Run::names`].
    pub name: u32,
    /// A kind of `taskscope_event::models::device::kind`.
    pub kind: u32,
}

/// A run of another tool.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The tool or format that it comes from.
    pub source: &'static str,
    /// Processes.
    pub processes: Vec<Process>,
    /// Threads.
    pub threads: Vec<Thread>,
    /// Kinds of spans.
    pub kinds: Vec<Kind>,
    /// Names of sets of flows.
    pub domains: Vec<String>,
    /// Flows, in any order.
    pub flows: Vec<Flow>,
    /// Device queues.
    pub queues: Vec<Queue>,
    /// Calls that concern devices.
    pub calls: Vec<Call>,
    /// Names of operations and calls.
    pub names: Vec<String>,
    /// Time in UTC at time 0 of the run's clock, nanoseconds since 1970, if it is known.
    pub origin_unix_ns: Option<i128>,
    /// Everything that was left out.
    pub losses: Losses,
    known_kinds: FxHashMap<Kind, KindRow>,
    known_names: FxHashMap<String, u32>,
    known_domains: FxHashMap<String, u32>,
}

impl Run {
    /// A run without content, of this tool or format.
    pub fn of(source: &'static str) -> Run {
        Run { source, ..Run::default() }
    }

    /// The row of a kind, which is added if it is new.
    pub fn kind(&mut self, kind: Kind) -> KindRow {
        if let Some(row) = self.known_kinds.get(&kind) {
            return *row;
        }
        let row = self.kinds.len() as u32;
        self.kinds.push(kind.clone());
        self.known_kinds.insert(kind, row);
        row
    }

    /// The row of a name of operations and calls, which is added if it is new.
    pub fn name(&mut self, name: &str) -> u32 {
        row_of(&mut self.names, &mut self.known_names, name)
    }

    /// The row of a set of flows, which is added if it is new.
    pub fn domain(&mut self, name: &str) -> u32 {
        row_of(&mut self.domains, &mut self.known_domains, name)
    }

    /// Number of processes with threads.
    pub fn process_count(&self) -> u64 {
        let mut processes: Vec<ProcessRow> = self.threads.iter().map(|thread| thread.process).collect();
        processes.sort_unstable();
        processes.dedup();
        processes.len() as u64
    }

    /// Number of spans of all threads.
    pub fn span_count(&self) -> u64 {
        self.threads.iter().map(|thread| thread.spans.len() as u64).sum()
    }
}

fn row_of(all: &mut Vec<String>, known: &mut FxHashMap<String, u32>, name: &str) -> u32 {
    if let Some(row) = known.get(name) {
        return *row;
    }
    let row = all.len() as u32;
    all.push(name.to_owned());
    known.insert(name.to_owned(), row);
    row
}
