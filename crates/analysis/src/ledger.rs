//! Capacity, and the one state that each of its nanoseconds has.

use crate::state_places::SumsByPlace;
use rustc_hash::FxHashMap;
use taskscope_execution::{
    ActivityTimes, Execution, Group, NO_TIME, Place, Span, State, Thread, ThreadIndex, ThreadKind,
    join_intervals,
};

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

    /// What is left without `part`, which is part of it.
    pub fn without(&self, part: &ByState) -> ByState {
        ByState(std::array::from_fn(|state| self.0[state] - part.0[state]))
    }

    /// Adds all of another's.
    pub fn add_all(&mut self, other: &ByState) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, ns)| *sum += ns);
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
    /// Whether it counts in capacity: a worker that is asked about.
    pub worker: bool,
    /// Where its time went; sums to the time of its process.
    pub by_state: ByState,
    /// The part of that, useful time left out, while a worker of its process started or ended MPI.
    pub starting: ByState,
}

impl ThreadTime {
    /// Where its time went while its process neither started nor ended MPI.
    pub fn started(&self) -> ByState {
        self.by_state.without(&self.starting)
    }
}

/// Time in one state at one place, over all workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateRow {
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
    /// Sum over processes of workers × time from the first to the last event of the process, of those that are asked about,
    /// as all that follows.
    pub capacity_ns: u64,
    /// Number of workers.
    pub workers: usize,
    /// How many of them are CPUs, which have rows of their own beside those of the threads.
    pub cpus: usize,
    /// Threads that are no workers.
    pub other_threads: usize,
    /// The time of every thread and CPU that is asked about, workers or not.
    pub threads: Vec<ThreadTime>,
    /// All workers' time by state; sums to the capacity.
    pub by_state: ByState,
    /// The part of `by_state`, useful time left out, while their process started or ended MPI; of that no efficiency
    /// tells.
    pub starting: ByState,
    /// All workers' time by state and place, largest first; sums to the capacity.
    pub causes: Vec<StateRow>,
    /// Time by state and place of the workers that are not asked about.
    pub of_others: Vec<StateRow>,
}

impl Ledger {
    /// All workers' time by state, without that in which their process started or ended MPI.
    pub fn started(&self) -> ByState {
        self.by_state.without(&self.starting)
    }

    /// Whether every worker is a CPU, as with Nanos6, nOS-V and NODES.
    pub fn workers_are_cpus(&self) -> bool {
        self.workers > 0 && self.cpus == self.workers
    }

    /// Threads of the operating system, workers or not.
    pub fn os_threads(&self) -> usize {
        self.threads.len() - self.cpus
    }
}

/// Books every thread's time. The sums are exact: the sections of a thread tile its process's time.
pub fn book(execution: &Execution) -> Ledger {
    let (first, last) = execution.range();
    let mut ledger = Ledger { wall_ns: last - first, ..Ledger::default() };
    let (mut causes, mut of_others) = (SumsByPlace::default(), SumsByPlace::default());
    let mut times = ActivityTimes::of(&execution.activities);
    let mut starters = Vec::new();
    // A worker without an event of its own in a part of a run has not started in it, or has ended.
    let counts = |thread: &Thread| thread.first != NO_TIME || thread.worker;
    for (index, thread) in execution.threads.iter().enumerate().filter(|(_, thread)| counts(thread)) {
        let index = ThreadIndex(index as u32);
        let mut time = ThreadTime {
            thread: index,
            worker: thread.worker,
            by_state: ByState::default(),
            starting: ByState::default(),
        };
        let causes = if thread.selected { &mut causes } else { &mut of_others };
        if execution.system_time_of(index).is_empty() {
            let edges = execution.edges_of_run(index);
            let edges = edges.map(|edge| ((edge.section.state, edge.section.place), edge.nanos()));
            thread.track.add_times(&mut times);
            for ((state, place), ns) in edges.into_iter().chain(times.take(&execution.activities)) {
                time.by_state.add(state, ns);
                if time.worker {
                    causes.add(state, place, ns);
                }
            }
        } else {
            book_cut_spans(execution, &mut time, causes);
        }
        if thread.worker && time.by_state.get(State::MpiStart) > 0 {
            starters.push(index);
        }
        if !thread.selected {
            continue;
        }
        if thread.worker {
            let process = &execution.processes[thread.process.index()];
            ledger.capacity_ns += process.last - process.first;
            ledger.workers += 1;
            ledger.cpus += usize::from(thread.kind == ThreadKind::Cpu);
            ledger.by_state.add_all(&time.by_state);
        } else {
            ledger.other_threads += 1;
        }
        ledger.threads.push(time);
    }
    let starts = starts(execution, &starters);
    for time in &mut ledger.threads {
        let Some(start) = starts.get(&execution.threads[time.thread.index()].process.0) else { continue };
        book_start(execution, start, time);
        if time.worker {
            ledger.starting.add_all(&time.starting);
        }
    }
    let in_rows = |sums: &SumsByPlace| -> Vec<StateRow> {
        sums.iter().map(|((state, place), ns)| StateRow { state, place, ns }).filter(|c| c.ns > 0).collect()
    };
    (ledger.causes, ledger.of_others) = (in_rows(&causes), in_rows(&of_others));
    ledger.causes.sort_by_key(|c| (std::cmp::Reverse(c.ns), c.state, c.place));
    ledger
}

/// Books all spans of a thread, of which the system took some time.
fn book_cut_spans(execution: &Execution, time: &mut ThreadTime, causes: &mut SumsByPlace) {
    execution.spans_of_run(time.thread).for_each(|span| {
        time.by_state.add(span.section.state, span.nanos());
        if time.worker {
            causes.add(span.section.state, span.section.place, span.nanos());
        }
    });
}

/// Books the time of a thread in `start`, the times at which its process started or ended MPI.
fn book_start(execution: &Execution, mut start: &[(u64, u64)], time: &mut ThreadTime) {
    for span in execution.spans_of_run(time.thread) {
        if !span.section.state.is_useful() {
            time.starting.add(span.section.state, inside(&mut start, &span));
        }
        if start.is_empty() {
            break;
        }
    }
}

/// Times at which `starters`, the workers with such time, started or ended MPI, per process: disjoint and in order.
fn starts(execution: &Execution, starters: &[ThreadIndex]) -> FxHashMap<u32, Vec<(u64, u64)>> {
    let mut starts: FxHashMap<u32, Vec<(u64, u64)>> = FxHashMap::default();
    for starter in starters {
        let own = starts.entry(execution.threads[starter.index()].process.0).or_default();
        let spans = execution.spans_of_run(*starter).filter(|span| span.section.state == State::MpiStart);
        own.extend(spans.map(|span| (span.start, span.end)));
    }
    starts.values_mut().for_each(join_intervals);
    starts
}

/// How much of a span lies in `starts`, of which those that are over are dropped: spans come in order.
fn inside(starts: &mut &[(u64, u64)], span: &Span) -> u64 {
    let over = starts.iter().take_while(|start| start.1 <= span.start).count();
    *starts = &starts[over..];
    let meets = starts.iter().take_while(|start| start.0 < span.end);
    meets.map(|start| start.1.min(span.end) - start.0.max(span.start)).sum()
}
