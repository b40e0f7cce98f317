//! Answers from a pyramid: rows of buckets, and sums over any range.

use super::pyramid::{Pyramid, Sum};
use super::steps::{Rows, Steps, rows_of};
use super::{Bucket, CLASSES, Flags, NO_CLASS, Window, edge};
use crate::Starts;
use std::hint::select_unpredictable;

impl Pyramid {
    /// The buckets of a window, in time order, one call of `put` for each. `track` is the one that
    /// the pyramid was built from.
    pub fn buckets(&self, track: &impl Steps, window: Window, mut put: impl FnMut(Bucket)) {
        let mut times = Times::new();
        let track = rows_of(track);
        let shares = self.shares();
        let (flags, starts, longest): (&[u8], &[u32], &[u32]) = (&self.flags, &self.starts, &self.longest);
        self.visit(&track, window, |piece| match piece {
            Piece::Within { row, width } => {
                let class = (track.class)(row);
                let flags = self.rules.of(class, track.end_of(row) - track.starts.at(row));
                let doubt = if self.rules.is_uncertain(class) { width } else { 0 };
                put(shown((class, width), doubt, width, flags, 0, row as u32));
                row + 1
            }
            Piece::Kept { row, width } => {
                let (mut most, mut doubt) = ((NO_CLASS, 0), 0);
                for (class, ns) in shares.of(row) {
                    doubt += if self.rules.is_uncertain(class) { ns } else { 0 };
                    if ns > most.1 {
                        most = (class, ns);
                    }
                }
                put(shown(most, doubt, width, Flags(flags[row]), starts[row], longest[row]));
                0
            }
            Piece::Few { first, from, to } => {
                times.clear();
                let (mut most, mut flags, mut longest) = ((NO_CLASS, 0), Flags::NONE, (u32::MAX, 0));
                let mut doubt = 0;
                let next = track.overlaps(first, from, to, |row, length, ns| {
                    let class = (track.class)(row);
                    flags = flags.with(self.rules.of(class, length));
                    doubt += if self.rules.is_uncertain(class) { ns } else { 0 };
                    // Which row is longer and which class has more cannot be foreseen: nothing branches on it.
                    longest = select_unpredictable(ns > longest.1, (row as u32, ns), longest);
                    // The time of a class only grows: the one with most at the end had most when it last grew.
                    let sum = times.add(class, ns);
                    let more = (sum > most.1) | ((sum == most.1) & (class < most.0));
                    most = select_unpredictable(more, (class, sum), most);
                });
                put(shown(most, doubt, to - from, flags, (next - first) as u32, longest.0));
                next
            }
        });
    }

    /// Exact nanoseconds by class in every bucket of a window: `put(bucket, class, ns)`. `bucket` counts from the
    /// window's first.
    pub fn shares_of(&self, track: &impl Steps, window: Window, mut put: impl FnMut(usize, u8, u64)) {
        let mut scratch = Sum::new();
        let mut bucket = 0;
        let track = rows_of(track);
        let shares = self.shares();
        self.visit(&track, window, |piece| {
            let next = match piece {
                Piece::Within { row, width } => {
                    put(bucket, (track.class)(row), width);
                    row + 1
                }
                Piece::Kept { row, .. } => {
                    shares.of(row).for_each(|(class, ns)| put(bucket, class, ns));
                    0
                }
                Piece::Few { first, from, to } => {
                    scratch.clear();
                    let next = scratch.walk(&track, &self.rules, first, from, to);
                    scratch.shares().for_each(|(class, ns)| put(bucket, class, ns));
                    next
                }
            };
            bucket += 1;
            next
        });
    }

    /// Exact nanoseconds by class in `[from, to)`, which need not be aligned to bucket borders.
    pub fn sums(&self, track: &impl Steps, from: u64, to: u64) -> [u64; CLASSES] {
        let mut total = [0; CLASSES];
        let from = from.max(track.starts().get(0).unwrap_or(u64::MAX));
        let mut at = from;
        let to = to.min(track.end());
        // From the left, always the widest bucket that starts here and fits in the range.
        while at < to {
            let fits = (to - at).ilog2().min(at.trailing_zeros()).min(63) as u8;
            let window = Window { first: at >> fits, count: 1, width_log2: fits };
            self.shares_of(track, window, |_, class, ns| total[class as usize % CLASSES] += ns);
            at = edge((at >> fits) + 1, fits);
        }
        total
    }

    /// Walks a window's buckets from left to right. Of a bucket that is not kept, `put` gives the first row that starts
    /// after it.
    fn visit<S: Starts, C>(&self, track: &Rows<S, C>, window: Window, mut put: impl FnMut(Piece) -> usize) {
        let level = window.width_log2;
        let last = window.first.saturating_add(u64::from(window.count));
        let mut kept = self.level(level);
        let (buckets, first_rows, counts): (&[u64], &[u32], &[u32]) =
            (&self.bucket, &self.first_row, &self.starts);
        kept.start += buckets[kept.clone()].partition_point(|bucket| *bucket < window.first);
        kept.end = kept.start + buckets[kept.clone()].partition_point(|bucket| *bucket < last);
        let mut next = track.starts.partition_point(|start| start < window.start());
        fetch(track.starts, next, &first_rows[kept.clone()], &counts[kept.clone()]);
        for bucket in window.first..last {
            let (from, to) = (edge(bucket, level), edge(bucket.saturating_add(1), level));
            if kept.start < kept.end && buckets[kept.start] == bucket {
                next = (first_rows[kept.start] + counts[kept.start]) as usize;
                put(Piece::Kept { row: kept.start, width: to - from });
                kept.start += 1;
                continue;
            }
            let within = next > 0 && track.end_of(next - 1) >= to;
            next = put(if within {
                Piece::Within { row: next - 1, width: to - from }
            } else {
                Piece::Few { first: next, from, to }
            });
        }
    }
}

/// Reads the rows between kept buckets. They are used one after the other, at scattered addresses, and each use would
/// wait for the sum of all earlier ones; independent reads wait together.
fn fetch(starts: impl Starts, first: usize, kept_first: &[u32], kept_count: &[u32]) {
    const ROWS_OF_CACHE_LINE: usize = 8;
    let (mut from, mut read) = (first, 0);
    for (first, count) in kept_first.iter().zip(kept_count) {
        let rows = from..(*first as usize + 1).min(starts.len());
        if rows.len() > 1 {
            read ^= rows.step_by(ROWS_OF_CACHE_LINE).fold(0, |all, row| all ^ starts.at(row));
        }
        from = (first + count) as usize;
    }
    std::hint::black_box(read);
}

/// A piece of a window's bucket.
enum Piece {
    /// The inside of one row, and its width.
    Within { row: usize, width: u64 },
    /// Rows that must be read: those from `first` on that start in it, and the one before.
    Few { first: usize, from: u64, to: u64 },
    /// A kept bucket, and its width.
    Kept { row: usize, width: u64 },
}

/// Nanoseconds by class of one bucket after the other.
struct Times {
    ns: [u64; CLASSES],
    /// The bucket for which the time of a class was last written, so that nothing need be cleared.
    bucket_of: [u64; CLASSES],
    bucket: u64,
}

impl Times {
    fn new() -> Times {
        Times { ns: [0; CLASSES], bucket_of: [0; CLASSES], bucket: 0 }
    }

    fn clear(&mut self) {
        self.bucket += 1;
    }

    /// Adds to a class and gives its sum.
    #[inline]
    fn add(&mut self, class: u8, ns: u64) -> u64 {
        let class = usize::from(class) % CLASSES;
        let sum = ns + select_unpredictable(self.bucket_of[class] == self.bucket, self.ns[class], 0);
        (self.bucket_of[class], self.ns[class]) = (self.bucket, sum);
        sum
    }
}

fn shown(
    (class, most): (u8, u64),
    doubt: u64,
    width: u64,
    flags: Flags,
    starts: u32,
    longest: u32,
) -> Bucket {
    let uncertain_of_255 = if doubt == 0 { 0 } else { scale_to_255(doubt, width).max(1) };
    Bucket { class, share_of_255: scale_to_255(most, width), flags, starts, uncertain_of_255, longest }
}

/// A part of a width, rounded, in parts of 255.
pub(super) fn scale_to_255(part: u64, width: u64) -> u8 {
    // Dividing 128 bits costs more than all the rest of a bucket, and only buckets of years need it.
    match part.checked_mul(255).and_then(|parts| parts.checked_add(width / 2)) {
        Some(parts) => (parts / width.max(1)) as u8,
        None => ((u128::from(part) * 255 + u128::from(width) / 2) / u128::from(width.max(1))) as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FlagRules, Values};
    use super::*;
    use taskscope_prerequisite::dice::Dice;

    /// A small generator; bursts and long rows mixed, so that every kind of piece occurs.
    fn values(seed: u64, rows: usize) -> Values {
        let mut dice = Dice::new(seed);
        let mut next = move || dice.next();
        let mut values = Values::default();
        let mut at = next() % 1_000_000;
        for _ in 0..rows {
            values.set(at, (next() % 7) as i64);
            at += match next() % 50 {
                0 => next() % 1_000_000,
                1..10 => next() % 2_000,
                _ => next() % 9,
            } + 1;
        }
        values.end = at;
        values
    }

    /// A bucket by a walk over all rows.
    fn naive(track: &Values, rules: &FlagRules, from: u64, to: u64) -> Bucket {
        let mut ns = [0_u64; CLASSES];
        let (mut flags, mut starts, mut longest, mut most) = (Flags::NONE, 0, u32::MAX, 0);
        let rows = rows_of(track);
        for row in 0..track.start.len() {
            let (start, end) = (track.start[row], rows.end_of(row));
            starts += u32::from(start >= from && start < to);
            let overlap = end.min(to).saturating_sub(start.max(from));
            if overlap > 0 {
                ns[(rows.class)(row) as usize] += overlap;
                flags = flags.with(rules.of((rows.class)(row), end - start));
                if overlap > most {
                    (longest, most) = (row as u32, overlap);
                }
            }
        }
        let most = (0..CLASSES).rev().max_by_key(|class| ns[*class]).map_or(0, |class| ns[class]);
        let class = ns.iter().position(|ns| *ns == most && most > 0).map_or(NO_CLASS, |class| class as u8);
        let doubt =
            (0..CLASSES).filter(|class| rules.is_uncertain(*class as u8)).map(|class| ns[class]).sum();
        shown((class, most), doubt, to - from, flags, starts, longest)
    }

    fn rules() -> FlagRules {
        let mut rules = FlagRules::default();
        rules.long_ns[3] = 500_000;
        rules.always[5] = Flags::UNCERTAIN;
        rules
    }

    #[test]
    fn every_bucket_equals_a_walk_over_all_sections() {
        for (seed, rows) in [(1, 1000), (2, 1000), (3, 17), (4, 1), (5, 200)] {
            let track = values(seed, rows);
            let rules = rules();
            let pyramid = Pyramid::build(&track, &rules);
            for width_log2 in (0..64).step_by(2) {
                let first = (track.start[rows / 3] >> width_log2).saturating_sub(3);
                let window = Window { first, count: 40, width_log2 };
                let mut got = Vec::new();
                pyramid.buckets(&track, window, |bucket| got.push(bucket));
                for (i, bucket) in got.iter().enumerate() {
                    let number = first + i as u64;
                    let (from, to) = (edge(number, width_log2), edge(number + 1, width_log2));
                    let expected = naive(&track, &rules, from, to);
                    assert_eq!(*bucket, expected, "seed {seed} level {width_log2} bucket {i}");
                }
                assert_eq!(got.len(), 40);
            }
        }
    }

    #[test]
    fn sums_of_any_range_equal_a_walk_over_all_sections() {
        let track = values(7, 5000);
        let pyramid = Pyramid::build(&track, &FlagRules::default());
        let (low, high) = (track.start[0], track.end);
        for i in 0..200 {
            let from = low - 5 + (high - low) * (i * 37 % 200) / 200;
            let to = from + (high - low) * (i % 13) / 20 + i;
            let mut expected = [0; CLASSES];
            let rows = rows_of(&track);
            for row in 0..track.start.len() {
                let overlap = rows.end_of(row).min(to).saturating_sub(track.start[row].max(from));
                expected[(rows.class)(row) as usize] += overlap;
            }
            assert_eq!(pyramid.sums(&track, from, to), expected, "[{from}, {to})");
        }
    }

    #[test]
    fn times_at_the_end_of_time_do_no_harm() {
        let track = Values { start: vec![0, u64::MAX - 5].into(), value: vec![1, 2].into(), end: u64::MAX };
        let pyramid = Pyramid::build(&track, &FlagRules::default());
        for width_log2 in [0, 1, 31, 62, 63] {
            let window = Window { first: (u64::MAX - 1) >> width_log2, count: 3, width_log2 };
            let mut count = 0;
            pyramid.buckets(&track, window, |_| count += 1);
            assert!(count <= 3);
        }
        assert_eq!(pyramid.sums(&track, 0, u64::MAX)[2], 5);
        let nothing = Values::default();
        let pyramid = Pyramid::build(&nothing, &FlagRules::default());
        pyramid.buckets(&nothing, Window::covering(0, 100, 10), |bucket| assert_eq!(bucket, Bucket::EMPTY));
    }
}
