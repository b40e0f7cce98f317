//! One walk over all workers of each process in order of time: working and waiting threads at each instant.
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
use crate::turns::{Received, Turns};
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

/// Changes of all workers together that are read ahead: sized to fit the L2 cache of a core.
const READ_AHEAD: usize = 1 << 14;
/// Changes of one worker that are read ahead.
const MIN_PER_LANE: usize = 16;
const MAX_PER_LANE: usize = 1024;

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

/// Nanoseconds that one working thread is charged with, by victim state, and the part of it while it worked alone.
pub(crate) type Columns = [u64; COLUMNS];

/// The charges of a thread.
pub(crate) struct Given<'a> {
    /// Its sums when it began to work and when it ended, in the columns that are used.
    since: &'a Columns,
    until: &'a Charged,
    lane: usize,
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
    pub fn part(&self, column: usize) -> u64 {
        self.until.received[column].of(self.lane) - self.since[column]
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
    /// sections with the same state and place must have the same key, in all processes.
    const OF_SECTIONS: bool;

    /// The key of a section. Called for the sections of each thread in order, some time ahead of the sweep.
    fn key(&mut self, thread: ThreadIndex, section: &Section) -> Self::Key;

    /// The instants, in order, at which the charges of a thread are reported although it keeps working.
    fn cuts(&self, _thread: ThreadIndex) -> Vec<u64> {
        Vec::new()
    }

    /// Whether the waits of a worker are charged.
    fn counts(&self, execution: &Execution, thread: ThreadIndex) -> bool {
        execution.is_selected(thread)
    }

    /// A thread that worked on `key`, or took a free lock, from `start` to `end` is charged with `given`.
    fn worked(&mut self, thread: ThreadIndex, key: Self::Key, start: u64, end: u64, given: &Given<'_>);

    /// A thread waited, and for `ns` of it no thread worked or took a lock.
    fn nobody(&mut self, key: Self::Key, column: usize, ns: u64);
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
    /// Its number in the order of threads.
    number: usize,
    spans: CutSpans<'a>,
    /// Its current section, by the number of changes passed, and the changes read ahead.
    changes: Vec<Change<K>>,
    now: usize,
    /// Whether all its spans were read.
    ended: bool,
    /// [`Sweep::cuts`], the next one last.
    cuts: Vec<u64>,
    /// Its sums when it began to work on its key, of which role they are, how often they had changed, and in which
    /// round that was.
    since: Columns,
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

    /// Columns with sums that may have changed since it began to work on its key.
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
            // Keys of sections may have to know each cut, also one without charges since the one before.
            if S::OF_SECTIONS || self.changes_since != charged.changes {
                let used = self.changed(charged, at.round);
                let given = Given { since: &self.since, until: charged, lane: self.number, used };
                sums.worked(self.thread, key, start, at.now, &given);
            }
        } else if let Some(column) = role.victim()
            && at.nobody > self.nobody_since
        {
            sums.nobody(key, column, at.nobody - self.nobody_since);
        }
    }

    /// Takes up its next change, at that instant.
    #[inline(always)]
    fn step<S: Sweep<Key = K>>(&mut self, at: &mut Instant, sums: &mut S) {
        let Some([now, next]) = self.changes.get(self.now..).and_then(|ahead| ahead.first_chunk()) else {
            return;
        };
        let (now, start, next) = (now.role, next.start, next.role);
        at.advance(start);
        self.settle(at, sums);
        self.now += 1;
        if now != next {
            at.change(self.number, now, false);
            at.change(self.number, next, true);
        }
        if let Some(charged) = at.charged(next) {
            // Without changes since, nothing is left of the previous key.
            if self.role_since != next {
                self.since = std::array::from_fn(|column| charged.received[column].of(self.number));
                self.role_since = next;
            } else if now != next || self.changes_since != charged.changes {
                columns_of(self.changed(charged, at.round), |column| {
                    self.since[column] = charged.received[column].of(self.number);
                });
            }
            (self.changes_since, self.round_since) = (charged.changes, at.round);
        } else {
            self.nobody_since = at.nobody;
        }
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
    fn of<S: Sweep<Key = K>>(roles: Roles, activities: &'e Activities) -> Self {
        let count = if S::OF_SECTIONS { 0 } else { activities.count() };
        KnownRoles { roles, activities, known: vec![(Role::UNKNOWN, K::default()); count] }
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
            let is_new = self.changes.last().is_none_or(|change| change.start < start);
            if start >= span.start && is_new && is_charged(self.last.0) {
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
    /// The charges of working threads, and of threads taking locks while none works.
    by_working: Charged,
    by_acquiring: Charged,
    /// One bit for each column with a waiting thread.
    waited_in: u32,
    /// Changes that are sorted at once are a round.
    round: u64,
    /// Nanoseconds so far in which no worker worked, nor took a lock.
    nobody: u64,
}

/// The charges of the threads of a role, which take turns.
struct Charged {
    turns: Turns,
    received: [Received; COLUMNS],
    /// One bit for each column with sums that changed before this round, and in it.
    used: u32,
    changed_in_round: u32,
    /// Number of changes of the sums.
    changes: u64,
}

impl Charged {
    fn new(lanes: usize) -> Charged {
        Charged {
            turns: Turns::new(lanes),
            received: std::array::from_fn(|_| Received::new(lanes)),
            used: 0,
            changed_in_round: 0,
            changes: 0,
        }
    }

    fn ends_round(&mut self) {
        self.used |= std::mem::take(&mut self.changed_in_round);
    }
}

impl Instant {
    /// A lane takes up this role, or leaves it.
    #[inline(always)]
    fn change(&mut self, lane: usize, role: Role, takes: bool) {
        if role == Role::WORKS {
            self.by_working.turns.set(lane, takes);
        } else if role == Role::ACQUIRES {
            self.by_acquiring.turns.set(lane, takes);
        } else if let Some(column) = role.victim() {
            let waiting = &mut self.waiting[column];
            *waiting = if takes { *waiting + 1 } else { *waiting - 1 };
            self.waited_in = self.waited_in & !(1 << column) | u32::from(*waiting > 0) << column;
        }
    }

    fn ends_round(&mut self) {
        self.round += 1;
        self.by_working.ends_round();
        self.by_acquiring.ends_round();
    }

    /// The charges of threads of a chargeable role.
    #[inline(always)]
    fn charged(&self, role: Role) -> Option<&Charged> {
        match role {
            Role::WORKS => Some(&self.by_working),
            Role::ACQUIRES => Some(&self.by_acquiring),
            _ => None,
        }
    }

    #[inline(always)]
    fn advance(&mut self, to: u64) {
        let from = std::mem::replace(&mut self.now, to);
        let passed = to - from;
        if passed == 0 || self.waited_in == 0 {
            return;
        }
        let charged = match self.by_working.turns.count() {
            0 => &mut self.by_acquiring,
            _ => &mut self.by_working,
        };
        let many = charged.turns.count();
        if many == 0 {
            self.nobody += passed;
            return;
        }
        let dealt = charged.turns.deal(from, to);
        charged.changes += 1;
        charged.changed_in_round |= self.waited_in;
        let mut alone = 0;
        columns_of(self.waited_in, |column| {
            let waiting = self.waiting[column];
            charged.received[column].add(&dealt, waiting);
            alone += waiting;
        });
        if many == 1 {
            charged.received[SOLE].add(&dealt, alone);
            charged.changed_in_round |= 1 << SOLE;
        }
    }
}

/// Walks over the time of all workers of processes, one after the other, among these threads of each. Waits of unselected threads are
/// omitted; work of the others meanwhile is not, nor work of the runtime's own threads (target tasks).
pub(crate) fn sweep<'t, S: Sweep>(
    execution: &Execution,
    processes: impl IntoIterator<Item = (ProcessIndex, &'t [ThreadIndex])>,
    sums: &mut S,
) {
    let roles = State::ALL.map(role);
    let charged_roles = roles.map(|role| if is_charged(role) { role } else { Role::NEITHER });
    // The processes share them, as there may be as many activities as processes.
    let mut roles = [roles, charged_roles].map(|roles| KnownRoles::of::<S>(roles, &execution.activities));
    for process in processes {
        sweep_process(execution, process, &mut roles, sums);
    }
}

/// Walks over the time of one process; `all_roles` are those of threads whose waits count, and of others.
fn sweep_process<S: Sweep>(
    execution: &Execution,
    (process, threads): (ProcessIndex, &[ThreadIndex]),
    all_roles: &mut [KnownRoles<'_, S::Key>; 2],
    sums: &mut S,
) {
    let [roles, charged_roles] = all_roles;
    let runs_code = |thread: &Thread| thread.worker || thread.kind == ThreadKind::Helper;
    let mut lanes: Vec<Lane<'_, S::Key>> = threads
        .iter()
        .copied()
        .filter(|thread| runs_code(&execution.threads[thread.index()]))
        .enumerate()
        .map(|(number, thread)| Lane {
            thread,
            number,
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
        by_working: Charged::new(lanes.len()),
        by_acquiring: Charged::new(lanes.len()),
        waited_in: 0,
        round: 0,
        nobody: 0,
    };
    let per_lane = (READ_AHEAD / lanes.len().max(1)).clamp(MIN_PER_LANE, MAX_PER_LANE);
    // A time since the round's begin and a lane's number are sorted as one number.
    let lane_bits = usize::BITS - lanes.len().leading_zeros();
    let longest_round = u64::MAX >> lane_bits;
    let (mut order, mut spare): (Vec<u64>, Vec<u64>) = (Vec::new(), Vec::new());
    loop {
        for lane in lanes.iter_mut().filter(|lane| !lane.ended && lane.ahead().len() <= per_lane / 2) {
            let counts = execution.threads[lane.thread.index()].worker && sums.counts(execution, lane.thread);
            let roles = if counts { &mut *roles } else { &mut *charged_roles };
            lane.read(per_lane, roles, sums);
        }
        let coming = lanes.iter().filter_map(|lane| lane.ahead().first());
        let Some(begin) = coming.map(|change| change.start).min() else { break };
        let going_on = lanes.iter().filter(|lane| !lane.ended);
        let known = going_on.filter_map(|lane| lane.ahead().last()).map(|change| change.start).min();
        let until = known.unwrap_or(u64::MAX).min(begin.saturating_add(longest_round));
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
    at.advance(last);
    at.ends_round();
    for lane in &lanes {
        lane.settle(&at, sums);
    }
}
