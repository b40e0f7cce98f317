//! The part of a trace that a slice keeps, and its size.

use rustc_hash::FxHashSet;
use taskscope_event::Code;
use taskscope_event::models::{model_of, ovni};

/// The part to keep.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Corrected clocks: begin (included) and end (not included); `None` keeps all.
    pub clocks: Option<(i64, i64)>,
    /// Thread ids; empty keeps all.
    pub threads: Vec<i64>,
    /// Names of models besides `ovni`; empty keeps all.
    pub models: Vec<String>,
    /// Times off the CPU by the analysis of the whole run: readers of the slice use them in place of an analysis of their own,
    /// which lacks the time before and after. `None` if not known.
    pub off_cpu: Option<OffCpuOfRun>,
    /// Waits of threads for each other that reach into the part, by the analysis of the whole run, which knows the events that
    /// ended them. `None` if not known.
    pub waits: Option<KnownWaits>,
    /// Operations of device queues that the part needs; `None` keeps all.
    pub operations: Option<FxHashSet<KeptOperation>>,
}

impl Slice {
    /// Whether the events of this model are kept.
    pub(super) fn keeps_model(&self, code: Code) -> bool {
        self.models.is_empty()
            || code.model() == ovni::LETTER
            || model_of(code.model()).is_some_and(|model| self.models.iter().any(|name| name == model.name))
    }
}

/// Times off the CPU of all threads of a run, in corrected clocks, with their causes.
#[derive(Clone, Debug, Default)]
pub struct OffCpuOfRun {
    /// One row a thread, and one a CPU that is a worker.
    pub rows: Vec<OffCpuTimes>,
    /// Times in which signals had stopped a process, by loom and process id.
    pub stops: Vec<(ProcessId, Vec<(i64, i64)>)>,
}

/// Waits of threads for each other in a part, and what is known of its threads in the whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownWaits {
    /// The waits.
    pub waits: Vec<KnownWait>,
    /// The threads.
    pub threads: Vec<KnownThread>,
}

/// The life of a thread in the whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownThread {
    /// The process.
    pub process: ProcessId,
    /// Id of the thread.
    pub thread: i64,
    /// Its end, in corrected clocks.
    pub end: i64,
    /// Whether it has work besides sleep.
    pub works: bool,
}

/// A wait of a thread for others of its process. Times are corrected clocks, and may be outside of the part; sites, paths and
/// objects have their numbers in the events of the process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownWait {
    /// The process.
    pub process: ProcessId,
    /// Id of the waiting thread.
    pub thread: i64,
    /// The awaited object.
    pub object: u64,
    /// `taskscope_event::models::wait::kind`.
    pub kind: u32,
    /// The call.
    pub call: KnownCall,
    /// Begin of the wait.
    pub start: i64,
    /// Its end.
    pub end: i64,
    /// `taskscope_event::models::wait::outcome`.
    pub outcome: u32,
    /// The thread that ended it, in which call, and when.
    pub waker: Option<(i64, KnownCall, i64)>,
    /// Whether no thread of the process can have ended it.
    pub is_of_others: bool,
    /// The holds of the lock in it, but for those that an earlier wait has.
    pub holds: Vec<KnownHold>,
}

/// A call: the numbers of its site and its path, 0 if not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownCall {
    /// The site.
    pub site: u32,
    /// The path.
    pub path: u32,
}

/// A hold of the lock of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownHold {
    /// Id of the holder.
    pub thread: i64,
    /// The call that took it, with the path of the release.
    pub call: KnownCall,
    /// Begin.
    pub start: i64,
    /// End.
    pub end: i64,
}

/// An operation of a device queue that is kept: the path of the queue's location below the root, and the operation's number,
/// start and end as they are in its event.
pub type KeptOperation = (String, [u64; 3]);

/// A process: its loom and process id.
pub type ProcessId = (String, i64);

/// Times off the CPU of a thread, or of a CPU; each list is in order, without overlaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OffCpuTimes {
    /// The loom of its process.
    pub loom: String,
    /// Process id; `None` of a CPU.
    pub pid: Option<i64>,
    /// Thread id, or the number of the CPU.
    pub id: i64,
    /// The number of the source of the times, as in the event that records it.
    pub source: u32,
    /// Times in which it could run: first nanosecond, and first nanosecond after it.
    pub runnable: Vec<(i64, i64)>,
    /// Times in which it was blocked.
    pub blocked: Vec<(i64, i64)>,
    /// Times that the operating system took: first nanosecond, first nanosecond after it, and the number of the cause, as in
    /// the event that records it.
    pub taken: Vec<(i64, i64, u32)>,
}

/// Loom and process id.
pub(super) type Process<'a> = (Option<&'a str>, Option<i64>);

/// Counts of the kept events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sliced {
    /// Streams that have events in the slice.
    pub streams: u64,
    /// Events of the trace.
    pub events: u64,
    /// Events that are added to them: restored states at the borders, and declarations of removed threads.
    pub added: u64,
    /// Whether clocks are shifted, as the first ones would be negative. Then the slice has no device queues, and readers do not cut
    /// it to its range.
    pub is_shifted: bool,
}
