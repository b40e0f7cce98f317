//! Who made the others wait at the end: tasks that still ran when other workers had run their last.

use rustc_hash::FxHashMap;
use taskscope_execution::graph::NONE;

/// Shares of a nanosecond are kept in 2⁻²⁰ ns.
const FRACTION_BITS: u32 = 20;

/// Shares each nanosecond of draining workers equally among those that execute a task.
#[derive(Default)]
pub(super) struct DrainBlame {
    drainers: u64,
    running: u64,
    at: u64,
    /// What one running worker has been charged since the start.
    integral: u128,
    /// By worker: the task type that it executes, and the integral when it began.
    since: Vec<(u32, u128)>,
    shares: FxHashMap<u32, u128>,
    /// Nanoseconds in which nobody executed anything.
    pub nobody_ns: u64,
}

impl DrainBlame {
    pub fn new(workers: usize) -> Self {
        DrainBlame { since: vec![(NONE, 0); workers], ..Self::default() }
    }

    fn advance(&mut self, at: u64) {
        let waited = self.drainers * (at - self.at);
        self.at = at;
        if waited > 0 && self.running > 0 {
            self.integral += ((waited as u128) << FRACTION_BITS) / self.running as u128;
        } else {
            self.nobody_ns += waited;
        }
    }

    /// The worker executes a task of this type from now on; [`NONE`] for none.
    pub fn executes(&mut self, worker: usize, at: u64, ty: u32) {
        let (before, since) = self.since[worker];
        if before == ty {
            return;
        }
        self.advance(at);
        if before != NONE {
            self.running -= 1;
            let charged = self.integral - since;
            if charged > 0 {
                *self.shares.entry(before).or_default() += charged;
            }
        }
        self.running += u64::from(ty != NONE);
        self.since[worker] = (ty, self.integral);
    }

    /// A worker begins to drain, or stops.
    pub fn drains(&mut self, at: u64, becomes: bool) {
        self.advance(at);
        if becomes { self.drainers += 1 } else { self.drainers -= 1 }
    }

    /// Forgets what was charged before `at`.
    pub fn restart(&mut self, at: u64) {
        self.advance(at);
        self.since.iter_mut().for_each(|(_, since)| *since = self.integral);
        self.shares.clear();
        self.nobody_ns = 0;
    }

    /// Task types with their shares, in any unit.
    pub fn shares(&mut self, at: u64) -> Vec<(u32, u128)> {
        for worker in 0..self.since.len() {
            self.executes(worker, at, NONE);
        }
        let mut shares: Vec<(u32, u128)> = self.shares.iter().map(|(ty, share)| (*ty, *share)).collect();
        shares.sort_unstable();
        shares
    }
}
