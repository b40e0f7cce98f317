//! Counters of each process: tasks that wait for their start, and threads in the program's code.

use super::lanes::{Lane, LaneKind};
use taskscope_execution::{Execution, NO_TIME, ProcessIndex, TaskIndex, Tasks};

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
    /// Tasks by their creation, and by their start: there may be millions, so that their times are looked up.
    created: Vec<TaskIndex>,
    began: Vec<TaskIndex>,
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
            if tasks.created[row] == NO_TIME || execution.threads.get(tasks.creator[row].index()).is_none() {
                continue;
            }
            created.push(TaskIndex::of(row));
            if tasks.began[row] != NO_TIME {
                began.push(TaskIndex::of(row));
            }
        }
        let process = |task: &TaskIndex| execution.threads[tasks.creator[task.index()].index()].process;
        created.sort_unstable_by_key(|task| (created_at(tasks, *task), process(task)));
        began.sort_unstable_by_key(|task| (began_at(tasks, *task), process(task)));
        TaskCounts { counters, first, created, began }
    }

    /// The number of a counter of a process; `None` without a shown thread.
    pub(super) fn counter(&self, process: ProcessIndex, place: u32) -> Option<u32> {
        let first = self.first.get(process.index()).copied().filter(|first| *first != u32::MAX)?;
        Some(first + place)
    }

    /// Changes in the order of time: time, process, difference.
    pub(super) fn iter<'a>(
        &'a self,
        execution: &'a Execution,
    ) -> impl Iterator<Item = (u64, ProcessIndex, i64)> + 'a {
        let tasks = &execution.tasks;
        let process = |task: TaskIndex| execution.threads[tasks.creator[task.index()].index()].process;
        let created = self.created.iter().map(move |task| (created_at(tasks, *task), process(*task)));
        let began = self.began.iter().map(move |task| (began_at(tasks, *task), process(*task)));
        let (mut created, mut began) = (created.peekable(), began.peekable());
        std::iter::from_fn(move || {
            let take_created = match (created.peek(), began.peek()) {
                (Some(one), Some(other)) => one.0 <= other.0,
                (one, _) => one.is_some(),
            };
            let (next, by) = if take_created { (created.next(), 1) } else { (began.next(), -1) };
            next.map(|(at, process)| (at, process, by))
        })
    }
}

fn created_at(tasks: &Tasks, task: TaskIndex) -> u64 {
    tasks.created[task.index()]
}

/// Not before its creation, whatever the clocks are.
fn began_at(tasks: &Tasks, task: TaskIndex) -> u64 {
    tasks.began[task.index()].max(created_at(tasks, task))
}
