//! Start times of rows: strictly rising.
//!
//! A track keeps the lower halves of its times; the upper ones, which change every 4.3 s, are runs.

use crate::runs::RunSlices;
use std::cmp::Ordering;
use std::ops::Range;

/// Times at which rows start, strictly rising.
#[allow(clippy::len_without_is_empty)]
pub trait Starts: Copy {
    /// Number of rows.
    fn len(self) -> usize;

    /// The start of a row.
    ///
    /// # Panics
    /// If the row does not exist.
    fn at(self, row: usize) -> u64;

    /// Reader of one row after the other.
    type InOrder: StartsInOrder;

    /// The same, for reading one row after the other.
    fn in_order(self) -> Self::InOrder;

    /// The start of a row, if it exists.
    #[inline(always)]
    fn get(self, row: usize) -> Option<u64> {
        (row < self.len()).then(|| self.at(row))
    }

    /// The first of these rows of which `is_before` does not hold; it holds of none after that.
    #[inline]
    fn partition_point_in(self, rows: Range<usize>, is_before: impl Fn(u64) -> bool) -> usize {
        let (mut low, mut high) = (rows.start, rows.end.max(rows.start));
        while low < high {
            let middle = low + (high - low) / 2;
            if is_before(self.at(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    /// The number of leading rows with a start that satisfies `is_before`.
    #[inline]
    fn partition_point(self, is_before: impl Fn(u64) -> bool) -> usize {
        self.partition_point_in(0..self.len(), is_before)
    }
}

/// Start times of rows, requested in the order of rows.
pub trait StartsInOrder {
    /// The start of a row, if it exists; at or after the previously requested row.
    fn get(&mut self, row: usize) -> Option<u64>;
}

/// Starts for which reading in order is not faster.
#[derive(Clone, Copy, Debug)]
pub struct ByRow<S>(pub S);

impl<S: Starts> StartsInOrder for ByRow<S> {
    #[inline(always)]
    fn get(&mut self, row: usize) -> Option<u64> {
        self.0.get(row)
    }
}

impl<'a> Starts for &'a [u64] {
    type InOrder = ByRow<&'a [u64]>;

    #[inline(always)]
    fn in_order(self) -> ByRow<&'a [u64]> {
        ByRow(self)
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.len()
    }

    #[inline(always)]
    fn at(self, row: usize) -> u64 {
        self[row]
    }
}

/// Start times of a track's sections.
#[derive(Clone, Copy, Debug)]
pub struct TrackStarts<'a> {
    pub(crate) low: &'a [u32],
    pub(crate) high: RunSlices<'a, u32>,
}

/// Start times of a track's sections, requested in the order of rows.
#[derive(Clone, Debug)]
pub struct RisingStarts<'a> {
    starts: TrackStarts<'a>,
    run: usize,
    /// Rows before it have this upper half of their starts, in its place.
    until: usize,
    high: u64,
}

impl StartsInOrder for RisingStarts<'_> {
    #[inline(always)]
    fn get(&mut self, row: usize) -> Option<u64> {
        let low = *self.starts.low.get(row)?;
        if row >= self.until {
            self.find(row);
        }
        Some(self.high | u64::from(low))
    }
}

impl RisingStarts<'_> {
    /// The last row from `row` on that starts no later than `at`; `row` if none does. `row` is not before the last
    /// requested one.
    pub fn last_until(&mut self, mut row: usize, at: u64) -> usize {
        while row + 1 < self.starts.low.len() {
            if row + 1 >= self.until {
                self.find(row + 1);
            }
            // Their upper halves are alike.
            let block = &self.starts.low[row + 1..self.until.min(self.starts.low.len())];
            let passed = match (at >> 32).cmp(&(self.high >> 32)) {
                Ordering::Less => 0,
                Ordering::Equal => near_partition_point(block, |low| low <= at as u32),
                Ordering::Greater => block.len(),
            };
            row += passed;
            if passed < block.len() {
                break;
            }
        }
        row
    }

    #[cold]
    fn find(&mut self, row: usize) {
        let high = self.starts.high;
        self.run = if self.until == 0 { high.run_of(row) } else { high.later(self.run, row) };
        self.until = high.end(self.run);
        self.high = u64::from(high.value(self.run, 0)) << 32;
    }
}

/// As `partition_point`, for a nearby answer: searched in steps that double.
fn near_partition_point(values: &[u32], is_before: impl Fn(u32) -> bool) -> usize {
    let mut end = 1;
    while values.get(end - 1).is_some_and(|value| is_before(*value)) {
        end *= 2;
    }
    let begin = end / 2;
    begin + values[begin..end.min(values.len())].partition_point(|value| is_before(*value))
}

impl<'a> Starts for TrackStarts<'a> {
    type InOrder = RisingStarts<'a>;

    #[inline]
    fn in_order(self) -> RisingStarts<'a> {
        RisingStarts { starts: self, run: 0, until: 0, high: 0 }
    }

    #[inline(always)]
    fn len(self) -> usize {
        self.low.len()
    }

    #[inline(always)]
    fn at(self, row: usize) -> u64 {
        u64::from(self.high.at(row, 0)) << 32 | u64::from(self.low[row])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::RunsBuilder;

    #[test]
    fn the_last_row_until_a_time_is_found_from_any_row_on() {
        // Upper halves change at once, after some, and by more than one.
        let times: Vec<u64> = [5, 6, 9, 1 << 32, (1 << 32) + 1, 3 << 32, (3 << 32) + 7]
            .into_iter()
            .chain((0..100).map(|row| (5 << 32) + 3 * row))
            .collect();
        let low: Vec<u32> = times.iter().map(|time| *time as u32).collect();
        let mut high = RunsBuilder::default();
        times.iter().enumerate().for_each(|(row, time)| high.push(row, (time >> 32) as u32));
        let starts = TrackStarts { low: &low, high: high.slices() };
        let asked = times.iter().flat_map(|time| [time - 1, *time, time + 1]).chain([0, 2 << 32, u64::MAX]);
        for at in asked {
            for from in 0..times.len() {
                let expected = times.partition_point(|time| *time <= at).saturating_sub(1).max(from);
                assert_eq!(starts.in_order().last_until(from, at), expected, "{at} from {from}");
            }
        }
    }
}
