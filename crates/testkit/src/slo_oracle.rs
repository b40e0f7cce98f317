//! Starvation, latency, overhead by brute force: the definition, asked for every nanosecond.
//!
//! Slow (of order length × workers × chain), and written from the definition alone.

use crate::task_rows::{DataRow, TaskRow, TaskRows};
use std::collections::BTreeMap;

/// The modes of the analysis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// Idle producers are starvation.
    Direct,
    /// Idle producers hand on their overhead.
    Chained,
    /// Idle producers hand on their cause.
    Root,
}

/// The cause of an instant: parts of it by (letter, culprit). Letters are `s`, `l`, `o`.
pub type Cause = BTreeMap<(char, String), f64>;

/// The sums of an idle interval.
#[derive(Clone, Debug, Default)]
pub struct Sums {
    /// Worker.
    pub worker: u64,
    /// First nanosecond.
    pub begin: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Time by (letter, culprit).
    pub by: Cause,
}

impl Sums {
    /// Time of one letter.
    pub fn letter(&self, letter: char) -> f64 {
        self.by.iter().filter(|(key, _)| key.0 == letter).map(|(_, ns)| ns).sum()
    }
}

/// All idle intervals of a trace.
pub fn attribute(rows: &TaskRows, mode: Mode) -> Vec<Sums> {
    let mut all = Vec::new();
    for worker in &rows.workers {
        let mut free = worker.begin;
        for task in pieces(rows, worker.id) {
            if task.start > free {
                let mut sums = Sums { worker: worker.id, begin: free, end: task.start, ..Sums::default() };
                for at in free..task.start {
                    for (key, part) in cause(rows, mode, task, at) {
                        *sums.by.entry(key).or_default() += part;
                    }
                }
                all.push(sums);
            }
            free = task.end;
        }
    }
    all.sort_by_key(|sums| (sums.end, sums.worker));
    all
}

fn pieces(rows: &TaskRows, worker: u64) -> Vec<&TaskRow> {
    let mut own: Vec<&TaskRow> = rows.tasks.iter().filter(|t| t.worker == worker).collect();
    own.sort_by_key(|task| task.start);
    own
}

fn of(letter: char, who: String) -> Cause {
    BTreeMap::from([((letter, who), 1.0)])
}

/// The last produced input that has a producer.
fn last_produced<'a>(rows: &'a TaskRows, task: &TaskRow) -> Option<&'a DataRow> {
    let node = rows.node_of(task.worker);
    let inputs = task.inputs.iter().map(|id| rows.data_of(*id)).filter(|data| data.producer.is_some());
    inputs.max_by_key(|data| (data.produced, rows.available(data.id, node), std::cmp::Reverse(data.id)))
}

fn cause(rows: &TaskRows, mode: Mode, task: &TaskRow, at: u64) -> Cause {
    let node = rows.node_of(task.worker);
    if let Some(data) = last_produced(rows, task).filter(|data| at < data.produced) {
        let producer = rows.tasks.iter().find(|t| Some(t.id) == data.producer).expect("a producer");
        return seen(rows, mode, producer, at);
    }
    let arrived = task
        .inputs
        .iter()
        .map(|id| rows.data_of(*id))
        .max_by_key(|data| (rows.available(data.id, node), std::cmp::Reverse(data.id)));
    if let Some(data) = arrived.filter(|data| at < rows.available(data.id, node)) {
        let copy = data.copies.iter().find(|copy| copy.0 == node);
        if copy.is_some_and(|copy| copy.1.is_some_and(|sent| at < sent)) {
            return of('o', "send".into());
        }
        let producer = rows.tasks.iter().find(|t| Some(t.id) == data.producer);
        let from = producer.map_or(data.home, |t| rows.node_of(t.worker));
        return of('l', format!("link {from}->{node}"));
    }
    of('o', format!("dispatch t{}", task.ty))
}

/// The cause of a wait at `at` for the worker of `producer`.
fn seen(rows: &TaskRows, mode: Mode, producer: &TaskRow, at: u64) -> Cause {
    let worker = rows.workers.iter().find(|w| w.id == producer.worker).expect("a worker");
    let starvation = |ty: u64| of('s', format!("task t{ty}"));
    if let Some(kind) = runtime_at(rows, worker.id, at) {
        return of('o', format!("runtime {kind}"));
    }
    let own = pieces(rows, worker.id);
    if let Some(task) = own.iter().find(|t| t.start <= at && at < t.end) {
        let outside = (task.start..task.end).filter(|at| runtime_at(rows, worker.id, *at).is_none()).count();
        let share = (task.uniform as f64 / outside as f64).min(1.0);
        let ty = if mode == Mode::Root { task.ty } else { producer.ty };
        let mut parts = BTreeMap::from([(('s', format!("task t{ty}")), 1.0 - share)]);
        if share > 0.0 {
            parts.insert(('o', format!("uniform t{}", task.ty)), share);
        }
        return parts;
    }
    if mode == Mode::Direct {
        return starvation(producer.ty);
    }
    if at < worker.begin {
        return of('o', "startup".into());
    }
    let next = own.iter().find(|t| t.start > at).expect("the producer itself comes later");
    let mut cause = cause(rows, mode, next, at);
    if mode == Mode::Chained {
        let overhead: f64 = cause.iter().filter(|(key, _)| key.0 == 'o').map(|(_, part)| part).sum();
        cause.retain(|key, _| key.0 == 'o');
        cause.insert(('s', format!("task t{}", producer.ty)), 1.0 - overhead);
    }
    cause
}

fn runtime_at(rows: &TaskRows, worker: u64, at: u64) -> Option<&str> {
    let covering = rows.runtime.iter().filter(|r| r.0 == worker && r.1 <= at && at < r.2);
    covering.min_by_key(|r| (r.1, r.2, r.3.as_str())).map(|r| r.3.as_str())
}
