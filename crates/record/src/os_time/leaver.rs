//! A thread that ends the process at once (`_exit`), and the housekeeping thread that stores the last times for it.
//!
//! The thread may be in a signal handler, where nothing may be allocated or locked: it leaves a request and waits. A child of `fork`
//! has no housekeeping thread before it records; one of `vfork` is its parent, which does not end.

use crate::own_threads::nap;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::{Duration, Instant};

/// Maximum wait of the thread.
const MAX_WAIT: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Leaver {
    has_housekeeping: AtomicBool,
    is_waiting: AtomicBool,
}

/// The presence of the housekeeping thread, which ends when this is dropped.
pub(super) struct Present<'a>(&'a Leaver);

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.0.has_housekeeping.store(false, Release);
    }
}

impl Leaver {
    /// The housekeeping thread is to be started: from now on a leaver waits for it.
    pub(super) fn begin(&self) {
        self.has_housekeeping.store(true, Release);
    }

    /// The housekeeping thread, until its end.
    pub(super) fn present(&self) -> Present<'_> {
        Present(self)
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Acquire)
    }

    /// Waits until the housekeeping thread, which `wake` wakes, has ended; not at all without one. Async-signal-safe.
    pub(super) fn wait(&self, wake: impl Fn()) {
        self.is_waiting.store(true, Release);
        let start = Instant::now();
        while self.has_housekeeping.load(Acquire) && start.elapsed() < MAX_WAIT {
            // It may be about to sleep.
            wake();
            nap();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaver_waits_for_the_end_of_the_housekeeping_thread_alone() {
        let leaver = Leaver::default();
        leaver.wait(|| unreachable!("there is none"));
        let leaver = Leaver::default();
        std::thread::scope(|scope| {
            leaver.begin();
            let housekeeping = scope.spawn(|| {
                let _present = leaver.present();
                while !leaver.is_waiting() {
                    std::thread::yield_now();
                }
            });
            leaver.wait(|| ());
            housekeeping.join().unwrap();
        });
        assert!(!leaver.has_housekeeping.load(Acquire));
    }
}
