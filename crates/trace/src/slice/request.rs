//! The part of a trace that a slice keeps, and its size.

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
