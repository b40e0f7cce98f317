//! Which tasks kept others from running: for programs that say when a task is able to run.
//!
//! While `r` tasks of a process are ready and do not run, and `k` tasks run, each of the `k` is charged `r / k`, in
//! turns: as undirected blame ([`crate::blame`]), with tasks in the place of threads. A task does not run while it has no CPU
//! itself. All charges, plus the time not charged to a running task, sum to the waiting time of tasks.

use crate::turns::{Received, Turns};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::{Execution, Group, ProcessIndex, Queued, TaskIndex, ThreadIndex, TypeIndex};

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
    /// The part without a CPU, nanoseconds.
    off_ns: u64,
}

/// Time of a thread in a task without a CPU.
#[derive(Clone, Copy)]
struct Off {
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
    for (process, threads) in execution.threads_by_process().iter().enumerate() {
        let waits = waits.remove(&ProcessIndex::of(process)).unwrap_or_default();
        let (pieces, off) = pieces(execution, threads);
        sweep(execution, &waits, (&pieces, &off), &mut by);
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

/// Stretches of a thread's time in one task, and the times in them without a CPU.
fn pieces(execution: &Execution, threads: &[ThreadIndex]) -> (Vec<Piece>, Vec<Off>) {
    let (mut pieces, mut off): (Vec<Piece>, Vec<Off>) = Default::default();
    for thread in threads.iter().copied() {
        for span in execution.spans_of_run(thread).filter(|span| span.section.task.is_some()) {
            let (task, start, end) = (span.section.task, span.start, span.end);
            let is_off = span.section.state.group() == Group::Off && start < end;
            off.extend(is_off.then_some(Off { thread, start, end }));
            let off_ns = if is_off { end - start } else { 0 };
            match pieces.last_mut() {
                Some(last) if last.thread == thread && last.task == task && last.end == start => {
                    last.end = end;
                    last.off_ns += off_ns;
                }
                _ => pieces.push(Piece { task, thread, start, end, off_ns }),
            }
        }
    }
    (pieces, off)
}

/// One sweep over time: threads that run a task take turns, and a piece has the charges of its thread meanwhile.
fn sweep(
    execution: &Execution,
    waits: &[(u64, u64)],
    (pieces, off): (&[Piece], &[Off]),
    by: &mut FxHashMap<TypeIndex, Starver>,
) {
    enum Edge {
        Waits(i64),
        Begins(usize),
        Ends(usize),
        HasCpu(ThreadIndex, bool),
    }
    let mut edges: Vec<(u64, Edge)> = Vec::with_capacity(2 * (waits.len() + pieces.len() + off.len()));
    for (ready, began) in waits {
        edges.push((*ready, Edge::Waits(1)));
        edges.push((*began, Edge::Waits(-1)));
    }
    for (row, piece) in pieces.iter().enumerate() {
        edges.push((piece.start, Edge::Begins(row)));
        edges.push((piece.end, Edge::Ends(row)));
    }
    // The begin of a piece comes before the loss of its CPU, and so does its end before the next CPU.
    for Off { thread, start, end } in off {
        edges.push((*start, Edge::HasCpu(*thread, false)));
        edges.push((*end, Edge::HasCpu(*thread, true)));
    }
    edges.sort_by_key(|(at, _)| *at);
    let threads = execution.threads.len();
    let (mut running, mut received) = (Turns::new(threads), Received::new(threads));
    // Charges of each thread when it began to run, and those of its piece until then.
    let (mut since, mut before) = (vec![0; threads], vec![0; threads]);
    // Whether each thread is in a piece, and whether it has a CPU there.
    let mut runs = vec![(false, true); threads];
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
                runs[thread].0 = true;
                before[thread] = 0;
                since[thread] = received.of(thread);
                running.set(thread, runs[thread].1);
            }
            Edge::HasCpu(thread, has) => {
                let thread = thread.index();
                runs[thread].1 = has;
                // Sums of threads that take no turns mean nothing.
                if has {
                    since[thread] = received.of(thread);
                } else {
                    before[thread] += received.of(thread) - since[thread];
                }
                running.set(thread, runs[thread] == (true, true));
            }
            Edge::Ends(row) => {
                let Piece { task, thread, start, end, off_ns } = pieces[row];
                let number = thread.index();
                let last = if runs[number].1 { received.of(number) - since[number] } else { 0 };
                let charged = before[number] + last;
                runs[number].0 = false;
                running.set(number, false);
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
                row_of_type.waited_ns += charged;
                row_of_type.pieces += 1;
                if end - start - off_ns > row_of_type.longest_ns {
                    row_of_type.longest_ns = end - start - off_ns;
                    (row_of_type.longest_task, row_of_type.longest_on) = (task, thread);
                    row_of_type.longest_at = start;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::{
        Change, ExecutionBuilder, Observer, OsSource, Place, RegionIndex, Section, State,
    };

    #[test]
    fn a_task_without_a_cpu_keeps_no_task_from_running() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        for number in 0..2 {
            let thread = builder.add_thread(process, number.into());
            let (task, ty) = (TaskIndex(number), TypeIndex(number));
            let (parent, region) = (TaskIndex::NONE, RegionIndex::NONE);
            builder.event(thread, 0);
            builder.change(thread, 0, Change::ThreadWorks);
            builder.change(thread, 0, Change::TaskCreated { task, ty, parent, region });
            builder.change(thread, 0, Change::TaskStarts { task });
            let place = Place::task_type(ty);
            builder.change(thread, 0, Change::Becomes(Section { task, place, ..Section::of(State::Task) }));
            builder.event(thread, 100);
            builder.change(thread, 100, Change::ThreadEnds);
        }
        let mut execution = builder.finish();
        execution.queued = vec![Queued { task: TaskIndex(1), ready: 0, began: 100 }];
        let charged = |execution: &Execution| -> Vec<(u32, u64, u64, u64)> {
            let rows = starvation(execution).by.into_iter();
            rows.map(|row| (row.ty.0, row.waited_ns, row.pieces, row.longest_ns)).collect()
        };
        assert_eq!(charged(&execution), [(0, 50, 1, 100), (1, 50, 1, 100)]);
        execution.add_off_cpu(ThreadIndex(0), OsSource::Switches, &[(20, 60)], &[]);
        execution.attribute_system_time();
        assert_eq!(charged(&execution), [(1, 70, 1, 100), (0, 30, 1, 60)]);
    }
}
