//! The time from a task's creation to its start: dependences, then the queue.
//!
//! ```text
//!   created ──────── dependences satisfied ──────── began
//!            waits for predecessors         waits in the queue, beside free workers or none
//! ```
//! The workers of the process are free, or busy with code, at each nanosecond of the queue's time. The code is read from their sections, so
//! it is exact; of a wait over very many sections it is not given.

use super::Page;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Reverse;
use taskscope_execution::{Group, NO_TIME, Place, ProcessIndex, Starts, State, TaskIndex};

/// Listed free workers, and listed code of the others.
const LISTED: usize = 4;
/// Sections during the wait that are read for the code.
const MAX_SECTIONS: usize = 200_000;

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
    /// The code that the other workers were in, the longest first; null if the wait has too many sections.
    pub busy: Option<Vec<BusyCode>>,
    /// Worker-nanoseconds in which workers waited or were idle, and had no CPU that they needed; null as above.
    pub without_cpu_ns: Option<u64>,
}

/// Code of workers while a task was in the queue.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct BusyCode {
    /// The name that bars have of it.
    pub name: String,
    /// Worker-nanoseconds, times without a CPU included.
    pub ns: u64,
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
            let waits = || {
                State::ALL
                    .into_iter()
                    .filter(|state| is_free(*state))
                    .map(|state| (sums[state as usize], state))
            };
            let ns: u64 = waits().map(|(ns, _)| ns).sum();
            if let Some((_, state)) = waits().max_by_key(|(ns, _)| *ns).filter(|_| ns > 0) {
                free.push(FreeWorker { track: index.0, ns, state: state.label() });
            }
        }
        let free_ns = free.iter().map(|worker| worker.ns).sum();
        free.sort_by_key(|worker| (Reverse(worker.ns), worker.track));
        free.truncate(LISTED);
        let code = self.busy_code(process, ready, began);
        Some(StartFacts {
            ready: self.since_start(ready),
            is_released: ready > created,
            workers,
            free_ns,
            free,
            without_cpu_ns: code.as_ref().map(|(_, waiting_ns)| waiting_ns.saturating_sub(free_ns)),
            busy: code.map(|(busy, _)| busy),
        })
    }

    /// The code of the workers of a process in a range of the trace's clock, and the nanoseconds in which they waited.
    fn busy_code(&self, process: ProcessIndex, from: u64, to: u64) -> Option<(Vec<BusyCode>, u64)> {
        let mut left = MAX_SECTIONS;
        let mut times: FxHashMap<(State, Place), u64> = FxHashMap::default();
        let mut waiting_ns = 0;
        for (_, thread) in self.execution.workers().filter(|(_, thread)| thread.process == process) {
            let starts = thread.track.starts();
            let first = starts.partition_point(|start| start <= from).saturating_sub(1);
            let last = starts.partition_point(|start| start < to).max(first);
            left = left.checked_sub(last - first)?;
            for span in (first..last).map(|row| thread.track.span(row)) {
                let ns = span.end.min(to).saturating_sub(span.start.max(from));
                let (state, place) = (span.section.state, span.section.place);
                if is_free(state) {
                    waiting_ns += ns;
                } else if ns > 0 && !matches!(state, State::NotStarted | State::Ended) {
                    *times.entry((state, place)).or_default() += ns;
                }
            }
        }
        let mut times: Vec<_> = times.into_iter().collect();
        times.sort_unstable_by_key(|(code, ns)| (Reverse(*ns), *code));
        times.truncate(LISTED);
        let code: Vec<(State, Place)> = times.iter().map(|(code, _)| *code).collect();
        let names = self.code_names(&code).into_iter().zip(times);
        Some((names.map(|(name, (_, ns))| BusyCode { name, ns }).collect(), waiting_ns))
    }
}

/// Whether a worker in this state could start a task.
fn is_free(state: State) -> bool {
    (state.group() == Group::Sync && state != State::Communication) || state == State::Idle
}
