//! Idle workers of a process for which nothing arrives: all are idle at once, for long, and no task is ready.
//!
//! ```text
//!   workers      ██·····················██     none is busy
//!   ready tasks       none              ▲      something from outside of the process ends the time
//! ```
//! What ends such a time is not a worker: a request, a timer, input, another process.

use taskscope_execution::{Execution, Group, NO_TIME, State, ThreadIndex, join_intervals};

/// Shortest time that counts: workers are woken in less, so scheduling has no longer ones.
const MIN_NS: u64 = 1_000_000;
/// The part of the capacity from which on the question is asked: one in this many.
const LEAST_PARTS: u64 = 20;

/// Whether more than half of the time in which workers are idle and none runs is time without work, between the first task of
/// their process and the end of its last one. Regions of OpenMP have work while they last.
/// `idle_ns` is the time in which workers are idle and none runs.
pub(crate) fn lacks_work(execution: &Execution, idle_ns: u64, capacity_ns: u64) -> bool {
    if idle_ns <= capacity_ns / LEAST_PARTS || !execution.regions.is_empty() || execution.tasks.is_empty() {
        return false;
    }
    let mut processes = Process::all(execution);
    let without: u64 = processes.iter_mut().map(Process::time_without_work).sum();
    without > idle_ns / 2
}

/// What is known of the work of a process.
struct Process {
    workers: u64,
    /// From the begin of its first task to the end of its last one.
    life: (u64, u64),
    /// Times in which there is work.
    busy: Vec<(u64, u64)>,
}

impl Process {
    /// One pass over tasks and one over threads, for all processes.
    fn all(execution: &Execution) -> Vec<Process> {
        let blank = || Process { workers: 0, life: (NO_TIME, 0), busy: Vec::new() };
        let mut all: Vec<Process> = execution.processes.iter().map(|_| blank()).collect();
        let process_of = |thread: ThreadIndex| Some(execution.threads.get(thread.index())?.process.index());
        for (_, thread) in execution.selected_workers() {
            all[thread.process.index()].workers += 1;
        }
        let tasks = &execution.tasks;
        for row in 0..tasks.len() {
            let (created, began, ended) = (tasks.created[row], tasks.began[row], tasks.ended[row]);
            let (creator, runner) = (process_of(tasks.creator[row]), process_of(tasks.runner[row]));
            for process in creator.into_iter().chain(runner.filter(|_| runner != creator)) {
                let Process { life: (first, last), busy, .. } = &mut all[process];
                *first = began.min(*first);
                *last = (*last).max(if ended == NO_TIME { 0 } else { ended });
                // Ready, or waiting for others, which is not distinguished here; one that never began is so to the end.
                if created != NO_TIME && created < began {
                    busy.push((created, began));
                }
            }
        }
        for queued in &execution.queued {
            let runner = tasks.runner.get(queued.task.index()).copied();
            if let Some(process) = runner.and_then(process_of) {
                all[process].busy.push((queued.ready, queued.began));
            }
        }
        for (process, threads) in execution.threads_by_process().into_iter().enumerate() {
            for thread in threads {
                all[process].busy.extend(busy_times(execution, thread));
            }
        }
        all
    }

    /// Worker-nanoseconds in which there is no work for the workers.
    fn time_without_work(&mut self) -> u64 {
        let (first, last) = self.life;
        if self.workers == 0 || first >= last {
            return 0;
        }
        join_intervals(&mut self.busy);
        let mut at = first;
        let mut without = 0;
        for (start, end) in self.busy.iter().copied().chain([(last, last)]) {
            let until = start.clamp(at, last.max(at));
            if until - at >= MIN_NS {
                without += until - at;
            }
            at = at.max(end);
        }
        without.saturating_mul(self.workers)
    }
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
