//! Capacity, and the one state that each of its nanoseconds has.

use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, Group, NO_TIME, Place, State, ThreadIndex, ThreadKind};

/// Nanoseconds by state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByState([u64; State::ALL.len()]);

impl Default for ByState {
    fn default() -> Self {
        ByState([0; State::ALL.len()])
    }
}

impl ByState {
    /// Nanoseconds in `state`.
    pub fn get(&self, state: State) -> u64 {
        self.0[state as usize]
    }

    /// Adds nanoseconds to `state`.
    pub fn add(&mut self, state: State, ns: u64) {
        self.0[state as usize] += ns;
    }

    /// Nanoseconds in all states.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Nanoseconds in the states of a group.
    pub fn of_group(&self, group: Group) -> u64 {
        self.iter().filter(|(state, _)| state.group() == group).map(|(_, ns)| ns).sum()
    }

    /// States with their nanoseconds, in the order of the states, zeros left out.
    pub fn iter(&self) -> impl Iterator<Item = (State, u64)> + '_ {
        State::ALL.iter().map(|state| (*state, self.get(*state))).filter(|(_, ns)| *ns > 0)
    }
}

/// One thread's time over the run of its process.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTime {
    /// The thread.
    pub thread: ThreadIndex,
    /// Whether it counts in capacity.
    pub worker: bool,
    /// Where its time went; sums to the time of its process.
    pub by_state: ByState,
}

/// Time in one state at one place, over all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// The state.
    pub state: State,
    /// The place of the thread that was in it.
    pub place: Place,
    /// Nanoseconds.
    pub ns: u64,
}

/// Where every worker-nanosecond went.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// From the first to the last event of the trace, nanoseconds.
    pub wall_ns: u64,
    /// Sum over processes of workers × time from the first to the last event of the process.
    pub capacity_ns: u64,
    /// Number of workers.
    pub workers: usize,
    /// How many of them are CPUs, which have rows of their own beside those of the threads.
    pub cpus: usize,
    /// Threads that are no workers.
    pub other_threads: usize,
    /// The time of every thread and CPU, workers or not.
    pub threads: Vec<ThreadTime>,
    /// All workers' time by state; sums to the capacity.
    pub by_state: ByState,
    /// All workers' time by state and place, largest first; sums to the capacity.
    pub causes: Vec<Cause>,
}

impl Ledger {
    /// Threads of the operating system, workers or not.
    pub fn os_threads(&self) -> usize {
        self.threads.len() - self.cpus
    }
}

/// Books every thread's time. The sums are exact: the sections of a thread tile its process's time.
pub fn book(execution: &Execution) -> Ledger {
    let (first, last) = execution.range();
    let mut ledger = Ledger { wall_ns: last - first, ..Ledger::default() };
    let mut causes: FxHashMap<(State, Place), u64> = FxHashMap::default();
    for (index, thread) in execution.threads.iter().enumerate().filter(|(_, t)| t.first != NO_TIME) {
        let index = ThreadIndex(index as u32);
        let mut time = ThreadTime { thread: index, worker: thread.worker, by_state: ByState::default() };
        let mut last = None;
        let mut run = 0;
        execution.spans_of_run(index).for_each(|span| {
            time.by_state.add(span.section.state, span.nanos());
            if thread.worker {
                // Neighbouring sections are often of one kind: look the sum up only when it changes.
                let key = (span.section.state, span.section.place);
                if last == Some(key) {
                    run += span.nanos();
                } else {
                    if let Some(last) = last {
                        *causes.entry(last).or_default() += run;
                    }
                    (last, run) = (Some(key), span.nanos());
                }
            }
        });
        if let Some(last) = last {
            *causes.entry(last).or_default() += run;
        }
        if thread.worker {
            let process = &execution.processes[thread.process.index()];
            ledger.capacity_ns += process.last - process.first;
            ledger.workers += 1;
            ledger.cpus += usize::from(thread.kind == ThreadKind::Cpu);
            for (state, ns) in time.by_state.iter() {
                ledger.by_state.add(state, ns);
            }
        } else {
            ledger.other_threads += 1;
        }
        ledger.threads.push(time);
    }
    ledger.causes = causes
        .into_iter()
        .map(|((state, place), ns)| Cause { state, place, ns })
        .filter(|c| c.ns > 0)
        .collect();
    ledger.causes.sort_by_key(|c| (std::cmp::Reverse(c.ns), c.state, c.place));
    ledger
}
