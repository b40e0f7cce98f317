//! Lost sequence numbers: ranges, since losses come in runs.

use std::collections::BTreeMap;

/// A set of numbers, kept as ranges.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostSet {
    /// First number to one past the last.
    ranges: BTreeMap<u64, u64>,
}

impl LostSet {
    pub fn insert(&mut self, seq: u64) {
        let (mut start, mut end) = (seq, seq + 1);
        if let Some((&before, &before_end)) = self.ranges.range(..=seq).next_back() {
            if before_end > seq {
                return;
            }
            if before_end == seq {
                start = before;
            }
        }
        if let Some(after_end) = self.ranges.remove(&end) {
            end = after_end;
        }
        self.ranges.insert(start, end);
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub fn contains(&self, seq: u64) -> bool {
        self.ranges.range(..=seq).next_back().is_some_and(|(_, end)| *end > seq)
    }

    /// One past the highest; 0 if the set is empty.
    pub fn end(&self) -> u64 {
        self.ranges.last_key_value().map_or(0, |(_, end)| *end)
    }

    /// Whether it was in.
    pub fn remove(&mut self, seq: u64) -> bool {
        let Some((&start, &end)) = self.ranges.range(..=seq).next_back() else { return false };
        if end <= seq {
            return false;
        }
        self.ranges.remove(&start);
        if start < seq {
            self.ranges.insert(start, seq);
        }
        if seq + 1 < end {
            self.ranges.insert(seq + 1, end);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_join_and_split() {
        let mut lost = LostSet::default();
        [3, 5, 4, 4, 9].into_iter().for_each(|seq| lost.insert(seq));
        assert_eq!(lost.ranges.len(), 2);
        assert!(lost.contains(3) && lost.contains(5) && !lost.contains(6) && lost.end() == 10);
        assert!(lost.remove(4) && !lost.remove(4));
        assert!(lost.remove(3) && lost.remove(5) && lost.remove(9) && !lost.remove(8));
        assert!(lost.ranges.is_empty());
    }
}
