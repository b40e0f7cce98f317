//! An opened trace.

use crate::names::Places;
use crate::run_file::RunFile;
use std::path::PathBuf;
use taskscope_execution::devices::Devices;
use taskscope_execution::{Doubt, Execution, ThreadIndex};
use taskscope_trace::{ClockOffsets, Problem};

/// A thread's stream, as far as a reader of the report needs it.
#[derive(Clone, Debug)]
pub struct StreamInfo {
    /// Path of its directory below the trace's root.
    pub path: String,
    /// The thread.
    pub thread: ThreadIndex,
    /// Whether the thread ended its stream properly.
    pub finished: bool,
    /// Whether all of its bytes could be read as events.
    pub whole: bool,
    /// Events of both files.
    pub events: u64,
    /// Time of the last event, or of a later sample, if there is one.
    pub last: Option<u64>,
    /// The correction of its clocks, nanoseconds.
    pub clock_offset_ns: i64,
}

/// An opened trace.
pub struct Session {
    /// The directory, as it was given.
    pub root: PathBuf,
    /// The execution.
    pub execution: Execution,
    /// The selected part of the run, nanoseconds of the trace's clock; `None` for all of it.
    pub range: Option<(u64, u64)>,
    /// The time range to which the execution was cut, first and last + 1 by the trace's clock; all time by default.
    pub times: (u64, u64),
    /// The run file of `taskscope record`.
    pub run: Option<RunFile>,
    /// All streams.
    pub streams: Vec<StreamInfo>,
    /// Problems of the streams.
    pub problems: Vec<Problem>,
    /// Problem of the run file, if it cannot be used.
    pub run_file_problem: Option<String>,
    /// Events of all streams.
    pub events: u64,
    /// Events by model, ovni's models first, zeros left out.
    pub events_by_model: Vec<(&'static str, u64)>,
    /// Events with clocks too far from the first one to be true; they were taken at the limit.
    pub clocks_too_far: u64,
    /// Samples shorter than they say.
    pub unreadable_samples: u64,
    /// Queues of devices and the calls that concern them.
    pub devices: Devices,
    /// The applied offsets between the clocks of hosts, if there is a table of them.
    pub clock_offsets: Option<ClockOffsets>,
    /// Names of code places.
    pub places: Places,
    /// Which part of the trace this is, in words; `None` for the whole.
    pub part: Option<String>,
    /// Whether a filter leaves events out of it.
    pub filtered: bool,
    /// Whether nOS-V was recorded without its idle states: a CPU that serves tasks and has none seems to be scheduling.
    pub lacks_resting: bool,
}

impl Session {
    /// Whether every stream ended properly and not before its thread, could be read to its end, and none was left out.
    pub fn is_complete(&self) -> bool {
        self.streams.iter().all(|stream| stream.finished && stream.whole)
            && self.endless_threads().next().is_none()
            && self.devices.queues.iter().all(|queue| queue.finished)
            && !self.problems.iter().any(|problem| problem.kind.is_damage())
    }

    /// Threads that outlive their streams.
    pub fn endless_threads(&self) -> impl Iterator<Item = ThreadIndex> + '_ {
        let ends = self.execution.uncertain.iter().filter(|part| part.doubt == Doubt::StreamEnds);
        ends.map(|part| part.thread)
    }

    /// Events that recorders report as lost.
    pub fn lost_events(&self) -> u64 {
        self.execution.threads.iter().fold(0, |lost, thread| lost.saturating_add(thread.lost_events))
    }
}
