//! A few threads at a time make or finish their files: thousands that start or end together do not need as many descriptors, which the
//! process may not be allowed to have.
//!
//! The end of the process waits for the threads inside, which would leave files behind that no reader understands. Both sides need
//! one total order: a thread takes its turn, then looks whether the recording has ended; the end is stored, then the threads inside
//! are counted. A thread that is still in the queue then makes no files.

use crate::nap::nap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

/// Each holds two descriptors at most.
const AT_ONCE: u32 = 32;
/// Maximum number of pauses; a thread that is still in the queue then goes in beside the others.
static PAUSE: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 100_000_000 };
const MAX_PAUSES: u32 = 100;
/// Maximum wait of the end for the threads inside.
const MAX_END_WAIT: Duration = Duration::from_millis(100);

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
}

/// Waits for a turn.
pub(crate) fn wait() -> Turn<'static> {
    TURNS.wait()
}

/// Waits until no thread is inside, for a limited time. Called after the end of the recording has been stored.
pub(crate) fn wait_for_threads_inside() {
    TURNS.wait_for_threads_inside(MAX_END_WAIT);
}

impl Turns {
    const fn new() -> Turns {
        Turns { inside: AtomicU64::new(0), waiting: AtomicU32::new(0) }
    }

    fn wait(&self) -> Turn<'_> {
        let process = std::process::id();
        let mut pauses = 0;
        loop {
            let seen = self.inside.load(SeqCst);
            let others = threads_of(seen, process);
            let with_me = u64::from(process) << 32 | u64::from(others + 1);
            if others < AT_ONCE || pauses == MAX_PAUSES {
                if self.inside.compare_exchange_weak(seen, with_me, SeqCst, SeqCst).is_ok() {
                    return Turn { turns: self, process };
                }
            } else {
                self.waiting.fetch_add(1, SeqCst);
                let woken = self.futex(libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG, others);
                self.waiting.fetch_sub(1, SeqCst);
                pauses += u32::from(!woken);
            }
        }
    }

    fn wait_for_threads_inside(&self, limit: Duration) {
        let (process, start) = (std::process::id(), Instant::now());
        while threads_of(self.inside.load(SeqCst), process) > 0 && start.elapsed() < limit {
            nap();
        }
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

/// Threads inside, of this process.
fn threads_of(inside: u64, process: u32) -> u32 {
    if (inside >> 32) as u32 == process { inside as u32 } else { 0 }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.process == std::process::id() {
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
        turns.wait_for_threads_inside(Duration::MAX);
        let turn = turns.wait();
        assert_eq!(turns.inside.load(SeqCst) as u32, 1);
        drop(turn);
        assert_eq!(turns.inside.load(SeqCst) as u32, 0);
    }

    /// A thread is inside, and another one in the queue, when the recording ends.
    #[test]
    fn the_end_waits_for_threads_inside_and_those_in_the_queue_see_it() {
        let (turns, has_ended, files) = (Turns::new(), AtomicU32::new(0), AtomicU32::new(0));
        // All turns but one are taken.
        turns.inside.store(u64::from(std::process::id()) << 32 | u64::from(AT_ONCE - 1), SeqCst);
        let is_inside = Barrier::new(2);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _turn = turns.wait();
                files.store(1, SeqCst);
                is_inside.wait();
                while has_ended.load(SeqCst) == 0 {
                    std::thread::yield_now();
                }
                // Long enough to be missed by an end that does not wait.
                std::thread::sleep(Duration::from_millis(20));
                files.store(0, SeqCst);
            });
            is_inside.wait();
            let late = scope.spawn(|| {
                let _turn = turns.wait();
                has_ended.load(SeqCst)
            });
            while turns.waiting.load(SeqCst) == 0 {
                std::thread::yield_now();
            }
            has_ended.store(1, SeqCst);
            turns.inside.fetch_sub(u64::from(AT_ONCE - 1), SeqCst);
            turns.wait_for_threads_inside(Duration::MAX);
            assert_eq!(files.load(SeqCst), 0);
            assert_eq!(late.join().unwrap(), 1, "it makes no files");
        });
    }

    #[test]
    fn the_end_does_not_wait_for_ever() {
        let turns = Turns::new();
        let _turn = turns.wait();
        turns.wait_for_threads_inside(Duration::from_millis(2));
    }
}
