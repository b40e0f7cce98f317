//! Waits with their object and place, and holders of objects.
//!
//! `WAIT_OBJECT` and `WAIT_SITE` describe the wait that the same thread enters with the standard event of the
//! same clock. They are *sticky*: an entry applies to every later wait of that kind on that thread until the
//! next one, so a loop that waits at one place costs one entry in all. The kinds `CRITICAL` to `ATOMIC` are
//! entered by one and the same standard event and therefore share one entry: a lock between two waits for one
//! critical construct needs the critical's entry again.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'W';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

/// `kind` of a wait: the numbers of the events below, which recorders for any runtime share.
pub mod kind {
    /// Explicit or implicit barrier inside a region.
    pub const BARRIER: u32 = 1;
    /// Barrier at the end of a parallel region.
    pub const JOIN_BARRIER: u32 = 2;
    /// For the children of the current task.
    pub const TASKWAIT: u32 = 3;
    /// For the dependences of a `taskwait depend`.
    pub const TASKWAIT_DEPEND: u32 = 4;
    /// For all descendants created in a taskgroup.
    pub const TASKGROUP: u32 = 5;
    /// For a critical construct.
    pub const CRITICAL: u32 = 6;
    /// For a simple lock.
    pub const LOCK: u32 = 7;
    /// For a nestable lock.
    pub const NEST_LOCK: u32 = 8;
    /// For the turn in an ordered construct.
    pub const ORDERED: u32 = 9;
    /// For an atomic construct, if the runtime reports it.
    pub const ATOMIC: u32 = 10;
    /// For a device operation.
    pub const TARGET: u32 = 11;
}

events! {
    WAIT_SITE = b"WWs" plain (kind: u32, site: u32) Rule, "sets the wait site to {site} for waits of kind {kind}";
    WAIT_OBJECT = b"WWo" plain (object: u64, site: u32, kind: u32) Rule, "sets object {object} and site {site} for waits of kind {kind}";
    ACQUIRED = b"WHa" plain (object: u64, kind: u32) Rule, "holds object {object} (kind {kind})";
    RELEASED = b"WHr" plain (object: u64, kind: u32) Rule, "has released object {object} (kind {kind})";
}
