//! The entry lock of a thread's recorder: decides which caller may write, without a lock or a full fence on
//! the event path.
//!
//! ```text
//!   thread                          finisher (another thread, at the end of the process)
//!   busy = 1                        state = CLOSED
//!   ── compiler fence ──            ── membarrier: a full fence on every thread ──
//!   state == RECORDING ?            wait until busy == 0, a bounded time
//!   … events …                      write the closing events, cut the files
//!   busy = 0
//! ```
//! Either the thread sees CLOSED, or the finisher sees it busy. The same flag keeps a signal handler from
//! writing into the event that it interrupts. In a forked child the memory is wiped, and has neither state.
//!
//! `tests/entry_lock_model.rs` compiles this file on the primitives of a model checker.

use crate::sync::{AtomicU32, Ordering::*, light_fence};

const RECORDING: u32 = 1;
const CLOSED: u32 = 2;

/// Result of an attempt to enter.
#[derive(Debug, PartialEq, Eq)]
pub enum Entry {
    /// The caller may write, until [`EntryLock::leave`].
    Open,
    /// The caller interrupted code of the same thread that is inside.
    Busy,
    /// Recording is off: closed, or wiped by a fork.
    Closed,
}

/// State word and busy word; the C header knows their order.
#[repr(C)]
pub struct EntryLock {
    state: AtomicU32,
    busy: AtomicU32,
}

impl EntryLock {
    /// An entry lock through which events go.
    pub fn open() -> Self {
        EntryLock { state: AtomicU32::new(RECORDING), busy: AtomicU32::new(0) }
    }

    /// For the recorder's thread only.
    #[inline(always)]
    pub fn enter(&self) -> Entry {
        if self.busy.load(Relaxed) != 0 {
            return Entry::Busy;
        }
        self.busy.store(1, Relaxed);
        light_fence();
        if self.state.load(Relaxed) != RECORDING {
            self.busy.store(0, Relaxed);
            return Entry::Closed;
        }
        Entry::Open
    }

    /// After [`Entry::Open`], or [`EntryLock::hold`].
    #[inline(always)]
    pub fn leave(&self) {
        self.busy.store(0, Release);
    }

    /// Keeps signal handlers out, in any state; on the recorder's thread only.
    pub fn hold(&self) {
        self.busy.store(1, Relaxed);
        light_fence();
    }

    /// Whether events go through it.
    pub fn is_recording(&self) -> bool {
        self.state.load(Relaxed) == RECORDING
    }

    /// Whether a fork has wiped it.
    pub fn is_wiped(&self) -> bool {
        self.state.load(Relaxed) == 0
    }

    /// Shuts it, for the finisher; a fence on every thread has to follow before [`EntryLock::is_free`].
    pub fn close(&self) {
        self.state.store(CLOSED, Relaxed);
    }

    /// Whether no caller is inside, nor will ever be again.
    pub fn is_free(&self) -> bool {
        self.busy.load(Acquire) == 0
    }
}
