//! Runs that hung: threads that waited at the end for something that could not come.
//!
//! Two kinds of evidence:
//!
//! - **Deadlock**: a set of open waits in which each needs another thread of the set, or a thread that is gone. Such waits
//!   are never over. For a lock the holder is needed, for a barrier each member of the team that has not come, for a taskwait
//!   each child that has not ended, for a call of MPI the ranks that have to call it too. Locks of threads count as those of a
//!   runtime ([`thread_locks`]).
//! - **Silence**: the process did not end properly, and for a long time before its end no thread recorded anything or worked:
//!   each one waited, was idle, or slept in the kernel without using its CPU. Long is relative to the run, and to the waits
//!   before.
//!
//! A computing thread is not evidence of a hang: others may wait for it for any time.

mod ends;
mod facts;
mod needs;
mod no_activity;
mod ranks;
mod stuck;
#[cfg(test)]
mod tests;
mod thread_locks;

use ends::Ends;
pub use facts::{Hang, LastSeen, Needed, OpenWait};
use taskscope_execution::Execution;

/// All hangs, processes that wait for each other together.
pub fn hangs(execution: &Execution) -> Vec<Hang> {
    if execution.filtered {
        return Vec::new();
    }
    Ends::of(execution).map_or_else(Vec::new, |ends| ends.hangs())
}
