//! Blame for waits at the end: tasks that still ran when other workers had run their last.

use crate::turns::{Received, Turns};
use rustc_hash::FxHashMap;
use taskscope_execution::graph::NONE;

/// Charges each nanosecond of draining workers to the task of one that executes, in turns.
pub(super) struct DrainBlame {
    drainers: u64,
    executing: Turns,
    at: u64,
    received: Received,
    /// By worker: the task type that it executes, and its charges at its begin.
    since: Vec<(u32, u64)>,
    charges: FxHashMap<u32, u64>,
}

impl DrainBlame {
    pub fn new(workers: usize) -> Self {
        DrainBlame {
            drainers: 0,
            executing: Turns::new(workers),
            at: 0,
            received: Received::new(workers),
            since: vec![(NONE, 0); workers],
            charges: FxHashMap::default(),
        }
    }

    fn advance(&mut self, at: u64) {
        let from = std::mem::replace(&mut self.at, at);
        if self.drainers > 0 {
            self.received.add(&self.executing.deal(from, at), self.drainers);
        }
    }

    /// The worker executes a task of this type from now on; [`NONE`] for none.
    pub fn executes(&mut self, worker: usize, at: u64, ty: u32) {
        let (before, since) = self.since[worker];
        if before == ty {
            return;
        }
        self.advance(at);
        let received = self.received.of(worker);
        if before != NONE {
            *self.charges.entry(before).or_default() += received - since;
        }
        self.executing.set(worker, ty != NONE);
        self.since[worker] = (ty, received);
    }

    /// A worker begins to drain, or stops.
    pub fn drains(&mut self, at: u64, becomes: bool) {
        self.advance(at);
        if becomes { self.drainers += 1 } else { self.drainers -= 1 }
    }

    /// Takes out the nanoseconds by task type until `at`. Those without any executing worker are not among them.
    pub fn take(&mut self, at: u64) -> FxHashMap<u32, u64> {
        self.advance(at);
        for (worker, (ty, since)) in self.since.iter_mut().enumerate().filter(|(_, (ty, _))| *ty != NONE) {
            let received = self.received.of(worker);
            *self.charges.entry(*ty).or_default() += received - std::mem::replace(since, received);
        }
        std::mem::take(&mut self.charges)
    }
}
