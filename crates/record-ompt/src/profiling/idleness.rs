//! Idleness: workers that have nothing to do, charged to what ran meanwhile.
//!
//! ```text
//!   epochs    |      0       |           1           |      2
//!   worker 1   ── serial ──├ region ┤── serial ──────├ region ┤──
//!   worker 2   not started  └ works ┘ idle            └ works ┘ idle
//!   worker 6   not started ──────────────────────────└ works ┘ idle
//! ```
//! At each instant every working thread is charged I/W for the I workers that idle, while W work; where none works
//! it is nobody's. Two weights are kept at each path, and become exact sums when a profile is written
//! ([`settle`]):
//!
//! - *present*, for workers that are there: I/W of the time.
//! - *turn*, for workers that begin later: 1/W of the time, by epoch. An epoch ends when a worker begins; a worker
//!   idles through all epochs before its own.
//!
//! Between its regions, a thread that alone forks has all others idle: the time of its work is *known*, from its account, and
//! each of its samples has what it worked since the one before. What is left when it forks, less than a period, waits for the
//! next sample of serial work: such ends are sampled as often if they come often. Beside a team that is smaller than the pool, or has not all its members yet, and beside
//! other threads that fork, weights are *sampled*: handlers look at what all workers do, and integrate I/W and 1/W over
//! time (`integrals`); a sample of work has what the integrals have grown by since the sample before, however long that
//! was. These weights divide what the known ones leave.

use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree};

use super::account::{Account, Cause};
use super::contexts;
use super::integrals::{Integrals, Seen, Share};
use super::locks::Place;
use super::recent::{Part, Recent, Sampled};
use super::run::{self, Run};
use super::teams;

/// Epochs that are told apart; the last one does not end.
pub const EPOCHS: usize = 64;
/// Looks at all workers in a sampling period, at most: of handlers, and where threads leave what they did.
const LOOKS: u64 = 8;
const LOOKS_BETWEEN: u64 = 32;
/// Periods. Threads that have lost their CPUs have samples when they come back.
const LONG_WITHOUT_SAMPLE: u64 = 8;
/// Workers that begin within this time, nanoseconds, end one epoch.
const SHORTEST_EPOCH_NS: u64 = 1_000_000;

/// The metrics of weights. They are in no file: [`settle`] takes them away.
#[derive(Clone, Copy)]
struct Kind {
    present: Metric,
    first_turn: u16,
}

const KNOWN: Kind = Kind { present: Metric(0x400), first_turn: 0x500 };
const SAMPLED: Kind = Kind { present: Metric(0x401), first_turn: 0x600 };

impl Kind {
    fn turn(self, epoch: usize) -> Metric {
        Metric(self.first_turn + epoch as u16)
    }
}

/// Time in each epoch, nanoseconds.
pub type ByEpoch = [u64; EPOCHS];

/// What workers that had not begun idled in an epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// All of them together, nanoseconds.
    pub owed: u64,
    /// How long the epoch was.
    pub length: u64,
}

/// The workers of a process.
pub struct Pool {
    /// Those that are there.
    workers: AtomicU32,
    /// Of them, those that are not made by the runtime: they fork.
    roots: AtomicU32,
    /// When a second one of these began; 0 while there was none.
    second_root: AtomicU64,
    ended: AtomicU32,
    has_begun: AtomicBool,
    epochs: AtomicU32,
    starts: [AtomicU64; EPOCHS],
    sampled: Integrals,
}

impl Pool {
    /// Of a process that begins now.
    pub fn new(now: u64) -> Pool {
        let starts = [const { AtomicU64::new(0) }; EPOCHS];
        if let Some(first) = starts.first() {
            first.store(now, Relaxed);
        }
        Pool {
            workers: AtomicU32::new(0),
            roots: AtomicU32::new(0),
            second_root: AtomicU64::new(0),
            ended: AtomicU32::new(0),
            has_begun: AtomicBool::new(false),
            epochs: AtomicU32::new(1),
            starts,
            sampled: Integrals::new(now),
        }
    }

    /// A worker begins.
    fn begin(&self, is_root: bool, at: u64) {
        self.workers.fetch_add(1, Relaxed);
        self.has_begun.store(true, Relaxed);
        if is_root && self.roots.fetch_add(1, Relaxed) > 0 {
            let _ = self.second_root.compare_exchange(0, at, Relaxed, Relaxed);
        }
        let epochs = self.epochs.load(Acquire);
        let start = |epoch: u32| self.starts.get(epoch as usize);
        let is_long = start(epochs - 1).is_some_and(|last| at >= last.load(Relaxed) + SHORTEST_EPOCH_NS);
        // Of several that begin at once, one begins the epoch; its start is known before it counts.
        if let Some(next) = start(epochs).filter(|_| is_long)
            && next.compare_exchange(0, at, Relaxed, Relaxed).is_ok()
        {
            self.epochs.store(epochs + 1, Release);
        }
    }

    /// A worker ends, or is none after all.
    fn end(&self, is_root: bool, has_ended: bool) {
        self.workers.fetch_sub(1, Relaxed);
        self.roots.fetch_sub(u32::from(is_root), Relaxed);
        self.ended.fetch_add(u32::from(has_ended), Relaxed);
    }

    /// The recording of one is paused, or goes on.
    fn pause(&self, paused: bool) {
        if paused {
            self.workers.fetch_sub(1, Relaxed);
        } else {
            self.workers.fetch_add(1, Relaxed);
        }
    }

    fn epoch(&self) -> usize {
        self.epochs.load(Acquire) as usize - 1
    }

    /// Until when one thread alone forks.
    fn has_one_root_until(&self) -> u64 {
        Some(self.second_root.load(Relaxed)).filter(|at| *at > 0).unwrap_or(u64::MAX)
    }

    /// Whether there is a worker, or was one.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }

    /// Workers besides one.
    fn others(&self) -> u64 {
        u64::from(self.workers.load(Relaxed).saturating_sub(1)) + u64::from(self.ended.load(Relaxed))
    }

    /// For how long a worker that began at `began` was not there, by epoch.
    pub fn late(&self, began: u64) -> ByEpoch {
        let epochs = self.epochs.load(Acquire) as usize;
        let start = |epoch: usize| self.starts.get(epoch).map_or(u64::MAX, |start| start.load(Relaxed));
        core::array::from_fn(|epoch| {
            let end = if epoch + 1 < epochs { start(epoch + 1) } else { u64::MAX };
            if epoch < epochs { end.min(began).saturating_sub(start(epoch)) } else { 0 }
        })
    }

    /// The same of all workers (`owed`, of the epochs until now), with the lengths of the epochs.
    pub fn all_late(&self, owed: &ByEpoch, now: u64) -> Vec<Late> {
        let lengths = self.late(now);
        owed.iter().zip(lengths).map(|(owed, length)| Late { owed: *owed, length }).collect()
    }

    /// What workers do now. Async-signal-safe.
    fn look(&self, accounts: impl Iterator<Item = &'static Account>, at: u64) -> Seen {
        let mut seen = Seen { idle: self.ended.load(Relaxed), ..Seen::default() };
        let mut is_root = false;
        for account in accounts {
            match account.activity(teams::over_since) {
                Some(cause) if cause.is_idle() => seen.idle += 1,
                Some(cause) => {
                    seen.working += u32::from(cause.is_useful() || cause == Cause::TargetWait);
                    is_root |= cause == Cause::Serial;
                }
                None => {}
            }
        }
        // Between its regions: `charge` knows that.
        seen.is_known = is_root && seen.working <= 1 && self.has_one_root_until() > at;
        seen
    }
}

/// A thread's place among the workers.
#[derive(Default)]
pub struct Role {
    /// Of which run it is a worker, if of any. A forked child's is another one.
    run: Option<&'static Run>,
    is_root: bool,
    /// It does not count, as its recording is paused.
    is_paused: bool,
    stretch: Stretch,
}

/// What a root does outside of its regions. Its handler changes that, too, but not while a callback runs.
#[derive(Default)]
struct Stretch {
    /// When its time was looked at last, or its last region was over, and what it had spent then.
    since: Cell<u64>,
    before: Cell<Spent>,
    /// Work that is not charged to any path yet.
    owed: Cell<Owed>,
    /// Where it forked last.
    fork: Place,
}

/// Time that a thread has spent, nanoseconds.
#[derive(Clone, Copy, Default)]
struct Spent {
    /// With the program's work.
    work: u64,
    /// While neither it nor a device worked for the program, though it had not run out of work. (Of time that a device
    /// worked, [`Role::device_worked`] is told.)
    waits: u64,
}

impl Spent {
    fn by(account: &Account, at: u64) -> Spent {
        let mut spent = Spent::default();
        for (cause, ns) in Cause::ALL.into_iter().zip(account.sums_at(at)) {
            if cause.is_useful() {
                spent.work += ns;
            } else if !cause.is_idle()
                && !matches!(cause, Cause::TargetWait | Cause::ForkJoin | Cause::Unknown)
            {
                spent.waits += ns;
            }
        }
        spent
    }
}

/// Weights of an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Owed {
    epoch: usize,
    weights: Weights,
}

impl Owed {
    fn add_to(self, tree: &mut Tree, node: NodeId) {
        self.weights.add_to(tree, node, (KNOWN, self.epoch));
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Weights {
    present: u64,
    turn: u64,
}

impl Weights {
    fn of(ns: u64, workers: u64) -> Weights {
        Weights { present: ns * workers, turn: ns }
    }

    fn and(self, more: Weights) -> Weights {
        Weights { present: self.present + more.present, turn: self.turn + more.turn }
    }

    fn add_to(self, tree: &mut Tree, node: NodeId, (kind, epoch): (Kind, usize)) {
        for (metric, weight) in [(kind.present, self.present), (kind.turn(epoch), self.turn)] {
            if weight > 0 {
                tree.add(node, metric, weight);
            }
        }
    }

    fn take(&mut self, part: Part) -> Weights {
        Weights { present: part.take_from(&mut self.present), turn: part.take_from(&mut self.turn) }
    }
}

/// What a sample is charged with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idled {
    sampled: Option<Share>,
    /// Of the epoch before, and of this one.
    known: [Owed; 2],
    nobodys: Owed,
}

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOf {
    /// The program's own work.
    Work,
    /// Waiting for a device, which works.
    Device,
    /// Something else.
    Other,
}

/// Weights that counts take over.
pub struct Charge<'a> {
    owed: Owed,
    kind: Kind,
    to: To<'a>,
}

#[derive(Clone, Copy)]
enum To<'a> {
    Place(Place),
    Samples(&'a Recent),
    Nobody,
}

impl Charge<'_> {
    /// Adds it to a tree in which [`Place`]s and samples have nodes.
    pub fn add_to(
        self,
        tree: &mut Tree,
        node_of_place: impl Fn(&mut Tree, Place) -> NodeId,
        node_of_sample: impl Fn(&mut Tree, Sampled<'_>) -> NodeId,
    ) {
        let Owed { epoch, mut weights } = self.owed;
        if weights == Weights::default() {
            return;
        }
        let of = (self.kind, epoch);
        match self.to {
            To::Samples(samples) => {
                for (sample, part) in samples.parts() {
                    let node = node_of_sample(tree, sample);
                    weights.take(part).add_to(tree, node, of);
                }
            }
            To::Place(place) => {
                let node = node_of_place(tree, place);
                weights.add_to(tree, node, of);
            }
            To::Nobody => add_to_nobody(tree, self.owed),
        }
    }
}

impl<'a> Charge<'a> {
    fn known(owed: Owed, to: To<'a>) -> Self {
        Charge { owed, kind: KNOWN, to }
    }
}

impl<'a> To<'a> {
    /// To the samples, if there are any.
    fn first(samples: Option<&'a Recent>, place: Place) -> To<'a> {
        samples.filter(|samples| !samples.is_empty()).map_or(To::Place(place), To::Samples)
    }
}

fn add_to_nobody(tree: &mut Tree, owed: Owed) {
    if owed.weights.turn > 0 {
        let nobody = tree.child(ROOT, Frame::state(Marker::Nobody));
        owed.add_to(tree, nobody);
    }
}

impl Stretch {
    /// From now on.
    fn begin(&self, at: u64, spent: Spent) {
        self.since.set(at);
        self.before.set(spent);
    }

    /// What the time since the look before weighs, while one thread alone forks: of work, and of waits. Async-signal-safe.
    fn look(&self, pool: &Pool, account: &Account, at: u64) -> [Owed; 2] {
        let spent = Spent::by(account, at);
        let (since, before) = (self.since.get(), self.before.get());
        self.begin(at, spent);
        // Beside another root, samples tell.
        let known = pool.has_one_root_until().saturating_sub(since);
        let work = spent.work.saturating_sub(before.work).min(known);
        let waits = spent.waits.saturating_sub(before.waits).min(known - work);
        let (epoch, others) = (pool.epoch(), pool.others());
        [work, waits].map(|ns| Owed { epoch, weights: Weights::of(ns, others) })
    }

    /// Puts some more off. Returns what was put off before, if an epoch has ended since.
    fn put_off(&self, more: Owed) -> Owed {
        let owed = self.owed.get();
        if owed.epoch == more.epoch {
            self.owed.set(Owed { weights: owed.weights.and(more.weights), ..more });
            return Owed::default();
        }
        self.owed.set(more);
        owed
    }

    /// A sample of work: what it is charged with, of what was put off and of the `work` since, of which `longest` at most is
    /// its own. The rest waits for the next one. Async-signal-safe.
    fn sampled(&self, mut work: Owed, longest: u64, others: u64) -> [Owed; 2] {
        let own = work.weights.turn.min(longest);
        let before = Weights::of(work.weights.turn - own, others);
        work.weights = Weights::of(own, others);
        [self.owed.replace(Owed { weights: before, ..work }), work]
    }
}

impl Role {
    /// The thread is of this kind from now on. Says whether it is a root, and was none.
    pub fn set(&mut self, account: &Account, is_worker: bool, is_root: bool, at: u64) -> bool {
        if (is_worker, is_root) == (self.run.is_some(), self.is_root) {
            return false;
        }
        self.pause(false);
        if let Some(run) = self.run.take() {
            run.pool.end(self.is_root, false);
        }
        if let Some(run) = run::current().filter(|_| is_worker) {
            let began = account.began();
            run.pool.begin(is_root, began);
            account.taken.set(run.pool.sampled.taken_now(run.pool.epoch()), at);
            self.stretch.begin(began, Spent::default());
            self.run = Some(run);
        }
        self.is_root = is_root;
        is_root && self.run.is_some()
    }

    /// Its recording is paused, or goes on.
    pub fn pause(&mut self, paused: bool) {
        if let Some(run) = self.run.filter(|_| paused != self.is_paused) {
            run.pool.pause(paused);
            self.is_paused = paused;
        }
    }

    /// The thread ends.
    pub fn end(&mut self) {
        self.pause(false);
        if let Some(run) = self.run {
            run.pool.end(self.is_root, true);
        }
        *self = Role::default();
    }

    /// The thread, in no team, has forked at `fork`: charges what others idled meanwhile, of which samples were not charged.
    /// Of a program that ends, or is looked at (`None`), all goes to what it was sampled in since its last region, `samples`.
    pub fn charge(
        &mut self,
        account: &Account,
        at: u64,
        fork: Option<Place>,
        samples: Option<&Recent>,
        period_ns: u64,
        mut give: impl FnMut(Charge<'_>),
    ) {
        let Some(Run { pool, .. }) = self.run.filter(|_| self.is_root) else { return };
        let stretch = &mut self.stretch;
        let [work, nobodys] = stretch.look(pool, account, at);
        give(Charge::known(nobodys, To::Nobody));
        let last = To::Place(stretch.fork);
        let Some(fork) = fork else {
            let [ended, owed] = [stretch.put_off(work), stretch.owed.take()];
            give(Charge::known(ended, last));
            return give(Charge::known(owed, To::first(samples, stretch.fork)));
        };
        stretch.fork = fork;
        if work.weights.turn >= period_ns {
            // It should have had a sample; those are not charged that come in callbacks.
            return give(Charge::known(work, To::first(samples, fork)));
        }
        give(Charge::known(stretch.put_off(work), last));
    }

    /// The thread, in no team, has waited so long for a device, which worked for the construct at `place`: what others idled
    /// meanwhile. Beside another root, samples tell.
    pub fn device_worked(&self, waited: u64, at: u64, place: Place) -> Option<Charge<'static>> {
        let pool = &self.run.filter(|_| self.is_root)?.pool;
        let owed = Owed { epoch: pool.epoch(), weights: Weights::of(waited, pool.others()) };
        (pool.has_one_root_until() > at).then_some(Charge::known(owed, To::Place(place)))
    }

    /// A region that the thread forked outside of any team is over, or a pause: what was put off before workers began that are
    /// there now is charged to the fork.
    pub fn joined(&mut self, account: &Account, at: u64, give: impl FnOnce(Charge<'_>)) {
        let Some(Run { pool, .. }) = self.run.filter(|_| self.is_root) else { return };
        self.stretch.begin(at, Spent::by(account, at));
        let ended = self.stretch.put_off(Owed { epoch: pool.epoch(), ..Owed::default() });
        if ended != Owed::default() {
            give(Charge::known(ended, To::Place(self.stretch.fork)));
        }
    }

    /// The thread leaves what it did, its team or serial code: what others have idled beside that since its sample before, where
    /// samples tell, belongs to what it was sampled in there, or to `place`. Not where that is little.
    pub fn leaves(
        &self,
        account: &Account,
        is_in_team: bool,
        at: u64,
        (samples, place): (Option<&Recent>, Place),
        period_ns: u64,
        mut give: impl FnMut(Charge<'_>),
    ) {
        let Some(run) = self.run else { return };
        let (pool, epoch) = (&run.pool, run.pool.epoch());
        pool.sampled.advance(at, period_ns / LOOKS_BETWEEN, epoch, || pool.look(run.accounts(), at));
        if at.saturating_sub(account.taken.at()) < period_ns / LOOKS {
            return;
        }
        let Share { mut present, turns } = take(pool, account, epoch, at);
        if self.is_known(is_in_team, at) {
            return;
        }
        for (epoch, turn) in turns {
            let weights = Weights { present: core::mem::take(&mut present), turn };
            if weights != Weights::default() {
                give(Charge { owed: Owed { epoch, weights }, kind: SAMPLED, to: To::first(samples, place) });
            }
        }
    }

    /// The thread, which has idled, begins to work in a team.
    pub fn enters(&self, account: &Account, at: u64) {
        if let Some(Run { pool, .. }) = self.run {
            account.taken.set(pool.sampled.taken_now(pool.epoch()), at);
        }
    }

    /// Whether what others idle beside it is known without samples.
    fn is_known(&self, is_in_team: bool, at: u64) -> bool {
        self.is_root && !is_in_team && self.run.is_some_and(|Run { pool, .. }| pool.has_one_root_until() > at)
    }

    /// The thread was sampled at `at`, and was in what is sampled for `longest` at most: its part in the idleness of others.
    /// Async-signal-safe.
    pub fn share(
        &self,
        account: &Account,
        is_in_team: bool,
        of: SampleOf,
        (at, longest): (u64, u64),
        period_ns: u64,
    ) -> Option<Idled> {
        let run = self.run?;
        let (pool, epoch) = (&run.pool, run.pool.epoch());
        pool.sampled.advance(at, period_ns / LOOKS, epoch, || pool.look(run.accounts(), at));
        let share = take(pool, account, epoch, at);
        let sampled = Some(share).filter(|_| of != SampleOf::Other && !self.is_known(is_in_team, at));
        let mut idled = Idled { sampled, ..Idled::default() };
        if self.is_root && !is_in_team {
            let [work, nobodys] = self.stretch.look(pool, account, at);
            idled.nobodys = nobodys;
            match of {
                SampleOf::Work => idled.known = self.stretch.sampled(work, longest, pool.others()),
                _ => idled.known[0] = self.stretch.put_off(work),
            }
        }
        Some(idled)
    }
}

/// Its part in what was sampled since it had that before. Async-signal-safe.
fn take(pool: &Pool, account: &Account, epoch: usize, at: u64) -> Share {
    let mut taken = account.taken.get();
    let share = pool.sampled.take(&mut taken, epoch);
    account.taken.set(taken, at);
    share
}

/// What threads will be charged with that work for much longer than a period without a sample, in a call that is not
/// interrupted: at their tasks, or, outside of any, at no path that is known.
pub fn add_unsampled(tree: &mut Tree, run: &Run, now: u64, period_ns: u64) {
    let (pool, epoch) = (&run.pool, run.pool.epoch());
    pool.sampled.advance(now, period_ns / LOOKS, epoch, || pool.look(run.accounts(), now));
    for account in run.accounts() {
        let since = account.since().max(account.taken.at());
        let Some(cause) = account.activity(teams::over_since).filter(|cause| cause.is_useful()) else {
            continue;
        };
        // While it changes it seems to be far ahead.
        if now.saturating_sub(since) < LONG_WITHOUT_SAMPLE * period_ns {
            continue;
        }
        let mut idled = Idled::default();
        if cause == Cause::Serial && pool.has_one_root_until() > now {
            idled.known[0] = Owed { epoch, weights: Weights::of(now - since, pool.others()) };
        } else {
            idled.sampled = Some(pool.sampled.take(&mut account.taken.get(), epoch));
        }
        let context = account.runs_now();
        let task = contexts::expand(tree, context);
        let node = contexts::descend(tree, task, contexts::body_of(context), &[]);
        add_sample(tree, node, &idled);
    }
}

/// A sample at the path `code` is charged with this. Async-signal-safe.
pub fn add_sample(tree: &mut Tree, code: NodeId, idled: &Idled) {
    let weights = |present, turn| Weights { present, turn };
    if let Some(share) = &idled.sampled {
        weights(share.present, 0).add_to(tree, code, (SAMPLED, 0));
        for (epoch, turn) in share.turns {
            weights(0, turn).add_to(tree, code, (SAMPLED, epoch));
        }
    }
    idled.known.into_iter().for_each(|owed| owed.add_to(tree, code));
    add_to_nobody(tree, idled.nobodys);
}

/// Divides the idleness of all workers among the paths, in proportion to their weights: `idle` in all, of which `late`
/// before they began.
pub fn settle(tree: &mut Tree, pool: &Pool, idle: u64, late: &[Late]) {
    let nobody = tree.child(ROOT, Frame::state(Marker::Nobody));
    let (present, turns) = pool.sampled.nobodys();
    Weights { present, turn: 0 }.add_to(tree, nobody, (SAMPLED, 0));
    for (epoch, turn) in turns.enumerate() {
        Weights { present: 0, turn }.add_to(tree, nobody, (SAMPLED, epoch));
    }
    let symptom = tree.child(ROOT, Frame::state(Marker::Idle));
    tree.add(symptom, Metric::taken(Marker::Idle), idle);
    let nodes: Vec<NodeId> = std::iter::once(ROOT).chain(tree.ids()).collect();
    let weights = |tree: &mut Tree, metric: Metric, times: (u64, u64)| -> Vec<(NodeId, u128)> {
        let of_node = |node: &NodeId| {
            (*node, u128::from(tree.take(*node, metric)) * u128::from(times.0) / u128::from(times.1.max(1)))
        };
        nodes.iter().map(of_node).filter(|(_, weight)| *weight > 0).collect()
    };
    let all_late: u64 = late.iter().map(|late| late.owed).sum();
    divide(tree, idle.saturating_sub(all_late), |tree, kind| weights(tree, kind.present, (1, 1)));
    let begun = pool.epoch();
    // No weight is of an epoch that has not begun.
    for (epoch, Late { owed, length }) in
        late.iter().enumerate().filter(|(epoch, late)| *epoch <= begun || late.length > 0)
    {
        divide(tree, *owed, |tree, kind| weights(tree, kind.turn(epoch), (*owed, *length)));
    }
}

/// Gives the known weights what they are, and the sampled ones the rest; what no sample is there for is nobody's.
fn divide(tree: &mut Tree, owed: u64, mut weights: impl FnMut(&mut Tree, Kind) -> Vec<(NodeId, u128)>) {
    let (known, sampled) = (weights(tree, KNOWN), weights(tree, SAMPLED));
    if owed == 0 {
        return;
    }
    let sum: u128 = known.iter().map(|(_, weight)| weight).sum();
    let of_known = sum.min(owed.into()) as u64;
    for (ns, shares) in [(of_known, known), (owed - of_known, sampled)] {
        if ns > 0 {
            taskscope_profile::settle(tree, Metric::shared(Marker::Idle), ns, &shares);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_begins_late_idles_through_the_epochs_before() {
        let ms = 1_000_000;
        let pool = Pool::new(100);
        pool.begin(true, 100);
        assert_eq!(pool.epoch(), 0);
        for at in [100 + 10 * ms, 100 + 10 * ms + 500, 100 + 30 * ms] {
            pool.begin(false, at);
        }
        assert_eq!((pool.epoch(), pool.others(), pool.has_one_root_until()), (2, 3, u64::MAX));
        let of = |began: u64| pool.late(began)[..3].to_vec();
        assert_eq!(of(100), [0, 0, 0]);
        assert_eq!(of(100 + 10 * ms), [10 * ms, 0, 0]);
        assert_eq!(of(100 + 10 * ms + 500), [10 * ms, 500, 0]);
        assert_eq!(of(100 + 31 * ms), [10 * ms, 20 * ms, ms]);
        for more in 0..2 * EPOCHS as u64 {
            pool.begin(false, 100 + (40 + 2 * more) * ms);
        }
        assert_eq!(pool.epoch(), EPOCHS - 1, "the last one goes on");
        assert_eq!(pool.late(100 + 10_000 * ms).iter().sum::<u64>(), 10_000 * ms);
        pool.end(false, true);
        assert_eq!(pool.others(), 3 + 2 * EPOCHS as u64, "who has ended idles");
    }

    #[test]
    fn a_sample_has_all_work_since_the_one_before() {
        let pool = Pool::new(0);
        pool.begin(true, 0);
        (0..3).for_each(|_| pool.begin(false, 10));
        let (stretch, account) = (Stretch::default(), Account::new(0));
        let of = |present, turn| Owed { epoch: 0, weights: Weights { present, turn } };
        // It works from 100 on, is sampled at 150, waits from 170 to 200, and forks at 210.
        stretch.begin(100, Spent::by(&account, 100));
        let [work, waits] = stretch.look(&pool, &account, 150);
        assert_eq!((work, waits), (of(150, 50), of(0, 0)));
        assert_eq!(stretch.sampled(work, u64::MAX, 3), [of(0, 0), of(150, 50)]);
        account.switch(Cause::Taskwait, 170);
        account.switch(Cause::Serial, 200);
        let [work, waits] = stretch.look(&pool, &account, 210);
        assert_eq!((work, waits), (of(90, 30), of(90, 30)));
        assert_eq!(stretch.put_off(work), of(0, 0));
        // After its region, at 300, it calls at 340 what is over at 400.
        stretch.begin(300, Spent::by(&account, 300));
        let [work, _] = stretch.look(&pool, &account, 400);
        assert_eq!(stretch.sampled(work, 60, 3), [of(90, 30), of(180, 60)]);
        assert_eq!(stretch.owed.get(), of(120, 40), "before the call");
        // A worker has begun since.
        pool.begin(false, 2 * SHORTEST_EPOCH_NS);
        let [work, _] = stretch.look(&pool, &account, 401);
        assert_eq!(stretch.put_off(work), of(120, 40), "of the epoch before");
        assert_eq!(stretch.owed.get(), Owed { epoch: 1, weights: Weights::of(1, 4) });
        // From when another one forks, samples tell.
        pool.begin(true, 450);
        assert_eq!(stretch.look(&pool, &account, 500)[0].weights.turn, 49);
        assert_eq!(stretch.look(&pool, &account, 600)[0].weights.turn, 0);
    }

    #[test]
    fn idleness_is_divided_by_the_weights_of_its_epoch() {
        let mut tree = Tree::growing();
        let [one, two] = [1, 2].map(|at| tree.child(ROOT, Frame::user(0, at)));
        for (node, metric, weight) in [
            // An epoch of 40: all of it known.
            (one, KNOWN.turn(0), 30),
            (two, KNOWN.turn(0), 10),
            // One of 10, of which 4 are known, and samples stand for a little more than the rest.
            (one, KNOWN.turn(1), 4),
            (one, SAMPLED.turn(1), 3),
            (two, SAMPLED.turn(1), 5),
            (one, KNOWN.present, 6),
            (two, SAMPLED.present, 3),
        ] {
            tree.add(node, metric, weight);
        }
        let late = [(400, 40), (50, 10), (7, 7)].map(|(owed, length)| Late { owed, length });
        settle(&mut tree, &Pool::new(0), 400 + 50 + 7 + 8, &late);
        let nobody = tree.child(ROOT, Frame::state(Marker::Nobody));
        let shared = [one, two, nobody].map(|node| tree.value(node, Metric::shared(Marker::Idle)));
        assert_eq!(shared, [300 + 20 + 11 + 6, 100 + 19 + 2, 7]);
        assert!([KNOWN, SAMPLED].iter().all(|kind| {
            tree.total(kind.present) == 0 && (0..EPOCHS).all(|epoch| tree.total(kind.turn(epoch)) == 0)
        }));
        assert!(taskscope_profile::conservation(&tree).iter().all(taskscope_profile::Balance::holds));
    }
}
