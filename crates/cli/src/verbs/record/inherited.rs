//! Gives the program the signal mask and the disposition of SIGPIPE that taskscope was started with.
//!
//! The standard library ignores SIGPIPE in us before `main` begins, and sets it to its default and
//! empties the mask in every child. A service manager that ignores SIGPIPE, or a shell that blocks a
//! signal, means the program by that.

#![allow(unsafe_code)]

use nix::libc;
use nix::sys::signal::SigSet;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

static SIGPIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

/// Called by the loader, before the standard library's own preparations.
// SAFETY: the section holds pointers to functions of this type, which are called once, on one thread.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = look;

extern "C" fn look() {
    // SAFETY: an all-zero `sigaction` is a valid value, and a query changes nothing.
    unsafe {
        let mut present: libc::sigaction = std::mem::zeroed();
        let known = libc::sigaction(libc::SIGPIPE, std::ptr::null(), &mut present) == 0;
        SIGPIPE_WAS_IGNORED.store(known && present.sa_sigaction == libc::SIG_IGN, Relaxed);
    }
}

/// Has the child set both as they were, just before it becomes the program.
pub fn pass_on(command: &mut Command) {
    let mask = SigSet::thread_get_mask().unwrap_or_else(|_| SigSet::empty());
    let sigpipe_was_ignored = SIGPIPE_WAS_IGNORED.load(Relaxed);
    if mask == SigSet::empty() && !sigpipe_was_ignored {
        return;
    }
    let restore = move || {
        if sigpipe_was_ignored {
            // SAFETY: ignoring a signal installs no handler. `signal` may be called after a fork.
            unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        }
        mask.thread_set_mask().map_err(Into::into)
    };
    // SAFETY: between fork and exec it only makes the two system calls above.
    unsafe { command.pre_exec(restore) };
}
