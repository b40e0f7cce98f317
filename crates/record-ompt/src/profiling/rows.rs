//! Per-context counts of a thread: created tasks or regions, time in task bodies, short taskwaits.
//!
//! Sums that only grow, in memory that only their thread writes. The collector takes the increase since its
//! last round; so the thread pays for plain additions only.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

/// Contexts that have a row; of further ones everything is counted in the thread's tree.
const ROWS: usize = 256;

/// One row per context, by its number.
pub struct Rows {
    rows: [Row; ROWS],
    /// Sums collected so far, per row.
    taken: Mutex<Box<[Sums; ROWS]>>,
}

/// Counts of one context.
#[derive(Default)]
pub struct Row {
    created: AtomicU64,
    ns: AtomicU64,
    /// Return address of the call in which its tasks wait; 0 before the first. Waits in another call are
    /// counted elsewhere.
    wait_return: AtomicU64,
    waited: AtomicU64,
}

/// Increase of a row.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Sums {
    /// Tasks, or regions, that were created.
    pub created: u64,
    /// Nanoseconds in their bodies.
    pub ns: u64,
    /// Nanoseconds of short taskwaits.
    pub waited: u64,
}

#[inline(always)]
fn add(sum: &AtomicU64, value: u64) {
    sum.store(sum.load(Relaxed) + value, Relaxed);
}

impl Row {
    /// Counts a creation.
    #[inline(always)]
    pub fn created(&self) {
        add(&self.created, 1);
    }

    /// Counts the running time of a task.
    #[inline(always)]
    pub fn ran(&self, ns: u64) {
        add(&self.ns, ns);
    }

    /// Whether short waits in this call are counted here.
    #[inline(always)]
    pub fn counts_waits_of(&self, codeptr: u64) -> bool {
        let known = self.wait_return.load(Relaxed);
        if known == 0 {
            self.wait_return.store(codeptr, Relaxed);
        }
        known == codeptr || known == 0
    }

    /// Counts an unattributed wait.
    #[inline(always)]
    pub fn waited(&self, ns: u64) {
        add(&self.waited, ns);
    }
}

impl Rows {
    /// Creates empty rows.
    pub fn new() -> Rows {
        Rows {
            rows: core::array::from_fn(|_| Row::default()),
            taken: Mutex::new(Box::new([Sums::default(); ROWS])),
        }
    }

    /// The row of a context, if it has one. Only its own thread counts in it.
    #[inline(always)]
    pub fn of(&self, context: u32) -> Option<&Row> {
        self.rows.get(context as usize)
    }

    /// Passes on the increase since the last collection: context, sums, the call of the waits.
    pub fn collect(&self, mut take: impl FnMut(u32, Sums, u64)) {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        for (context, (row, taken)) in self.rows.iter().zip(taken.iter_mut()).enumerate() {
            let now = Sums {
                created: row.created.load(Relaxed),
                ns: row.ns.load(Relaxed),
                waited: row.waited.load(Relaxed),
            };
            if now != *taken {
                let Sums { created, ns, waited } = core::mem::replace(taken, now);
                let added =
                    Sums { created: now.created - created, ns: now.ns - ns, waited: now.waited - waited };
                take(context as u32, added, row.wait_return.load(Relaxed));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_values_are_collected_once() {
        let rows = Rows::new();
        let row = rows.of(7).unwrap();
        row.created();
        row.ran(30);
        assert!(row.counts_waits_of(99) && !row.counts_waits_of(98));
        let collected = |rows: &Rows| {
            let mut list = Vec::new();
            rows.collect(|context, sums, codeptr| list.push((context, sums, codeptr)));
            list
        };
        assert_eq!(collected(&rows), [(7, Sums { created: 1, ns: 30, waited: 0 }, 99)]);
        row.waited(5);
        row.ran(1);
        assert_eq!(collected(&rows), [(7, Sums { created: 0, ns: 1, waited: 5 }, 99)]);
        assert_eq!(collected(&rows), []);
        assert!(rows.of(ROWS as u32).is_none());
    }
}
