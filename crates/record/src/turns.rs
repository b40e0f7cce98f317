//! A few threads at a time make or finish their files: thousands that start or end together do not need as many descriptors, which the
//! process may not be allowed to have.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Each holds two descriptors at most.
const AT_ONCE: u32 = 32;
/// Maximum number of pauses; a thread that is still in the queue then continues without a turn.
static PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const MAX_PAUSES: u32 = 100;

/// The process, and in the low half the number of its threads inside; a forked child's inherited value is
/// another process's.
static AT_IT: AtomicU64 = AtomicU64::new(0);
/// Threads that may have to be woken.
static WAITING: AtomicU32 = AtomicU32::new(0);

/// A thread's turn, until it is dropped.
pub(crate) struct Turn {
    process: u32,
    counted: bool,
}

/// Waits for a turn.
pub(crate) fn wait() -> Turn {
    let process = std::process::id();
    let mut pauses = 0;
    while pauses < MAX_PAUSES {
        let seen = AT_IT.load(SeqCst);
        let others = if (seen >> 32) as u32 == process { seen as u32 } else { 0 };
        let with_me = u64::from(process) << 32 | u64::from(others + 1);
        if others < AT_ONCE {
            if AT_IT.compare_exchange_weak(seen, with_me, SeqCst, SeqCst).is_ok() {
                return Turn { process, counted: true };
            }
        } else {
            WAITING.fetch_add(1, SeqCst);
            let woken = futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, AT_ONCE);
            WAITING.fetch_sub(1, SeqCst);
            pauses += u32::from(!woken);
        }
    }
    Turn { process, counted: false }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.counted && self.process == std::process::id() {
            AT_IT.fetch_sub(1, SeqCst);
            if WAITING.load(SeqCst) > 0 {
                futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
            }
        }
    }
}

/// Waits as long as [`AT_IT`]'s low half is `value`, or wakes as many. Returns whether the time was not up.
fn futex(operation: i32, value: u32) -> bool {
    let low_half = usize::from(cfg!(target_endian = "big"));
    // SAFETY: the word is within a static; the time is only read.
    unsafe {
        let word = AT_IT.as_ptr().cast::<u32>().add(low_half);
        libc::syscall(libc::SYS_futex, word, operation, value, &raw const PAUSE) == 0
            || *libc::__errno_location() != libc::ETIMEDOUT
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

    #[test]
    fn a_few_at_a_time_and_everybody_at_last() {
        static NOW: AtomicU32 = AtomicU32::new(0);
        static MOST: AtomicU32 = AtomicU32::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 * AT_ONCE {
                scope.spawn(|| {
                    let turn = wait();
                    assert!(turn.counted);
                    MOST.fetch_max(NOW.fetch_add(1, Relaxed) + 1, Relaxed);
                    std::thread::sleep(std::time::Duration::from_millis(2));
                    NOW.fetch_sub(1, Relaxed);
                });
            }
        });
        assert!((1..=AT_ONCE).contains(&MOST.load(Relaxed)));
        // Threads inside in the parent do not count in its child.
        AT_IT.store(u64::from(u32::MAX) << 32 | u64::from(AT_ONCE), SeqCst);
        assert!(wait().counted);
        assert_eq!(AT_IT.load(SeqCst) as u32, 0);
    }
}
