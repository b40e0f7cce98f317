//! Integrals over all workers, kept by handlers: idle workers per working worker.
//!
//! ```text
//!   samples of all threads   · ·  ·   · ·   ·     a handler reads all accounts, unless another has just done so,
//!   I/W and 1/W              ▁▁▁▃▃▃▃▃▆▆▆▆▁▁▁▁     and adds them for the time since the look before
//!   samples of one thread    ·──────────·────·    have the increase between them, however long a call took
//! ```

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::*};

/// Number of distinct epochs; the last one does not end.
pub const EPOCHS: usize = 64;
/// Parts of a nanosecond that are kept.
const PARTS: u64 = 256;

/// One observation of a handler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Workers without work, or ended.
    pub idle: u32,
    /// Workers in the program's own code.
    pub working: u32,
    /// Whether this time is charged without samples.
    pub is_known: bool,
}

/// A sum over time, in parts of nanoseconds: for workers that are there, and for each that is not yet, by epoch.
struct Sum {
    present: AtomicU64,
    turns: [AtomicU64; EPOCHS],
}

/// The sums, of a process.
pub struct Integrals {
    /// A handler is adding to them.
    busy: AtomicBool,
    /// Until when they are known.
    until: AtomicU64,
    /// While at least one worker works: per working worker.
    working: Sum,
    /// While none works.
    unattributed: Sum,
}

/// Position up to which a thread has taken its share.
#[derive(Clone, Copy, Debug, Default)]
pub struct Taken {
    present: u64,
    epoch: usize,
    turn: u64,
}

/// [`Taken`] of a thread, readable by other threads, with its time.
#[derive(Default)]
pub struct SharedTaken {
    present: AtomicU64,
    epoch: AtomicUsize,
    turn: AtomicU64,
    at: AtomicU64,
}

impl SharedTaken {
    pub fn get(&self) -> Taken {
        let (present, turn) = (self.present.load(Relaxed), self.turn.load(Relaxed));
        Taken { present, epoch: self.epoch.load(Relaxed), turn }
    }

    /// On its own thread only.
    pub fn set(&self, taken: Taken, at: u64) {
        self.present.store(taken.present, Relaxed);
        self.epoch.store(taken.epoch, Relaxed);
        self.turn.store(taken.turn, Relaxed);
        self.at.store(at, Relaxed);
    }

    pub fn at(&self) -> u64 {
        self.at.load(Relaxed)
    }
}

/// Maximum epochs of a share; further ones count in the last.
const OF_SHARE: usize = 4;

/// Charge of a thread for an interval of work, nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// For workers that were there.
    pub present: u64,
    /// For each that was not yet: epochs, and how much in them.
    pub turns: [(usize, u64); OF_SHARE],
}

impl Sum {
    const fn new() -> Sum {
        Sum { present: AtomicU64::new(0), turns: [const { AtomicU64::new(0) }; EPOCHS] }
    }

    fn turn(&self, epoch: usize) -> u64 {
        self.turns.get(epoch).map_or(0, |turn| turn.load(Relaxed))
    }
}

impl Integrals {
    /// Begins all sums at the time `now`.
    pub fn new(now: u64) -> Integrals {
        let (busy, until) = (AtomicBool::new(false), AtomicU64::new(now));
        Integrals { busy, until, working: Sum::new(), unattributed: Sum::new() }
    }

    /// Adds the result of a `look` at all workers for the time until `at`, unless another look is less than
    /// `fresh` nanoseconds old. Async-signal-safe.
    pub fn advance(&self, at: u64, fresh: u64, epoch: usize, look: impl FnOnce() -> Seen) {
        let is_due = || at > self.until.load(Relaxed).saturating_add(fresh);
        if !is_due() || self.busy.swap(true, Acquire) {
            return;
        }
        if is_due() {
            let passed = (at - self.until.load(Relaxed)) * PARTS;
            self.until.store(at, Relaxed);
            let Seen { idle, working, is_known } = look();
            let to = if working > 0 { &self.working } else { &self.unattributed };
            if let Some(turn) = to.turns.get(epoch).filter(|_| !is_known) {
                let working = u64::from(working.max(1));
                let part = |of: u32| match passed.checked_mul(of.into()) {
                    Some(all) => all / working,
                    None => (u128::from(passed) * u128::from(of) / u128::from(working)) as u64,
                };
                to.present.fetch_add(part(idle), Relaxed);
                turn.fetch_add(part(1), Relaxed);
            }
        }
        self.busy.store(false, Release);
    }

    /// Skips the time until `at`, which is charged without a look, unless another look is less than `fresh`
    /// nanoseconds old.
    #[inline(always)]
    pub fn pass(&self, at: u64, fresh: u64) {
        if at > self.until.load(Relaxed).saturating_add(fresh) {
            self.until.store(at, Relaxed);
        }
    }

    /// Takes a working thread's share of the sums since its previous share. Async-signal-safe.
    pub fn take(&self, taken: &mut Taken, epoch: usize) -> Share {
        let mut share = Share::default();
        let before = core::mem::replace(taken, self.taken_now(epoch));
        share.present = taken.present.wrapping_sub(before.present) / PARTS;
        for of in before.epoch..=epoch {
            let had = if of == before.epoch { before.turn } else { 0 };
            let place = (of - before.epoch).min(OF_SHARE - 1);
            if let Some(turn) = share.turns.get_mut(place) {
                *turn = (of, turn.1 + self.working.turn(of).wrapping_sub(had) / PARTS);
            }
        }
        share
    }

    /// Start values for a thread that begins to take shares.
    pub fn taken_now(&self, epoch: usize) -> Taken {
        Taken { present: self.working.present.load(Relaxed), epoch, turn: self.working.turn(epoch) }
    }

    /// Unattributed time, nanoseconds: for present workers, and for each worker that had not begun, by epoch.
    pub fn unattributed(&self) -> (u64, impl Iterator<Item = u64> + '_) {
        let turns = self.unattributed.turns.iter().map(|turn| turn.load(Relaxed) / PARTS);
        (self.unattributed.present.load(Relaxed) / PARTS, turns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_work_have_equal_parts_however_rarely_they_are_sampled() {
        let integrals = Integrals::new(1000);
        let (mut often, mut rarely) = (integrals.taken_now(0), integrals.taken_now(0));
        let mut sum = Share::default();
        let see = |idle, working| Seen { idle, working, is_known: false };
        for (at, epoch, seen) in [
            (2000, 0, see(4, 2)),
            (3000, 0, see(0, 2)),
            (4000, 1, see(3, 1)),
            (5000, 1, Seen { is_known: true, ..see(9, 1) }),
            (6000, 2, see(7, 0)),
            (7000, 2, see(2, 2)),
        ] {
            integrals.advance(at, 10, epoch, || seen);
            integrals.advance(at + 5, 10, epoch, || panic!("somebody has just looked"));
            let share = integrals.take(&mut often, epoch);
            sum.present += share.present;
            share
                .turns
                .iter()
                .for_each(|(epoch, turn)| sum.turns[*epoch] = (*epoch, sum.turns[*epoch].1 + turn));
        }
        let share = integrals.take(&mut rarely, 2);
        assert_eq!(share.present, 2000 + 3000 + 1000);
        assert_eq!(share.turns[..3], [(0, 1000), (1, 1000), (2, 500)]);
        assert_eq!(sum, share);
        assert_eq!(integrals.take(&mut rarely, 2).present, 0, "once");
        let (present, turns) = integrals.unattributed();
        assert_eq!((present, turns.take(3).collect::<Vec<_>>()), (7000, vec![0, 0, 1000]));
        // Over more epochs than a share has room for: the last ones are together.
        for epoch in 3..9 {
            integrals.advance(7000 + 1000 * (epoch as u64 - 2), 10, epoch, || see(0, 1));
        }
        let share = integrals.take(&mut rarely, 8);
        assert_eq!(share.turns, [(2, 0), (3, 1000), (4, 1000), (8, 4000)]);
        // Time without a look is unattributed.
        integrals.pass(14_000, 10);
        integrals.pass(14_005, 10);
        integrals.advance(14_500, 10, 8, || see(2, 1));
        assert_eq!(integrals.take(&mut rarely, 8).present, 1000);
    }
}
