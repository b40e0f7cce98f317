//! One walk over all workers of a process in order of time: working and waiting threads at each instant.
//!
//! The sections of a worker are contiguous, those of one instant far apart. So the next changes are read from
//! each worker a few hundred at a time, and sorted up to the instant at which all workers are known:
//!
//! ```text
//! worker 0  ──┬────┬──┬─────────┬┄┄       known up to the fourth change
//! worker 1  ┬──────────────┬┄┄            known up to the second: so far goes this round
//! round     └──────────────┘
//! ```

use crate::radix;
use taskscope_execution::{
    Activities, CutSpan, CutSpans, Execution, Group, Place, ProcessIndex, Section, Span, State,
    TakesActivities, Thread, ThreadIndex, ThreadKind,
};

/// States with undirected charging; the index is the column of the integrals.
pub(crate) const VICTIMS: [State; 10] = [
    State::Barrier,
    State::JoinBarrier,
    State::Taskwait,
    State::TaskwaitDepend,
    State::Taskgroup,
    State::Taskyield,
    State::Idle,
    State::Paused,
    State::NotStarted,
    State::Ended,
];

/// Shares of a nanosecond are kept in 2^-20 ns.
pub(crate) const FRACTION_BITS: u32 = 20;

/// Changes of all workers together that are read ahead: sized to fit the L2 cache of a core.
const READ_AHEAD: usize = 1 << 14;
/// Changes of one worker that are read ahead.
const FEWEST_OF_LANE: usize = 16;
const MOST_OF_LANE: usize = 1024;

/// The role of a state in the sweep: the column of a victim, or one of those below. One byte, as roles are
/// compared for each section.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Role(u8);

impl Default for Role {
    fn default() -> Self {
        Role::NEITHER
    }
}

impl Role {
    const WORKS: Role = Role(u8::MAX);
    /// Waits for a lock, which is charged separately. While no thread works the lock is free, and others wait
    /// for its acquisition.
    const ACQUIRES: Role = Role(u8::MAX - 1);
    /// Has no charges and no culprit: its time is the system's.
    const NEITHER: Role = Role(u8::MAX - 2);
    /// Not computed yet.
    const UNKNOWN: Role = Role(u8::MAX - 3);

    /// The column of one that waits.
    #[inline(always)]
    fn victim(self) -> Option<usize> {
        let column = usize::from(self.0);
        (column < VICTIMS.len()).then_some(column)
    }
}

fn is_charged(role: Role) -> bool {
    role == Role::WORKS || role == Role::ACQUIRES
}

/// Roles by state.
type Roles = [Role; State::ALL.len()];

fn role(state: State) -> Role {
    if let Some(column) = VICTIMS.iter().position(|victim| *victim == state) {
        Role(column as u8)
    } else if state == State::AbsorbingNoise {
        // The CPU is given away: no thread waits for it, and it waits for none.
        Role::NEITHER
    } else if state.group() == Group::Mutex {
        Role::ACQUIRES
    } else if state.group() == Group::Off {
        Role::NEITHER
    } else {
        Role::WORKS
    }
}

/// Columns of integrals: the victims, and the part while one worked alone.
pub(crate) const COLUMNS: usize = VICTIMS.len() + 1;
pub(crate) const SOLE: usize = VICTIMS.len();

/// Integrals over time of the charges of one working thread, by victim state, and the part of it while it
/// worked alone.
pub(crate) type Integrals = [u128; COLUMNS];

/// The charges of a thread.
pub(crate) struct Given<'a> {
    /// The integrals when it began to work and when it ended, in the columns that are used.
    since: &'a Integrals,
    until: &'a Integrals,
    /// One bit for each column that can have a part.
    used: u32,
}

impl Given<'_> {
    /// Hands over the columns that can have a part; all others are zero.
    #[inline(always)]
    pub fn columns(&self, take: impl FnMut(usize)) {
        columns_of(self.used, take);
    }

    /// The part of one of these columns.
    #[inline]
    pub fn part(&self, column: usize) -> u128 {
        self.until[column] - self.since[column]
    }
}

#[inline(always)]
fn columns_of(mut used: u32, mut take: impl FnMut(usize)) {
    while used != 0 {
        take(used.trailing_zeros() as usize);
        used &= used - 1;
    }
}

/// The consumer of the sweep over a process's workers.
pub(crate) trait Sweep {
    /// The key of charges: threads that work on the same key are the same culprit. The default key belongs to
    /// no thread.
    type Key: Copy + Eq + Default;

    /// Whether keys distinguish tasks, regions and awaited objects. If not, sections come without these, and
    /// sections with the same state and place must have the same key.
    const OF_SECTIONS: bool;

    /// The key of a section. Called for the sections of each thread in order, some time ahead of the sweep.
    fn key(&mut self, thread: ThreadIndex, section: &Section) -> Self::Key;

    /// The instants, in order, at which the charges of a thread are reported although it keeps working.
    fn cuts(&self, _thread: ThreadIndex) -> Vec<u64> {
        Vec::new()
    }

    /// Everything before the instant of this number has been handed over, and nothing after it.
    fn passes(&mut self, _instant: usize) {}

    /// A thread that worked on `key`, or took a free lock, from `start` to `end` is charged with `given`.
    fn worked(&mut self, thread: ThreadIndex, key: Self::Key, start: u64, end: u64, given: &Given<'_>);

    /// A thread waited, and for `ns` of it no thread worked or took a lock.
    fn nobody(&mut self, key: Self::Key, column: usize, ns: u64);

    /// Threads waited for `ns` in all.
    fn waited(&mut self, column: usize, ns: u64);
}

/// Change of a worker at `start` to `role`, on `key`.
#[derive(Clone, Copy, Default)]
struct Change<K> {
    start: u64,
    role: Role,
    key: K,
}

/// A worker in the sweep.
struct Lane<'a, K> {
    thread: ThreadIndex,
    spans: CutSpans<'a>,
    /// Its current section, by the number of changes passed, and the changes read ahead.
    changes: Vec<Change<K>>,
    now: usize,
    /// Whether all its spans were read.
    ended: bool,
    /// [`Sweep::cuts`], the next one last.
    cuts: Vec<u64>,
    /// The integrals when it began to work on its key, of which role they are, how often they had changed, and in which round
    /// that was.
    since: Integrals,
    role_since: Role,
    changes_since: u64,
    round_since: u64,
    /// Total time without a working thread when it began to wait.
    nobody_since: u64,
}

impl<K: Copy + Eq + Default> Lane<'_, K> {
    /// Reads until `count` changes are buffered.
    fn read<S: Sweep<Key = K>>(&mut self, count: usize, roles: &mut KnownRoles<'_, K>, sums: &mut S) {
        self.changes.drain(..self.now);
        self.now = 0;
        let Change { role, key, .. } = self.changes.last().copied().unwrap_or_default();
        let Lane { thread, spans, changes, cuts, .. } = self;
        // That it is in one thing already is not ahead.
        let most = count + 1;
        let mut reading = Reading { thread: *thread, changes, most, last: (role, key), roles, sums };
        self.ended = if S::OF_SECTIONS {
            spans.all(|CutSpan { span, .. }| {
                let role = reading.roles.roles[span.section.state as usize];
                let key = reading.sums.key(reading.thread, &span.section);
                reading.take(span.start, role, key) & reading.cut(cuts, &span)
            })
        } else {
            spans.hand_over_activities(&mut reading)
        };
    }

    fn ahead(&self) -> &[Change<K>] {
        &self.changes[self.now + 1..]
    }

    /// Columns with integrals that may have changed since it began to work on its key.
    #[inline(always)]
    fn changed(&self, charged: &Charged, round: u64) -> u32 {
        let before = if self.round_since == round { 0 } else { charged.used };
        before | charged.changed_in_round
    }

    /// Leaves its section, at an instant.
    #[inline(always)]
    fn settle<S: Sweep<Key = K>>(&self, at: &Instant, sums: &mut S) {
        let Some(Change { start, role, key }) = self.changes.get(self.now).copied() else { return };
        if let Some(charged) = at.charged(role) {
            if self.changes_since != charged.changes {
                let used = self.changed(charged, at.round);
                let given = Given { since: &self.since, until: &charged.integrals, used };
                sums.worked(self.thread, key, start, at.now, &given);
            }
        } else if let Some(column) = role.victim()
            && at.nobody > self.nobody_since
        {
            sums.nobody(key, column, at.nobody - self.nobody_since);
        }
    }

    /// Restarts its section, at an instant.
    fn restart(&mut self, at: &Instant) {
        let Some(change) = self.changes.get_mut(self.now) else { return };
        change.start = at.now;
        if let Some(charged) = at.charged(change.role) {
            (self.since, self.role_since) = (charged.integrals, change.role);
            (self.changes_since, self.round_since) = (charged.changes, at.round);
        }
        self.nobody_since = at.nobody;
    }

    /// Takes up its next change, at that instant.
    #[inline(always)]
    fn step<S: Sweep<Key = K>>(&mut self, at: &mut Instant, sums: &mut S) {
        let Some([now, next]) = self.changes.get(self.now..).and_then(|ahead| ahead.first_chunk()) else {
            return;
        };
        let (now, start, next) = (now.role, next.start, next.role);
        at.advance(start, sums);
        at.divided_ns = 0;
        self.settle(at, sums);
        self.now += 1;
        if now != next {
            at.count(now, u64::wrapping_sub);
            at.count(next, u64::wrapping_add);
        }
        if let Some(charged) = at.charged(next) {
            // Without changes since, nothing is left of the previous key.
            if self.role_since != next {
                (self.since, self.role_since) = (charged.integrals, next);
            } else if now != next || self.changes_since != charged.changes {
                columns_of(self.changed(charged, at.round), |column| {
                    self.since[column] = charged.integrals[column];
                });
            }
            (self.changes_since, self.round_since) = (charged.changes, at.round);
        } else {
            self.nobody_since = at.nobody;
        }
    }
}

/// Hands over the accumulated charges until an instant, which may be before the time of the process; all
/// lanes stay in their sections.
fn pass_instant<S: Sweep>(lanes: &mut [Lane<'_, S::Key>], at: &mut Instant, instant: u64, sums: &mut S) {
    let before = at.now;
    at.advance(instant.max(before), sums);
    at.divided_ns += at.now - before;
    for lane in lanes {
        lane.settle(at, sums);
        lane.restart(at);
    }
}

/// Sections with the same state and place have the same role and key: found once, they are cached by its
/// number.
struct KnownRoles<'e, K> {
    roles: Roles,
    activities: &'e Activities,
    known: Vec<(Role, K)>,
}

impl<'e, K: Copy + Default> KnownRoles<'e, K> {
    fn of(roles: Roles, activities: &'e Activities) -> Self {
        KnownRoles { roles, activities, known: vec![(Role::UNKNOWN, K::default()); activities.count()] }
    }
}

/// The changes of a worker, while its sections are read.
struct Reading<'r, 'e, S: Sweep> {
    thread: ThreadIndex,
    changes: &'r mut Vec<Change<S::Key>>,
    /// Target number of changes to read.
    most: usize,
    last: (Role, S::Key),
    roles: &'r mut KnownRoles<'e, S::Key>,
    sums: &'r mut S,
}

impl<S: Sweep> Reading<'_, '_, S> {
    #[inline(always)]
    fn take(&mut self, start: u64, role: Role, key: S::Key) -> bool {
        if self.last.0 != role || self.last.1 != key {
            self.last = (role, key);
            // Built in place: copying it in parts and reading it as one would cause a store-forwarding stall.
            self.changes.push(Change { start, role, key });
        }
        self.changes.len() < self.most
    }

    /// Passes the cuts until the end of this, which was taken.
    fn cut(&mut self, cuts: &mut Vec<u64>, span: &Span) -> bool {
        while let Some(start) = cuts.pop_if(|cut| *cut < span.end) {
            if start > span.start && is_charged(self.last.0) {
                self.changes.push(Change { start, role: self.last.0, key: self.last.1 });
            }
        }
        self.changes.len() < self.most
    }

    #[inline(never)]
    fn find(&mut self, number: u16) -> (Role, S::Key) {
        let (state, place) = self.roles.activities.get(number).unwrap_or((State::Unknown, Place::UNKNOWN));
        let key = self.sums.key(self.thread, &Section { place, ..Section::of(state) });
        let found = (self.roles.roles[state as usize], key);
        if let Some(known) = self.roles.known.get_mut(usize::from(number)) {
            *known = found;
        }
        found
    }
}

impl<S: Sweep> TakesActivities for Reading<'_, '_, S> {
    #[inline(always)]
    fn numbered(&mut self, start: u64, number: u16) -> bool {
        let (role, key) = match self.roles.known.get(usize::from(number)) {
            Some((role, key)) if *role != Role::UNKNOWN => (*role, *key),
            _ => self.find(number),
        };
        self.take(start, role, key)
    }

    #[inline(never)]
    fn other(&mut self, start: u64, state: State, place: Place) -> bool {
        let key = self.sums.key(self.thread, &Section { place, ..Section::of(state) });
        self.take(start, self.roles.roles[state as usize], key)
    }
}

/// The activities of a process's workers at an instant, and the accumulated charges until then.
struct Instant {
    now: u64,
    waiting: [u64; VICTIMS.len()],
    working: u64,
    acquiring: u64,
    /// The charges of working threads, and of threads taking locks while none works.
    of_working: Charged,
    of_acquiring: Charged,
    /// See [`inverse`], by how many work.
    inverses: Vec<u64>,
    /// One bit for each column with a waiting thread.
    waited_in: u32,
    /// Changes that are sorted at once are a round.
    round: u64,
    /// Nanoseconds so far in which no worker worked, nor took a lock.
    nobody: u64,
    /// Nanoseconds since the last change that were handed over at instants in between.
    divided_ns: u64,
}

/// The charges of each thread of a role.
#[derive(Default)]
struct Charged {
    integrals: Integrals,
    /// One bit for each column with an integral that changed before this round, and in it.
    used: u32,
    changed_in_round: u32,
    /// Number of changes of the integrals.
    changes: u64,
}

impl Charged {
    fn ends_round(&mut self) {
        self.used |= std::mem::take(&mut self.changed_in_round);
    }

    #[inline(always)]
    fn add(&mut self, column: usize, part: u128) {
        self.integrals[column] += part;
        self.changed_in_round |= 1 << column;
    }
}

impl Instant {
    /// One more, or one less, in this role.
    fn count(&mut self, role: Role, change: fn(u64, u64) -> u64) {
        if role == Role::WORKS {
            self.working = change(self.working, 1);
        } else if role == Role::ACQUIRES {
            self.acquiring = change(self.acquiring, 1);
        } else if let Some(column) = role.victim() {
            let waiting = &mut self.waiting[column];
            *waiting = change(*waiting, 1);
            self.waited_in = self.waited_in & !(1 << column) | u32::from(*waiting > 0) << column;
        }
    }

    fn ends_round(&mut self) {
        self.round += 1;
        self.of_working.ends_round();
        self.of_acquiring.ends_round();
    }

    /// The charges of threads of a chargeable role.
    #[inline(always)]
    fn charged(&self, role: Role) -> Option<&Charged> {
        match role {
            Role::WORKS => Some(&self.of_working),
            Role::ACQUIRES => Some(&self.of_acquiring),
            _ => None,
        }
    }

    #[inline(always)]
    fn advance<S: Sweep>(&mut self, to: u64, sums: &mut S) {
        let passed = to - self.now;
        self.now = to;
        if passed == 0 || self.waited_in == 0 {
            return;
        }
        let (charged, many) = match self.working {
            0 => (&mut self.of_acquiring, self.acquiring),
            working => (&mut self.of_working, working),
        };
        if many == 0 {
            self.nobody += passed;
        }
        columns_of(self.waited_in, |column| {
            let count = self.waiting[column];
            sums.waited(column, count * passed);
            if many > 0 {
                let share = ((count * passed) as u128) << FRACTION_BITS;
                let part = match self.divided_ns {
                    0 => divided(share, many, &self.inverses),
                    // Together as much as without instants in between.
                    before => {
                        let before = ((count * before) as u128) << FRACTION_BITS;
                        divided(before + share, many, &self.inverses) - divided(before, many, &self.inverses)
                    }
                };
                charged.add(column, part);
                if many == 1 {
                    charged.add(SOLE, share);
                }
                charged.changes += 1;
            }
        });
    }
}

/// A share divided by how many have it; nearly all shares are small.
#[inline]
fn divided(share: u128, many: u64, inverses: &[u64]) -> u128 {
    match inverses.get(many as usize) {
        _ if many == 1 => share,
        Some(inverse) if share < SMALL => (share * u128::from(*inverse)) >> u64::BITS,
        _ => share / u128::from(many),
    }
}

/// 2^64 divided by a number above 1, rounded up. Multiplying by it and taking the upper half divides values
/// below [`SMALL`] exactly, in a fifth of the time: the error is below `SMALL` × `MOST` / 2^64, less than the
/// distance to the next whole.
fn inverse(by: u64) -> u64 {
    u64::MAX / by + 1
}

/// Shares below this are divided by multiplying, if at most `MOST` threads work.
const SMALL: u128 = 1 << 48;
const MOST: usize = 1 << 16;

/// The selected waits, and the instants at which sums are divided.
pub(crate) struct Asked<'a> {
    /// Whether the waits of a worker count, by thread.
    pub waits_count: &'a dyn Fn(ThreadIndex) -> bool,
    /// The instants in order. [`Sweep::passes`] is called for those that are before the end of the process.
    pub instants: &'a [u64],
}

/// Walks over the time of all workers of a process. Waits of unselected threads are omitted; work of the
/// others meanwhile is not, nor work of the runtime's own threads (target tasks).
pub(crate) fn sweep<S: Sweep>(
    execution: &Execution,
    process: ProcessIndex,
    Asked { waits_count, instants }: Asked<'_>,
    sums: &mut S,
) {
    let roles = State::ALL.map(role);
    let of_others = roles.map(|role| if is_charged(role) { role } else { Role::NEITHER });
    let [mut roles, mut of_others] =
        [roles, of_others].map(|roles| KnownRoles::of(roles, &execution.activities));
    let runs_code = |thread: &Thread| thread.worker || thread.kind == ThreadKind::Helper;
    let is_own = |thread: &ThreadIndex| {
        let row = &execution.threads[thread.index()];
        row.process == process && runs_code(row)
    };
    let mut lanes: Vec<Lane<'_, S::Key>> = (0..execution.threads.len() as u32)
        .map(ThreadIndex)
        .filter(is_own)
        .map(|thread| Lane {
            thread,
            spans: execution.cut_spans_of_run(thread),
            changes: vec![Change::default()],
            now: 0,
            ended: false,
            cuts: {
                let mut cuts = sums.cuts(thread);
                cuts.reverse();
                cuts
            },
            since: [0; COLUMNS],
            role_since: Role::WORKS,
            changes_since: 0,
            round_since: 0,
            nobody_since: 0,
        })
        .collect();
    let mut at = Instant {
        now: execution.processes[process.index()].first,
        waiting: [0; VICTIMS.len()],
        working: 0,
        acquiring: 0,
        of_working: Charged::default(),
        of_acquiring: Charged::default(),
        inverses: (0..=lanes.len().min(MOST) as u64).map(|working| inverse(working.max(2))).collect(),
        waited_in: 0,
        round: 0,
        nobody: 0,
        divided_ns: 0,
    };
    let of_lane = (READ_AHEAD / lanes.len().max(1)).clamp(FEWEST_OF_LANE, MOST_OF_LANE);
    // A time since the round's begin and a lane's number are sorted as one number.
    let lane_bits = usize::BITS - lanes.len().leading_zeros();
    let longest_round = u64::MAX >> lane_bits;
    let (mut order, mut spare): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut instants = instants.iter().copied().enumerate().peekable();
    loop {
        for lane in lanes.iter_mut().filter(|lane| !lane.ended && lane.ahead().len() <= of_lane / 2) {
            let counts = execution.threads[lane.thread.index()].worker && waits_count(lane.thread);
            let roles = if counts { &mut roles } else { &mut of_others };
            lane.read(of_lane, roles, sums);
        }
        let coming = lanes.iter().filter_map(|lane| lane.ahead().first());
        let Some(begin) = coming.map(|change| change.start).min() else { break };
        while let Some((number, instant)) = instants.next_if(|(_, instant)| *instant <= begin) {
            pass_instant(&mut lanes, &mut at, instant, sums);
            sums.passes(number);
        }
        let going_on = lanes.iter().filter(|lane| !lane.ended);
        let known = going_on.filter_map(|lane| lane.ahead().last()).map(|change| change.start).min();
        let until = known.unwrap_or(u64::MAX).min(begin.saturating_add(longest_round));
        // The next instant is after the begin.
        let until = instants.peek().map_or(until, |(_, instant)| until.min(instant - 1));
        order.clear();
        for (number, lane) in lanes.iter().enumerate() {
            let round = lane.ahead().iter().take_while(|change| change.start <= until);
            order.extend(round.map(|change| (change.start - begin) << lane_bits | number as u64));
        }
        // Changes of one instant come by their lanes already.
        radix::sort(&mut order, &mut spare, lane_bits);
        for place in &order {
            lanes[(place & ((1 << lane_bits) - 1)) as usize].step(&mut at, sums);
        }
        at.ends_round();
    }
    let last = execution.processes[process.index()].last;
    while let Some((number, instant)) = instants.next_if(|(_, instant)| *instant < last) {
        pass_instant(&mut lanes, &mut at, instant, sums);
        sums.passes(number);
    }
    at.advance(last, sums);
    at.ends_round();
    for lane in &lanes {
        lane.settle(&at, sums);
    }
}
