//! A row of task types in full: its tasks or shares of worksharing, their times, and one instance after the other.
//!
//! The instances of a row are its tasks that began, and the threads' shares of its constructs; in the order of their begins, which numbers
//! them. The time of a task is that of its body, of a share that from its begin to its end.

use super::Page;
use super::tasks::TaskReference;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use taskscope_execution::{NO_TIME, TaskIndex, ThreadIndex};

/// Listed instances.
const LISTED: usize = 5;

/// A task type, or a construct.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TypeFacts {
    /// Its name.
    pub name: String,
    /// Tasks that began.
    pub tasks: usize,
    /// Threads' shares of worksharing constructs.
    pub shares: usize,
    /// Threads that ran instances.
    pub threads: usize,
    /// Nanoseconds of all instances.
    pub sum_ns: u64,
    /// Median of them.
    pub median_ns: u64,
    /// The longest instances, 5 at most.
    pub longest: Vec<TypeInstance>,
    /// The instance in question; null if there is none.
    pub shown: Option<TypeInstance>,
}

/// A task, or a thread's share of a construct. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct TypeInstance {
    /// Its number in the order of begins, from 1.
    pub number: usize,
    /// The track of its thread.
    pub track: u32,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Nanoseconds of its body.
    pub ns: u64,
    /// The task; null of a share.
    pub task_ref: Option<TaskReference>,
}

/// The instance in question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceOf {
    /// The one that runs at a time, nanoseconds since the start of the trace, the newest of several; else the next one.
    Time(u64),
    /// The one of a number, from 1.
    Number(usize),
}

/// An instance, clocks of the trace.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    start: u64,
    thread: ThreadIndex,
    end: u64,
    ns: u64,
    task: TaskIndex,
}

impl Page {
    /// The facts of a row of task types, by its number among [`type_labels`](Page::type_labels); `None` if there is no such row.
    pub fn type_facts(&self, slot: u32, of: InstanceOf) -> Option<TypeFacts> {
        let name = self.type_labels().into_iter().nth(slot as usize)?;
        let rows = self.instances_of(slot);
        let tasks = rows.iter().filter(|row| row.task.is_some()).count();
        let mut threads: Vec<ThreadIndex> = rows.iter().map(|row| row.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let mut times: Vec<u64> = rows.iter().map(|row| row.ns).collect();
        let middle = times.len() / 2;
        let median_ns = if times.is_empty() { 0 } else { *times.select_nth_unstable(middle).1 };
        let mut longest: Vec<usize> = (0..rows.len()).collect();
        longest.sort_by_key(|row| Reverse(rows[*row].ns));
        let shown = match of {
            InstanceOf::Number(number) => number.checked_sub(1).filter(|row| *row < rows.len()),
            InstanceOf::Time(at) => {
                let clock = self.start().saturating_add(at);
                let begun = rows.partition_point(|row| row.start <= clock);
                let running = rows[..begun].iter().rposition(|row| row.end > clock);
                running.or(Some(begun).filter(|row| *row < rows.len())).or(rows.len().checked_sub(1))
            }
        };
        let facts = |row: usize| self.type_instance(row + 1, &rows[row]);
        Some(TypeFacts {
            name,
            tasks,
            shares: rows.len() - tasks,
            threads: threads.len(),
            sum_ns: rows.iter().map(|row| row.ns).sum(),
            median_ns,
            longest: longest.into_iter().take(LISTED).map(facts).collect(),
            shown: shown.map(facts),
        })
    }

    fn type_instance(&self, number: usize, row: &Row) -> TypeInstance {
        TypeInstance {
            number,
            track: row.thread.0,
            start: self.since_start(row.start),
            end: self.since_start(row.end),
            ns: row.ns,
            task_ref: self.task_reference(row.task),
        }
    }

    /// The instances of a row, by begin.
    fn instances_of(&self, slot: u32) -> Vec<Row> {
        let (execution, types) = (&self.execution, self.type_rows());
        let tasks = &execution.tasks;
        let bodies = self.derived.body_times.get_or_init(|| taskscope_analysis::body_times(execution));
        let track_end = |thread: ThreadIndex| {
            execution.threads.get(thread.index()).map_or(0, |thread| thread.track.end())
        };
        let end_of = |end: u64, thread| if end == NO_TIME { track_end(thread) } else { end };
        let begun =
            (0..tasks.len()).filter(|row| tasks.began[*row] != NO_TIME && types.slot(tasks.ty[*row]) == slot);
        let task_rows = begun.map(|row| Row {
            start: tasks.began[row],
            thread: tasks.runner[row],
            end: end_of(tasks.ended[row], tasks.runner[row]).max(tasks.began[row]),
            ns: bodies.get(row).copied().unwrap_or(0),
            task: TaskIndex(row as u32),
        });
        let shares = execution.works.iter().filter(|work| types.slot(work.ty) == slot).map(|work| {
            let end = end_of(work.end, work.thread).max(work.start);
            Row { start: work.start, thread: work.thread, end, ns: end - work.start, task: TaskIndex::NONE }
        });
        let mut rows: Vec<Row> = task_rows.chain(shares).collect();
        rows.sort_unstable();
        rows
    }
}
