//! Charges of a thread for its work beside idle workers.

use core::cell::Cell;

use taskscope_profile::{NodeId, Tree};

use super::pool::Pool;
use super::weights::{Idled, KNOWN, Kind, Owed, SAMPLED, Weights, add_sample, add_unattributed};
use crate::profiling::account::{Account, Spent};
use crate::profiling::contexts::ChargedPath;
use crate::profiling::integrals::Share;
use crate::profiling::recent::{Recent, Sampled};
use crate::profiling::states::{State, is_charged};
use crate::profiling::workers::{self, Workers};
use crate::profiling::{contexts, teams};

/// Maximum checks of all workers per sampling period: by handlers, and by threads that leave their work.
const LOOKS: u64 = 8;
const LOOKS_BETWEEN: u64 = 32;
/// Periods. Threads that have lost their CPUs have samples when they come back.
const LONG_WITHOUT_SAMPLE: u64 = 8;

/// A thread's place among the workers.
#[derive(Default)]
pub struct Role {
    /// The run in which it is a worker, if any. A forked child has another one.
    workers: Option<&'static Workers>,
    is_root: bool,
    /// Whether recording is paused: it does not count.
    is_paused: bool,
    stretch: Stretch,
}

/// Interval of a root outside of its regions. The handler changes it too, but not during a callback.
#[derive(Default)]
struct Stretch {
    /// Time of the last look, or end of its last region, and the time spent until then. (Time that a device
    /// worked is passed to [`Role::device_worked`].)
    since: Cell<u64>,
    before: Cell<Spent>,
    /// Work that is not charged to any path yet.
    owed: Cell<Owed>,
    /// Place of its last fork.
    fork: ChargedPath,
}

/// Kind of code that a sample hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOf {
    /// The program's own work.
    Work,
    /// Waiting for a device, which works.
    Device,
    /// Outside of any region, waiting for a lock. If no other worker works, the lock is free, and taking it
    /// is work.
    Mutex,
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
    Place(ChargedPath),
    Samples(&'a Recent),
    Unattributed,
}

impl Charge<'_> {
    /// Adds it to a tree in which [`ChargedPath`]s and samples have nodes.
    pub fn add_to(
        self,
        tree: &mut Tree,
        node_of_place: impl Fn(&mut Tree, ChargedPath) -> NodeId,
        node_of_sample: impl Fn(&mut Tree, Sampled<'_>) -> NodeId,
    ) {
        let Owed { epoch, mut weights } = self.owed;
        if weights == Weights::default() {
            return;
        }
        let of = (self.kind, epoch);
        match self.to {
            To::Samples(samples) => {
                for (sample, part) in samples.parts_of_work() {
                    let node = node_of_sample(tree, sample);
                    weights.take(part).add_to(tree, node, of);
                }
            }
            To::Place(place) => {
                let node = node_of_place(tree, place);
                weights.add_to(tree, node, of);
            }
            To::Unattributed => add_unattributed(tree, self.owed),
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
    fn first(samples: Option<&'a Recent>, place: ChargedPath) -> To<'a> {
        samples.filter(|samples| samples.has_work()).map_or(To::Place(place), To::Samples)
    }
}

impl Stretch {
    /// Begins the stretch at `at`. Returns the work that samples in callbacks have charged.
    fn begin(&self, account: &Account, at: u64, spent: Spent) -> u64 {
        self.since.set(at);
        self.before.set(spent);
        account.serial.look(at)
    }

    /// Returns the weights of work and waits since the previous look, while one thread alone forks.
    /// Async-signal-safe.
    fn look(&self, pool: &Pool, account: &Account, at: u64) -> [Owed; 2] {
        let spent = account.spent(at);
        let (since, before) = (self.since.get(), self.before.get());
        let charged = self.begin(account, at, spent);
        // Beside another root, samples decide.
        let known = pool.has_one_root_until().saturating_sub(since);
        let work = spent.work.saturating_sub(before.work).saturating_sub(charged).min(known);
        let waits = spent.waits.saturating_sub(before.waits).min(known - work);
        let (epoch, others) = (pool.epoch(), pool.others());
        [work, waits].map(|ns| Owed { epoch, weights: Weights::of(ns, others) })
    }

    /// Defers more weight. Returns the weight deferred before, if an epoch has ended since.
    fn put_off(&self, more: Owed) -> Owed {
        let owed = self.owed.get();
        if owed.epoch == more.epoch {
            self.owed.set(Owed { weights: owed.weights.and(more.weights), ..more });
            return Owed::default();
        }
        self.owed.set(more);
        owed
    }

    /// Returns the charge of a sample of work: the deferred weight and the `work` since, of which `longest`
    /// at most is its own. The rest is deferred. Async-signal-safe.
    fn sampled(&self, mut work: Owed, longest: u64, others: u64) -> [Owed; 2] {
        let own = work.weights.turn.min(longest);
        let before = Weights::of(work.weights.turn - own, others);
        work.weights = Weights::of(own, others);
        [self.owed.replace(Owed { weights: before, ..work }), work]
    }
}

impl Role {
    /// Sets the thread's kind. Returns whether it has become a root.
    pub fn set(&mut self, account: &Account, is_worker: bool, is_root: bool, at: u64) -> bool {
        if (is_worker, is_root) == (self.workers.is_some(), self.is_root) {
            return false;
        }
        self.pause(false);
        if let Some(workers) = self.workers.take() {
            workers.pool.end(self.is_root, false);
        }
        if let Some(workers) = workers::current().filter(|_| is_worker) {
            let began = account.began();
            workers.pool.begin(is_root, began);
            account.taken.set(workers.pool.sampled.taken_now(workers.pool.epoch()), at);
            self.stretch.begin(account, began, Spent::default());
            if !is_root {
                account.serial.pause();
            }
            self.workers = Some(workers);
        }
        self.is_root = is_root;
        is_root && self.workers.is_some()
    }

    /// Pauses or resumes its recording.
    pub fn pause(&mut self, paused: bool) {
        if let Some(workers) = self.workers.filter(|_| paused != self.is_paused) {
            workers.pool.pause(paused);
            self.is_paused = paused;
        }
    }

    /// The thread ends.
    pub fn end(&mut self) {
        self.pause(false);
        if let Some(workers) = self.workers {
            workers.pool.end(self.is_root, true);
        }
        *self = Role::default();
    }

    /// Charges others' idleness that samples have not charged, when the thread, in no team, forks at `fork`.
    /// At the program's end or a snapshot (`None`), all goes to the samples since its last region, `samples`.
    pub fn charge(
        &mut self,
        account: &Account,
        at: u64,
        fork: Option<ChargedPath>,
        samples: Option<&Recent>,
        period_ns: u64,
        mut give: impl FnMut(Charge<'_>),
    ) {
        let Some(Workers { pool, .. }) = self.workers.filter(|_| self.is_root) else { return };
        let stretch = &mut self.stretch;
        let [work, unattributed] = stretch.look(pool, account, at);
        let mut give = |charge: Charge<'_>| {
            if charge.owed.weights != Weights::default() {
                give(charge);
            }
        };
        give(Charge::known(unattributed, To::Unattributed));
        let last = To::Place(stretch.fork);
        let Some(fork) = fork else {
            let [ended, owed] = [stretch.put_off(work), stretch.owed.take()];
            give(Charge::known(ended, last));
            return give(Charge::known(owed, To::first(samples, stretch.fork)));
        };
        stretch.fork = fork;
        account.serial.pause();
        if work.weights.turn >= period_ns {
            // A period has passed without a sample.
            return give(Charge::known(work, To::first(samples, fork)));
        }
        give(Charge::known(stretch.put_off(work), last));
    }

    /// Returns others' idleness while the thread, in no team, waited for a device, which worked for the
    /// construct at `place`. Beside another root, samples decide.
    pub fn device_worked(&self, waited: u64, at: u64, place: ChargedPath) -> Option<Charge<'static>> {
        let pool = &self.workers.filter(|_| self.is_root)?.pool;
        let owed = Owed { epoch: pool.epoch(), weights: Weights::of(waited, pool.others()) };
        (pool.has_one_root_until() > at).then_some(Charge::known(owed, To::Place(place)))
    }

    /// Ends a region that the thread forked outside of any team, or a pause: charges weights that were
    /// deferred before workers began, which are present now, to the fork.
    pub fn joined(&mut self, account: &Account, at: u64, give: impl FnOnce(Charge<'_>)) {
        let Some(Workers { pool, .. }) = self.workers.filter(|_| self.is_root) else { return };
        self.stretch.begin(account, at, account.spent(at));
        let ended = self.stretch.put_off(Owed { epoch: pool.epoch(), ..Owed::default() });
        if ended != Owed::default() {
            give(Charge::known(ended, To::Place(self.stretch.fork)));
        }
    }

    /// Ends the thread's work in a team or serial code: charges others' idleness since the last sample, if
    /// samples decide, to the samples there, or to `place`. Small amounts are not charged.
    pub fn leaves(
        &self,
        account: &Account,
        is_in_team: bool,
        at: u64,
        (samples, place): (Option<&Recent>, ChargedPath),
        period_ns: u64,
        mut give: impl FnMut(Charge<'_>),
    ) {
        let Some(workers) = self.workers else { return };
        let pool = &workers.pool;
        if self.is_known(is_in_team, at) {
            return pool.sampled.pass(at, period_ns / LOOKS_BETWEEN);
        }
        let epoch = pool.epoch();
        pool.sampled.advance(at, period_ns / LOOKS_BETWEEN, epoch, || pool.look(workers.accounts(), at));
        if at.saturating_sub(account.taken.at()) < period_ns / LOOKS {
            return;
        }
        let Share { mut present, turns } = take(pool, account, epoch, at);
        for (epoch, turn) in turns {
            let weights = Weights { present: core::mem::take(&mut present), turn };
            if weights != Weights::default() {
                give(Charge { owed: Owed { epoch, weights }, kind: SAMPLED, to: To::first(samples, place) });
            }
        }
    }

    /// The thread, which has idled, begins to work in a team.
    pub fn enters(&self, account: &Account, at: u64) {
        if let Some(Workers { pool, .. }) = self.workers {
            account.taken.set(pool.sampled.taken_now(pool.epoch()), at);
        }
    }

    /// Whether others' idleness beside it is known without samples.
    fn is_known(&self, is_in_team: bool, at: u64) -> bool {
        self.is_root
            && !is_in_team
            && self.workers.is_some_and(|Workers { pool, .. }| pool.has_one_root_until() > at)
    }

    /// Returns a sample's share of others' idleness. The thread was sampled at `at`, and was in the sampled
    /// code for `longest` at most. Async-signal-safe.
    pub fn share(
        &self,
        account: &Account,
        is_in_team: bool,
        of: SampleOf,
        (at, longest): (u64, u64),
        period_ns: u64,
    ) -> Option<Idled> {
        let workers = self.workers?;
        let (pool, epoch) = (&workers.pool, workers.pool.epoch());
        pool.sampled.advance(at, period_ns / LOOKS, epoch, || pool.look(workers.accounts(), at));
        let share = take(pool, account, epoch, at);
        let is_charged = matches!(of, SampleOf::Work | SampleOf::Device);
        let sampled = Some(share).filter(|_| is_charged && !self.is_known(is_in_team, at));
        let mut idled = Idled { sampled, ..Idled::default() };
        if self.is_root && !is_in_team {
            let [work, unattributed] = self.stretch.look(pool, account, at);
            idled.unattributed = unattributed;
            match of {
                SampleOf::Work | SampleOf::Mutex => {
                    idled.known = self.stretch.sampled(work, longest, pool.others())
                }
                _ => idled.known[0] = self.stretch.put_off(work),
            }
        }
        Some(idled)
    }
}

/// Returns the charge of a sample in a callback of serial code, when the account cannot be read. It
/// represents the `ns` before `at`. Async-signal-safe.
pub fn share_in_callback(account: &Account, at: u64, ns: u64) -> Option<Idled> {
    let pool = &workers::current()?.pool;
    if pool.has_one_root_until() <= at {
        return None;
    }
    let serial = account.serial.sampled_in_callback(at, ns);
    let owed = Owed { epoch: pool.epoch(), weights: Weights::of(serial, pool.others()) };
    Some(Idled { known: [Owed::default(), owed], ..Idled::default() })
}

/// Takes its share of the sampled integrals since the last one. Async-signal-safe.
fn take(pool: &Pool, account: &Account, epoch: usize, at: u64) -> Share {
    let mut taken = account.taken.get();
    let share = pool.sampled.take(&mut taken, epoch);
    account.taken.set(taken, at);
    share
}

/// Adds the future charges of threads that work for much longer than a period without a sample, in a call
/// that is not interrupted: at their tasks, or, outside of tasks, at an unknown path.
pub fn add_unsampled(tree: &mut Tree, workers: &Workers, now: u64, period_ns: u64) {
    let (pool, epoch) = (&workers.pool, workers.pool.epoch());
    pool.sampled.advance(now, period_ns / LOOKS, epoch, || pool.look(workers.accounts(), now));
    for account in workers.accounts() {
        let since = account.since().max(account.taken.at());
        let Some(state) = account
            .activity(teams::over_since)
            .filter(|state| is_charged(*state) && *state != State::TargetWait)
        else {
            continue;
        };
        // While it changes it seems to be far ahead.
        if now.saturating_sub(since) < LONG_WITHOUT_SAMPLE * period_ns {
            continue;
        }
        let mut idled = Idled::default();
        if state == State::Serial && pool.has_one_root_until() > now {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiling::idleness::pool::MIN_EPOCH_NS;

    #[test]
    fn a_sample_has_all_work_since_the_one_before() {
        let pool = Pool::new(0);
        pool.begin(true, 0);
        (0..3).for_each(|_| pool.begin(false, 10));
        let (stretch, account) = (Stretch::default(), Account::new(0));
        let of = |present, turn| Owed { epoch: 0, weights: Weights { present, turn } };
        // It works from 100 on, is sampled at 150, waits from 170 to 200, and forks at 210.
        stretch.begin(&account, 100, account.spent(100));
        let [work, waits] = stretch.look(&pool, &account, 150);
        assert_eq!((work, waits), (of(150, 50), of(0, 0)));
        assert_eq!(stretch.sampled(work, u64::MAX, 3), [of(0, 0), of(150, 50)]);
        account.switch(State::Taskwait, 170);
        account.switch(State::Serial, 200);
        let [work, waits] = stretch.look(&pool, &account, 210);
        assert_eq!((work, waits), (of(90, 30), of(90, 30)));
        assert_eq!(stretch.put_off(work), of(0, 0));
        // After its region, at 300, it begins a call at 340 that ends at 400.
        stretch.begin(&account, 300, account.spent(300));
        let [work, _] = stretch.look(&pool, &account, 400);
        assert_eq!(stretch.sampled(work, 60, 3), [of(90, 30), of(180, 60)]);
        assert_eq!(stretch.owed.get(), of(120, 40), "before the call");
        // A worker has begun since.
        pool.begin(false, 2 * MIN_EPOCH_NS);
        let [work, _] = stretch.look(&pool, &account, 401);
        assert_eq!(stretch.put_off(work), of(120, 40), "of the epoch before");
        assert_eq!(stretch.owed.get(), Owed { epoch: 1, weights: Weights::of(1, 4) });
        // Samples in callbacks have charged a part of it: at most the time since the previous look.
        assert_eq!(
            [(411, 1000), (421, 5)].map(|(at, ns)| account.serial.sampled_in_callback(at, ns)),
            [10, 5]
        );
        assert_eq!(stretch.look(&pool, &account, 431)[0], Owed { epoch: 1, weights: Weights::of(15, 4) });
        account.serial.pause();
        assert_eq!(account.serial.sampled_in_callback(440, 5), 0, "in a region");
        // A call of MPI is work: workers wait for it.
        stretch.begin(&account, 435, account.spent(435));
        account.switch(State::Communication, 437);
        let [work, waits] = stretch.look(&pool, &account, 445);
        assert_eq!((work.weights.turn, waits.weights.turn), (10, 0));
        account.switch(State::Serial, 445);
        stretch.begin(&account, 431, account.spent(431));
        // From the fork of another root on, samples decide.
        pool.begin(true, 450);
        assert_eq!(stretch.look(&pool, &account, 500)[0].weights.turn, 19);
        assert_eq!(stretch.look(&pool, &account, 600)[0].weights.turn, 0);
    }
}
