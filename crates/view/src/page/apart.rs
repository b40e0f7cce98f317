//! Threads for what takes long: views of the timeline, which are asked for at each frame, must not queue behind it.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;

/// Does the work, and what it does at once, on threads of their own.
pub(super) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static THREADS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let pool = ThreadPoolBuilder::new().thread_name(|number| format!("apart-{number}"));
    match THREADS.get_or_init(|| pool.build().ok()) {
        Some(threads) => threads.install(work),
        // No more threads are to be had: it is done where it was asked for.
        None => work(),
    }
}
