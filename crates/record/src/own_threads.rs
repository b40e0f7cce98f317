//! Threads that a recorder starts for itself are none of the program's: who intercepts the program's
//! `pthread_create` asks here and leaves them alone, and the program's signals are not delivered to them.

use std::cell::Cell;
use std::os::unix::thread::JoinHandleExt;
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

std::thread_local! {
    static STARTING: Cell<bool> = const { Cell::new(false) };
}

/// Calls `spawn`, which starts a thread of the recorder's own.
pub fn start<T>(spawn: impl FnOnce() -> T) -> T {
    let before = STARTING.replace(true);
    let blocked = BlockedSignals::new();
    let started = spawn();
    drop(blocked);
    STARTING.set(before);
    started
}

/// Waits until a thread of the recorder's own is gone, but no longer than `limit`: where the program's
/// threads leave it no CPU it may never come to its end.
///
/// The last thread of a process gives its memory back, and one that wakes up for nothing else does so
/// slowly: 3 ms more for 50 MiB.
pub fn wait_for_end(thread: JoinHandle<()>, limit: Duration) {
    let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default() + limit;
    let until = libc::timespec {
        tv_sec: until.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(until.subsec_nanos()),
    };
    let thread = thread.into_pthread_t();
    // SAFETY: the thread is joinable, and nobody else joins or detaches it.
    unsafe {
        if libc::pthread_timedjoin_np(thread, std::ptr::null_mut(), &until) != 0 {
            libc::pthread_detach(thread);
        }
    }
}

/// While it lives, the calling thread takes no signal; a thread that it starts never will.
struct BlockedSignals(libc::sigset_t);

impl BlockedSignals {
    fn new() -> Self {
        // SAFETY: the sets are plain memory of the right type.
        unsafe {
            let (mut all, mut before) = (std::mem::zeroed(), std::mem::zeroed());
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
            BlockedSignals(before)
        }
    }
}

impl Drop for BlockedSignals {
    fn drop(&mut self) {
        // SAFETY: the set is the one that was replaced.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, std::ptr::null_mut()) };
    }
}

/// Whether the calling thread is in [`start`].
pub fn are_being_started() -> bool {
    STARTING.try_with(Cell::get).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering::*};
    use std::thread;
    use std::time::Instant;

    #[test]
    fn a_thread_that_ends_is_waited_for_and_one_that_does_not_is_left() {
        static HAS_ENDED: AtomicBool = AtomicBool::new(false);
        let ends = thread::spawn(|| {
            thread::sleep(Duration::from_millis(20));
            HAS_ENDED.store(true, Release);
        });
        wait_for_end(ends, Duration::from_secs(60));
        assert!(HAS_ENDED.load(Acquire));

        let start = Instant::now();
        wait_for_end(thread::spawn(|| thread::sleep(Duration::from_secs(60))), Duration::from_millis(5));
        assert!(start.elapsed() < Duration::from_secs(30));
    }
}
