//! Tables of the use of time, as a task graph knows it.

use super::ready::ReadyTable;
use crate::keys::Who;
use crate::ledger::{ByCause, Ledger};
use taskscope_execution::Cause;
use taskscope_execution::graph::TaskGraph;

/// Time in one cause that is charged to one culprit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseRow {
    /// The cause.
    pub cause: Cause,
    /// The charged party.
    pub who: Who,
    /// Row of the task type that lost the time (its task ran or came next), if that is exact.
    pub symptom: Option<u32>,
    /// Nanoseconds.
    pub ns: u64,
}

/// An interval of a worker in one cause. Those of a worker follow each other without gaps; neighbours may be of one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CauseInterval {
    /// Row of the worker.
    pub worker: u32,
    /// First nanosecond, of the trace's clock.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// The cause.
    pub cause: Cause,
}

/// The use of time, as a task graph knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphEntry {
    /// Row of the worker.
    pub worker: u32,
    /// The charged party; `None` if it is derived from other workers' activities.
    pub who: Option<Who>,
    /// See [`CauseRow::symptom`].
    pub symptom: Option<u32>,
    /// The awaited data, if any.
    pub data: Option<DataOf>,
}

/// Time that is charged, as a task graph knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct GraphCharge {
    /// The charged party.
    pub who: Who,
    /// See [`CauseRow::symptom`].
    pub symptom: Option<u32>,
}

/// Data by the programmer's name for it, else by its producer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DataOf {
    /// Row of the graph's names.
    Name(u32),
    /// Data without a name that tasks of a type produced; row of the type.
    Type(u32),
    /// Data without a name that was there at the start.
    Start,
}

impl DataOf {
    /// The name in tables.
    pub fn label(self, graph: &TaskGraph) -> String {
        match self {
            DataOf::Name(row) => graph.names[row as usize].clone(),
            DataOf::Type(row) => format!("made by {}", graph.types[row as usize].name),
            DataOf::Start => "data that was there at the start".to_owned(),
        }
    }
}

/// The ready tasks of a node, as a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Tasks that could start before they did.
    pub tasks: u64,
    /// Total waiting time, nanoseconds.
    pub wait_ns: u64,
    /// The longest wait.
    pub longest_ns: u64,
    /// The task that waited so long, or `NONE`.
    pub longest_task: u32,
    /// Most tasks in it at a time.
    pub most: u64,
    /// Time in which workers of the node stood idle before a task that was in it: their share of the cause
    /// `dispatch`.
    pub idle_ns: u64,
}

/// Capacity by the letters of SLOW; sums to the capacity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slow {
    /// Time in task bodies.
    pub work_ns: u64,
    /// Too little parallel work.
    pub starvation_ns: u64,
    /// Data under way.
    pub latency_ns: u64,
    /// The runtime and the system.
    pub overhead_ns: u64,
    /// Waiting for objects that others hold.
    pub contention_ns: u64,
}

/// The use of the capacity, and cached sums for reports.
#[derive(Clone, Debug)]
pub struct Causes {
    /// All entries of the selected workers.
    pub entries: Ledger<GraphEntry, GraphCharge>,
    /// Sum of the lifetimes of all selected workers.
    pub capacity_ns: u64,
    /// These workers' time by cause; sums to the capacity.
    pub by_cause: ByCause,
    /// Each worker's time by cause; zeros for unselected workers.
    pub by_worker: Vec<ByCause>,
    /// Time by charged party; rows of a cause sum to it. Largest first.
    pub rows: Vec<CauseRow>,
    /// Time in which workers waited for data to be produced, sent, received or noticed, by that data and
    /// cause; rows of a cause sum to it, if an input decided. Largest first.
    pub by_data: Vec<(DataOf, Cause, u64)>,
    /// Time between readiness and start of tasks, by node.
    pub queues: Vec<Queue>,
    /// Idle time by cause and by whether there was ready work.
    pub ready: ReadyTable,
    /// The same capacity by letters.
    pub slow: Slow,
}

impl Causes {
    /// The time in a cause, or in all of its category if it is one.
    pub fn total(&self, cause: Cause) -> u64 {
        let all = Cause::ALL.into_iter().zip(self.by_cause);
        all.filter(|(other, _)| other.is_in(cause)).map(|(_, ns)| ns).sum()
    }
}
