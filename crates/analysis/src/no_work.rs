//! Idle workers of a process for which nothing arrives: all are idle at once, for long, and no task is ready.
//!
//! ```text
//!   workers      ██·····················██     none is busy
//!   ready tasks       none              ▲      something from outside of the process ends the time
//! ```
//! What ends such a time is not a worker: a request, a timer, input, another process.

use crate::blame::{Charge, Culprit};
use taskscope_execution::{
    Execution, Group, NO_TIME, ProcessIndex, State, TaskIndex, ThreadIndex, join_intervals,
};

/// Shortest time that counts: workers are woken in less, so scheduling has no longer ones.
const MIN_NS: u64 = 1_000_000;
/// The part of the capacity from which on the question is asked: one in this many.
const LEAST_PARTS: u64 = 20;

/// Whether more than half of the time in which workers are idle and none runs is time without work, between the first task of
/// their process and the end of its last one. Regions of OpenMP have work while they last.
pub(crate) fn lacks_work(execution: &Execution, charges: &[Charge], capacity_ns: u64) -> bool {
    let nobodys = charges.iter().filter(|charge| matches!(charge.culprit, Culprit::Nobody(_)));
    let idle_ns: u64 = nobodys.map(|charge| charge.by_state.group_ns(Group::Idle)).sum();
    if idle_ns <= capacity_ns / LEAST_PARTS || !execution.regions.is_empty() || execution.tasks.is_empty() {
        return false;
    }
    let processes = (0..execution.processes.len()).map(|index| ProcessIndex(index as u32));
    let without: u64 = processes.map(|process| time_without_work(execution, process)).sum();
    without > idle_ns / 2
}

/// Worker-nanoseconds of a process in which there is no work for its workers.
fn time_without_work(execution: &Execution, process: ProcessIndex) -> u64 {
    let of_process = |thread: ThreadIndex| {
        execution.threads.get(thread.index()).is_some_and(|thread| thread.process == process)
    };
    let workers = execution.selected_workers().filter(|(_, thread)| thread.process == process).count() as u64;
    let tasks = &execution.tasks;
    let own = |row: &usize| of_process(tasks.creator[*row]) || of_process(tasks.runner[*row]);
    let (mut first, mut last) = (NO_TIME, 0);
    let mut busy: Vec<(u64, u64)> = Vec::new();
    for row in (0..tasks.len()).filter(own) {
        let (created, began, ended) = (tasks.created[row], tasks.began[row], tasks.ended[row]);
        first = first.min(began);
        last = last.max(if ended == NO_TIME { 0 } else { ended });
        // Ready, or waiting for others, which is not distinguished here; one that never began is so to the end.
        if created != NO_TIME && created < began {
            busy.push((created, began));
        }
    }
    if workers == 0 || first >= last {
        return 0;
    }
    let is_own = |task: TaskIndex| tasks.runner.get(task.index()).is_some_and(|runner| of_process(*runner));
    let queued = execution.queued.iter().filter(|queued| is_own(queued.task));
    busy.extend(queued.map(|queued| (queued.ready, queued.began)));
    for thread in (0..execution.threads.len() as u32).map(ThreadIndex).filter(|thread| of_process(*thread)) {
        busy.extend(busy_times(execution, thread));
    }
    join_intervals(&mut busy);
    let mut at = first;
    let mut without = 0;
    for (start, end) in busy.into_iter().chain([(last, last)]) {
        let until = start.clamp(at, last.max(at));
        if until - at >= MIN_NS {
            without += until - at;
        }
        at = at.max(end);
    }
    without.saturating_mul(workers)
}

/// The times in which a thread has, or may have, something to do: all that it is not idle, absent or, outside of its runtime, blocked.
fn busy_times(execution: &Execution, thread: ThreadIndex) -> Vec<(u64, u64)> {
    let blocked = execution.blocked_of(thread);
    let mut busy = Vec::new();
    for span in execution.spans_of_run(thread) {
        match span.section.state {
            state if state.group() == Group::Idle => {}
            State::Unknown | State::NoSubsystem => {
                let mut at = span.start;
                let first = blocked.partition_point(|off| off.end <= span.start);
                for off in blocked[first..].iter().take_while(|off| off.start < span.end) {
                    if off.start > at {
                        busy.push((at, off.start));
                    }
                    at = at.max(off.end);
                }
                if at < span.end {
                    busy.push((at, span.end));
                }
            }
            _ => busy.push((span.start, span.end)),
        }
    }
    busy
}
