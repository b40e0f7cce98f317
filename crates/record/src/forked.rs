//! The fork that made this process: a child may compute for long before its first event, and its time begins at the fork.
//!
//! The child notes the fork itself, so that the facts of a parent are never taken for its own. Only its first thread has them, and
//! only until it is attached.

use core::sync::atomic::{AtomicI32, AtomicU64, Ordering::*};

use crate::os_thread::os_tid;
use crate::thread_sums::cpu_time;

/// The child that has noted its fork; 0 without one, or if its thread was attached.
static CHILD: AtomicI32 = AtomicI32::new(0);
static FORKED_AT: AtomicU64 = AtomicU64::new(0);
/// Its blocked signals then.
static MASK: AtomicU64 = AtomicU64::new(0);

/// Notes the fork that began at `at`, in the child: the kernel's sums of a thread begin before it is on a CPU for the first time.
/// Async-signal-safe.
pub fn note(at: u64) {
    FORKED_AT.store(at, Relaxed);
    MASK.store(blocked_signals(), Relaxed);
    CHILD.store(own_pid(), Release);
}

/// Takes the time of the fork, for the child's first thread, which is attached now.
pub(crate) fn take() -> Option<u64> {
    let pid = own_pid();
    if os_tid() != pid || CHILD.compare_exchange(pid, 0, AcqRel, Relaxed).is_err() {
        return None;
    }
    Some(FORKED_AT.load(Relaxed)).filter(|at| *at != 0)
}

/// The CPU time that the child's first thread, the calling one, has used without being attached; `None` if it was. Async-signal-safe.
pub fn unrecorded_ns() -> Option<u64> {
    let pid = own_pid();
    if CHILD.load(Acquire) != pid || os_tid() != pid {
        return None;
    }
    cpu_time(pid)
}

/// Whether the child blocks the same signals as at its fork, or none, as after a parent that blocks some around `fork`. In a handler,
/// whose own signal is blocked, it does neither. Async-signal-safe.
pub fn has_mask_of_fork() -> bool {
    let now = blocked_signals();
    now == 0 || now == MASK.load(Relaxed)
}

fn own_pid() -> i32 {
    // SAFETY: no preconditions.
    unsafe { libc::getpid() }
}

/// The blocked signals of the calling thread, one bit each.
fn blocked_signals() -> u64 {
    let mut mask = 0_u64;
    // SAFETY: the kernel stores a mask of this length. By number, the call is not intercepted.
    unsafe {
        let none = core::ptr::null::<u64>();
        libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, none, &raw mut mask, size_of::<u64>());
    }
    mask
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_noted_no_fork_has_none() {
        CHILD.store(own_pid() + 1, Release);
        assert_eq!((take(), unrecorded_ns()), (None, None));
    }

    #[test]
    fn blocked_signals_are_those_of_the_thread() {
        let before = blocked_signals();
        // SAFETY: a set of this thread's own.
        unsafe {
            let mut set = core::mem::zeroed();
            libc::sigaddset(&mut set, libc::SIGUSR2);
            libc::pthread_sigmask(libc::SIG_BLOCK, &set, core::ptr::null_mut());
        }
        assert_eq!(blocked_signals(), before | 1 << (libc::SIGUSR2 - 1));
    }

    #[test]
    fn a_handler_has_another_mask_than_its_fork() {
        static IN_HANDLER: AtomicI32 = AtomicI32::new(-1);
        extern "C" fn handler(_: libc::c_int) {
            IN_HANDLER.store(has_mask_of_fork().into(), Relaxed);
        }
        MASK.store(blocked_signals(), Relaxed);
        // SAFETY: the handler makes a system call and stores its result.
        unsafe {
            libc::signal(libc::SIGUSR1, handler as *const () as libc::sighandler_t);
            libc::raise(libc::SIGUSR1);
        }
        assert_eq!((IN_HANDLER.load(Relaxed), has_mask_of_fork()), (0, true));
        // The parent had blocked others around its fork.
        MASK.store(blocked_signals() | 1 << (libc::SIGCHLD - 1), Relaxed);
        let blocks_none = blocked_signals() == 0;
        // SAFETY: as above.
        unsafe { libc::raise(libc::SIGUSR1) };
        assert_eq!((IN_HANDLER.load(Relaxed), has_mask_of_fork()), (0, blocks_none));
    }
}
