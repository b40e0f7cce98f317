//! Counters of each process: tasks that wait for their start, and threads in the program's code.

use super::lanes::{Lane, LaneKind};
use taskscope_execution::{Execution, NO_TIME, ProcessIndex};

/// A number that changes over time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name.
    pub name: &'static str,
    /// Its meaning.
    pub meaning: &'static str,
    /// Its process.
    pub process: ProcessIndex,
}

const COUNTERS: [(&str, &str); 2] = [
    ("waiting tasks", "tasks that are created and have not started"),
    ("useful threads", "threads that run the program's code"),
];

/// Place of a counter of a process among its counters.
pub(super) const WAITING_TASKS: u32 = 0;
pub(super) const USEFUL_THREADS: u32 = 1;

/// Changes of the number of waiting tasks, in the order of time.
pub(super) struct TaskCounts {
    pub(super) counters: Vec<Counter>,
    /// First counter of each process; `u32::MAX` of one without a shown thread.
    first: Vec<u32>,
    created: Vec<(u64, u32)>,
    began: Vec<(u64, u32)>,
}

impl TaskCounts {
    pub(super) fn of(execution: &Execution, lanes: &[Lane]) -> TaskCounts {
        let mut first = vec![u32::MAX; execution.processes.len()];
        let mut counters = Vec::new();
        for lane in lanes.iter().filter(|lane| matches!(lane.kind, LaneKind::Thread(_))) {
            let (process, first_counter) = (lane.process, &mut first[lane.process.index()]);
            if *first_counter == u32::MAX {
                *first_counter = counters.len() as u32;
                counters.extend(COUNTERS.map(|(name, meaning)| Counter { name, meaning, process }));
            }
        }
        let tasks = &execution.tasks;
        let (mut created, mut began) = (Vec::new(), Vec::new());
        for row in 0..tasks.len() {
            let process = execution.threads.get(tasks.creator[row].index()).map(|thread| thread.process);
            let (Some(process), true) = (process, tasks.created[row] != NO_TIME) else { continue };
            created.push((tasks.created[row], process.0));
            if tasks.began[row] != NO_TIME {
                began.push((tasks.began[row].max(tasks.created[row]), process.0));
            }
        }
        created.sort_unstable();
        began.sort_unstable();
        TaskCounts { counters, first, created, began }
    }

    /// The number of a counter of a process; `None` without a shown thread.
    pub(super) fn counter(&self, process: ProcessIndex, place: u32) -> Option<u32> {
        let first = self.first.get(process.index()).copied().filter(|first| *first != u32::MAX)?;
        Some(first + place)
    }

    /// Changes in the order of time: time, process, difference.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, ProcessIndex, i64)> + '_ {
        let mut created = self.created.iter().peekable();
        let mut began = self.began.iter().peekable();
        std::iter::from_fn(move || {
            let take_created = match (created.peek(), began.peek()) {
                (Some(one), Some(other)) => one.0 <= other.0,
                (one, _) => one.is_some(),
            };
            let (next, by) = if take_created { (created.next(), 1) } else { (began.next(), -1) };
            next.map(|(at, process)| (*at, ProcessIndex(*process), by))
        })
    }
}
