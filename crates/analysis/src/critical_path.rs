//! The critical path of the executed run: at each instant, the activity that the end of the run was waiting
//! for.
//!
//! Built backwards from the end of the run: the task that ended last; before it, the latest of its worker
//! becoming free, its creation, and the arrival of its inputs; and so on. A wait for a device operation leads
//! to the operation, to its predecessors, and to the code that submitted the first of them. A worker's
//! activity besides executing (a lock, a call, the runtime, off the CPU) is a step of its own. The steps tile
//! the wall time, so their lengths sum to it exactly.

use crate::slo::Deciding;
use crate::span::tasks_by_start;
use crate::timeline::{Limits, Segments, activity_segments};
use taskscope_execution::graph::{NONE, OperationWait, TaskGraph};
use taskscope_execution::{Cause, NO_TIME};

/// A part of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The reason for the step: work, a cause, `wait.start` before the first task, `wait.end` after the last.
    /// For a device that ran an operation, `is_operation` is set; otherwise the operation was submitted and
    /// did not run, or its end had not been noticed.
    pub cause: Cause,
    /// Whether an operation of a device ran; the step's name is its name.
    pub is_operation: bool,
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Row of the task that executed, was to start, or waits for a device; [`NONE`] at start and end.
    pub task: u32,
    /// Row of the data sent or under way; else [`NONE`].
    pub data: u32,
    /// Row of the name of an operation or of the worker's activity besides executing; else [`NONE`].
    pub name: u32,
}

/// The critical path in the order of time. Its steps tile the time from the first begin to the last end
/// of a worker.
pub fn critical_path(graph: &TaskGraph) -> Vec<Step> {
    let (begin, end) = graph.range();
    let segments = activity_segments(graph);
    let mut path = Path { graph, segments: &segments, begin, steps: Vec::new(), now: end };
    let last = (graph.pieces.iter().enumerate())
        .filter_map(|(worker, pieces)| pieces.last().map(|piece| (piece.end, worker)))
        .max_by_key(|(end, worker)| (*end, std::cmp::Reverse(*worker)));
    let Some((mut at, mut worker)) = last else {
        path.back_to(begin, Cause::WaitEnd, NONE, NONE);
        return path.steps;
    };
    path.back_on_worker(worker, at, Cause::WaitEnd, NONE);
    // The worker executed something before `at`, or at least waited; every turn goes back in time.
    while let Some(row) = graph.pieces.get(worker).partition_point(|piece| piece.start < at).checked_sub(1) {
        let pieces = graph.pieces.get(worker);
        let piece = pieces[row];
        let task = piece.task;
        // Submission may happen between two tasks.
        path.back_on_worker(worker, piece.end.min(at), Cause::WaitDispatch, task);
        if let Some(next) = path.through_device(worker, piece.start, Cause::Work, task) {
            (worker, at) = next;
            continue;
        }
        path.back_on_worker(worker, piece.start, Cause::Work, task);
        let free = row.checked_sub(1).map_or(graph.workers[worker].begin, |before| pieces[before].end);
        // A task that resumes waited for its inputs when it first started.
        let first = graph.tasks.start[task as usize] == piece.start;
        let deciding = if first { Deciding::of(graph, task) } else { Deciding::NONE };
        let limits = Limits::of(graph, task, deciding, graph.workers[worker].node);
        let created = if first && limits.creator_worker != NONE { limits.created } else { 0 };
        let latest = free.max(created).max(limits.arrived).min(piece.start);
        if let Some(next) = path.through_device(worker, latest, Cause::WaitDispatch, task) {
            (worker, at) = next;
            continue;
        }
        path.back_on_worker(worker, latest, Cause::WaitDispatch, task);
        if latest == free && row > 0 || latest == 0 {
            at = free;
        } else if latest == limits.arrived && deciding.last_arrived != NONE && latest > free {
            let data = deciding.last_arrived;
            let sent = graph.copy(data, graph.workers[worker].node).map_or(NO_TIME, |copy| copy.sent);
            if sent != NO_TIME {
                path.back_to(sent, Cause::WaitTransfer, task, data);
                path.back_to(graph.data.produced[data as usize], Cause::WaitSend, task, data);
            } else {
                path.back_to(graph.data.produced[data as usize], Cause::WaitTransfer, task, data);
            }
            let producer = graph.data.producer[data as usize];
            if producer == NONE {
                break;
            }
            (worker, at) = (piece_until(graph, producer, graph.data.produced[data as usize]), path.now);
        } else if latest == created && created > free {
            (worker, at) = (limits.creator_worker as usize, created);
        } else {
            break;
        }
        if at != path.now {
            // Only if the caller's times are inconsistent: the rest is reported as start.
            break;
        }
    }
    path.back_on_worker(worker, begin, Cause::WaitStart, NONE);
    path.steps.reverse();
    path.steps
}

/// The worker that executed `task` just before `at`.
fn piece_until(graph: &TaskGraph, task: u32, at: u64) -> usize {
    let first = graph.tasks.worker[task as usize] as usize;
    let executes = |worker: usize| {
        let pieces = graph.pieces.get(worker);
        let row = pieces.partition_point(|piece| piece.start < at).checked_sub(1);
        row.is_some_and(|row| pieces[row].task == task && pieces[row].end >= at)
    };
    if executes(first) {
        return first;
    }
    (0..graph.workers.len()).find(|worker| executes(*worker)).unwrap_or(first)
}

struct Path<'a> {
    graph: &'a TaskGraph,
    segments: &'a Segments<'a>,
    /// No step is before it.
    begin: u64,
    steps: Vec<Step>,
    now: u64,
}

impl Path<'_> {
    fn back_to(&mut self, at: u64, cause: Cause, task: u32, data: u32) {
        self.step(at, Step { cause, is_operation: false, start: 0, end: 0, task, data, name: NONE });
    }

    fn step(&mut self, at: u64, step: Step) {
        let at = at.max(self.begin);
        if at < self.now {
            self.steps.push(Step { start: at, end: self.now, ..step });
            self.now = at;
        }
    }

    /// A step of this kind, split by the worker's other activities.
    fn back_on_worker(&mut self, worker: usize, to: u64, cause: Cause, task: u32) {
        let own = self.segments.get(worker);
        let before = own.partition_point(|segment| segment.start < self.now);
        for segment in own[..before].iter().rev().take_while(|segment| segment.end > to) {
            self.back_to(segment.end.max(to), cause, task, NONE);
            let step = Step {
                cause: segment.kind.cause(),
                is_operation: false,
                start: 0,
                end: 0,
                task,
                data: NONE,
                name: segment.name,
            };
            self.step(segment.start.max(to), step);
        }
        self.back_to(to, cause, task, NONE);
    }

    /// If the worker, after `from`, waited for a known operation: returns its submitter and the time of
    /// submission.
    fn through_device(&mut self, worker: usize, from: u64, cause: Cause, task: u32) -> Option<(usize, u64)> {
        let waits = self.graph.operation_waits.get(worker);
        let last = waits.partition_point(|wait| wait.end <= self.now).checked_sub(1)?;
        let wait = Some(waits[last]).filter(|wait| wait.end > from)?;
        let chain = self.chain(wait);
        let first = self.graph.operations[*chain.last()? as usize];
        if first.submitter == NONE {
            return None;
        }
        self.back_on_worker(worker, wait.end, cause, task);
        let step =
            |cause, name| Step { cause, is_operation: false, start: 0, end: 0, task, data: NONE, name };
        // A wait between two operations belongs to the later one.
        let mut waits = self.graph.operations[wait.operation as usize].name;
        for row in chain {
            let operation = self.graph.operations[row as usize];
            self.step(operation.end, step(Cause::Device, waits));
            self.step(operation.start, Step { is_operation: true, ..step(Cause::Device, operation.name) });
            waits = operation.name;
        }
        self.step(first.submitted, step(Cause::Device, waits));
        Some((first.submitter as usize, first.submitted.max(self.begin)))
    }

    /// The operation that a wait was for, the one for which that waited, and so on.
    fn chain(&self, wait: OperationWait) -> Vec<u32> {
        let mut chain = vec![wait.operation];
        let mut row = wait.operation;
        // Each ended before the next began, so this ends.
        while let Some(before) =
            self.graph.operations.get(row as usize).map(|of| of.after).filter(|row| *row != NONE)
        {
            chain.push(before);
            row = before;
        }
        chain
    }
}

/// Time by which each task could have ended later without a later end of the run, all else as recorded: same
/// placement, same order on each worker, same lengths. Nanoseconds; `u64::MAX` for tasks that never ran.
pub fn slack(graph: &TaskGraph) -> Vec<u64> {
    let end = graph.range().1;
    let tasks = &graph.tasks;
    let order = tasks_by_start(graph);
    let mut slack: Vec<u64> = (0..tasks.len())
        .map(|task| if tasks.end[task] == NO_TIME { u64::MAX } else { end - tasks.end[task] })
        .collect();
    let mut before = vec![NONE; tasks.len()];
    for pieces in graph.pieces.iter() {
        for pair in pieces.windows(2) {
            before[pair[1].task as usize] = pair[0].task;
        }
    }
    // Predecessors start before a task: by falling start, successors come first.
    for (_, task) in order.into_iter().rev() {
        let (row, own) = (task as usize, slack[task as usize]);
        let node = graph.node_of_task(task);
        let mut bound = |other: u32, room: u64| {
            let other = &mut slack[other as usize];
            *other = (*other).min(own.saturating_add(room));
        };
        if before[row] != NONE && before[row] != task {
            bound(before[row], tasks.start[row].saturating_sub(tasks.end[before[row] as usize]));
        }
        for data in graph.inputs.get(row) {
            let producer = graph.data.producer[*data as usize];
            if producer != NONE {
                bound(producer, tasks.start[row].saturating_sub(graph.available(*data, node)));
            }
        }
    }
    slack
}
