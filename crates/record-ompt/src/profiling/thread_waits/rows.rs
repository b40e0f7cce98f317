//! Sums of waits by object, call and charged code: a limited number of them.

use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::wait::kind;
use taskscope_profile::WaitEnd;

use super::history::{Blame, Part};
use super::ring::RecordedCall;

/// Rows; beyond, the object is left out, and then the call.
const MAX_ROWS: usize = 4096;
/// Parts of all rows; beyond, a part is charged to nobody.
const MAX_PARTS: usize = 1 << 15;
/// Maximum threads that a row distinguishes.
const MAX_THREADS: usize = 256;

/// The waits for an object (kind and identity, of joins 0), in calls at one place.
pub type RowKey = (u32, u64, RecordedCall);

/// Sums of a row.
#[derive(Clone, Default)]
pub struct Row {
    pub waits: u64,
    pub longest_ns: u64,
    /// The number of each part in [`Rows::sums`].
    pub parts: FxHashMap<Blame, u32>,
    threads: FxHashSet<u32>,
}

impl Row {
    /// Threads that have waited, up to that maximum.
    pub fn threads(&self) -> u32 {
        self.threads.len() as u32
    }
}

/// Sums of a part of a row.
#[derive(Clone, Copy, Default)]
pub struct PartSum {
    /// Thread-nanoseconds.
    pub ns: u64,
    /// CPU-nanoseconds that were unused meanwhile.
    pub cpu: f64,
}

/// All rows.
#[derive(Clone, Default)]
pub struct Rows {
    pub rows: FxHashMap<RowKey, Row>,
    pub sums: Vec<PartSum>,
    /// Waits and parts that found no room of their own.
    pub unfit: u64,
}

impl Rows {
    /// Adds a wait by its parts, and hands over the number of each.
    pub fn add(
        &mut self,
        (of, object): (u32, u64),
        call: RecordedCall,
        thread: u32,
        parts: &[Part],
        mut numbered: impl FnMut(&Part, u32),
    ) {
        let ns = parts.iter().map(|part| part.until - part.from).sum::<u64>();
        if ns == 0 {
            return;
        }
        let object = if of == kind::JOIN { 0 } else { object };
        let mut key = (of, object, call);
        if self.rows.len() >= MAX_ROWS && !self.rows.contains_key(&key) {
            self.unfit += 1;
            key.1 = 0;
            if self.rows.len() >= 2 * MAX_ROWS && !self.rows.contains_key(&key) {
                key.2 = RecordedCall::default();
            }
        }
        let row = self.rows.entry(key).or_default();
        row.waits += 1;
        row.longest_ns = row.longest_ns.max(ns);
        if row.threads.len() < MAX_THREADS {
            row.threads.insert(thread);
        }
        for part in parts {
            let mut blame = part.blame;
            if blame.length == 0 {
                // The call is that of the row.
                blame.blocked = None;
            }
            if !row.parts.contains_key(&blame) && self.sums.len() >= MAX_PARTS {
                self.unfit += 1;
                blame = Blame::of(WaitEnd::NotKnown);
            }
            let number = *row.parts.entry(blame).or_insert_with(|| {
                self.sums.push(PartSum::default());
                self.sums.len() as u32 - 1
            });
            if let Some(sum) = self.sums.get_mut(number as usize) {
                sum.ns += part.until - part.from;
            }
            numbered(part, number);
        }
    }

    /// Adds CPU-nanoseconds to a part.
    pub fn charge(&mut self, number: u32, cpu: f64) {
        if let Some(sum) = self.sums.get_mut(number as usize) {
            sum.cpu += cpu;
        }
    }

    /// The sums of a part.
    pub fn sum(&self, number: u32) -> PartSum {
        self.sums.get(number as usize).copied().unwrap_or_default()
    }
}
