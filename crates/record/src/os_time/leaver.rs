//! A thread that ends the process at once (`_exit`), and the housekeeping thread that stores the last times for it.
//!
//! The thread may be in a signal handler, where nothing may be allocated or locked: it leaves a request and waits. A child of `fork`
//! has no housekeeping thread before it records; one of `vfork` is its parent, which does not end.

use crate::nap::nap;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::time::{Duration, Instant};

/// Maximum wait of the thread, and while the housekeeping thread opens its sources, in which the kernel may keep it for long.
const MAX_WAIT: Duration = Duration::from_secs(1);
const MAX_OPENING: Duration = Duration::from_millis(20);

#[derive(Default)]
pub(super) struct Leaver {
    has_housekeeping: AtomicBool,
    is_waiting: AtomicBool,
    is_opening: AtomicBool,
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

    /// Whether the housekeeping thread opens sources from now on.
    pub(super) fn set_opening(&self, is_opening: bool) {
        self.is_opening.store(is_opening, Release);
    }

    pub(super) fn is_waiting(&self) -> bool {
        self.is_waiting.load(Acquire)
    }

    /// Waits until the housekeeping thread, which `wake` wakes, has ended; not at all without one. Async-signal-safe.
    pub(super) fn wait(&self, wake: impl Fn()) {
        self.is_waiting.store(true, Release);
        let (start, mut opens_since) = (Instant::now(), None::<Instant>);
        while self.has_housekeeping.load(Acquire) && start.elapsed() < MAX_WAIT {
            // It may have had no CPU until now.
            let is_opening = self.is_opening.load(Acquire);
            opens_since = is_opening.then(|| opens_since.unwrap_or_else(Instant::now));
            if opens_since.is_some_and(|since| since.elapsed() >= MAX_OPENING) {
                break;
            }
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

    #[test]
    fn a_leaver_does_not_wait_for_the_kernel() {
        let leaver = Leaver::default();
        leaver.begin();
        // As if it were kept in the kernel for ever.
        leaver.set_opening(true);
        leaver.wait(|| ());
        assert!(leaver.has_housekeeping.load(Acquire));
    }
}
