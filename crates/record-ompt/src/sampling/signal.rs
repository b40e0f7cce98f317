//! The signal that the timers send, and the handler for it.
//!
//! `SIGURG` where nobody handles it: its default is to be ignored, so a program that resets handlers,
//! or is replaced by `exec` while one is pending, does not die of it. Else a real-time signal
//! that nobody handles.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, Ordering::*};

/// A handler as `SA_SIGINFO` has it.
pub type Handler = unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

static NUMBER: AtomicI32 = AtomicI32::new(0);

/// The signal; 0 before [`install`].
#[inline(always)]
pub fn number() -> c_int {
    NUMBER.load(Relaxed)
}

/// Chooses a signal and installs the handler. Returns the signal.
pub fn install(handler: Handler) -> Option<c_int> {
    let real_time = (libc::SIGRTMIN() + 1..libc::SIGRTMAX()).rev();
    let signal = core::iter::once(libc::SIGURG).chain(real_time).find(|signal| is_free(*signal))?;
    // SAFETY: all zero is a valid action; the handler lives as long as the process, as the library is
    // never unloaded.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        libc::sigfillset(&mut action.sa_mask);
        if libc::sigaction(signal, &action, core::ptr::null_mut()) != 0 {
            return None;
        }
    }
    NUMBER.store(signal, Release);
    Some(signal)
}

fn is_free(signal: c_int) -> bool {
    // SAFETY: only asks for the action.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, core::ptr::null(), &mut action) == 0
            && (action.sa_sigaction == libc::SIG_DFL
                || action.sa_sigaction == libc::SIG_IGN && signal == libc::SIGURG)
    }
}

/// Whether a signal is one that our timers sent.
///
/// # Safety
/// `info` is what the kernel passed to the handler.
pub unsafe fn is_ours(info: *const libc::siginfo_t) -> bool {
    // SAFETY: by contract; a timer's signal carries the value that the timer was made with.
    unsafe { (*info).si_code == libc::SI_TIMER && (*info).si_value().sival_ptr == value() }
}

/// What our timers send along.
pub fn value() -> *mut c_void {
    NUMBER.as_ptr().cast()
}
