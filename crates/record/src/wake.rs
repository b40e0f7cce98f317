//! Sleep and wake-up of one thread of a recorder's own, by a word that it waits for.
//!
//! Neither side takes a lock or allocates. A wake-up is kept until the thread's next sleep, so one that comes just before it is not
//! lost. A sleep is one system call: its context switches are those of the sleep alone (`os_time::stops`).

use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

use crate::fork_gate;

/// The word of one sleeping thread.
#[derive(Default)]
pub struct Wake(AtomicU32);

impl Wake {
    /// Wakes the thread, or ends its next sleep at once. Async-signal-safe.
    pub fn wake(&self) {
        self.0.store(1, Release);
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the kernel takes only the address of the word.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, 1) };
    }

    /// Sleeps until it is woken, for `limit` at most; it may return earlier.
    pub fn sleep(&self, limit: Duration) {
        let mut until = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: the place is valid for writing.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut until) };
        let ns = until.tv_nsec + libc::c_long::from(limit.subsec_nanos().cast_signed());
        let seconds = libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX);
        until.tv_sec = until.tv_sec.saturating_add(seconds).saturating_add(ns / 1_000_000_000);
        until.tv_nsec = ns % 1_000_000_000;
        // With an absolute time, as the standard library's threads wait.
        let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
        let (word, none) = (self.0.as_ptr(), std::ptr::null::<u32>());
        fork_gate::asleep(|| {
            // SAFETY: the word and the time are only read.
            unsafe { libc::syscall(libc::SYS_futex, word, operation, 0, &raw const until, none, u32::MAX) };
        });
        self.0.swap(0, AcqRel);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(600);

    #[test]
    fn a_wake_up_before_the_sleep_and_one_in_it_end_it() {
        let (wake, began) = (Wake::default(), Instant::now());
        wake.wake();
        wake.sleep(LONG);
        std::thread::scope(|scope| {
            let sleeper = scope.spawn(|| wake.sleep(LONG));
            wake.wake();
            sleeper.join().unwrap();
        });
        assert!(began.elapsed() < LONG);
        // Each wake-up ends one sleep.
        let began = Instant::now();
        wake.sleep(Duration::from_millis(5));
        assert!(began.elapsed() >= Duration::from_millis(5));
    }
}
