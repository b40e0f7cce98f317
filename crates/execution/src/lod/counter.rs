//! Numbers over time: minimum, mean and maximum of every bucket.

use super::{Window, edge};
use rayon::prelude::*;

/// Changes that share one block of the first level; blocks above join 16 of the level below.
const BLOCK: usize = 16;

/// A number that changes at certain times, with sums for fast queries of any range.
#[derive(Clone, Debug, Default)]
pub struct Counter {
    start: Vec<u64>,
    value: Vec<i64>,
    end: u64,
    /// Level by level, minimum and maximum of 16, 256, … values.
    extremes: Vec<Vec<(i64, i64)>>,
    /// Integral of value × nanoseconds before the first change of each block.
    integral: Vec<i128>,
}

/// One bucket of a counter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct CounterBucket {
    /// The smallest value in it.
    pub min: i64,
    /// Value × nanoseconds; divided by [`ns`](Self::ns) it is the mean.
    pub integral: i128,
    /// The largest value in it.
    pub max: i64,
    /// Nanoseconds of the bucket in which the counter is known; 0 if it is not.
    pub ns: u64,
}

impl CounterBucket {
    /// The mean over the time in which the counter is known.
    pub fn mean(&self) -> Option<f64> {
        (self.ns > 0).then(|| self.integral as f64 / self.ns as f64)
    }
}

impl Counter {
    /// Counts live things up to `end`, from the begin of each and the ends of those that end, both in any
    /// order. (Begins and ends mostly come sorted or nearly so, and are sorted separately.)
    pub fn from_lives(mut begins: Vec<u64>, mut ends: Vec<u64>, end: u64) -> Counter {
        rayon::join(|| begins.par_sort_unstable(), || ends.par_sort_unstable());
        let mut changes: Vec<(u64, i64)> = Vec::with_capacity(begins.len() + ends.len());
        let (mut begun, mut ended) = (0, 0);
        while let Some(at) = begins[begun..].first().into_iter().chain(ends[ended..].first()).min().copied() {
            let of = |times: &[u64]| times.iter().take_while(|time| **time == at).count();
            begun += of(&begins[begun..]);
            ended += of(&ends[ended..]);
            changes.push((at, begun as i64 - ended as i64));
        }
        Counter::from_changes(changes, end)
    }

    /// A counter from its values `(from when on, value)` at strictly rising times, up to `end`.
    pub fn from_changes(changes: Vec<(u64, i64)>, end: u64) -> Counter {
        let (start, value): (Vec<u64>, Vec<i64>) = changes.into_iter().unzip();
        let mut integral = Vec::with_capacity(start.len().div_ceil(BLOCK));
        let mut sum = 0_i128;
        for row in 0..start.len() {
            if row.is_multiple_of(BLOCK) {
                integral.push(sum);
            }
            let next = start.get(row + 1).copied().unwrap_or(end);
            sum += i128::from(value[row]) * i128::from(next.saturating_sub(start[row]));
        }
        let mut extremes: Vec<Vec<(i64, i64)>> = Vec::new();
        let join = |part: &[(i64, i64)]| {
            let min = part.iter().map(|p| p.0).min().unwrap_or(0);
            (min, part.iter().map(|p| p.1).max().unwrap_or(0))
        };
        let first: Vec<(i64, i64)> = value
            .chunks(BLOCK)
            .map(|part| join(&part.iter().map(|value| (*value, *value)).collect::<Vec<_>>()))
            .collect();
        extremes.push(first);
        while extremes.last().is_some_and(|level| level.len() > BLOCK) {
            let next = extremes.last().map(|level| level.chunks(BLOCK).map(join).collect());
            extremes.extend(next);
        }
        Counter { start, value, end, extremes, integral }
    }

    /// Number of changes.
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether it never has a value.
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// The largest value ever.
    pub fn max(&self) -> i64 {
        self.value.iter().copied().max().unwrap_or(0)
    }

    /// The smallest value ever.
    pub fn min(&self) -> i64 {
        self.value.iter().copied().min().unwrap_or(0)
    }

    /// The buckets of a window, in time order.
    pub fn buckets(&self, window: Window) -> Vec<CounterBucket> {
        (window.first..window.first.saturating_add(u64::from(window.count)))
            .map(|bucket| {
                let from = edge(bucket, window.width_log2);
                self.range(from, edge(bucket.saturating_add(1), window.width_log2))
            })
            .collect()
    }

    /// The same for any range `[from, to)`.
    pub fn range(&self, from: u64, to: u64) -> CounterBucket {
        let from = from.max(self.start.first().copied().unwrap_or(u64::MAX));
        let to = to.min(self.end);
        if from >= to {
            return CounterBucket { min: 0, integral: 0, max: 0, ns: 0 };
        }
        let first = self.start.partition_point(|start| *start <= from) - 1;
        let last = self.start.partition_point(|start| *start < to);
        let (min, max) = self.extremes(first, last);
        CounterBucket { min, integral: self.integral_to(to) - self.integral_to(from), max, ns: to - from }
    }

    fn integral_to(&self, at: u64) -> i128 {
        match self.start.partition_point(|start| *start <= at).checked_sub(1) {
            Some(row) => {
                let block = row - row % BLOCK;
                let whole = (block..row).map(|row| {
                    i128::from(self.value[row]) * i128::from(self.start[row + 1] - self.start[row])
                });
                self.integral[row / BLOCK]
                    + whole.sum::<i128>()
                    + i128::from(self.value[row]) * i128::from(at - self.start[row])
            }
            None => 0,
        }
    }

    /// Minimum and maximum of the values of rows `low..high`, which must not be empty.
    fn extremes(&self, mut low: usize, mut high: usize) -> (i64, i64) {
        let (mut min, mut max) = (i64::MAX, i64::MIN);
        let mut see = |pair: (i64, i64)| (min, max) = (min.min(pair.0), max.max(pair.1));
        while low < high && !low.is_multiple_of(BLOCK) {
            see((self.value[low], self.value[low]));
            low += 1;
        }
        while low < high && !high.is_multiple_of(BLOCK) {
            high -= 1;
            see((self.value[high], self.value[high]));
        }
        (low, high) = (low / BLOCK, high / BLOCK);
        for (depth, level) in self.extremes.iter().enumerate() {
            let top = depth + 1 == self.extremes.len();
            while low < high && (top || !low.is_multiple_of(BLOCK)) {
                see(level[low]);
                low += 1;
            }
            while low < high && !high.is_multiple_of(BLOCK) {
                high -= 1;
                see(level[high]);
            }
            (low, high) = (low / BLOCK, high / BLOCK);
        }
        (min, max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_equal_a_walk_over_all_changes() {
        let mut state = 9_u64;
        let mut next = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        let begins: Vec<u64> = (0..900).map(|_| next(50_000)).collect();
        let ends: Vec<u64> = (0..850).map(|_| next(60_000)).collect();
        let counter = Counter::from_lives(begins.clone(), ends.clone(), 50_000);
        let deltas: Vec<(u64, i64)> =
            begins.into_iter().map(|at| (at, 1)).chain(ends.into_iter().map(|at| (at, -1))).collect();
        for (from, to) in [(0, 9_000), (30, 340), (100, 1124), (49_000, 60_000), (777, 6_100), (5, 5)] {
            let value_at =
                |at: u64| deltas.iter().filter(|(time, _)| *time <= at).map(|(_, delta)| delta).sum::<i64>();
            let known = deltas.iter().map(|(at, _)| *at).min().unwrap();
            let values: Vec<i64> = (from.max(known)..to.min(50_000)).map(value_at).collect();
            let got = counter.range(from, to);
            assert_eq!(got.ns, values.len() as u64);
            assert_eq!(got.integral, values.iter().map(|v| i128::from(*v)).sum::<i128>());
            assert_eq!(got.min, values.iter().copied().min().unwrap_or(0), "[{from}, {to})");
            assert_eq!(got.max, values.iter().copied().max().unwrap_or(0), "[{from}, {to})");
        }
    }
}
