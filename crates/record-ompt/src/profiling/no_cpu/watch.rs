//! The state of one thread's readings.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicBool, Ordering::*};

use taskscope_record::thread_sums::{OwnSums, ThreadSums};

use crate::profiling::states::{STATES, State, Sums};

/// Last reading of a thread. An unwatched thread reads nothing.
#[derive(Default)]
pub struct Watch {
    pub(super) os_tid: i32,
    /// Set during a reading, by the thread's handler, another thread's handler, or the writer of a profile.
    busy: AtomicBool,
    last: UnsafeCell<Last>,
}

/// The previous reading, and the time that the thread had spent by then.
pub(super) struct Last {
    pub(super) stat: ThreadSums,
    pub(super) sums: Sums,
    pub(super) is_known: bool,
    /// Readings by the thread itself.
    pub(super) own: OwnSums,
    /// Time in a state that counts as a delay not finished at another thread's reading.
    pub(super) pending: (u64, Option<State>),
    /// Time that was blocked in the kernel by then, since the reading before.
    pub(super) blocked: Sums,
    /// Time in useful states since the thread's previous sample in which the process was stopped.
    pub(super) stopped: u64,
    /// The previous reading of a thread that is not a worker, and its age by then, nanoseconds.
    pub(super) other_sums: (ThreadSums, u64),
}

impl Default for Last {
    fn default() -> Last {
        Last {
            stat: ThreadSums::default(),
            sums: [0; STATES],
            is_known: false,
            own: OwnSums::default(),
            pending: (0, None),
            blocked: [0; STATES],
            stopped: 0,
            other_sums: Default::default(),
        }
    }
}

// SAFETY: only the thread that has set `busy` accesses `last`.
unsafe impl Sync for Watch {}

impl Watch {
    /// Begins to watch the calling thread.
    pub fn begin() -> Watch {
        let os_tid = taskscope_record::thread::os_tid();
        let stat = ThreadSums::read(os_tid);
        let is_known = stat.is_some();
        let stat = stat.unwrap_or_default();
        let last = Last { stat, is_known, other_sums: (stat, 0), ..Last::default() };
        Watch { os_tid, busy: AtomicBool::new(false), last: UnsafeCell::new(last) }
    }

    /// Passes the reading before to `read`; `None` while another thread is reading.
    pub(super) fn with_last<R>(&self, read: impl FnOnce(&mut Last) -> Option<R>) -> Option<R> {
        if self.busy.swap(true, Acquire) {
            return None;
        }
        // SAFETY: this thread has set `busy`.
        let result = read(unsafe { &mut *self.last.get() });
        self.busy.store(false, Release);
        result
    }
}
