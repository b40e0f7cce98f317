//! Separate threads for long computations, so that the timeline's requests per frame do not queue behind
//! them.

use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::OnceLock;

/// Runs the work on its own threads, including its parallel parts.
pub(super) fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static THREADS: OnceLock<Option<ThreadPool>> = OnceLock::new();
    let pool = ThreadPoolBuilder::new().thread_name(|number| format!("apart-{number}"));
    match THREADS.get_or_init(|| pool.build().ok()) {
        Some(threads) => threads.install(work),
        // Thread creation failed: run on the calling thread.
        None => work(),
    }
}
