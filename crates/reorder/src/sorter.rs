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
/// More runs than this of a level are merged into one of the next, so that a record is written again
/// once a level: the logarithm of how many there are.
const MAX_RUNS: usize = 64;

/// A sorted run on disk, and its next records.
#[derive(Clone, Debug)]
struct Run {
    level: u8,
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
                // The caller detects the missing records when it compares input and output.
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

    /// Writes these sorted records as a run of `level`. On failure, nothing has changed.
    pub fn add_run(
        &mut self,
        level: u8,
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
        if written < records {
            return None;
        }
        self.take_run(Run { level, offset, left: written, next: VecDeque::new() }, spill);
        Some(())
    }

    fn take_run(&mut self, mut run: Run, spill: &mut SpillFile) {
        if let Some(key) = run.key(spill) {
            self.run_keys.push(Reverse((key, self.runs.len())));
            self.runs.push(run);
        }
    }

    /// Merges the runs of a level when there are many, so that their read-ahead stays small.
    pub fn join_runs(&mut self, spill: &mut SpillFile) {
        let mut level = 0;
        while self.runs.iter().any(|run| run.level >= level) {
            if self.runs.iter().filter(|run| run.level == level).count() > MAX_RUNS {
                self.join_level(level, spill);
            }
            level += 1;
        }
    }

    fn join_level(&mut self, level: u8, spill: &mut SpillFile) {
        self.run_keys.clear();
        let (joined, others): (Vec<Run>, Vec<Run>) =
            std::mem::take(&mut self.runs).into_iter().partition(|run| run.level == level);
        others.into_iter().for_each(|run| self.take_run(run, spill));
        let kept = joined.clone();
        let records = joined.iter().map(|run| run.left + run.next.len() as u64).sum();
        let mut merged = Sorter::default();
        joined.into_iter().for_each(|run| merged.take_run(run, spill));
        let next = |spill: &mut SpillFile| match merged.pop_merged(spill)? {
            Next::FromDisk(seq, slot) => Some((seq, slot)),
            Next::InSlot(_) => None,
        };
        // A disk that refuses leaves the runs as they are.
        if self.add_run(level + 1, records, next, spill).is_none() {
            kept.into_iter().for_each(|run| self.take_run(run, spill));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNS: u64 = 10_000;
    const RECORDS: u64 = 10;

    /// A sorter with many short runs of alternating records.
    fn spilled(spill: &mut SpillFile, runs: std::ops::Range<u64>, sorter: &mut Sorter) {
        for run in runs {
            let mut records = (0..RECORDS).map(|i| {
                let start = 1 + i * RUNS + run;
                (start, Slot { start, ..Slot::default() })
            });
            sorter.add_run(0, RECORDS, |_| records.next(), spill).unwrap();
            sorter.join_runs(spill);
        }
    }

    fn all(sorter: &mut Sorter, spill: &mut SpillFile) -> Vec<u64> {
        std::iter::from_fn(|| match sorter.pop(spill)? {
            Next::FromDisk(seq, slot) => Some(slot.start).filter(|start| *start == seq),
            Next::InSlot(_) => None,
        })
        .collect()
    }

    #[test]
    fn many_runs_are_written_again_a_few_times_only() {
        let (mut spill, mut sorter) = (SpillFile::default(), Sorter::default());
        spilled(&mut spill, 0..RUNS, &mut sorter);
        assert!(sorter.runs.len() <= 3 * MAX_RUNS, "{}", sorter.runs.len());
        let once = RUNS * RECORDS * RECORD_BYTES as u64;
        let written = spill.reserve_run(0);
        assert!(written <= 3 * once, "{written} bytes for {once}");
        assert_eq!(all(&mut sorter, &mut spill), (1..=RUNS * RECORDS).collect::<Vec<_>>());
    }

    #[test]
    fn a_disk_that_refuses_to_join_runs_loses_none() {
        let (mut spill, mut sorter) = (SpillFile::default(), Sorter::default());
        spilled(&mut spill, 0..MAX_RUNS as u64, &mut sorter);
        sorter.take_run(sorter.runs[0].clone(), &mut spill);
        spill.make_read_only();
        sorter.join_runs(&mut spill);
        assert!(spill.failures > 0);
        let mut twice: Vec<u64> = all(&mut sorter, &mut spill);
        twice.dedup();
        assert_eq!(twice.len() as u64, MAX_RUNS as u64 * RECORDS);
        assert!(twice.is_sorted());
    }
}
