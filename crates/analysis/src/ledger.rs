//! One ledger at every depth of knowledge (docs/ledger.md): each nanosecond of capacity once by its use, and,
//! if it was lost to another party, once by that party. Every table is a projection of these entries.

use crate::entries::Entries;
use std::hash::Hash;
use taskscope_execution::Cause;

/// Nanoseconds by cause.
pub type ByCause = [u64; Cause::ALL.len()];

/// Worker time of one cause, by the source's other attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Entry<D> {
    /// The cause, as deep in the tree as the source knows.
    pub cause: Cause,
    /// The rest of the key.
    pub of: D,
}

/// Worker time at one depth of knowledge: of states, or of a task graph.
#[derive(Clone, Debug)]
pub struct Ledger<S, C> {
    /// Time by use; sums to the capacity.
    pub spent: Entries<Entry<S>>,
    /// Lost time by charged party; within a cause, charges sum to the spent time.
    pub charged: Entries<Entry<C>>,
}

impl<S, C> Default for Ledger<S, C> {
    fn default() -> Self {
        Ledger { spent: Entries::default(), charged: Entries::default() }
    }
}
