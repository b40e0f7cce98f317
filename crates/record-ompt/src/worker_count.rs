//! How many threads run parallel regions.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Threads that run parallel regions, now and at most.
static WORKERS: AtomicU64 = AtomicU64::new(0);
static MAX_WORKERS: AtomicU64 = AtomicU64::new(0);

/// A profile begins, before its first worker: what a forked child finds here is its parent's.
pub fn begin() {
    WORKERS.store(0, Relaxed);
    MAX_WORKERS.store(0, Relaxed);
}

/// A worker begins or ends.
pub fn count(begins: bool) {
    if begins {
        MAX_WORKERS.fetch_max(WORKERS.fetch_add(1, Relaxed) + 1, Relaxed);
    } else {
        WORKERS.fetch_sub(1, Relaxed);
    }
}

/// The largest number of workers at a time.
pub fn most() -> u64 {
    MAX_WORKERS.load(Relaxed)
}
