//! While the program forks, threads of the recorder's own sleep.
//!
//! A forked child has the locks as they were, and only the thread that forked. Allocators that do not take their lock around a fork
//! (AddressSanitizer's of gcc 12, some replacements of `malloc`) leave it locked for ever in the child if another thread allocates
//! meanwhile. The program knows whether its own threads do; the recorder's must not be one more.
//!
//! An own thread counts as awake but for its sleeps ([`asleep`], [`crate::wake::Wake`]). A fork closes the gate and waits until no own thread
//! is awake, some milliseconds at most, as one may be in a long call of a driver. Who wakes at a closed gate waits in front of it.

use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::SeqCst};

use crate::nap::nap_for;

/// Own threads that are awake.
static AWAKE: AtomicI32 = AtomicI32::new(0);
/// Forks in progress.
static FORKS: AtomicU32 = AtomicU32::new(0);

/// Longest wait of a fork, in naps.
const LIMIT: u32 = 100;
/// Longest wait at a closed gate, in turns given to other threads.
const GATE_LIMIT: u32 = 1_000_000;
const NAP_NS: libc::c_long = 50_000;

/// An own thread begins or wakes. It may wait for a fork to end, but never blocks: what blocks it beside its sleep would look like a
/// stop of the process (`os_time::stops`).
pub(crate) fn enter() {
    for _ in 0..GATE_LIMIT {
        AWAKE.fetch_add(1, SeqCst);
        if FORKS.load(SeqCst) == 0 {
            return;
        }
        AWAKE.fetch_sub(1, SeqCst);
        std::thread::yield_now();
    }
    AWAKE.fetch_add(1, SeqCst);
}

/// An own thread ends or is about to sleep.
pub(crate) fn leave() {
    AWAKE.fetch_sub(1, SeqCst);
}

/// Sleeps, by `sleep`, in a thread of the recorder's own; it may return after a fork has ended.
pub fn asleep(sleep: impl FnOnce()) {
    leave();
    sleep();
    enter();
}

/// Calls `fork`, which returns 0 in the child, while own threads sleep. Async-signal-safe, but for what `fork` does.
pub fn closed(fork: impl FnOnce() -> libc::pid_t) -> libc::pid_t {
    FORKS.fetch_add(1, SeqCst);
    for _ in 0..LIMIT {
        if AWAKE.load(SeqCst) <= 0 {
            break;
        }
        nap_for(NAP_NS);
    }
    let made = fork();
    if made == 0 {
        // The child has none of the parent's other threads.
        AWAKE.store(0, SeqCst);
        FORKS.store(0, SeqCst);
    } else {
        FORKS.fetch_sub(1, SeqCst);
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wake::Wake;
    use std::sync::Arc;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn an_own_thread_that_wakes_during_a_fork_goes_on_after_it() {
        let (wake, (report, reported)) = (Arc::new(Wake::default()), mpsc::channel());
        let own = Arc::clone(&wake);
        let started = crate::own_threads::start(c"taskscope-test", 0, move || {
            report.send(()).unwrap();
            own.sleep(Duration::from_secs(600));
            report.send(()).unwrap();
        });
        reported.recv().unwrap();
        // No process is made: the parent's side of a fork.
        let made = closed(|| {
            wake.wake();
            assert!(reported.recv_timeout(Duration::from_millis(20)).is_err(), "it went on during the fork");
            1
        });
        assert_eq!(made, 1);
        reported.recv().unwrap();
        started.unwrap().join();
    }
}
