//! Facts of a hang.

use crate::by_state::ByState;
use taskscope_execution::messages::Owed;
use taskscope_execution::{ProcessIndex, SiteIndex, Span, TaskIndex, ThreadIndex};

/// The condition for a thread to resume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// The thread that holds the lock.
    Holder {
        /// The thread; the waiting thread itself if it requests an object that it holds.
        thread: ThreadIndex,
        /// Time at which it got the lock.
        since: u64,
        /// The place of its request.
        site: SiteIndex,
    },
    /// A member of the team that has not come to the barrier.
    Member(ThreadIndex),
    /// A task that has not ended, and the thread that runs it; none if no thread does.
    Task(TaskIndex, ThreadIndex),
    /// A rank that has not called the library so as to end the wait.
    Rank {
        /// Its process, if it is in the trace.
        process: Option<ProcessIndex>,
        /// Its number, if known.
        rank: Option<u32>,
        /// Its pending operation.
        owes: Owed,
    },
}

/// An open wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenWait {
    /// The thread that waits.
    pub thread: ThreadIndex,
    /// The wait, to its end.
    pub span: Span,
    /// The function of the communication library in which it waits, without the library's prefix.
    pub function: Option<&'static str>,
    /// Its needs; empty if unknown.
    pub needs: Vec<Needed>,
    /// Whether one of them is enough.
    pub any: bool,
}

/// The last activity of a needed thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastSeen {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its last section.
    pub span: Span,
    /// Whether it has ended.
    pub gone: bool,
    /// Since when it slept in the kernel, if it is known that it did.
    pub asleep_since: Option<u64>,
}

/// A run that hung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hang {
    /// Whether the waits can never end; otherwise there was no progress for a long time.
    pub is_deadlock: bool,
    /// Number of leading waits that need each other in a cycle; 0 if none do.
    pub circle: usize,
    /// The open waits: the cycle first, in the order of needs, then the others by their begins.
    pub waits: Vec<OpenWait>,
    /// Needed threads that do not wait.
    pub needed: Vec<LastSeen>,
    /// Begin of the last wait of the cycle, or, without one, of the time without progress.
    pub since: u64,
    /// The end of the process, or of its recording.
    pub end: u64,
    /// Worker-nanoseconds of the waits from then on.
    pub victims: ByState,
}
