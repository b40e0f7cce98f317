//! Which tasks kept others from running: for programs that say when a task is able to run.
//!
//! While `r` tasks of a process are ready and do not run, and `k` tasks run, each of the `k` is charged `r / k`, in
//! turns: as undirected blame ([`crate::blame`]), with tasks in the place of threads. All charges, plus the time
//! not charged to a running task, sum to the waiting time of tasks.

use crate::turns::{Received, Turns};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::{Execution, ProcessIndex, Queued, TaskIndex, ThreadIndex, TypeIndex};

/// The charges of the tasks of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Starver {
    /// The type.
    pub ty: TypeIndex,
    /// Task-nanoseconds that others waited for it.
    pub waited_ns: u64,
    /// Pieces that it ran in without a pause.
    pub pieces: u64,
    /// The longest of them, nanoseconds.
    pub longest_ns: u64,
    /// The task that ran so long.
    pub longest_task: TaskIndex,
    /// The thread on which it did.
    pub longest_on: ThreadIndex,
    /// Begin of the longest.
    pub longest_at: u64,
}

/// Waiting time of ready tasks, and the task types charged with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Starvation {
    /// Task-nanoseconds between being able to run and running.
    pub waited_ns: u64,
    /// Number of waits.
    pub waits: u64,
    /// The longest wait, nanoseconds.
    pub longest_ns: u64,
    /// The task that waited so long.
    pub longest_task: Option<TaskIndex>,
    /// Types by charge, largest first.
    pub by: Vec<Starver>,
}

#[derive(Clone, Copy)]
struct Piece {
    task: TaskIndex,
    thread: ThreadIndex,
    start: u64,
    end: u64,
}

/// Charges every wait of a task to the tasks that ran meanwhile.
pub fn starvation(execution: &Execution) -> Starvation {
    let mut all = Starvation::default();
    let mut by: FxHashMap<TypeIndex, Starver> = FxHashMap::default();
    // For unselected threads, only the effect of their tasks on others counts.
    let runner = |task: TaskIndex| execution.tasks.runner.get(task.index()).copied();
    let is_asked = |queued: &&Queued| runner(queued.task).is_none_or(|runner| execution.is_selected(runner));
    for queued in execution.queued.iter().filter(is_asked) {
        let ns = queued.began - queued.ready;
        all.waited_ns += ns;
        all.waits += 1;
        if ns > all.longest_ns {
            (all.longest_ns, all.longest_task) = (ns, Some(queued.task));
        }
    }
    if all.waits == 0 {
        return all;
    }
    let mut waits: FxHashMap<ProcessIndex, Vec<(u64, u64)>> = FxHashMap::default();
    for queued in execution.queued.iter().filter(is_asked) {
        if let Some(process) = process_of(execution, queued.task) {
            waits.entry(process).or_default().push((queued.ready, queued.began));
        }
    }
    for process in (0..execution.processes.len() as u32).map(ProcessIndex) {
        let waits = waits.remove(&process).unwrap_or_default();
        sweep(execution, &waits, &pieces(execution, process), &mut by);
    }
    all.by = by.into_values().collect();
    all.by.sort_by_key(|row| (Reverse(row.waited_ns), row.ty));
    all
}

/// The process of a task: that of the thread which took it up first.
fn process_of(execution: &Execution, task: TaskIndex) -> Option<ProcessIndex> {
    let runner = *execution.tasks.runner.get(task.index())?;
    execution.threads.get(runner.index()).map(|thread| thread.process)
}

/// Stretches of a thread's time in one task.
fn pieces(execution: &Execution, process: ProcessIndex) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (number, thread) in execution.threads.iter().enumerate().filter(|(_, t)| t.process == process) {
        let number = ThreadIndex(number as u32);
        for span in thread.track.spans().filter(|span| span.section.task.is_some()) {
            match pieces.last_mut() {
                Some(last)
                    if last.thread == number && last.task == span.section.task && last.end == span.start =>
                {
                    last.end = span.end;
                }
                _ => pieces.push(Piece {
                    task: span.section.task,
                    thread: number,
                    start: span.start,
                    end: span.end,
                }),
            }
        }
    }
    pieces
}

/// One sweep over time: threads that run a task take turns, and a piece has the charges of its thread meanwhile.
fn sweep(
    execution: &Execution,
    waits: &[(u64, u64)],
    pieces: &[Piece],
    by: &mut FxHashMap<TypeIndex, Starver>,
) {
    enum Edge {
        Waits(i64),
        Begins(usize),
        Ends(usize),
    }
    let mut edges: Vec<(u64, Edge)> = Vec::with_capacity(2 * (waits.len() + pieces.len()));
    for (ready, began) in waits {
        edges.push((*ready, Edge::Waits(1)));
        edges.push((*began, Edge::Waits(-1)));
    }
    for (row, piece) in pieces.iter().enumerate() {
        edges.push((piece.start, Edge::Begins(row)));
        edges.push((piece.end, Edge::Ends(row)));
    }
    edges.sort_by_key(|(at, _)| *at);
    let threads = execution.threads.len();
    let (mut running, mut received) = (Turns::new(threads), Received::new(threads));
    let mut since = vec![0; pieces.len()];
    let (mut waiting, mut last) = (0_i64, 0);
    for (at, edge) in edges {
        if waiting > 0 {
            received.add(&running.deal(last, at), waiting as u64);
        }
        last = at;
        match edge {
            Edge::Waits(more) => waiting += more,
            Edge::Begins(row) => {
                let thread = pieces[row].thread.index();
                running.set(thread, true);
                since[row] = received.of(thread);
            }
            Edge::Ends(row) => {
                let Piece { task, thread, start, end } = pieces[row];
                running.set(thread.index(), false);
                let ty = execution.tasks.ty.get(task.index()).copied().unwrap_or(TypeIndex::NONE);
                let row_of_type = by.entry(ty).or_insert(Starver {
                    ty,
                    waited_ns: 0,
                    pieces: 0,
                    longest_ns: 0,
                    longest_task: task,
                    longest_on: thread,
                    longest_at: start,
                });
                row_of_type.waited_ns += received.of(thread.index()) - since[row];
                row_of_type.pieces += 1;
                if end - start > row_of_type.longest_ns {
                    row_of_type.longest_ns = end - start;
                    (row_of_type.longest_task, row_of_type.longest_on) = (task, thread);
                    row_of_type.longest_at = start;
                }
            }
        }
    }
}
