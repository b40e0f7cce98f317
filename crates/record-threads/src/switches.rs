//! Whether a thread has waited in a call.
//!
//! A call that took long has waited only if the thread gave up its CPU in it: more often since the last such call than it has
//! waited for other threads. Else it was preempted, or copied much.

use core::cell::Cell;
use core::mem::MaybeUninit;

std::thread_local! {
    /// Number of voluntary switches of the thread at the last call, or the begin of this one.
    static SWITCHES: Cell<i64> = const { Cell::new(0) };
    /// Waits for other threads since then.
    static WAITS: Cell<i64> = const { Cell::new(0) };
}

/// The thread has waited for another one.
pub fn note_wait() {
    WAITS.with(|waits| waits.set(waits.get() + 1));
}

/// The switches of the calling thread so far that were its own doing.
fn switches() -> i64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: `usage` is valid for writing, and all zeros is a valid value.
    unsafe {
        libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
        usage.assume_init().ru_nvcsw
    }
}

/// Counts from now on: a thread starts, or begins a call that is likely to wait.
pub fn begin() {
    SWITCHES.set(switches());
    WAITS.set(0);
}

/// Whether the thread has waited in the call from which it has just returned.
pub fn has_waited() -> bool {
    let switches = switches();
    let before = SWITCHES.replace(switches);
    // A wait for a condition takes its mutex again.
    let others = WAITS.replace(0) * 2;
    switches > before + others
}
