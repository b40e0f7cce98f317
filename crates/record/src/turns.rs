//! A few threads at a time make or finish their files: thousands that start or end together do not need as many descriptors, which the
//! process may not be allowed to have.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Each holds two descriptors at most.
const AT_ONCE: u32 = 32;
/// Nobody waits longer than these pauses; who is still in the queue then goes on without a turn.
const PAUSE_US: u32 = 100;
const MOST_PAUSES: u32 = 100_000;

/// The process, and how many of its threads are at it; what a fork takes over belongs to another process.
static AT_IT: AtomicU64 = AtomicU64::new(0);

/// A thread's turn, until it is dropped.
pub(crate) struct Turn {
    process: u32,
    counted: bool,
}

/// Waits for a turn.
pub(crate) fn wait() -> Turn {
    let process = std::process::id();
    for _ in 0..MOST_PAUSES {
        let seen = AT_IT.load(Relaxed);
        let others = if (seen >> 32) as u32 == process { seen as u32 } else { 0 };
        let with_me = u64::from(process) << 32 | u64::from(others + 1);
        if others < AT_ONCE {
            if AT_IT.compare_exchange_weak(seen, with_me, Relaxed, Relaxed).is_ok() {
                return Turn { process, counted: true };
            }
        } else {
            // SAFETY: no preconditions.
            unsafe { libc::usleep(PAUSE_US) };
        }
    }
    Turn { process, counted: false }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if self.counted && self.process == std::process::id() {
            AT_IT.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

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
        // What a parent's threads were at does not count in its child.
        AT_IT.store(u64::from(u32::MAX) << 32 | u64::from(AT_ONCE), Relaxed);
        assert!(wait().counted);
        assert_eq!(AT_IT.load(Relaxed) as u32, 0);
    }
}
