//! A few threads at a time make or finish their files: thousands that start or end together do not need as many descriptors, which the
//! process may not be allowed to have.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};

/// Each holds two descriptors at most.
const AT_ONCE: u32 = 32;
/// Maximum number of pauses; a thread that is still in the queue then continues without a turn.
static PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const MAX_PAUSES: u32 = 100;

/// The turns of all threads of the process.
static TURNS: Turns = Turns::new();

struct Turns {
    /// The process, and in the low half the number of its threads inside; a forked child's inherited value is
    /// another process's.
    inside: AtomicU64,
    /// Threads that may have to be woken.
    waiting: AtomicU32,
}

/// A thread's turn, until it is dropped.
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    process: u32,
    counted: bool,
}

/// Waits for a turn.
pub(crate) fn wait() -> Turn<'static> {
    TURNS.wait()
}

impl Turns {
    const fn new() -> Turns {
        Turns { inside: AtomicU64::new(0), waiting: AtomicU32::new(0) }
    }

    fn wait(&self) -> Turn<'_> {
        let process = std::process::id();
        let turn = |counted| Turn { turns: self, process, counted };
        let mut pauses = 0;
        while pauses < MAX_PAUSES {
            let seen = self.inside.load(SeqCst);
            let others = if (seen >> 32) as u32 == process { seen as u32 } else { 0 };
            let with_me = u64::from(process) << 32 | u64::from(others + 1);
            if others < AT_ONCE {
                if self.inside.compare_exchange_weak(seen, with_me, SeqCst, SeqCst).is_ok() {
                    return turn(true);
                }
            } else {
                self.waiting.fetch_add(1, SeqCst);
                let woken = self.futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, AT_ONCE);
                self.waiting.fetch_sub(1, SeqCst);
                pauses += u32::from(!woken);
            }
        }
        turn(false)
    }

    /// Waits as long as the number of threads inside is `value`, or wakes as many. Returns whether the time was
    /// not up.
    fn futex(&self, operation: i32, value: u32) -> bool {
        let low_half = usize::from(cfg!(target_endian = "big"));
        // SAFETY: the word is within the value; the time is only read.
        unsafe {
            let word = self.inside.as_ptr().cast::<u32>().add(low_half);
            libc::syscall(libc::SYS_futex, word, operation, value, &raw const PAUSE) == 0
                || *libc::__errno_location() != libc::ETIMEDOUT
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.counted && self.process == std::process::id() {
            self.turns.inside.fetch_sub(1, SeqCst);
            if self.turns.waiting.load(SeqCst) > 0 {
                self.turns.futex(libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG, 1);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    /// As many as may be inside meet there: more than one, and none besides them until one has left.
    #[test]
    fn a_few_at_a_time_and_everybody_at_last() {
        let (turns, most) = (Turns::new(), AtomicU32::new(0));
        let all_inside = Barrier::new(AT_ONCE as usize);
        std::thread::scope(|scope| {
            for _ in 0..3 * AT_ONCE {
                scope.spawn(|| {
                    let turn = turns.wait();
                    most.fetch_max(turns.inside.load(SeqCst) as u32, SeqCst);
                    all_inside.wait();
                    drop(turn);
                });
            }
        });
        assert_eq!(most.into_inner(), AT_ONCE);
        assert_eq!(turns.inside.load(SeqCst) as u32, 0);
    }

    #[test]
    fn threads_inside_in_the_parent_do_not_count_in_its_child() {
        let turns = Turns::new();
        turns.inside.store(u64::from(u32::MAX) << 32 | u64::from(AT_ONCE), SeqCst);
        let turn = turns.wait();
        assert!(turn.counted);
        assert_eq!(turns.inside.load(SeqCst) as u32, 1);
        drop(turn);
        assert_eq!(turns.inside.load(SeqCst) as u32, 0);
    }
}
