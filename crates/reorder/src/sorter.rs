//! Records by start time: a heap of keys in memory, sorted runs of whole records on disk.

use crate::pages::{SLOT_BYTES, Slot};
use crate::spill::SpillFile;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// A record's place in the order: start, then sequence, as one number, which compares faster.
pub(crate) type Key = u128;

fn key(start: u64, seq: u64) -> Key {
    u128::from(start) << 64 | u128::from(seq)
}

fn start_of(key: Key) -> u64 {
    (key >> 64) as u64
}

const RECORD_BYTES: usize = 8 + SLOT_BYTES;
/// Records of a run that are in memory at one time.
const READ_AHEAD: u64 = 64;
/// More runs than this are merged into one.
const MOST_RUNS: usize = 64;

/// A sorted run on disk, and its next records.
#[derive(Debug)]
struct Run {
    offset: u64,
    left: u64,
    next: VecDeque<(u64, Slot)>,
}

impl Run {
    /// The next record's key; reads ahead when none is in memory.
    fn key(&mut self, spill: &mut SpillFile) -> Option<Key> {
        if self.next.is_empty() && self.left > 0 {
            let count = self.left.min(READ_AHEAD);
            let mut bytes = vec![0; count as usize * RECORD_BYTES];
            if spill.read_at(self.offset, &mut bytes).is_err() {
                // The caller finds them missing when it compares what it put in and got out.
                spill.failures += 1;
                self.left = 0;
                return None;
            }
            let (records, _) = bytes.as_chunks::<RECORD_BYTES>();
            self.next.extend(records.iter().filter_map(|record| {
                let (seq, slot) = record.split_first_chunk::<8>()?;
                Some((u64::from_le_bytes(*seq), Slot::from_bytes(slot.first_chunk()?)))
            }));
            self.offset += count * RECORD_BYTES as u64;
            self.left -= count;
        }
        self.next.front().map(|(seq, slot)| key(slot.start, *seq))
    }
}

/// The next record of a [`Sorter`].
pub(crate) enum Next {
    /// Its content is in its slot.
    InSlot(u64),
    /// Its content was on disk.
    FromDisk(u64, Slot),
}

/// Waiting records of an out-of-order queue, by start.
#[derive(Debug, Default)]
pub(crate) struct Sorter {
    heap: BinaryHeap<Reverse<Key>>,
    runs: Vec<Run>,
    /// The runs' next keys.
    run_keys: BinaryHeap<Reverse<(Key, usize)>>,
}

impl Sorter {
    #[inline]
    pub fn push(&mut self, start: u64, seq: u64) {
        self.heap.push(Reverse(key(start, seq)));
    }

    /// Start of the next record.
    #[inline]
    pub fn peek(&self) -> Option<u64> {
        let heap = self.heap.peek().map(|Reverse(key)| start_of(*key));
        match self.run_keys.peek() {
            None => heap,
            Some(Reverse((key, _))) => Some(heap.map_or(start_of(*key), |heap| heap.min(start_of(*key)))),
        }
    }

    /// Takes the next record.
    #[inline]
    pub fn pop(&mut self, spill: &mut SpillFile) -> Option<Next> {
        if !self.run_keys.is_empty() {
            return self.pop_merged(spill);
        }
        self.heap.pop().map(|Reverse(key)| Next::InSlot(key as u64))
    }

    fn pop_merged(&mut self, spill: &mut SpillFile) -> Option<Next> {
        let Reverse((run_key, index)) = *self.run_keys.peek()?;
        if self.heap.peek().is_some_and(|Reverse(key)| *key < run_key) {
            return self.heap.pop().map(|Reverse(key)| Next::InSlot(key as u64));
        }
        self.run_keys.pop();
        let record = self.runs[index].next.pop_front();
        if let Some(key) = self.runs[index].key(spill) {
            self.run_keys.push(Reverse((key, index)));
        } else if self.run_keys.is_empty() {
            self.runs.clear();
        }
        record.map(|(seq, slot)| Next::FromDisk(seq, slot))
    }

    /// Takes the keys out of memory, in order, to be written as a run.
    pub fn take_keys(&mut self) -> Vec<u64> {
        let keys = std::mem::take(&mut self.heap).into_sorted_vec();
        keys.into_iter().rev().map(|Reverse(key)| key as u64).collect()
    }

    /// Writes records that are in order as a run. On failure, nothing has changed.
    pub fn add_run(
        &mut self,
        records: u64,
        mut next: impl FnMut(&mut SpillFile) -> Option<(u64, Slot)>,
        spill: &mut SpillFile,
    ) -> Option<()> {
        let offset = spill.reserve_run(records * RECORD_BYTES as u64);
        let mut at = offset;
        let mut bytes = Vec::with_capacity(READ_AHEAD as usize * RECORD_BYTES);
        let mut written = 0;
        while let Some((seq, slot)) = next(spill) {
            bytes.extend_from_slice(&seq.to_le_bytes());
            bytes.extend_from_slice(&slot.to_bytes());
            written += 1;
            if written % READ_AHEAD == 0 {
                spill.write_at(at, &bytes)?;
                at += bytes.len() as u64;
                bytes.clear();
            }
        }
        spill.write_at(at, &bytes)?;
        let mut run = Run { offset, left: written, next: VecDeque::new() };
        if let Some(key) = run.key(spill) {
            self.run_keys.push(Reverse((key, self.runs.len())));
            self.runs.push(run);
        }
        Some(())
    }

    /// Joins the runs when there are many, so that what they read ahead stays small.
    pub fn join_runs(&mut self, spill: &mut SpillFile) {
        if self.run_keys.len() <= MOST_RUNS {
            return;
        }
        let runs = std::mem::take(&mut self.runs);
        let run_keys = std::mem::take(&mut self.run_keys);
        let records = runs.iter().map(|run| run.left + run.next.len() as u64).sum();
        let mut joined = Sorter { heap: BinaryHeap::new(), runs, run_keys };
        let next = |spill: &mut SpillFile| match joined.pop_merged(spill)? {
            Next::FromDisk(seq, slot) => Some((seq, slot)),
            Next::InSlot(_) => None,
        };
        // A disk that refuses here has refused before, when a page was written.
        let _ = self.add_run(records, next, spill);
    }
}
