//! Rows of many workers, which mostly come one worker after the other.

use super::{Lists, NONE};

/// Rows, each of a worker.
pub(super) struct RowsOfWorkers<T> {
    rows: Vec<T>,
    /// Workers of consecutive rows, and the ends of these.
    runs: Vec<(u64, usize)>,
}

impl<T> Default for RowsOfWorkers<T> {
    fn default() -> Self {
        RowsOfWorkers { rows: Vec::new(), runs: Vec::new() }
    }
}

impl<T> RowsOfWorkers<T> {
    pub fn push(&mut self, worker: u64, row: T) {
        self.rows.push(row);
        let end = self.rows.len();
        match self.runs.last_mut() {
            Some((last, until)) if *last == worker => *until = end,
            _ => self.runs.push((worker, end)),
        }
    }

    /// The row that was added last, if it is the worker's.
    pub fn last_mut(&mut self, worker: u64) -> Option<&mut T> {
        let is_its = self.runs.last().is_some_and(|(last, _)| *last == worker);
        if is_its { self.rows.last_mut() } else { None }
    }

    /// All entries in the order of insertion.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &T)> + Clone {
        let starts = std::iter::once(0).chain(self.runs.iter().map(|(_, end)| *end));
        self.runs.iter().zip(starts).flat_map(|(&(worker, end), start)| {
            self.rows.get(start..end).unwrap_or(&[]).iter().map(move |row| (worker, row))
        })
    }

    /// Maps every row; in place if the sizes are equal.
    pub fn map<U>(self, each: impl Fn(T) -> U) -> RowsOfWorkers<U> {
        RowsOfWorkers { rows: self.rows.into_iter().map(each).collect(), runs: self.runs }
    }

    /// A list for each of so many workers, by their rows ([`NONE`] for an unknown one); rows in the order of workers
    /// are not moved.
    pub fn into_lists(self, workers: usize, row_of: impl Fn(u64) -> u32) -> Lists<T>
    where
        T: Copy,
    {
        let ids: Vec<u32> = self.runs.iter().map(|(worker, _)| row_of(*worker)).collect();
        let in_order = ids.is_sorted_by(|a, b| a < b) && ids.last().is_none_or(|last| *last != NONE);
        if !in_order {
            return Lists::group(workers, self.iter().map(|(worker, row)| (row_of(worker) as usize, *row)));
        }
        let mut ends = vec![0; workers];
        for (row, (_, end)) in ids.iter().zip(&self.runs) {
            if let Some(slot) = ends.get_mut(*row as usize) {
                *slot = *end;
            }
        }
        // A worker without rows ends at the end of the previous one.
        let ends = ends.into_iter().scan(0, |last, end| {
            *last = end.max(*last);
            Some(*last)
        });
        Lists::from_items(ends, self.rows)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_equal_a_sort_by_worker_in_any_order() {
        let orders: [&[(u64, u32)]; 6] = [
            &[(10, 1), (10, 2), (11, 3), (13, 4), (13, 5)],
            &[(13, 4), (10, 1), (11, 3), (10, 2), (13, 5)],
            &[(10, 1), (99, 8), (11, 3)],
            &[(99, 8)],
            &[(13, 5)],
            &[],
        ];
        for rows in orders {
            let mut worker_rows = RowsOfWorkers::default();
            rows.iter().for_each(|(worker, row)| worker_rows.push(*worker, *row));
            assert!(worker_rows.iter().map(|(worker, row)| (worker, *row)).eq(rows.iter().copied()));
            let row_of = |worker: u64| if (10..14).contains(&worker) { worker as u32 - 10 } else { NONE };
            let lists = worker_rows.map(u64::from).into_lists(4, row_of);
            assert_eq!(lists.len(), 4);
            for worker in 0..4 {
                let of = rows.iter().filter(|(id, _)| *id == 10 + worker as u64);
                let expected: Vec<u64> = of.map(|(_, row)| u64::from(*row)).collect();
                assert_eq!(lists.get(worker), expected, "{rows:?}");
            }
        }
    }

    #[test]
    fn the_last_row_is_that_of_its_worker() {
        let mut rows = RowsOfWorkers::default();
        assert_eq!(rows.last_mut(1), None);
        rows.push(1, 'a');
        assert_eq!(rows.last_mut(2), None);
        assert_eq!(rows.last_mut(1), Some(&mut 'a'));
    }
}
