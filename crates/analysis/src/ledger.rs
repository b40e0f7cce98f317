//! One ledger at every depth of knowledge (docs/ledger.md): each nanosecond of capacity once by what spent it, and, where it was
//! lost to something else, once by what is charged with it. Every table is a projection of these entries.

use crate::entries::Entries;
use std::hash::Hash;
use taskscope_execution::Cause;

/// Nanoseconds by cause.
pub type ByCause = [u64; Cause::ALL.len()];

/// Worker time of one cause, by what else the source knows of it.
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
    /// Time by what spent it; sums to the capacity.
    pub spent: Entries<Entry<S>>,
    /// Lost time by what is charged with it; within a cause, charges sum to what was spent.
    pub charged: Entries<Entry<C>>,
}

impl<S, C> Default for Ledger<S, C> {
    fn default() -> Self {
        Ledger { spent: Entries::default(), charged: Entries::default() }
    }
}
