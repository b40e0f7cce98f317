//! A column of mostly equal neighbours: begin and value of each run.

use crate::Column;
use bytemuck::Pod;
use std::marker::PhantomData;

/// A run: its first row, and its value as a number.
type Run = [u32; 2];

/// Values of rows, of 32 bits each, as runs.
#[derive(Clone, Debug)]
pub struct Runs<T> {
    /// Rising runs; the first begins at row 0.
    runs: Column<Run>,
    values: PhantomData<T>,
}

impl<T> Default for Runs<T> {
    fn default() -> Self {
        Runs::stored(Column::default())
    }
}

impl<T> Runs<T> {
    /// Runs that were stored.
    pub fn stored(runs: Column<Run>) -> Runs<T> {
        Runs { runs, values: PhantomData }
    }

    /// The stored form.
    pub fn as_bytes(&self) -> &[u8] {
        self.runs.as_bytes()
    }

    /// The runs, borrowed.
    pub(crate) fn slices(&self) -> RunSlices<'_, T> {
        RunSlices { runs: &self.runs, values: PhantomData }
    }
}

/// Runs, looked up once.
#[derive(Debug)]
pub(crate) struct RunSlices<'a, T> {
    runs: &'a [Run],
    values: PhantomData<T>,
}

impl<T> Clone for RunSlices<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for RunSlices<'_, T> {}

impl<T: Pod> RunSlices<'_, T> {
    /// The run that holds a row.
    #[inline]
    pub fn run_of(&self, row: usize) -> usize {
        match self.runs.len() {
            0 | 1 => 0,
            _ => self.runs.partition_point(|[begin, _]| *begin as usize <= row).saturating_sub(1),
        }
    }

    /// The value of a run; `none` for an unknown run.
    #[inline]
    pub fn value(&self, run: usize, none: T) -> T {
        self.runs.get(run).map_or(none, |[_, value]| bytemuck::cast(*value))
    }

    /// The row after a run; unlimited for the last one.
    #[inline]
    pub fn end(&self, run: usize) -> usize {
        self.runs.get(run + 1).map_or(usize::MAX, |[begin, _]| *begin as usize)
    }

    /// The run from `run` on that holds a row.
    #[inline]
    pub fn later(&self, mut run: usize, row: usize) -> usize {
        while self.end(run) <= row {
            run += 1;
        }
        run
    }

    /// The value of a row.
    #[inline]
    pub fn at(&self, row: usize, none: T) -> T {
        self.value(self.run_of(row), none)
    }
}

/// Runs while they grow.
#[derive(Debug)]
pub(crate) struct RunsBuilder<T> {
    runs: Vec<Run>,
    values: PhantomData<T>,
}

impl<T> Default for RunsBuilder<T> {
    fn default() -> Self {
        RunsBuilder { runs: Vec::new(), values: PhantomData }
    }
}

impl<T: Pod> RunsBuilder<T> {
    /// Reserves room for so many runs, if possible: unused room costs nothing.
    pub fn expect(&mut self, runs: usize) {
        let _ = self.runs.try_reserve_exact(runs);
    }

    /// The value of row `row`, which comes after all so far.
    #[inline(always)]
    pub fn push(&mut self, row: usize, value: T) {
        let value = bytemuck::cast(value);
        if self.runs.last().is_none_or(|[_, last]| *last != value) {
            self.runs.push([row as u32, value]);
        }
    }

    /// Changes the value of a row, of `rows` that there are.
    pub fn replace(&mut self, row: usize, rows: usize, value: T) {
        let value: u32 = bytemuck::cast(value);
        let run = self.slices().run_of(row);
        let [begin, before] = self.runs[run];
        if before == value {
            return;
        }
        if row + 1 < self.slices().end(run).min(rows) {
            self.runs.insert(run + 1, [row as u32 + 1, before]);
        }
        if begin as usize == row {
            self.runs[run][1] = value;
        } else {
            self.runs.insert(run + 1, [row as u32, value]);
        }
    }

    pub fn slices(&self) -> RunSlices<'_, T> {
        RunSlices { runs: &self.runs, values: PhantomData }
    }

    pub fn finish(self) -> Runs<T> {
        Runs::stored(self.runs.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_replaced_read_as_rows_of_a_plain_column_do() {
        for seed in 1..200_u64 {
            let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut dice = |sides: u64| {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (random >> 33) % sides
            };
            let mut runs: RunsBuilder<u32> = RunsBuilder::default();
            let mut plain: Vec<u32> = Vec::new();
            for row in 0..60 {
                let value = if dice(3) > 0 { plain.last().copied().unwrap_or(0) } else { dice(4) as u32 };
                runs.push(row, value);
                plain.push(value);
                if dice(4) == 0 {
                    let (row, value) = (dice(plain.len() as u64) as usize, dice(4) as u32);
                    runs.replace(row, plain.len(), value);
                    plain[row] = value;
                }
            }
            let runs = runs.finish();
            let slices = runs.slices();
            let read: Vec<u32> = (0..plain.len()).map(|row| slices.at(row, 99)).collect();
            assert_eq!(read, plain, "seed {seed}");
            let mut run = 0;
            for (row, value) in plain.iter().enumerate() {
                run = slices.later(run, row);
                assert_eq!(slices.value(run, 99), *value, "seed {seed} row {row}");
            }
        }
    }
}
