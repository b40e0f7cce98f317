//! Many short lists in two columns.

use rayon::prelude::*;
use std::cmp::Ordering;

/// One list for each row of some table, all items in one column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lists<T> {
    /// Begins of the lists, and the end of the last.
    starts: Vec<u32>,
    items: Vec<T>,
}

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Lists { starts: vec![0], items: Vec::new() }
    }
}

impl<T> Lists<T> {
    /// No lists, with room for some.
    pub fn with_capacity(lists: usize, items: usize) -> Self {
        let mut starts = Vec::with_capacity(lists + 1);
        starts.push(0);
        Lists { starts, items: Vec::with_capacity(items) }
    }

    /// Lists of items that are stored one list after the other, by the end of each list.
    pub(super) fn from_items(ends: impl IntoIterator<Item = usize>, items: Vec<T>) -> Self {
        let end = |end: usize| u32::try_from(end).expect("at most 2^32 - 1 items");
        Lists { starts: std::iter::once(0).chain(ends.into_iter().map(end)).collect(), items }
    }

    /// Appends a list.
    ///
    /// # Panics
    /// If there would be more than 2^32 − 1 items.
    pub fn push(&mut self, list: impl IntoIterator<Item = T>) {
        self.items.extend(list);
        self.starts.push(u32::try_from(self.items.len()).expect("at most 2^32 - 1 items"));
    }

    /// Number of lists.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there are no lists.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The items of all lists, one list after the other.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// List `row`; empty if there is none.
    #[inline]
    pub fn get(&self, row: usize) -> &[T] {
        match self.starts.get(row..row + 2) {
            Some(&[start, end]) => &self.items[start as usize..end as usize],
            _ => &[],
        }
    }

    /// Position of the first item of list `row` among all items.
    pub fn start(&self, row: usize) -> usize {
        self.starts[row.min(self.len())] as usize
    }

    /// All lists in order.
    pub fn iter(&self) -> impl Iterator<Item = &[T]> {
        (0..self.len()).map(|row| self.get(row))
    }

    /// Sorts pairs of (row, item) into `rows` lists; items of one row keep their order.
    /// Pairs with a row out of range are left out.
    pub fn group(rows: usize, pairs: impl Iterator<Item = (usize, T)> + Clone) -> Self
    where
        T: Copy,
    {
        let mut starts = vec![0_u32; rows + 1];
        for (row, _) in pairs.clone().filter(|(row, _)| *row < rows) {
            starts[row + 1] += 1;
        }
        for row in 0..rows {
            starts[row + 1] += starts[row];
        }
        let Some(some) = pairs.clone().find(|(row, _)| *row < rows).map(|(_, item)| item) else {
            return Lists { starts, items: Vec::new() };
        };
        let mut items = vec![some; starts[rows] as usize];
        let mut next = starts.clone();
        for (row, item) in pairs.filter(|(row, _)| *row < rows) {
            items[next[row] as usize] = item;
            next[row] += 1;
        }
        Lists { starts, items }
    }

    /// Sorts each list; items that are equal keep their order.
    pub(super) fn sort_each(&mut self, order: impl Fn(&T, &T) -> Ordering + Sync)
    where
        T: Send,
    {
        let mut rest = self.items.as_mut_slice();
        let mut lists = Vec::with_capacity(self.starts.len());
        for ends in self.starts.windows(2) {
            let (list, after) = rest.split_at_mut((ends[1] - ends[0]) as usize);
            lists.push(list);
            rest = after;
        }
        // Most sources are in order of time.
        lists
            .into_par_iter()
            .filter(|list| !list.is_sorted_by(|a, b| order(a, b).is_le()))
            .for_each(|list| list.sort_by(&order));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grouping_keeps_the_order_within_a_row() {
        let pairs = [(2, 'a'), (0, 'b'), (2, 'c'), (9, 'd')];
        let lists = Lists::group(3, pairs.iter().copied());
        assert_eq!(lists.get(0), ['b']);
        assert_eq!(lists.get(1), []);
        assert_eq!(lists.get(2), ['a', 'c']);
        assert_eq!(lists.get(3), []);
        assert_eq!(lists.start(2), 1);
    }
}
