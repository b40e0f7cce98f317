//! The watched process: this one, unless a recorder outside of it has named another.

use core::sync::atomic::{AtomicI32, Ordering::Relaxed};

/// Its id; 0 for this process.
static OTHER: AtomicI32 = AtomicI32::new(0);

/// Watches another process from now on, instead of this one.
pub(crate) fn watch_other(pid: i32) {
    OTHER.store(pid, Relaxed);
}

/// The id of the other process; `None` if this one is watched. Async-signal-safe.
pub(crate) fn other() -> Option<i32> {
    Some(OTHER.load(Relaxed)).filter(|pid| *pid > 0)
}

/// Its directory below `/proc`.
pub(crate) fn directory() -> String {
    other().map_or_else(|| "/proc/self".to_owned(), |pid| format!("/proc/{pid}"))
}
