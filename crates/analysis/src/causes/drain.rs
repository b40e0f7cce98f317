//! Blame for waits at the end: tasks that still ran when other workers had run their last.

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
    /// Time of the last change of either, and the charges of one running worker since then.
    changed_at: u64,
    since_change: u128,
    /// The charges of one running worker since the start.
    integral: u128,
    /// By worker: the task type that it executes, and the integral at its begin.
    since: Vec<(u32, u128)>,
    shares: FxHashMap<u32, u128>,
    /// Nanoseconds without any executing worker.
    nobody_ns: u64,
}

impl DrainBlame {
    pub fn new(workers: usize) -> Self {
        DrainBlame { since: vec![(NONE, 0); workers], ..Self::default() }
    }

    fn advance(&mut self, at: u64) {
        let waited = self.drainers * (at - self.at);
        self.at = at;
        if waited > 0 && self.running > 0 {
            // As much in all, however often this is called in between.
            let waited = (self.drainers * (at - self.changed_at)) as u128;
            let charged = (waited << FRACTION_BITS) / self.running as u128;
            self.integral += charged - std::mem::replace(&mut self.since_change, charged);
        } else {
            self.nobody_ns += waited;
        }
    }

    /// Advances to a change of how many run or drain.
    fn changes(&mut self, at: u64) {
        self.advance(at);
        (self.changed_at, self.since_change) = (at, 0);
    }

    /// The worker executes a task of this type from now on; [`NONE`] for none.
    pub fn executes(&mut self, worker: usize, at: u64, ty: u32) {
        let (before, since) = self.since[worker];
        if before == ty {
            return;
        }
        self.changes(at);
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
        self.changes(at);
        if becomes { self.drainers += 1 } else { self.drainers -= 1 }
    }

    /// Takes out the task types with their shares, in any unit, until `at`; and the nanoseconds without any
    /// executing worker.
    pub fn take(&mut self, at: u64) -> (Vec<(u32, u128)>, u64) {
        self.advance(at);
        for (ty, since) in self.since.iter_mut().filter(|(ty, _)| *ty != NONE) {
            let charged = self.integral - std::mem::replace(since, self.integral);
            *self.shares.entry(*ty).or_default() += charged;
        }
        (self.shares.drain().collect(), std::mem::take(&mut self.nobody_ns))
    }
}
