//! The ledger of states: each nanosecond of capacity by thread, state and place, and each waiting nanosecond
//! by charged party.

use crate::blame::{Blame, Charge, Culprit, StateCharge, charges, directed, undirected};
use crate::by_state::ByState;
use crate::entries::Entries;
use crate::ledger::{Entry, Ledger};
use crate::state_places::SumsByPlace;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::{
    ActivityTimes, Execution, NO_TIME, Place, ProcessIndex, State, Thread, ThreadIndex, ThreadKind,
    join_intervals,
};

/// The owner of an entry's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Whose {
    /// A selected worker's: part of the capacity.
    Worker,
    /// Time of a selected thread that is not a worker.
    OtherThread,
    /// Time of a worker that is not selected.
    NotSelected,
}

/// The MPI phase of a thread's process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MpiPhase {
    /// Nothing that concerns the thread.
    Outside,
    /// A worker of the process starts or ends MPI; useful time is `Outside`.
    Starting,
    /// The initial thread is in a call; of idle time alone.
    Calling,
}

/// The use of time, as states know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateEntry {
    /// The owner of the time.
    pub whose: Whose,
    /// The thread.
    pub thread: ThreadIndex,
    /// Its state.
    pub state: State,
    /// Its place in that state.
    pub place: Place,
    /// The MPI phase of its process.
    pub mpi: MpiPhase,
}

impl Entry<StateEntry> {
    fn new(whose: Whose, thread: ThreadIndex, (state, place): (State, Place), mpi: MpiPhase) -> Self {
        Entry { cause: state.cause(), of: StateEntry { whose, thread, state, place, mpi } }
    }
}

/// One thread's time over the run of its process.
#[derive(Clone, Copy, Debug)]
pub struct ThreadTime {
    /// The thread.
    pub thread: ThreadIndex,
    /// Whether it counts in capacity: a selected worker.
    pub worker: bool,
    /// Its time by state; sums to the time of its process.
    pub by_state: ByState,
    /// The part of that, useful time left out, while a worker of its process started or ended MPI.
    pub starting: ByState,
}

impl ThreadTime {
    /// Its time by state, excluding the start and end of MPI in its process.
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

/// The use of every worker-nanosecond, as states know it, and cached sums for reports.
#[derive(Clone, Debug, Default)]
pub struct StateLedger {
    /// All entries.
    pub entries: Ledger<StateEntry, StateCharge>,
    /// The part of the charges on code while it was the only one working.
    pub alone: Entries<Culprit>,
    /// The part of the charges for locks while the lock was free.
    pub free: Entries<Culprit>,
    /// Time from the first to the last event of the trace, nanoseconds; of a part, its share of that.
    pub wall_ns: u64,
    /// Sum over processes of selected workers × time from the first to the last event of the process. All
    /// further sums cover the same workers.
    pub capacity_ns: u64,
    /// Number of workers.
    pub workers: usize,
    /// Number of CPUs among them, which have their own rows beside those of the threads.
    pub cpus: usize,
    /// Threads that are not workers.
    pub other_threads: usize,
    /// The time of every selected thread and CPU, workers or not.
    pub threads: Vec<ThreadTime>,
    /// All workers' time by state; sums to the capacity.
    pub by_state: ByState,
    /// The part of `by_state`, without useful time, while their process started or ended MPI; no efficiency
    /// includes it.
    pub starting: ByState,
    /// All workers' time by state and place, largest first; sums to the capacity.
    pub causes: Vec<StateRow>,
}

impl StateLedger {
    fn of(
        execution: &Execution,
        spent: Entries<Entry<StateEntry>>,
        (charged, alone, free): Blame,
    ) -> StateLedger {
        let ((first, last), (begin, end)) = (execution.whole().range(), execution.part_of_time());
        let mut ledger = StateLedger {
            entries: Ledger { spent, charged },
            alone,
            free,
            wall_ns: end.min(last).saturating_sub(begin.max(first)),
            ..StateLedger::default()
        };
        let mut rows = vec![usize::MAX; execution.threads.len()];
        for (index, thread) in counted(execution).filter(|(_, thread)| thread.selected) {
            if thread.worker {
                let process = &execution.processes[thread.process.index()];
                ledger.capacity_ns += process.last - process.first;
                ledger.workers += 1;
                ledger.cpus += usize::from(thread.kind == ThreadKind::Cpu);
            } else {
                ledger.other_threads += 1;
            }
            rows[index.index()] = ledger.threads.len();
            let (by_state, starting) = Default::default();
            ledger.threads.push(ThreadTime { thread: index, worker: thread.worker, by_state, starting });
        }
        for (Entry { of, .. }, ns) in ledger.entries.spent.iter() {
            let Some(row) = ledger.threads.get_mut(rows[of.thread.index()]) else { continue };
            row.by_state.add(of.state, ns);
            if of.mpi == MpiPhase::Starting {
                row.starting.add(of.state, ns);
            }
        }
        for row in ledger.threads.iter().filter(|row| row.worker) {
            ledger.by_state.add_all(&row.by_state);
            ledger.starting.add_all(&row.starting);
        }
        let is_capacity = |of: &StateEntry| of.whose == Whose::Worker;
        let places =
            ledger.entries.spent.by(|Entry { of, .. }| is_capacity(of).then_some((of.state, of.place)));
        let mut causes: Vec<StateRow> =
            places.iter().map(|((state, place), ns)| StateRow { state: *state, place: *place, ns }).collect();
        causes.sort_by_key(|row| (Reverse(row.ns), row.state, row.place));
        ledger.causes = causes;
        ledger
    }

    /// All workers' time by state, without that in which their process started or ended MPI.
    pub fn started(&self) -> ByState {
        self.by_state.without(&self.starting)
    }

    /// Time by state and place of all workers, selected or not.
    pub(crate) fn in_code(&self) -> Entries<(State, Place)> {
        let is_worker = |of: &StateEntry| of.whose != Whose::OtherThread;
        self.entries.spent.by(|Entry { of, .. }| is_worker(of).then_some((of.state, of.place)))
    }

    /// Time of workers, by state and place, while their process started or ended MPI.
    pub(crate) fn in_start(&self) -> Entries<(State, Place)> {
        let is_meant = |of: &StateEntry| of.whose == Whose::Worker && of.mpi == MpiPhase::Starting;
        self.entries.spent.by(|Entry { of, .. }| is_meant(of).then_some((of.state, of.place)))
    }

    /// Idle time of workers while the initial thread of their process was in a call of MPI, by process.
    pub(crate) fn idle_in_calls(&self, execution: &Execution) -> Entries<ProcessIndex> {
        let process = |of: &StateEntry| execution.threads[of.thread.index()].process;
        let is_meant = |of: &StateEntry| of.whose == Whose::Worker && of.mpi == MpiPhase::Calling;
        self.entries.spent.by(|Entry { of, .. }| is_meant(of).then(|| process(of)))
    }

    /// The charges of each culprit, largest first; late ranks have rows of their own ([`StateLedger::late`]).
    pub fn charges(&self) -> Vec<Charge> {
        charges(&self.entries.charged, &self.alone, &self.free)
    }

    /// Waits of workers in MPI calls for late ranks, by the process of the rank, and the state and place of the call.
    pub(crate) fn late(&self) -> Entries<(ProcessIndex, (State, Place))> {
        self.entries.charged.by(|Entry { of, .. }| match of.culprit {
            Culprit::Rank(process) => Some((process, (of.state, of.at))),
            _ => None,
        })
    }

    /// Device operations while workers waited for them at these places: rows of the catalog's operations with
    /// nanoseconds, the most first; the row of time without an operation is `None`.
    pub fn operations_waited_for(&self, is_meant: impl Fn(Place) -> bool) -> Vec<(Option<u32>, u64)> {
        let operation = |of: &StateCharge| match of.culprit {
            Culprit::Device(operation) if is_meant(of.at) => Some(operation),
            _ => None,
        };
        self.entries.charged.by(|Entry { of, .. }| operation(of)).largest_first()
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

/// Threads that have time: a worker without an event of its own in a part of a run has not started in it, or has ended.
fn counted(execution: &Execution) -> impl Iterator<Item = (ThreadIndex, &Thread)> {
    let all = (0..).map(ThreadIndex).zip(&execution.threads);
    all.filter(|(_, thread)| thread.first != NO_TIME || thread.worker)
}

/// Books every thread's time. The sums are exact: the sections of a thread tile its process's time.
pub fn book(execution: &Execution) -> StateLedger {
    book_beside(execution, || ()).0
}

/// As [`book`], with other work in parallel, if there are cores for it: charging takes as long as all other
/// walks over sections.
pub(crate) fn book_beside<T: Send>(
    execution: &Execution,
    work: impl FnOnce() -> T + Send,
) -> (StateLedger, T) {
    let beside = || (spent(execution), directed(execution), work());
    let ((spent, directed, done), undirected) = rayon::join(beside, || undirected(execution));
    let (mut charged, alone) = undirected;
    let (directed, free) = directed;
    charged.extend(directed);
    let blame = (Entries::of(charged), Entries::of(alone), Entries::of(free));
    (StateLedger::of(execution, spent, blame), done)
}

fn spent(execution: &Execution) -> Entries<Entry<StateEntry>> {
    let mut rows = Vec::new();
    let mut times = ActivityTimes::of(&execution.activities);
    let mut cut = SumsByPlace::default();
    let mut phases = Phases::default();
    for (index, thread) in counted(execution) {
        let whose = match (thread.selected, thread.worker) {
            (true, true) => Whose::Worker,
            (true, false) => Whose::OtherThread,
            (false, true) => Whose::NotSelected,
            (false, false) => continue,
        };
        let mut has = [false; 2];
        let mut add = |(activity, ns): ((State, Place), u64)| {
            has[0] |= activity.0 == State::MpiStart;
            has[1] |= activity.0 == State::Communication;
            rows.push((Entry::new(whose, index, activity, MpiPhase::Outside), ns));
        };
        if execution.system_time_of(index).is_empty() {
            let edges = execution.edges_of_run(index);
            edges.iter().for_each(|edge| add(((edge.section.state, edge.section.place), edge.nanos())));
            thread.track.add_times(&mut times);
            times.take(&execution.activities).for_each(add);
        } else {
            let spans = execution.spans_of_run(index);
            spans.for_each(|span| cut.add(span.section.state, span.section.place, span.nanos()));
            cut.take().for_each(add);
        }
        let [starts, calls] = has;
        if thread.worker && (starts || calls && thread.kind == ThreadKind::Initial) {
            phases.add(execution, index, thread);
        }
    }
    let spent = Entries::of(rows);
    phases.settle();
    if phases.0.is_empty() { spent } else { spent.moving(in_phases(execution, &phases)) }
}

/// Phases by process: disjoint and in order.
#[derive(Default)]
struct Phases(FxHashMap<ProcessIndex, OfProcess>);

#[derive(Default)]
struct OfProcess {
    starts: Vec<(u64, u64)>,
    calls: Vec<(u64, u64)>,
    all: Vec<(u64, u64, MpiPhase)>,
}

impl Phases {
    fn add(&mut self, execution: &Execution, index: ThreadIndex, thread: &Thread) {
        let own = self.0.entry(thread.process).or_default();
        for span in execution.spans_of_run(index) {
            match span.section.state {
                State::MpiStart => own.starts.push((span.start, span.end)),
                State::Communication if thread.kind == ThreadKind::Initial => {
                    own.calls.push((span.start, span.end))
                }
                _ => {}
            }
        }
    }

    fn settle(&mut self) {
        for own in self.0.values_mut() {
            join_intervals(&mut own.starts);
            join_intervals(&mut own.calls);
            own.all.extend(own.starts.iter().map(|(start, end)| (*start, *end, MpiPhase::Starting)));
            for (mut start, end) in own.calls.iter().copied() {
                let first = own.starts.partition_point(|other| other.1 <= start);
                for other in own.starts[first..].iter().take_while(|other| other.0 < end) {
                    if start < other.0 {
                        own.all.push((start, other.0, MpiPhase::Calling));
                    }
                    start = other.1;
                }
                if start < end {
                    own.all.push((start, end, MpiPhase::Calling));
                }
            }
            own.all.sort_unstable();
        }
    }
}

/// The entries within phases, with the entries that contain them.
fn in_phases(execution: &Execution, phases: &Phases) -> Entries<(Entry<StateEntry>, Entry<StateEntry>)> {
    let mut moves = Vec::new();
    for (index, thread) in counted(execution).filter(|(_, thread)| thread.selected) {
        let Some(own) = phases.0.get(&thread.process) else { continue };
        let whose = if thread.worker { Whose::Worker } else { Whose::OtherThread };
        let mut left = own.all.as_slice();
        for span in execution.spans_of_run(index).filter(|span| !span.section.state.is_useful()) {
            left = &left[left.iter().take_while(|phase| phase.1 <= span.start).count()..];
            if left.is_empty() {
                break;
            }
            for (start, end, phase) in left.iter().take_while(|phase| phase.0 < span.end) {
                if *phase == MpiPhase::Starting || span.section.state == State::Idle {
                    let activity = (span.section.state, span.section.place);
                    let entry = |phase| Entry::new(whose, index, activity, phase);
                    let ns = (*end).min(span.end) - (*start).max(span.start);
                    moves.push(((entry(MpiPhase::Outside), entry(*phase)), ns));
                }
            }
        }
    }
    Entries::of(moves)
}
