//! Task types: how many, how long.

use std::collections::BTreeSet;
use taskscope_execution::{
    CutSpan, Execution, NO_TIME, Span, State, SystemCause, TaskIndex, TaskStatus, ThreadIndex, ThreadKind,
    TypeIndex, TypeKind,
};

/// OMPT's flags of explicit tasks and of target tasks.
const TASK_RUNS: u32 = 0xc;
/// All of OMPT's flags that say which kind of task it is.
const TASK_KINDS: u32 = 0x1f;

/// Facts on the tasks of one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaskType {
    /// The type; `NONE` for tasks without a recorded creation.
    pub ty: TypeIndex,
    /// Tasks created by selected threads.
    pub created: u64,
    /// Tasks that began on such threads; all that follows is theirs.
    pub began: u64,
    /// Time in their own bodies, nanoseconds: without waits, nested tasks and nested regions, and without times off the CPU.
    pub body_ns: u64,
    /// Time that their own bodies were blocked in the kernel, nanoseconds.
    pub blocked_ns: u64,
    /// Half of those that began took no longer than this, nanoseconds.
    pub median_ns: u64,
    /// 95 of 100 took no longer than this.
    pub p95_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// From creation to first start, nanoseconds, summed over tasks with a known creation; for tasks that did
    /// not start, to the end of the run or the part of it.
    pub queued_ns: u64,
}

impl TaskType {
    /// Mean time in the body of those that began, nanoseconds.
    pub fn mean_ns(&self) -> u64 {
        self.body_ns.checked_div(self.began).unwrap_or(0)
    }
}

/// Whether tasks of this type are explicit tasks or target tasks, as far as recorded.
pub fn is_explicit(execution: &Execution, ty: TypeIndex) -> bool {
    match execution.catalog.types.get(ty.index()).and_then(|t| t.kind) {
        Some(TypeKind::Task { flags }) => flags & TASK_KINDS == 0 || flags & TASK_RUNS != 0,
        _ => true,
    }
}

/// Explicit tasks that began on selected threads.
pub fn explicit_tasks_begun(execution: &Execution) -> u64 {
    let tasks = &execution.tasks;
    let explicit: Vec<bool> =
        (0..execution.catalog.types.len()).map(|ty| is_explicit(execution, TypeIndex(ty as u32))).collect();
    let rows = tasks.began.iter().zip(&tasks.ty).zip(&tasks.runner).filter(|((at, _), _)| **at != NO_TIME);
    let asked = rows.filter(|(_, runner)| execution.is_selected(**runner));
    asked.filter(|((_, ty), _)| explicit.get(ty.index()).copied().unwrap_or(true)).count() as u64
}

/// Nanoseconds that each task spent in its own body, on any thread, without times off the CPU.
pub fn body_times(execution: &Execution) -> Vec<u64> {
    let mut times = vec![0; execution.tasks.len()];
    let mut parts: Vec<(TaskIndex, u64)> = Vec::with_capacity(PARTS);
    let mut add = |span: Span| {
        parts.push((span.section.task, span.nanos()));
        if parts.len() == PARTS {
            add_parts(&mut parts, &mut times);
        }
    };
    // A CPU shows the sections of its threads: that time is not counted twice.
    let threads = execution.threads.iter().enumerate().filter(|(_, thread)| thread.kind != ThreadKind::Cpu);
    for (index, thread) in threads {
        let index = ThreadIndex(index as u32);
        if execution.system_time_of(index).is_empty() {
            thread.track.for_each_in(|state, _| state == State::Task, &mut add);
        } else {
            execution.spans_of_run(index).filter(|span| span.section.state == State::Task).for_each(&mut add);
        }
    }
    add_parts(&mut parts, &mut times);
    times
}

/// Nanoseconds that each task was blocked in its own body, on any thread; empty without any.
pub fn blocked_times(execution: &Execution) -> Vec<u64> {
    let blocked = execution.system_time.iter().filter(|part| part.cause == SystemCause::Blocked);
    let threads: BTreeSet<ThreadIndex> = blocked.map(|part| part.thread).collect();
    let mut times = Vec::new();
    for thread in threads {
        if execution.threads[thread.index()].kind == ThreadKind::Cpu {
            continue;
        }
        times.resize(execution.tasks.len(), 0);
        let is_blocked_body =
            |cut: &CutSpan| cut.under == State::Task && cut.span.section.state == State::Blocked;
        for cut in execution.shown_spans_of_run(thread).filter(is_blocked_body) {
            if let Some(time) = times.get_mut(cut.span.section.task.index()) {
                *time += cut.span.nanos();
            }
        }
    }
    times
}

/// Parts of tasks that are added in one batch. A thread's tasks are far apart in memory, and a processor
/// overlaps the cache misses only in a tight loop.
const PARTS: usize = 512;

fn add_parts(parts: &mut Vec<(TaskIndex, u64)>, times: &mut [u64]) {
    for (task, ns) in parts.drain(..) {
        if let Some(time) = times.get_mut(task.index()) {
            *time += ns;
        }
    }
}

/// All task types, those with most time first.
/// `bodies` are their [`body_times`], `blocked` their [`blocked_times`].
pub fn task_types(execution: &Execution, bodies: &[u64], blocked: &[u64]) -> Vec<TaskType> {
    let tasks = &execution.tasks;
    // The last one is of tasks of which no type is known.
    let slot = |task: usize| tasks.ty[task].index().min(execution.catalog.types.len());
    let began = |task: usize| tasks.began[task] != NO_TIME && execution.is_selected(tasks.runner[task]);
    let (_, end) = execution.range();
    let mut rows: Vec<Option<TaskType>> = vec![None; execution.catalog.types.len() + 1];
    for (task, body_ns) in bodies.iter().copied().enumerate() {
        let row = rows[slot(task)].get_or_insert_with(|| TaskType {
            ty: tasks.ty[task],
            created: 0,
            began: 0,
            body_ns: 0,
            blocked_ns: 0,
            median_ns: 0,
            p95_ns: 0,
            max_ns: 0,
            queued_ns: 0,
        });
        let created = tasks.created[task] != NO_TIME && execution.is_selected(tasks.creator[task]);
        row.created += u64::from(created);
        if began(task) {
            row.began += 1;
            row.body_ns += body_ns;
            row.blocked_ns += blocked.get(task).copied().unwrap_or(0);
            if tasks.created[task] != NO_TIME {
                row.queued_ns += tasks.began[task].saturating_sub(tasks.created[task]);
            }
        } else if created && tasks.began[task] == NO_TIME && tasks.status[task] == TaskStatus::Created {
            row.queued_ns += end.saturating_sub(tasks.created[task]);
        }
    }
    // Times are gathered once it is known how many there are: there may be very many.
    let times = |row: &Option<TaskType>| Vec::with_capacity(row.map_or(0, |row| row.began as usize));
    let mut times: Vec<Vec<u64>> = rows.iter().map(times).collect();
    for (task, body_ns) in bodies.iter().copied().enumerate().filter(|(task, _)| began(*task)) {
        times[slot(task)].push(body_ns);
    }
    let known = rows.into_iter().zip(times).filter_map(|(row, times)| Some((row?, times)));
    let mut types: Vec<TaskType> = known
        .filter(|(row, _)| row.created + row.began > 0)
        .map(|(row, mut times)| TaskType {
            median_ns: percentile(&mut times, 50),
            p95_ns: percentile(&mut times, 95),
            max_ns: times.iter().copied().max().unwrap_or(0),
            ..row
        })
        .collect();
    types.sort_by_key(|row| (std::cmp::Reverse(row.body_ns), row.ty));
    types
}

/// The smallest value that at least `percent` of 100 values do not exceed (nearest rank); 0 of none.
pub fn percentile(values: &mut [u64], percent: usize) -> u64 {
    if values.is_empty() {
        return 0;
    }
    let rank = (values.len() * percent).div_ceil(100).clamp(1, values.len());
    *values.select_nth_unstable(rank - 1).1
}

#[cfg(test)]
mod tests {
    use super::percentile;

    #[test]
    fn percentiles_are_nearest_rank() {
        let mut values: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(percentile(&mut values, 50), 50);
        assert_eq!(percentile(&mut values, 95), 95);
        assert_eq!(percentile(&mut [7], 95), 7);
        assert_eq!(percentile(&mut [], 50), 0);
    }
}
