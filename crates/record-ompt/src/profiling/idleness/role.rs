//! What a thread is charged with, for its work beside those that idle.

use core::cell::Cell;

use taskscope_profile::{NodeId, Tree};

use super::pool::Pool;
use super::weights::{Idled, KNOWN, Kind, Owed, SAMPLED, Weights, add_sample, add_to_nobody};
use crate::profiling::account::{Account, Spent};
use crate::profiling::cause::Cause;
use crate::profiling::integrals::Share;
use crate::profiling::locks::Place;
use crate::profiling::recent::{Recent, Sampled};
use crate::profiling::workers::{self, Workers};
use crate::profiling::{contexts, teams};

/// Looks at all workers in a sampling period, at most: of handlers, and where threads leave what they did.
const LOOKS: u64 = 8;
const LOOKS_BETWEEN: u64 = 32;
/// Periods. Threads that have lost their CPUs have samples when they come back.
const LONG_WITHOUT_SAMPLE: u64 = 8;

/// A thread's place among the workers.
#[derive(Default)]
pub struct Role {
    /// Of which run it is a worker, if of any. A forked child's is another one.
    workers: Option<&'static Workers>,
    is_root: bool,
    /// It does not count, as its recording is paused.
    is_paused: bool,
    stretch: Stretch,
}

/// What a root does outside of its regions. Its handler changes that, too, but not while a callback runs.
#[derive(Default)]
struct Stretch {
    /// When its time was looked at last, or its last region was over, and what it had spent then. (Of time that a device worked,
    /// [`Role::device_worked`] is told.)
    since: Cell<u64>,
    before: Cell<Spent>,
    /// Work that is not charged to any path yet.
    owed: Cell<Owed>,
    /// Where it forked last.
    fork: Place,
}

/// What a sample is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleOf {
    /// The program's own work.
    Work,
    /// Waiting for a device, which works.
    Device,
    /// Outside of any region, waiting for a lock. Beside nobody who works it is a free one, and taking it is work.
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

impl Stretch {
    /// From now on. Returns the work that samples in callbacks have charged.
    fn begin(&self, account: &Account, at: u64, spent: Spent) -> u64 {
        self.since.set(at);
        self.before.set(spent);
        account.serial.look(at)
    }

    /// What the time since the look before weighs, while one thread alone forks: of work, and of waits. Async-signal-safe.
    fn look(&self, pool: &Pool, account: &Account, at: u64) -> [Owed; 2] {
        let spent = account.spent(at);
        let (since, before) = (self.since.get(), self.before.get());
        let charged = self.begin(account, at, spent);
        // Beside another root, samples tell.
        let known = pool.has_one_root_until().saturating_sub(since);
        let work = spent.work.saturating_sub(before.work).saturating_sub(charged).min(known);
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

    /// Its recording is paused, or goes on.
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
        let Some(Workers { pool, .. }) = self.workers.filter(|_| self.is_root) else { return };
        let stretch = &mut self.stretch;
        let [work, nobodys] = stretch.look(pool, account, at);
        let mut give = |charge: Charge<'_>| {
            if charge.owed.weights != Weights::default() {
                give(charge);
            }
        };
        give(Charge::known(nobodys, To::Nobody));
        let last = To::Place(stretch.fork);
        let Some(fork) = fork else {
            let [ended, owed] = [stretch.put_off(work), stretch.owed.take()];
            give(Charge::known(ended, last));
            return give(Charge::known(owed, To::first(samples, stretch.fork)));
        };
        stretch.fork = fork;
        account.serial.pause();
        if work.weights.turn >= period_ns {
            // It should have had a sample.
            return give(Charge::known(work, To::first(samples, fork)));
        }
        give(Charge::known(stretch.put_off(work), last));
    }

    /// The thread, in no team, has waited so long for a device, which worked for the construct at `place`: what others idled
    /// meanwhile. Beside another root, samples tell.
    pub fn device_worked(&self, waited: u64, at: u64, place: Place) -> Option<Charge<'static>> {
        let pool = &self.workers.filter(|_| self.is_root)?.pool;
        let owed = Owed { epoch: pool.epoch(), weights: Weights::of(waited, pool.others()) };
        (pool.has_one_root_until() > at).then_some(Charge::known(owed, To::Place(place)))
    }

    /// A region that the thread forked outside of any team is over, or a pause: what was put off before workers began that are
    /// there now is charged to the fork.
    pub fn joined(&mut self, account: &Account, at: u64, give: impl FnOnce(Charge<'_>)) {
        let Some(Workers { pool, .. }) = self.workers.filter(|_| self.is_root) else { return };
        self.stretch.begin(account, at, account.spent(at));
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

    /// Whether what others idle beside it is known without samples.
    fn is_known(&self, is_in_team: bool, at: u64) -> bool {
        self.is_root
            && !is_in_team
            && self.workers.is_some_and(|Workers { pool, .. }| pool.has_one_root_until() > at)
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
        let workers = self.workers?;
        let (pool, epoch) = (&workers.pool, workers.pool.epoch());
        pool.sampled.advance(at, period_ns / LOOKS, epoch, || pool.look(workers.accounts(), at));
        let share = take(pool, account, epoch, at);
        let is_charged = matches!(of, SampleOf::Work | SampleOf::Device);
        let sampled = Some(share).filter(|_| is_charged && !self.is_known(is_in_team, at));
        let mut idled = Idled { sampled, ..Idled::default() };
        if self.is_root && !is_in_team {
            let [work, nobodys] = self.stretch.look(pool, account, at);
            idled.nobodys = nobodys;
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

/// What a sample is charged with that stands for the `ns` before `at` and comes in a callback of serial code, where the thread cannot
/// be looked at. Async-signal-safe.
pub fn share_in_callback(account: &Account, at: u64, ns: u64) -> Option<Idled> {
    let pool = &workers::current()?.pool;
    if pool.has_one_root_until() <= at {
        return None;
    }
    let serial = account.serial.sampled_in_callback(at, ns);
    let owed = Owed { epoch: pool.epoch(), weights: Weights::of(serial, pool.others()) };
    Some(Idled { known: [Owed::default(), owed], ..Idled::default() })
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
pub fn add_unsampled(tree: &mut Tree, workers: &Workers, now: u64, period_ns: u64) {
    let (pool, epoch) = (&workers.pool, workers.pool.epoch());
    pool.sampled.advance(now, period_ns / LOOKS, epoch, || pool.look(workers.accounts(), now));
    for account in workers.accounts() {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiling::idleness::pool::SHORTEST_EPOCH_NS;

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
        account.switch(Cause::Taskwait, 170);
        account.switch(Cause::Serial, 200);
        let [work, waits] = stretch.look(&pool, &account, 210);
        assert_eq!((work, waits), (of(90, 30), of(90, 30)));
        assert_eq!(stretch.put_off(work), of(0, 0));
        // After its region, at 300, it calls at 340 what is over at 400.
        stretch.begin(&account, 300, account.spent(300));
        let [work, _] = stretch.look(&pool, &account, 400);
        assert_eq!(stretch.sampled(work, 60, 3), [of(90, 30), of(180, 60)]);
        assert_eq!(stretch.owed.get(), of(120, 40), "before the call");
        // A worker has begun since.
        pool.begin(false, 2 * SHORTEST_EPOCH_NS);
        let [work, _] = stretch.look(&pool, &account, 401);
        assert_eq!(stretch.put_off(work), of(120, 40), "of the epoch before");
        assert_eq!(stretch.owed.get(), Owed { epoch: 1, weights: Weights::of(1, 4) });
        // Samples in callbacks have charged a part of it: no more than has passed since the look before.
        assert_eq!(
            [(411, 1000), (421, 5)].map(|(at, ns)| account.serial.sampled_in_callback(at, ns)),
            [10, 5]
        );
        assert_eq!(stretch.look(&pool, &account, 431)[0], Owed { epoch: 1, weights: Weights::of(15, 4) });
        account.serial.pause();
        assert_eq!(account.serial.sampled_in_callback(440, 5), 0, "in a region");
        // From when another one forks, samples tell.
        pool.begin(true, 450);
        assert_eq!(stretch.look(&pool, &account, 500)[0].weights.turn, 19);
        assert_eq!(stretch.look(&pool, &account, 600)[0].weights.turn, 0);
    }
}
