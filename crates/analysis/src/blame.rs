//! Blame for waiting: each waiting nanosecond is charged to the code that ran meanwhile.
//!
//! *Undirected* (Tallent and Mellor-Crummey, PPoPP 2009): while I workers of a process wait or have nothing
//! to do and W work, each of the W is charged I/W: its code exposes too little parallel work. Here the W take
//! turns: one of them is charged the I of a nanosecond ([`crate::turns`]), so charges are exact, and add up over
//! parts of a run and over waiting threads. If W = 0, the workers taking a free lock are
//! charged. If there are none either, only the runtime or the operating system is to blame, in sums by the
//! place of the waiting workers.
//!
//! *Directed* (Tallent, Mellor-Crummey and Porterfield, PPoPP 2010): waiting for a lock is charged to its
//! holder at each instant ([`Holders`]), at the place of the holder's request. Waiting for a device is
//! charged to the operation that the device ran at each instant, if its queues are recorded. For the rest of
//! the team, a thread in a device construct counts as working.
//!
//! Blame given equals wait taken, to the nanosecond, for every waiting state.

use crate::by_state::ByState;
use crate::entries::Entries;
use crate::late_process::waits_for_late;
use crate::ledger::Entry;
use crate::state_places::StatePlaces;
use crate::sweep::{COLUMNS, Columns, Given, SOLE, Sweep, VICTIMS, sweep};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_execution::{
    Blamed, Cause, Execution, Group, Hold, Holders, ObjectIndex, Place, PlaceKind, ProcessIndex, Section,
    Span, State, TargetWaitPart, ThreadIndex, TypeKind,
};

/// The charged party.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Culprit {
    /// A thread that was in this state at this place.
    Code(State, Place),
    /// The holder of a lock, with the place of its request.
    Holder(Place),
    /// The device operation: row of [`Catalog::operations`](taskscope_execution::Catalog::operations); `None`
    /// if the device was idle or is not recorded.
    Device(Option<u32>),
    /// A process that came late to a call of MPI.
    Rank(ProcessIndex),
    /// No thread worked, or the acquired object was free; with the place of the waiting threads.
    Nobody(Place),
}

impl Culprit {
    /// The kind of the culprit. Findings alone know whether code is there to create tasks.
    pub fn blamed(self, execution: &Execution) -> Blamed {
        match self {
            Culprit::Code(State::Serial, _) => Blamed::Serial,
            Culprit::Code(State::Task, _) => Blamed::Task,
            Culprit::Code(State::TaskCreation, _) => Blamed::Creation,
            Culprit::Code(State::Masked, _) => Blamed::Single,
            Culprit::Code(State::Worksharing, place) => match work_kind(execution, place) {
                Some(WORK_SINGLE_EXECUTOR | WORK_SINGLE_OTHER) => Blamed::Single,
                Some(WORK_SCOPE) => Blamed::Code,
                _ => Blamed::Loop,
            },
            Culprit::Code(State::ImplicitTask, _) => Blamed::Code,
            Culprit::Code(State::TargetWait, _) | Culprit::Device(Some(_)) => Blamed::Operation,
            Culprit::Code(State::Communication | State::MpiStart, _) => Blamed::Call,
            Culprit::Code(state, _) => match state.group() {
                Group::Runtime | Group::Mutex => Blamed::Runtime,
                Group::Off => Blamed::System,
                _ => Blamed::Nobody,
            },
            Culprit::Holder(_) => Blamed::Holder,
            Culprit::Rank(_) => Blamed::Rank,
            Culprit::Device(None) | Culprit::Nobody(_) => Blamed::Nobody,
        }
    }
}

/// OMPT's `ompt_work_t` of constructs that share no work among the threads of a team.
const WORK_SINGLE_EXECUTOR: u32 = 3;
const WORK_SINGLE_OTHER: u32 = 4;
const WORK_SCOPE: u32 = 8;

/// Number of the kind of a worksharing construct.
fn work_kind(execution: &Execution, place: Place) -> Option<u32> {
    let PlaceKind::Type(ty) = place.kind() else { return None };
    match execution.catalog.types.get(ty.index())?.kind? {
        TypeKind::Work { kind } => Some(kind),
        TypeKind::Task { .. } => None,
    }
}

/// The charges of one culprit.
#[derive(Clone, Debug)]
pub struct Charge {
    /// The culprit.
    pub culprit: Culprit,
    /// Nanoseconds of the threads that it made wait, by their state.
    pub by_state: ByState,
    /// The part charged while only one thread worked; there the culprit is certain.
    pub sole_ns: u64,
    /// The part of waits for locks in which no thread held the lock.
    pub free_ns: u64,
}

impl Charge {
    /// All that it is charged with.
    pub fn total(&self) -> u64 {
        self.by_state.total()
    }
}

/// Waiting that is charged, as states know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StateCharge {
    /// The culprit.
    pub culprit: Culprit,
    /// The state of those that waited.
    pub state: State,
    /// The lock that they waited for; none of other waits.
    pub object: ObjectIndex,
    /// The place of the wait, if waits are charged one by one; unknown otherwise.
    pub at: Place,
}

impl Entry<StateCharge> {
    fn new(culprit: Culprit, state: State) -> Self {
        let of = StateCharge { culprit, state, object: ObjectIndex::NONE, at: Place::UNKNOWN };
        let cause = match culprit {
            // No efficiency has the time in which a job starts, whoever is late to it.
            Culprit::Rank(_) if state != State::MpiStart => Cause::MpiLate,
            _ => state.cause(),
        };
        Entry { cause, of }
    }

    fn at(self, section: &Section) -> Self {
        Entry { of: StateCharge { object: section.object, at: section.place, ..self.of }, ..self }
    }
}

/// Rows of charges, which may come several times.
pub(crate) type ChargeRows = Vec<(Entry<StateCharge>, u64)>;

/// All charges; the part of the charges on code while it was the only one working; the part of those for locks while the lock was free.
pub(crate) type Blame = (Entries<Entry<StateCharge>>, Entries<Culprit>, Entries<Culprit>);

/// The charges of each culprit, largest first, without late ranks.
pub(crate) fn charges(
    charged: &Entries<Entry<StateCharge>>,
    alone: &Entries<Culprit>,
    free: &Entries<Culprit>,
) -> Vec<Charge> {
    let mut charges: FxHashMap<Culprit, Charge> = FxHashMap::default();
    for (Entry { of: StateCharge { culprit, state, .. }, .. }, ns) in charged.iter() {
        let blank = || Charge {
            culprit: *culprit,
            by_state: ByState::default(),
            sole_ns: alone.get(culprit),
            free_ns: free.get(culprit),
        };
        let charge = match culprit {
            Culprit::Rank(_) => continue,
            _ => charges.entry(*culprit).or_insert_with(blank),
        };
        charge.by_state.add(*state, ns);
        if matches!(culprit, Culprit::Holder(_) | Culprit::Device(_)) {
            charge.sole_ns += ns;
        }
    }
    let mut charges: Vec<Charge> = charges.into_values().collect();
    charges.sort_by_key(|c| (Reverse(c.total()), c.culprit));
    charges
}

/// Charges waiting without its own culprit to the code that worked meanwhile; separately, the part of code
/// that worked alone.
pub(crate) fn undirected(execution: &Execution) -> (ChargeRows, Vec<(Culprit, u64)>) {
    let mut sums = Sums::default();
    let threads = execution.threads_by_process();
    let processes = threads.iter().enumerate();
    let processes = processes.map(|(process, threads)| (ProcessIndex::of(process), threads.as_slice()));
    sweep(execution, processes, &mut sums);
    sums.rows()
}

/// Charges waits for locks, for devices and for late ranks, one by one; separately, the part of waits for locks that were free.
pub(crate) fn directed(execution: &Execution) -> (ChargeRows, Vec<(Culprit, u64)>) {
    let mut sums: FxHashMap<Entry<StateCharge>, u64> = FxHashMap::default();
    let mut free: FxHashMap<Culprit, u64> = FxHashMap::default();
    let mut charge = |entry, ns| *sums.entry(entry).or_default() += ns;
    charge_holders(execution, &mut charge, &mut free);
    charge_devices(execution, &mut charge);
    waits_for_late(execution, |process, section, ns| {
        charge(Entry::<StateCharge>::new(Culprit::Rank(process), section.state).at(section), ns);
    });
    (sums.into_iter().collect(), free.into_iter().collect())
}

/// A state at a place, by its number in `Sums::keys`.
type KeyNumber = u32;

/// The charges on code, by the number of its key; those on nobody by the state and place of the waiting threads.
#[derive(Default)]
struct Sums {
    keys: StatePlaces,
    given: Vec<Columns>,
    nobody: FxHashMap<(usize, Place), u64>,
}

impl Sweep for Sums {
    type Key = KeyNumber;
    const OF_SECTIONS: bool = false;

    fn key(&mut self, _thread: ThreadIndex, section: &Section) -> KeyNumber {
        let key = self.keys.number(section.state, section.place);
        if key as usize == self.given.len() {
            self.given.push([0; COLUMNS]);
        }
        key
    }

    fn worked(&mut self, _thread: ThreadIndex, key: KeyNumber, _start: u64, _end: u64, given: &Given<'_>) {
        let sums = &mut self.given[key as usize];
        given.columns(|column| sums[column] += given.part(column));
    }

    fn nobody(&mut self, key: KeyNumber, column: usize, ns: u64) {
        *self.nobody.entry((column, self.keys.keys()[key as usize].1)).or_default() += ns;
    }
}

impl Sums {
    /// All charges, and the part of those on code while it worked alone.
    fn rows(self) -> (ChargeRows, Vec<(Culprit, u64)>) {
        let nobody = self.nobody.into_iter().map(|((column, place), ns)| {
            (Entry::<StateCharge>::new(Culprit::Nobody(place), VICTIMS[column]), ns)
        });
        let mut charged: ChargeRows = nobody.collect();
        let mut alone = Vec::new();
        for ((state, place), given) in self.keys.keys().iter().zip(&self.given) {
            let culprit = Culprit::Code(*state, *place);
            let charges = VICTIMS.iter().zip(given).filter(|(_, ns)| **ns > 0);
            charged.extend(charges.map(|(state, ns)| (Entry::<StateCharge>::new(culprit, *state), *ns)));
            alone.push((culprit, given[SOLE]));
        }
        (charged, alone)
    }
}

/// A part of a wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockWaitPart {
    /// The thread that waits.
    pub thread: ThreadIndex,
    /// Its section: the lock, its state, the place of the wait.
    pub section: Section,
    /// The culprit: the holder, or the thread that handed it over ([`Holders::split`]); `None` if it was
    /// free. For an open wait it may be the waiting thread.
    pub holder: Option<Hold>,
    /// Its first nanosecond.
    pub start: u64,
    /// The first nanosecond after it.
    pub end: u64,
    /// Nanoseconds, without those that the system took.
    pub ns: u64,
}

impl LockWaitPart {
    /// Whether no thread held the lock: it was handed over, or the waiting thread took a free one. Between two turns of an ordered
    /// construct the code before the next one runs.
    fn is_free(&self) -> bool {
        let is_held = |hold: Hold| self.start < hold.end && hold.start < self.end;
        self.section.state != State::OrderedWait && !self.holder.is_some_and(is_held)
    }
}

/// Splits the lock waits of every selected worker over the holders in sequence, and passes each part to
/// `take`. The parts of a wait sum to the wait without its off-CPU time.
pub fn split_lock_waits(execution: &Execution, mut take: impl FnMut(LockWaitPart)) {
    let holders = Holders::of(&execution.holds);
    for (thread, row) in execution.selected_workers() {
        let is_wait = |state: State, _| state.group() == Group::Mutex;
        row.track.for_each_in(is_wait, |wait| {
            execution.split_wait(&holders, thread, &wait, |holder, start, end| {
                let ns = end - start - execution.system_ns(thread, start, end);
                if ns > 0 {
                    take(LockWaitPart { thread, section: wait.section, holder, start, end, ns });
                }
            });
        });
    }
}

fn charge_holders(
    execution: &Execution,
    charge: &mut impl FnMut(Entry<StateCharge>, u64),
    free: &mut FxHashMap<Culprit, u64>,
) {
    split_lock_waits(execution, |part| {
        let culprit = part
            .holder
            .map_or(Culprit::Nobody(part.section.place), |hold| Culprit::Holder(Place::site(hold.site)));
        if part.is_free() {
            *free.entry(culprit).or_default() += part.ns;
        }
        charge(Entry::<StateCharge>::new(culprit, part.section.state).at(&part.section), part.ns);
    });
}

/// Charges every wait for a device to the running operation; without one, to no operation.
fn charge_devices(execution: &Execution, charge: &mut impl FnMut(Entry<StateCharge>, u64)) {
    for (thread, _) in execution.selected_workers() {
        for_each_target_wait(execution, thread, |wait| {
            let mut charge = |operation, ns| {
                let entry = Entry::<StateCharge>::new(Culprit::Device(operation), State::TargetWait);
                charge(entry.at(&wait.section), ns);
            };
            let mut alone = wait.end - wait.start;
            for (part, ns) in operations_in(execution, thread, &wait) {
                charge(Some(part.operation), ns);
                alone -= ns;
            }
            charge(None, alone);
        });
    }
}

/// Calls `to` with each wait of a thread for a device, in device constructs and in calls.
fn for_each_target_wait(execution: &Execution, thread: ThreadIndex, mut to: impl FnMut(Span)) {
    if execution.system_time_of(thread).is_empty() {
        let track = &execution.threads[thread.index()].track;
        track.for_each_in(|state, _| state == State::TargetWait, to);
    } else {
        let waits = execution.spans_of_run(thread).filter(|span| span.section.state == State::TargetWait);
        waits.filter(|span| span.end > span.start).for_each(&mut to);
    }
}

/// The device operations during a wait of a thread, with nanoseconds.
fn operations_in<'a>(
    execution: &'a Execution,
    thread: ThreadIndex,
    wait: &Span,
) -> impl Iterator<Item = (&'a TargetWaitPart, u64)> {
    let parts = &execution.target_waits;
    let (start, end) = (wait.start, wait.end);
    let first = parts.partition_point(|part| (part.thread, part.end) <= (thread, start));
    let inside = parts[first..].iter().take_while(move |part| part.thread == thread && part.start < end);
    inside.map(move |part| (part, part.end.min(end) - part.start.max(start)))
}
