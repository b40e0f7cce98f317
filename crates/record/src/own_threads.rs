//! Threads that a recorder starts for itself are none of the program's: who intercepts the program's
//! `pthread_create` asks here and leaves them alone.

use std::cell::Cell;

std::thread_local! {
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `spawn`, which starts a thread of the recorder's own.
pub fn start<T>(spawn: impl FnOnce() -> T) -> T {
    let before = STARTING.replace(true);
    let started = spawn();
    STARTING.set(before);
    started
}

/// Whether the calling thread is in [`start`].
pub fn are_being_started() -> bool {
    STARTING.try_with(Cell::get).unwrap_or(false)
}
