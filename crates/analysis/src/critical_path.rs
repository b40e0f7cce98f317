//! The critical path of the executed run: what, at each instant, the end of the run was waiting for.
//!
//! From the end of the run backwards: the task that ended last; before it, whichever came last of its
//! worker becoming free, its creation, and the arrival of its inputs; and so on. The steps
//! tile the wall time, so their lengths sum to it exactly.

use crate::slo::Deciding;
use crate::timeline::Limits;
use taskscope_execution::NO_TIME;
use taskscope_execution::graph::{NONE, TaskGraph};

/// What a step of the path is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum StepKind {
    /// A task executed; the step's task.
    Work,
    /// A task could start and did not, or its worker was in the runtime.
    Dispatch,
    /// Its last input was complete and not sent.
    Send,
    /// Its last input was under way.
    Transfer,
    /// The program had not begun to execute anything.
    Start,
    /// All tasks had ended.
    End,
}

impl StepKind {
    /// All kinds.
    pub const ALL: [StepKind; 6] = [
        StepKind::Work,
        StepKind::Dispatch,
        StepKind::Send,
        StepKind::Transfer,
        StepKind::Start,
        StepKind::End,
    ];

    /// Its name in tables and JSON.
    pub const fn name(self) -> &'static str {
        match self {
            StepKind::Work => "work",
            StepKind::Dispatch => "dispatch",
            StepKind::Send => "send",
            StepKind::Transfer => "transfer",
            StepKind::Start => "start",
            StepKind::End => "end",
        }
    }
}

/// A part of the critical path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What it is.
    pub kind: StepKind,
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Row of the task that executed, or was to start; [`NONE`] at start and end.
    pub task: u32,
    /// Row of the data sent or under way; else [`NONE`].
    pub data: u32,
}

/// The critical path in the order of time. Its steps tile the time from the first begin to the last end
/// of a worker.
pub fn critical_path(graph: &TaskGraph) -> Vec<Step> {
    let (begin, end) = graph.range();
    let mut path = Path { begin, steps: Vec::new(), now: end };
    let last = (graph.pieces.iter().enumerate())
        .filter_map(|(worker, pieces)| pieces.last().map(|piece| (piece.end, worker)))
        .max_by_key(|(end, worker)| (*end, std::cmp::Reverse(*worker)));
    let Some((mut at, mut worker)) = last else {
        path.back_to(begin, StepKind::End, NONE, NONE);
        return path.steps;
    };
    path.back_to(at, StepKind::End, NONE, NONE);
    // The worker executed something just before `at`; every turn goes back in time.
    while let Some(row) = graph.pieces.get(worker).partition_point(|piece| piece.start < at).checked_sub(1) {
        let pieces = graph.pieces.get(worker);
        let piece = pieces[row];
        let task = piece.task;
        path.back_to(piece.start, StepKind::Work, task, NONE);
        let free = row.checked_sub(1).map_or(graph.workers[worker].begin, |before| pieces[before].end);
        // A task that resumes waited for its inputs when it first started.
        let first = graph.tasks.start[task as usize] == piece.start;
        let deciding = if first { Deciding::of(graph, task) } else { Deciding::NONE };
        let limits = Limits::of(graph, task, deciding, graph.workers[worker].node);
        let created = if first && limits.creator_worker != NONE { limits.created } else { 0 };
        let latest = free.max(created).max(limits.arrived).min(piece.start);
        path.back_to(latest, StepKind::Dispatch, task, NONE);
        if latest == free && row > 0 || latest == 0 {
            at = free;
        } else if latest == limits.arrived && deciding.last_arrived != NONE && latest > free {
            let data = deciding.last_arrived;
            let sent = graph.copy(data, graph.workers[worker].node).map_or(NO_TIME, |copy| copy.sent);
            if sent != NO_TIME {
                path.back_to(sent, StepKind::Transfer, task, data);
                path.back_to(graph.data.produced[data as usize], StepKind::Send, task, data);
            } else {
                path.back_to(graph.data.produced[data as usize], StepKind::Transfer, task, data);
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
            // Only where the caller's times lie: the rest is told as start.
            break;
        }
    }
    path.back_to(begin, StepKind::Start, NONE, NONE);
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

struct Path {
    /// No step is before it.
    begin: u64,
    steps: Vec<Step>,
    now: u64,
}

impl Path {
    fn back_to(&mut self, at: u64, kind: StepKind, task: u32, data: u32) {
        let at = at.max(self.begin);
        if at < self.now {
            self.steps.push(Step { kind, start: at, end: self.now, task, data });
            self.now = at;
        }
    }
}

/// How much later each task could have ended without the run ending later, all else as recorded:
/// same placement, same order on each worker, same lengths. Nanoseconds; `u64::MAX` for tasks that never ran.
pub fn slack(graph: &TaskGraph) -> Vec<u64> {
    let end = graph.range().1;
    let tasks = &graph.tasks;
    let mut order: Vec<u32> =
        (0..tasks.len() as u32).filter(|t| tasks.start[*t as usize] != NO_TIME).collect();
    order.sort_unstable_by_key(|task| std::cmp::Reverse(tasks.start[*task as usize]));
    let mut slack: Vec<u64> = (0..tasks.len())
        .map(|task| if tasks.end[task] == NO_TIME { u64::MAX } else { end - tasks.end[task] })
        .collect();
    let mut before = vec![NONE; tasks.len()];
    for pieces in graph.pieces.iter() {
        for pair in pieces.windows(2) {
            before[pair[1].task as usize] = pair[0].task;
        }
    }
    // Whatever a task waits for started before it: by falling start, successors come first.
    for task in order {
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
