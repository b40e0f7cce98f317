//! Worker time by key: the entries of a ledger, and their sums.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use std::hash::Hash;

/// Nanoseconds by key, in the order of keys. Each key occurs once, with more than 0 ns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entries<K>(Vec<(K, u64)>);

impl<K> Default for Entries<K> {
    fn default() -> Self {
        Entries(Vec::new())
    }
}

impl<K: Copy + Ord + Hash> Entries<K> {
    /// Sums rows of equal keys.
    pub fn of(rows: impl IntoIterator<Item = (K, u64)>) -> Self {
        let mut sums: FxHashMap<K, u64> = FxHashMap::default();
        for (key, ns) in rows {
            *sums.entry(key).or_default() += ns;
        }
        let mut rows: Vec<(K, u64)> = sums.into_iter().filter(|(_, ns)| *ns > 0).collect();
        rows.sort_unstable();
        Entries(rows)
    }

    /// Keys with their nanoseconds.
    pub fn iter(&self) -> impl Iterator<Item = (&K, u64)> {
        self.0.iter().map(|(key, ns)| (key, *ns))
    }

    /// Projects the entries onto a coarser key; those without one are left out.
    pub fn by<P: Copy + Ord + Hash>(&self, part: impl Fn(&K) -> Option<P>) -> Entries<P> {
        Entries::of(self.iter().filter_map(|(key, ns)| Some((part(key)?, ns))))
    }

    /// Moves nanoseconds from the first key of a pair to the second. A key must have at least the moved
    /// amount.
    pub fn moving(self, moves: Entries<(K, K)>) -> Self {
        let from = moves.by(|(from, _)| Some(*from));
        let kept = self.0.into_iter().map(|(key, ns)| (key, ns - from.get(&key)));
        Entries::of(kept.chain(moves.0.iter().map(|((_, to), ns)| (*to, *ns))))
    }

    /// Nanoseconds of all entries that are wanted.
    pub fn total(&self, is_wanted: impl Fn(&K) -> bool) -> u64 {
        self.iter().filter(|(key, _)| is_wanted(key)).map(|(_, ns)| ns).sum()
    }

    /// Nanoseconds of one key.
    pub fn get(&self, key: &K) -> u64 {
        self.0.binary_search_by(|(other, _)| other.cmp(key)).map_or(0, |at| self.0[at].1)
    }

    /// The rows, largest first; equal ones by key.
    pub fn largest_first(&self) -> Vec<(K, u64)> {
        let mut rows = self.0.clone();
        rows.sort_unstable_by_key(|(key, ns)| (Reverse(*ns), *key));
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn projections_sum_to_their_entries() {
        let entries = Entries::of([((1, 'a'), 5), ((0, 'b'), 2), ((1, 'a'), 1), ((1, 'b'), 0)]);
        assert_eq!(entries.iter().collect::<Vec<_>>(), [(&(0, 'b'), 2), (&(1, 'a'), 6)]);
        assert_eq!((entries.get(&(1, 'a')), entries.get(&(1, 'b'))), (6, 0));
        assert_eq!(entries.by(|(number, _)| Some(*number)).largest_first(), [(1, 6), (0, 2)]);
        assert_eq!(entries.by(|(_, letter)| (*letter == 'a').then_some(())).total(|_| true), 6);
        let moved = entries.clone().moving(Entries::of([(((1, 'a'), (0, 'b')), 6)]));
        assert_eq!(moved.iter().collect::<Vec<_>>(), [(&(0, 'b'), 8)]);
    }
}
