//! Answers from a pyramid: rows of buckets, and sums over any range.

use super::pyramid::{Pyramid, Sum};
use super::steps::{Rows, Steps};
use super::{Bucket, CLASSES, NO_CLASS, Window, edge};

impl Pyramid {
    /// The buckets of a window, in time order, one call of `put` for each. `track` is the one that
    /// the pyramid was built from.
    pub fn buckets(&self, track: &impl Steps, window: Window, mut put: impl FnMut(Bucket)) {
        let mut scratch = Sum::new();
        let track = Rows::of(track);
        let shares = self.shares();
        let (flags, starts, longest): (&[u8], &[u32], &[u32]) = (&self.flags, &self.starts, &self.longest);
        self.visit(&track, window, |piece| {
            put(match piece {
                Piece::Within(row) => {
                    let class = (track.class)(row);
                    Bucket {
                        class,
                        share_of_255: 255,
                        flags: self.rules.of(class, track.end_of(row) - track.starts[row]),
                        starts: 0,
                        longest: row as u32,
                    }
                }
                Piece::Few { rows, from, to } => {
                    scratch.clear();
                    scratch.walk(&track, &self.rules, rows, from, to);
                    let starts = scratch.starts;
                    shown(scratch.shares(), to - from, scratch.flags.0, starts, scratch.longest.0)
                }
                Piece::Kept(row, width) => {
                    shown(shares.of(row), width, flags[row], starts[row], longest[row])
                }
                Piece::Outside => Bucket::EMPTY,
            })
        });
    }

    /// Exact nanoseconds by class in every bucket of a window: `put(bucket, class, ns)`, where
    /// `bucket` counts from the window's first.
    pub fn shares_of(&self, track: &impl Steps, window: Window, mut put: impl FnMut(usize, u8, u64)) {
        let mut scratch = Sum::new();
        let mut bucket = 0;
        let width = edge(window.first.saturating_add(1), window.width_log2) - window.start();
        let track = Rows::of(track);
        let shares = self.shares();
        self.visit(&track, window, |piece| {
            match piece {
                Piece::Within(row) => put(bucket, (track.class)(row), width),
                Piece::Few { rows, from, to } => {
                    scratch.clear();
                    scratch.walk(&track, &self.rules, rows, from, to);
                    scratch.shares().for_each(|(class, ns)| put(bucket, class, ns));
                }
                Piece::Kept(row, _) => shares.of(row).for_each(|(class, ns)| put(bucket, class, ns)),
                Piece::Outside => {}
            }
            bucket += 1;
        });
    }

    /// Exact nanoseconds by class in `[from, to)`, which need not lie on bucket borders.
    pub fn sums(&self, track: &impl Steps, from: u64, to: u64) -> [u64; CLASSES] {
        let mut total = [0; CLASSES];
        let from = from.max(track.starts().first().copied().unwrap_or(u64::MAX));
        let mut at = from;
        let to = to.min(track.end());
        // From the left, always the widest bucket that starts here and lies within the range.
        while at < to {
            let fits = (to - at).ilog2().min(at.trailing_zeros()).min(63) as u8;
            let window = Window { first: at >> fits, count: 1, width_log2: fits };
            self.shares_of(track, window, |_, class, ns| total[class as usize % CLASSES] += ns);
            at = edge((at >> fits) + 1, fits);
        }
        total
    }

    /// Walks a window's buckets from left to right.
    fn visit<C>(&self, track: &Rows<'_, C>, window: Window, mut put: impl FnMut(Piece)) {
        let starts = track.starts;
        let level = window.width_log2;
        let mut kept = self.level(level);
        let (buckets, first_rows, counts): (&[u64], &[u32], &[u32]) =
            (&self.bucket, &self.first_row, &self.starts);
        kept.start += buckets[kept.clone()].partition_point(|bucket| *bucket < window.first);
        let mut row = starts.partition_point(|start| *start < window.start());
        for bucket in window.first..window.first.saturating_add(u64::from(window.count)) {
            let (from, to) = (edge(bucket, level), edge(bucket.saturating_add(1), level));
            if kept.start < kept.end && buckets[kept.start] == bucket {
                row = (first_rows[kept.start] + counts[kept.start]) as usize;
                put(Piece::Kept(kept.start, to - from));
                kept.start += 1;
                continue;
            }
            let first = row;
            row += starts[row..].iter().take_while(|start| **start < to).count();
            let before_ends = first.checked_sub(1).map(|before| track.end_of(before));
            let reaches = before_ends.is_some_and(|end| end > from);
            put(if row > first || (reaches && before_ends.is_some_and(|end| end < to)) {
                Piece::Few { rows: first..row, from, to }
            } else if reaches {
                Piece::Within(first - 1)
            } else {
                Piece::Outside
            });
        }
    }
}

/// What a bucket of a window consists of.
enum Piece {
    /// The inside of one row.
    Within(usize),
    /// The rows that start in it, and the one before.
    Few { rows: std::ops::Range<usize>, from: u64, to: u64 },
    /// A kept bucket, and its width.
    Kept(usize, u64),
    /// Nothing.
    Outside,
}

fn shown(
    shares: impl Iterator<Item = (u8, u64)>,
    width: u64,
    flags: u8,
    starts: u32,
    longest: u32,
) -> Bucket {
    let (mut class, mut most) = (NO_CLASS, 0);
    for (candidate, ns) in shares {
        if ns > most {
            (class, most) = (candidate, ns);
        }
    }
    // Dividing 128 bits costs more than all the rest of a bucket, and only buckets of years need it.
    let share = match most.checked_mul(255).and_then(|parts| parts.checked_add(width / 2)) {
        Some(parts) => (parts / width.max(1)) as u8,
        None => ((u128::from(most) * 255 + u128::from(width) / 2) / u128::from(width.max(1))) as u8,
    };
    Bucket { class, share_of_255: share, flags: super::Flags(flags), starts, longest }
}

#[cfg(test)]
mod tests {
    use super::super::{FlagRules, Flags, Values};
    use super::*;

    /// A small generator; bursts and long rows mixed, so that every kind of piece occurs.
    fn values(seed: u64, rows: usize) -> Values {
        let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut next = move || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state
        };
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
        let rows = Rows::of(track);
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
        let shares = ns.iter().enumerate().filter(|(_, ns)| **ns > 0).map(|(c, ns)| (c as u8, *ns));
        shown(shares, to - from, flags.0, starts, longest)
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
            let rows = Rows::of(&track);
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
