//! The workers of a process, and since when they are there.

use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::*};

use crate::profiling::account::Account;
use crate::profiling::integrals::{EPOCHS, Integrals, Seen};
use crate::profiling::states::{State, is_charged, is_idle};
use crate::profiling::teams;

/// Workers that begin within this time, nanoseconds, end one epoch.
pub(super) const MIN_EPOCH_NS: u64 = 1_000_000;

/// Time in each epoch, nanoseconds.
pub type ByEpoch = [u64; EPOCHS];

/// Idle time in an epoch of workers that had not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Late {
    /// Sum over all of them, nanoseconds.
    pub owed: u64,
    /// Length of the epoch.
    pub length: u64,
}

/// The workers of a process.
pub struct Pool {
    /// Present workers.
    workers: AtomicU32,
    /// Those not created by the runtime: they fork.
    roots: AtomicU32,
    /// When a second one of these began; 0 while there was none.
    second_root: AtomicU64,
    ended: AtomicU32,
    has_begun: AtomicBool,
    epochs: AtomicU32,
    starts: [AtomicU64; EPOCHS],
    pub(super) sampled: Integrals,
}

impl Pool {
    /// Creates the pool of a process that begins at `now`.
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
    pub(super) fn begin(&self, is_root: bool, at: u64) {
        self.workers.fetch_add(1, Relaxed);
        self.has_begun.store(true, Relaxed);
        if is_root && self.roots.fetch_add(1, Relaxed) > 0 {
            let _ = self.second_root.compare_exchange(0, at, Relaxed, Relaxed);
        }
        let epochs = self.epochs.load(Acquire);
        let start = |epoch: u32| self.starts.get(epoch as usize);
        let is_long = start(epochs - 1).is_some_and(|last| at >= last.load(Relaxed) + MIN_EPOCH_NS);
        // Of several that begin at once, one begins the epoch; its start is stored before it counts.
        if let Some(next) = start(epochs).filter(|_| is_long)
            && next.compare_exchange(0, at, Relaxed, Relaxed).is_ok()
        {
            self.epochs.store(epochs + 1, Release);
        }
    }

    /// A worker ends, or is none after all.
    pub(super) fn end(&self, is_root: bool, has_ended: bool) {
        self.workers.fetch_sub(1, Relaxed);
        self.roots.fetch_sub(u32::from(is_root), Relaxed);
        self.ended.fetch_add(u32::from(has_ended), Relaxed);
    }

    /// Pauses or resumes one worker.
    pub(super) fn pause(&self, paused: bool) {
        if paused {
            self.workers.fetch_sub(1, Relaxed);
        } else {
            self.workers.fetch_add(1, Relaxed);
        }
    }

    pub(super) fn epoch(&self) -> usize {
        self.epochs.load(Acquire) as usize - 1
    }

    /// Until when one thread alone forks.
    pub(super) fn has_one_root_until(&self) -> u64 {
        Some(self.second_root.load(Relaxed)).filter(|at| *at > 0).unwrap_or(u64::MAX)
    }

    /// Whether there is a worker, or was one.
    pub fn has_begun(&self) -> bool {
        self.has_begun.load(Relaxed)
    }

    /// Workers besides one.
    pub(super) fn others(&self) -> u64 {
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

    /// Idle time of late workers, of all present ones (`owed`, by epochs until now), with the lengths of the
    /// epochs.
    pub fn all_late(&self, owed: &ByEpoch, now: u64) -> Vec<Late> {
        let lengths = self.late(now);
        owed.iter().zip(lengths).map(|(owed, length)| Late { owed: *owed, length }).collect()
    }

    /// Returns the current states of all workers. Async-signal-safe.
    pub(super) fn look(&self, accounts: impl Iterator<Item = &'static Account>, at: u64) -> Seen {
        let mut seen = Seen { idle: self.ended.load(Relaxed), ..Seen::default() };
        let mut is_root = false;
        for account in accounts {
            match account.activity(teams::over_since) {
                Some(state) if is_idle(state) => seen.idle += 1,
                Some(state) => {
                    seen.working += u32::from(is_charged(state));
                    is_root |= state == State::Serial;
                }
                None => {}
            }
        }
        // Between its regions: `charge` knows that.
        seen.is_known = is_root && seen.working <= 1 && self.has_one_root_until() > at;
        seen
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_thread_idles_through_the_earlier_epochs() {
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
}
