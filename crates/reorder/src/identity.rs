//! From a vendor's id to (queue, sequence): resolved when the operation is submitted, so that ids
//! that are used again, or wrap, do no harm.

use crate::record::QueueIndex;
use rustc_hash::FxHashMap;
use std::collections::VecDeque;

/// How a vendor names an operation in its records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VendorKey {
    /// Scope of the id: 0 for ids of the whole process, a command list, a graph.
    pub scope: u64,
    /// The id, or the index in the list.
    pub id: u64,
    /// Execution of recorded work, if the record has it; else 0.
    pub execution: u32,
}

/// An operation of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Its queue.
    pub queue: QueueIndex,
    /// Its number in the queue.
    pub seq: u64,
}

/// Operations that were submitted, by the vendor's id. A list that is executed three times is three
/// submissions.
#[derive(Debug, Default)]
pub struct Identities {
    open: FxHashMap<VendorKey, VecDeque<Operation>>,
    /// The latest ended operation of each id; two generations, so that recent submissions bound the memory.
    ended: [FxHashMap<VendorKey, Operation>; 2],
}

/// Ids of ended operations in a generation.
const GENERATION: usize = 1 << 16;

impl Identities {
    /// Adds an operation to an id, after those that it stands for already.
    pub fn submitted(&mut self, key: VendorKey, operation: Operation) {
        self.open.entry(key).or_default().push_back(operation);
    }

    /// The operation that a record with this id is about: the oldest one that is open. A further
    /// record of an id without open operations is one of the last one that ended, so that the
    /// ordering core knows it as a duplicate. `None` if the id was never submitted.
    pub fn completed(&mut self, key: VendorKey) -> Option<Operation> {
        let Some(open) = self.open.get_mut(&key) else {
            return self.ended.iter().find_map(|ended| ended.get(&key)).copied();
        };
        let operation = open.pop_front()?;
        if open.is_empty() {
            self.open.remove(&key);
        }
        if self.ended[0].len() >= GENERATION {
            self.ended[1] = std::mem::take(&mut self.ended[0]);
        }
        self.ended[0].insert(key, operation);
        Some(operation)
    }

    /// The submission of an operation with this id has failed. Returns whether it was open.
    pub fn withdrawn(&mut self, key: VendorKey, operation: Operation) -> bool {
        let Some(open) = self.open.get_mut(&key) else { return false };
        let place = open.iter().rposition(|known| *known == operation);
        let found = place.and_then(|place| open.remove(place)).is_some();
        if open.is_empty() {
            self.open.remove(&key);
        }
        found
    }

    /// The operation that a record with this id would be about, if it is open.
    pub fn oldest(&self, key: VendorKey) -> Option<Operation> {
        self.open.get(&key)?.front().copied()
    }

    /// Whether the id stands for an open operation.
    pub fn is_open(&self, key: VendorKey) -> bool {
        self.open.contains_key(&key)
    }

    /// Ids that stand for open operations.
    pub fn open(&self) -> usize {
        self.open.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(scope: u64, id: u64) -> VendorKey {
        VendorKey { scope, id, execution: 0 }
    }

    fn operation(seq: u64) -> Operation {
        Operation { queue: QueueIndex(0), seq }
    }

    #[test]
    fn a_list_executed_three_times_is_three_operations() {
        let mut identities = Identities::default();
        (0..3).for_each(|execution| identities.submitted(key(7, 0), operation(execution)));
        let seqs: Vec<_> = (0..4).map(|_| identities.completed(key(7, 0)).map(|o| o.seq)).collect();
        assert_eq!(seqs, [Some(0), Some(1), Some(2), Some(2)]);
    }

    #[test]
    fn an_id_that_wraps_names_the_new_operation() {
        let mut identities = Identities::default();
        identities.submitted(key(0, 5), operation(5));
        assert_eq!(identities.completed(key(0, 5)), Some(operation(5)));
        identities.submitted(key(0, 5), operation(5 + (1 << 32)));
        assert_eq!(identities.completed(key(0, 5)), Some(operation(5 + (1 << 32))));
        assert_eq!(identities.completed(key(0, 6)), None);
        assert_eq!(identities.open(), 0);
    }
}
