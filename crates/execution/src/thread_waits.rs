//! Waits between threads outside of a runtime's constructs: locks, conditions, semaphores, barriers and joins
//! of the system's threads, and the event that ended each wait.
//!
//! ```text
//!   holder A   ──────────┤ hands over
//!   holder B             ├──────┤ hands over
//!   waiter        ├───────────────┤
//!                  A      B      B
//! ```
//! Only those holds of a lock are recorded that end while others wait. A hold begins, as far as others see
//! it, when the holder before has released the lock, or the first of them began to wait. A wait without such
//! a release belongs to the holder that the waiting thread found.
//!
//! A wait for anything else ends by a wake: the first one since its begin that has not woken another thread. A wake of all
//! threads wakes each that waits. A wait for room in a pipe ends by the last wake: the reads before it made too little.

use crate::{Hold, ObjectIndex, PathIndex, SiteIndex, ThreadIndex};
use rustc_hash::FxHashMap;

/// A wait of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadWait {
    /// The waiting thread.
    pub thread: ThreadIndex,
    /// The awaited object.
    pub object: ObjectIndex,
    /// The call in which it waits.
    pub site: SiteIndex,
    /// Begin.
    pub start: u64,
    /// End; for an open wait of a thread that did not end, the last event of its process.
    pub end: u64,
    /// The outcome.
    pub outcome: WaitOutcome,
    /// The thread that ended it; `None` for locks, which have holders, and if unknown.
    pub waker: Option<Waker>,
    /// Whether no thread of the process can have ended it.
    pub is_of_others: bool,
}

/// The outcome of a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum WaitOutcome {
    /// The wait succeeded.
    Done,
    /// The caller's time limit expired.
    TimedOut,
    /// The call failed, was interrupted, or its thread was cancelled.
    Failed,
    /// Still open at the end of its thread or of the recording.
    Open,
}

/// The thread that ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waker {
    /// The thread: it signalled, posted, arrived last, or was joined.
    pub thread: ThreadIndex,
    /// The call in which it did so; of a joined thread, its routine.
    pub site: SiteIndex,
    /// Time.
    pub at: u64,
}

/// All waits of threads for each other.
#[derive(Clone, Debug, Default)]
pub struct ThreadWaits {
    /// Waits by thread and begin; those of a thread do not overlap.
    pub waits: Vec<ThreadWait>,
    /// Holds that ended while others waited, by object and begin; those of one object do not overlap.
    pub holds: Vec<Hold>,
    /// The end of each thread of a slice in the whole run, and whether it had work there besides sleep.
    pub lives: FxHashMap<ThreadIndex, (u64, bool)>,
    /// The selected part of the time; `None` for the whole.
    pub part: Option<(u64, u64)>,
}

impl ThreadWaits {
    /// The waits of a thread that overlap a part of the time, by begin.
    pub fn waits_of(&self, thread: ThreadIndex, from: u64, until: u64) -> &[ThreadWait] {
        let first = self.waits.partition_point(|wait| (wait.thread, wait.end) <= (thread, from));
        let rest = self.waits.get(first..).unwrap_or_default();
        let count = rest.partition_point(|wait| wait.thread == thread && wait.start < until);
        rest.get(..count).unwrap_or_default()
    }

    /// The calls in which threads wait, wake, and take locks.
    pub fn sites(&self) -> impl Iterator<Item = SiteIndex> {
        let wait_sites =
            self.waits.iter().flat_map(|wait| [Some(wait.site), wait.waker.map(|waker| waker.site)]);
        wait_sites.flatten().chain(self.holds.iter().map(|hold| hold.site))
    }

    /// The holds of an object that end after `from` and not after `until`, by begin.
    pub fn holds_of(&self, object: ObjectIndex, from: u64, until: u64) -> &[Hold] {
        let first = self.holds.partition_point(|hold| (hold.object, hold.end) <= (object, from));
        let rest = self.holds.get(first..).unwrap_or_default();
        let count = rest.partition_point(|hold| hold.object == object && hold.end <= until);
        rest.get(..count).unwrap_or_default()
    }
}

/// Events of waits between threads.
#[derive(Clone, Copy, Debug)]
pub enum ThreadWaitChange {
    /// Begins to wait.
    Begins {
        /// The awaited object.
        object: ObjectIndex,
        /// Site of the call.
        site: SiteIndex,
    },
    /// Has found the lock that it waits for held.
    FoundHeld {
        /// Thread pointer of the holder.
        holder: u64,
        /// The place of that thread's acquisition.
        site: SiteIndex,
    },
    /// Ends its wait.
    Ends {
        /// `taskscope_event::models::wait::outcome`.
        outcome: u32,
    },
    /// Releases a lock that others wait for.
    HandsOver {
        /// The lock.
        object: ObjectIndex,
        /// The place of its acquisition.
        site: SiteIndex,
    },
    /// Wakes threads that wait.
    Wakes {
        /// The awaited object.
        object: ObjectIndex,
        /// Site of the call.
        site: SiteIndex,
        /// Whether all waiting threads are woken, not one.
        all: bool,
    },
    /// Has waited. Times are nanoseconds before the event.
    Waited {
        /// The awaited object.
        object: ObjectIndex,
        /// Begin of the wait.
        begun: u64,
        /// Its end.
        ended: u64,
        /// Site of the call.
        site: SiteIndex,
        /// `taskscope_event::models::wait::outcome`.
        outcome: u32,
        /// Site of the call of the thread that ended the wait.
        waker_site: SiteIndex,
        /// Thread pointer of that thread; 0 if unknown, `taskscope_event::models::wait::OTHER_PROCESS` if it is of another process.
        waker: u64,
        /// When it did so.
        woken: u64,
    },
    /// Waits, as the analysis of the whole run has found. Times are nanoseconds of the trace's clock.
    KnownWait {
        /// The awaited object.
        object: ObjectIndex,
        /// Site of the call.
        site: SiteIndex,
        /// Path of the call.
        path: PathIndex,
        /// Begin.
        start: u64,
        /// End.
        end: u64,
        /// `taskscope_event::models::wait::outcome`.
        outcome: u8,
        /// Id of the thread that ended it; 0 if unknown, [`KNOWN_OTHER_PROCESS`] if none of the process can have done so.
        waker: u32,
        /// Site of that thread's call.
        waker_site: SiteIndex,
        /// Path of that call.
        waker_path: PathIndex,
        /// When it did so.
        woken: u64,
    },
    /// A hold of a lock in the waits of others, as the analysis of the whole run has found.
    KnownHold {
        /// The lock.
        object: ObjectIndex,
        /// Id of the holder.
        holder: u32,
        /// The place of its acquisition.
        site: SiteIndex,
        /// The path of its release.
        path: PathIndex,
        /// Begin.
        start: u64,
        /// End.
        end: u64,
    },
    /// Lives, as the analysis of the whole run has found.
    KnownThread {
        /// The end of its life there.
        end: u64,
        /// Whether it has work there besides sleep.
        works: bool,
    },
    /// Announces its names in the events of other threads.
    Starts {
        /// Its handle (`pthread_t`).
        handle: u64,
        /// Its thread pointer.
        pointer: u64,
        /// Its routine.
        site: SiteIndex,
    },
}

/// The waker of a known wait that no thread of the process can have ended.
pub const KNOWN_OTHER_PROCESS: u32 = u32::MAX;
