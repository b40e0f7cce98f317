//! Sleep and wake-up of one thread of a recorder's own, by a word that it waits for.
//!
//! Neither side takes a lock or allocates. A wake-up is kept until the thread's next sleep, so one that comes just before it is not
//! lost. A sleep is one system call: its context switches are those of the sleep alone (`os_time::stops`).

use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;

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
        let limit = libc::timespec {
            tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: libc::c_long::from(limit.subsec_nanos().cast_signed()),
        };
        let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: the word and the time are only read.
        unsafe { libc::syscall(libc::SYS_futex, self.0.as_ptr(), operation, 0, &raw const limit) };
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
