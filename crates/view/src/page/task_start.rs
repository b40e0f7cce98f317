//! The time from a task's creation to its start: dependences, then the queue.
//!
//! ```text
//!   created ──────── dependences satisfied ──────── began
//!            waits for predecessors         waits in the queue, beside free workers or none
//! ```

use super::Page;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use taskscope_execution::{Group, NO_TIME, State, TaskIndex};

/// Listed free workers.
const LISTED: usize = 4;

/// A task's wait in the queue. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct StartFacts {
    /// End of its last predecessor; its creation without predecessors or if they had all ended.
    pub ready: u64,
    /// Whether a predecessor ended after its creation.
    pub is_released: bool,
    /// Workers of its process.
    pub workers: u32,
    /// Worker-nanoseconds of the queue's time in which workers waited or were idle, and had a CPU if they needed one.
    pub free_ns: u64,
    /// The workers that did so longest.
    pub free: Vec<FreeWorker>,
}

/// A worker that waited while a task was in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct FreeWorker {
    /// Its track.
    pub track: u32,
    /// Nanoseconds.
    pub ns: u64,
    /// The state in which it waited longest, in words.
    pub state: &'static str,
}

impl Page {
    /// The wait of a task before its start; `None` if its creation, its start or the end of a predecessor is unknown.
    pub(super) fn task_start(&self, task: TaskIndex) -> Option<StartFacts> {
        let tasks = &self.execution.tasks;
        let known =
            |column: &[u64], task: TaskIndex| column.get(task.index()).copied().filter(|at| *at != NO_TIME);
        let (created, began) = (known(&tasks.created, task)?, known(&tasks.began, task)?);
        let mut ready = created;
        for predecessor in self.dependences().predecessors(task) {
            ready = ready.max(known(&tasks.ended, predecessor.task)?);
        }
        // An undeferred task may begin before a declared predecessor has ended, as its order is not that of the queue.
        if ready > began {
            return None;
        }
        let process = self.execution.process_of_task(task)?;
        let (mut workers, mut free) = (0, Vec::new());
        for (index, _) in self.execution.workers().filter(|(_, thread)| thread.process == process) {
            workers += 1;
            if ready == began {
                continue;
            }
            let sums = self.timeline.sums(&self.execution, index, ready, began);
            let is_free = |state: &State| {
                let waits = state.group() == Group::Sync && *state != State::Communication;
                waits || *state == State::Idle
            };
            let waits = || State::ALL.into_iter().filter(is_free).map(|state| (sums[state as usize], state));
            let ns: u64 = waits().map(|(ns, _)| ns).sum();
            if let Some((_, state)) = waits().max_by_key(|(ns, _)| *ns).filter(|_| ns > 0) {
                free.push(FreeWorker { track: index.0, ns, state: state.label() });
            }
        }
        let free_ns = free.iter().map(|worker| worker.ns).sum();
        free.sort_by_key(|worker| (Reverse(worker.ns), worker.track));
        free.truncate(LISTED);
        Some(StartFacts {
            ready: self.since_start(ready),
            is_released: ready > created,
            workers,
            free_ns,
            free,
        })
    }
}
