//! Who made whom wait: every waiting nanosecond is given to what ran meanwhile.
//!
//! *Undirected* (Tallent and Mellor-Crummey, PPoPP 2009): while I workers of a process wait or have
//! nothing to do and W work, each of the W is charged I/W for every nanosecond: its code sheds too
//! little parallel work. Here it is exact, over sections instead of samples. Where W = 0 nobody is
//! to blame but the runtime or the operating system, in sums by the place of those that wait.
//!
//! *Directed* (Tallent, Mellor-Crummey and Porterfield, PPoPP 2010): waiting for a lock is charged to
//! whoever held it at each instant, at the place where it asked for it.
//!
//! Blame given equals wait taken, to the nanosecond, for every waiting state.

use crate::ledger::ByState;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;
use taskscope_execution::{
    CutSpan, Execution, Group, Hold, ObjectIndex, Place, ProcessIndex, Section, Span, State, Thread,
    ThreadIndex,
};

/// What is charged.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Culprit {
    /// A thread that was in this state at this place.
    Code(State, Place),
    /// The holder of a lock that it asked for at this place.
    Holder(Place),
    /// Nobody worked, or nobody held what was waited for; where those that waited were.
    Nobody(Place),
}

/// What one culprit is charged with.
#[derive(Clone, Debug)]
pub struct Charge {
    /// Who.
    pub culprit: Culprit,
    /// Whom it made wait: nanoseconds by the state of those that waited.
    pub by_state: ByState,
    /// How much of it was charged while only one thread worked; there the culprit is certain.
    pub sole_ns: u64,
}

impl Charge {
    /// All that it is charged with.
    pub fn total(&self) -> u64 {
        self.by_state.total()
    }
}

/// Charges of all culprits, largest first.
pub fn charge(execution: &Execution) -> Vec<Charge> {
    let mut sums = Sums::default();
    for process in 0..execution.processes.len() {
        let process = ProcessIndex(process as u32);
        sweep(execution, process, &mut sums);
    }
    let mut charges = sums.in_nanoseconds();
    charge_holders(execution, &mut charges);
    let mut charges: Vec<Charge> = charges.into_values().filter(|c| c.total() > 0).collect();
    charges.sort_by_key(|c| (Reverse(c.total()), c.culprit));
    charges
}

/// States whose time is charged undirected; the index is the column of the integrals.
pub(crate) const VICTIMS: [State; 10] = [
    State::Barrier,
    State::JoinBarrier,
    State::Taskwait,
    State::TaskwaitDepend,
    State::Taskgroup,
    State::Taskyield,
    State::TargetWait,
    State::Idle,
    State::NotStarted,
    State::Ended,
];

/// Shares of a nanosecond are kept in 2^-20 ns.
const FRACTION_BITS: u32 = 20;

/// What a state is in the sweep.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Victim(usize),
    /// Neither: waits for a lock, which is charged apart, or is kept off the CPU while it waits.
    Neither,
    Works,
}

fn role(state: State) -> Role {
    if let Some(column) = VICTIMS.iter().position(|victim| *victim == state) {
        Role::Victim(column)
    } else if state.group() == Group::Mutex {
        Role::Neither
    } else {
        Role::Works
    }
}

/// Integrals over time of what one working thread is charged with, by victim state, and the part of
/// it while it worked alone.
pub(crate) type Integrals = [u128; VICTIMS.len() + 1];
const SOLE: usize = VICTIMS.len();

/// What the sweep over a process's workers tells.
pub(crate) trait Sweep {
    /// What code is charged by: threads that work on the same key are the same culprit.
    type Key: Copy + Eq;

    /// The key of a span.
    fn key(&mut self, thread: ThreadIndex, span: &Span) -> Self::Key;

    /// A thread that worked on `key` from `start` to `end` is charged with `given`.
    fn worked(&mut self, thread: ThreadIndex, key: Self::Key, start: u64, end: u64, given: &Integrals);

    /// A thread waited, and for `ns` of it nobody worked.
    fn nobody(&mut self, key: Self::Key, column: usize, ns: u64);

    /// Threads waited for `ns` in all.
    fn waited(&mut self, column: usize, ns: u64);
}

#[derive(Default)]
struct Sums {
    shares: FxHashMap<(State, Place), Integrals>,
    nobody: FxHashMap<(usize, Place), u64>,
    waited: [u64; VICTIMS.len()],
}

impl Sweep for Sums {
    type Key = (State, Place);

    fn key(&mut self, _thread: ThreadIndex, span: &Span) -> (State, Place) {
        (span.section.state, span.section.place)
    }

    fn worked(
        &mut self,
        _thread: ThreadIndex,
        key: (State, Place),
        _start: u64,
        _end: u64,
        given: &Integrals,
    ) {
        let share = self.shares.entry(key).or_insert([0; VICTIMS.len() + 1]);
        for (sum, part) in share.iter_mut().zip(given) {
            *sum += part;
        }
    }

    fn nobody(&mut self, key: (State, Place), column: usize, ns: u64) {
        *self.nobody.entry((column, key.1)).or_default() += ns;
    }

    fn waited(&mut self, column: usize, ns: u64) {
        self.waited[column] += ns;
    }
}

/// A worker's place in the sweep.
struct Cursor<I, K> {
    thread: ThreadIndex,
    spans: I,
    /// The span that comes next.
    coming: Option<CutSpan>,
    role: Role,
    key: Option<K>,
    /// When it began to work on `key`, the integrals then, and how often these had changed.
    start: u64,
    since: Integrals,
    changes_since: u64,
    /// How long nobody had worked when it began to wait.
    nobody_since: u64,
}

/// What the workers of a process do at an instant, and what has added up until then.
struct Instant {
    now: u64,
    waiting: [u64; VICTIMS.len()],
    working: u64,
    integrals: Integrals,
    /// How often the integrals have changed.
    changes: u64,
    /// Nanoseconds so far in which no worker worked.
    nobody: u64,
}

impl Instant {
    fn advance<S: Sweep>(&mut self, to: u64, sums: &mut S) {
        let passed = to - self.now;
        self.now = to;
        if passed == 0 {
            return;
        }
        if self.working == 0 {
            self.nobody += passed;
        }
        for (column, count) in self.waiting.iter().enumerate().filter(|(_, count)| **count > 0) {
            sums.waited(column, count * passed);
            if self.working > 0 {
                let share = ((count * passed) as u128) << FRACTION_BITS;
                self.integrals[column] += divided(share, self.working);
                if self.working == 1 {
                    self.integrals[SOLE] += share;
                }
                self.changes += 1;
            }
        }
    }
}

/// `share / by`; nearly always both are small, and dividing 64 bits takes a third of the time.
fn divided(share: u128, by: u64) -> u128 {
    u64::try_from(share).map_or_else(|_| share / u128::from(by), |share| u128::from(share / by))
}

/// When a cursor's next span starts and which cursor it is, as one number that sorts by both.
fn place_in_heap(start: u64, cursor: usize) -> Reverse<u128> {
    Reverse(u128::from(start) << 64 | cursor as u128)
}

pub(crate) fn sweep<S: Sweep>(execution: &Execution, process: ProcessIndex, sums: &mut S) {
    let roles = State::ALL.map(role);
    let own = execution.workers().filter(|(_, t)| t.process == process);
    let mut cursors: Vec<Cursor<_, S::Key>> = own
        .map(|(thread, _)| {
            let mut spans = execution.cut_spans_of_run(thread);
            Cursor {
                thread,
                coming: spans.next(),
                spans,
                role: Role::Neither,
                key: None,
                start: 0,
                since: [0; VICTIMS.len() + 1],
                changes_since: 0,
                nobody_since: 0,
            }
        })
        .collect();
    let coming = cursors.iter().enumerate();
    let mut heap: BinaryHeap<Reverse<u128>> = coming
        .filter_map(|(i, cursor)| cursor.coming.map(|next| place_in_heap(next.span.start, i)))
        .collect();
    let mut at = Instant {
        now: execution.processes[process.index()].first,
        waiting: [0; VICTIMS.len()],
        working: 0,
        integrals: [0; VICTIMS.len() + 1],
        changes: 0,
        nobody: 0,
    };
    while let Some(mut top) = heap.peek_mut() {
        let index = top.0 as u64 as usize;
        let cursor = &mut cursors[index];
        let span = std::mem::replace(&mut cursor.coming, cursor.spans.next());
        match cursor.coming {
            Some(next) => *top = place_in_heap(next.span.start, index),
            None => {
                PeekMut::pop(top);
            }
        }
        let Some(CutSpan { span, under }) = span else { continue };
        let start = span.start;
        at.advance(start, sums);
        let key = Some(sums.key(cursor.thread, &span));
        // A thread that waits and is kept off the CPU makes nobody wait, and its own time is the system's.
        let waits_off_cpu = under != span.section.state && !under.is_useful();
        let role = if waits_off_cpu { Role::Neither } else { roles[span.section.state as usize] };
        if cursor.role == Role::Works && role == Role::Works && cursor.key == key {
            continue;
        }
        match cursor.role {
            Role::Works => {
                at.working -= 1;
                settle(sums, cursor, start, &at);
            }
            Role::Victim(column) => {
                at.waiting[column] -= 1;
                settle_nobody(sums, cursor, column, at.nobody);
            }
            Role::Neither => {}
        }
        match role {
            Role::Works => {
                at.working += 1;
                cursor.start = start;
                cursor.since = at.integrals;
                cursor.changes_since = at.changes;
            }
            Role::Victim(column) => {
                at.waiting[column] += 1;
                cursor.nobody_since = at.nobody;
            }
            Role::Neither => {}
        }
        (cursor.role, cursor.key) = (role, key);
    }
    let end = execution.processes[process.index()].last;
    at.advance(end, sums);
    for cursor in &cursors {
        match cursor.role {
            Role::Works => settle(sums, cursor, end, &at),
            Role::Victim(column) => settle_nobody(sums, cursor, column, at.nobody),
            Role::Neither => {}
        }
    }
}

/// Adds the time in which a thread waited and nobody worked.
fn settle_nobody<I, S: Sweep>(sums: &mut S, cursor: &Cursor<I, S::Key>, column: usize, nobody: u64) {
    if let Some(key) = cursor.key.filter(|_| nobody > cursor.nobody_since) {
        sums.nobody(key, column, nobody - cursor.nobody_since);
    }
}

/// Adds what a thread was charged with since it began to work on its key.
fn settle<I, S: Sweep>(sums: &mut S, cursor: &Cursor<I, S::Key>, end: u64, at: &Instant) {
    let Some(key) = cursor.key.filter(|_| cursor.changes_since != at.changes) else { return };
    let mut given = at.integrals;
    for (sum, since) in given.iter_mut().zip(&cursor.since) {
        *sum -= since;
    }
    sums.worked(cursor.thread, key, cursor.start, end, &given);
}

impl Sums {
    /// Rounds shares to nanoseconds so that each column sums exactly to what was waited.
    fn in_nanoseconds(self) -> FxHashMap<Culprit, Charge> {
        let mut keys: Vec<(State, Place)> = self.shares.keys().copied().collect();
        keys.sort_unstable();
        let mut charges: FxHashMap<Culprit, Charge> = FxHashMap::default();
        let mut unshared = [0_u64; VICTIMS.len()];
        for ((column, place), ns) in self.nobody {
            unshared[column] += ns;
            charge_of(&mut charges, Culprit::Nobody(place)).by_state.add(VICTIMS[column], ns);
        }
        for (column, state) in VICTIMS.iter().enumerate() {
            let shares: Vec<u128> = keys.iter().map(|key| self.shares[key][column]).collect();
            let given = apportion(&shares, self.waited[column] - unshared[column]);
            for (key, ns) in keys.iter().zip(given).filter(|(_, ns)| *ns > 0) {
                charge_of(&mut charges, Culprit::Code(key.0, key.1)).by_state.add(*state, ns);
            }
        }
        for (key, share) in &self.shares {
            if let Some(charge) = charges.get_mut(&Culprit::Code(key.0, key.1)) {
                charge.sole_ns = ((share[SOLE] >> FRACTION_BITS) as u64).min(charge.total());
            }
        }
        charges
    }
}

/// Divides `owed` in proportion to `shares`, in whole numbers that sum to it: each part is cut off, and
/// what is missing goes one by one to the largest remainders. All zeros if all shares are zero.
pub(crate) fn apportion(shares: &[u128], owed: u64) -> Vec<u64> {
    let total: u128 = shares.iter().sum();
    // Keeps the products below within 128 bits; what is cut off is far below a nanosecond of a year.
    let spare = (128 - total.leading_zeros()).saturating_sub(63);
    let shares: Vec<u128> = shares.iter().map(|share| share >> spare).collect();
    let total: u128 = shares.iter().sum();
    if total == 0 {
        return vec![0; shares.len()];
    }
    let exact = |share: u128| (share * owed as u128 / total, share * owed as u128 % total);
    let mut given: Vec<u64> = shares.iter().map(|share| exact(*share).0 as u64).collect();
    let missing = owed - given.iter().sum::<u64>();
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|i| Reverse(exact(shares[*i]).1));
    for i in order.into_iter().take(missing as usize) {
        given[i] += 1;
    }
    given
}

fn charge_of(charges: &mut FxHashMap<Culprit, Charge>, culprit: Culprit) -> &mut Charge {
    charges.entry(culprit).or_insert(Charge { culprit, by_state: ByState::default(), sole_ns: 0 })
}

/// A part of a wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WaitPart {
    /// The thread that waits.
    pub thread: ThreadIndex,
    /// What it is in: the lock, its state, where it waits.
    pub section: Section,
    /// Who held it, if anybody did.
    pub holder: Option<Hold>,
    /// Nanoseconds.
    pub ns: u64,
}

/// Splits every worker's waits for locks over the holders in sequence, and hands each part to `take`.
/// The parts of a wait sum to the wait.
pub fn split_lock_waits(execution: &Execution, mut take: impl FnMut(WaitPart)) {
    let mut holds: FxHashMap<ObjectIndex, Vec<Hold>> = FxHashMap::default();
    for hold in &execution.holds {
        holds.entry(hold.object).or_default().push(*hold);
    }
    for list in holds.values_mut() {
        list.sort_by_key(|hold| (hold.start, hold.end));
    }
    let none = Vec::new();
    let workers: Vec<(ThreadIndex, &Thread)> = execution.workers().collect();
    for (thread, row) in workers {
        for span in row.track.spans().filter(|s| s.section.state.group() == Group::Mutex) {
            let list = holds.get(&span.section.object).unwrap_or(&none);
            let part = |holder, ns| WaitPart { thread, section: span.section, holder, ns };
            let mut at = span.start;
            // Holds of one object do not overlap, so ends are sorted as starts are.
            for hold in &list[list.partition_point(|hold| hold.end <= at)..] {
                if hold.start >= span.end {
                    break;
                }
                if hold.thread == thread {
                    continue;
                }
                let (start, end) = (hold.start.max(at), hold.end.min(span.end));
                if end <= start {
                    continue;
                }
                if start > at {
                    take(part(None, start - at));
                }
                take(part(Some(*hold), end - start));
                at = end;
            }
            if span.end > at {
                take(part(None, span.end - at));
            }
        }
    }
}

fn charge_holders(execution: &Execution, charges: &mut FxHashMap<Culprit, Charge>) {
    split_lock_waits(execution, |part| {
        let culprit = part
            .holder
            .map_or(Culprit::Nobody(part.section.place), |hold| Culprit::Holder(Place::site(hold.site)));
        let charge = charge_of(charges, culprit);
        charge.by_state.add(part.section.state, part.ns);
        if part.holder.is_some() {
            charge.sole_ns += part.ns;
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_what_is_owed() {
        assert_eq!(apportion(&[1, 1, 1], 10), [4, 3, 3]);
        assert_eq!(apportion(&[0, 5, 0], 7), [0, 7, 0]);
        assert_eq!(apportion(&[0, 0], 7), [0, 0]);
        assert_eq!(apportion(&[1 << 100, 1 << 100], u64::MAX), [1 << 63, (1 << 63) - 1]);
        assert_eq!(apportion(&[1 << 70, 3 << 70], 1 << 40), [1 << 38, 3 << 38]);
    }
}
