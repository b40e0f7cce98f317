//! Stretches of time that carry a flag, beside the sections: losses, findings, matches of a search.

use super::query::scale_to_255;
use super::{Bucket, Flags, Window, edge};

/// Stretches of one track with one flag.
#[derive(Clone, Debug, Default)]
pub struct Marks {
    start: Vec<u64>,
    end: Vec<u64>,
    /// Nanoseconds of all stretches before each.
    before: Vec<u64>,
    flags: Flags,
}

impl Marks {
    /// Marks of `[start, end)` each, in any order; an empty one is taken as one nanosecond long.
    /// Those that touch are joined.
    pub fn new(flags: Flags, mut stretches: Vec<(u64, u64)>) -> Marks {
        stretches.sort_unstable();
        let mut marks = Marks { flags, ..Marks::default() };
        for (start, end) in stretches {
            let end = end.max(start.saturating_add(1));
            match marks.end.last_mut() {
                Some(last) if *last >= start => *last = end.max(*last),
                _ => {
                    marks.start.push(start);
                    marks.end.push(end);
                }
            }
        }
        let mut sum = 0;
        for (start, end) in marks.start.iter().zip(&marks.end) {
            marks.before.push(sum);
            sum += end - start;
        }
        marks
    }

    /// Nanoseconds in `[from, to)`, of which stretch `at` is the first.
    fn nanos(&self, at: usize, from: u64, to: u64) -> u64 {
        let last = at + self.start[at..].partition_point(|start| *start < to) - 1;
        let until_last = self.before[last] - self.before[at] + self.end[last].min(to) - self.start[last];
        until_last - from.saturating_sub(self.start[at])
    }

    /// Number of separate stretches.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// The stretches, in order; none touches another.
    pub fn stretches(&self) -> impl Iterator<Item = (u64, u64)> {
        self.start.iter().copied().zip(self.end.iter().copied())
    }

    /// Whether they carry this flag.
    pub fn carry(&self, flags: Flags) -> bool {
        self.flags.has(flags)
    }

    /// Whether one of them overlaps `[from, to)`.
    pub fn touch(&self, from: u64, to: u64) -> bool {
        let first = self.end.partition_point(|end| *end <= from);
        self.start.get(first).is_some_and(|start| *start < to)
    }

    /// Flags the buckets of a window that they overlap.
    pub fn flag(&self, window: Window, buckets: &mut [Bucket]) {
        let mut at = self.end.partition_point(|end| *end <= window.start());
        for (bucket, number) in buckets.iter_mut().zip(window.first..) {
            let (from, to) =
                (edge(number, window.width_log2), edge(number.saturating_add(1), window.width_log2));
            while self.end.get(at).is_some_and(|end| *end <= from) {
                at += 1 + self.end[at + 1..].partition_point(|end| *end <= from);
            }
            match self.start.get(at) {
                None => return,
                Some(start) if *start < to => {
                    bucket.flags = bucket.flags.with(self.flags);
                    if self.flags.has(Flags::UNCERTAIN) {
                        let ns = self.nanos(at, from, to);
                        bucket.uncertain_of_255 =
                            bucket.uncertain_of_255.max(scale_to_255(ns, to - from).max(1));
                    }
                }
                Some(_) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_overlapped_bucket_is_flagged_and_no_other() {
        let marks = Marks::new(Flags::LOST, vec![(40, 41), (7, 7), (9, 16), (16, 18), (100, 200)]);
        assert_eq!(marks.len(), 4);
        let window = Window { first: 0, count: 12, width_log2: 3 };
        let mut buckets = vec![Bucket::EMPTY; 12];
        marks.flag(window, &mut buckets);
        let flagged: Vec<usize> = (0..12).filter(|i| buckets[*i].flags.has(Flags::LOST)).collect();
        assert_eq!(flagged, [0, 1, 2, 5]);
        let marks = Marks::new(Flags::UNCERTAIN, vec![(0, 8), (8, 10), (12, 14), (23, 24), (40, 41)]);
        marks.flag(window, &mut buckets);
        let shares: Vec<u8> = buckets[..7].iter().map(|bucket| bucket.uncertain_of_255).collect();
        assert_eq!(shares, [255, 128, 32, 0, 0, 32, 0]);
    }
}
