//! Threads that a recorder starts for itself are none of the program's: who intercepts the program's
//! `pthread_create` asks here and leaves them alone, and the program's signals are not delivered to them.

use std::cell::Cell;

std::thread_local! {
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `spawn`, which starts a thread of the recorder's own.
pub fn start<T>(spawn: impl FnOnce() -> T) -> T {
    let before = STARTING.replace(true);
    let blocked = BlockedSignals::new();
    let started = spawn();
    drop(blocked);
    STARTING.set(before);
    started
}

/// While it lives, the calling thread takes no signal; a thread that it starts never will.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn new() -> Self {
        // SAFETY: the sets are plain memory of the right type.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            BlockedSignals(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was replaced.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// Whether the calling thread is in [`start`].
pub fn are_being_started() -> bool {
    STARTING.try_with(Cell::get).unwrap_or(false)
}
