//! The signal that the timers send, and the handler for it.
//!
//! `SIGURG` if the program has no handler for it: it is ignored by default, so a program that resets
//! handlers, or is replaced by `exec` while one is pending, survives it. Else an unhandled real-time signal.
//!
//! A program that installs a handler for it later gets its own signals: the preloaded library stores the
//! program's setting, and forwards every signal that is not from its own timers.

use core::ffi::{c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicU64, AtomicUsize, Ordering::*};

/// A handler as `SA_SIGINFO` has it.
pub type Handler = unsafe extern "C-unwind" fn(c_int, *mut libc::siginfo_t, *mut c_void);

static NUMBER: AtomicI32 = AtomicI32::new(0);
/// The address of our handler; 0 before [`install`].
static OWN_HANDLER: AtomicUsize = AtomicUsize::new(0);

/// Whether a handler is ours.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub fn is_own_handler(address: usize) -> bool {
    address != 0 && address == OWN_HANDLER.load(Relaxed)
}

/// The signal; 0 before [`install`].
#[inline(always)]
pub fn number() -> c_int {
    NUMBER.load(Relaxed)
}

/// Chooses a signal and installs the handler. Returns the signal.
pub fn install(handler: Handler) -> Option<c_int> {
    let real_time = (libc::SIGRTMIN() + 1..libc::SIGRTMAX()).rev();
    let signal = core::iter::once(libc::SIGURG).chain(real_time).find(|signal| is_free(*signal))?;
    OWN_HANDLER.store(handler as usize, Relaxed);
    // SAFETY: all zero is a valid action; the handler lives as long as the process, as the library is
    // never unloaded.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = handler as usize;
        // The program may be on a stack of a few kilobytes; Go's runtime aborts if a handler runs on one of
        // its own.
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
        action.sa_mask = all();
        if libc::sigaction(signal, &action, core::ptr::null_mut()) != 0 {
            return None;
        }
    }
    NUMBER.store(signal, Release);
    Some(signal)
}

/// Releases the signal: restores the action that the program requested, or ignores the signal, as a timer
/// that could not be stopped may still send it.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub fn give_back() {
    // First, as an intercepted function only stores the requests for this number.
    let signal = NUMBER.swap(0, AcqRel);
    if signal == 0 {
        return;
    }
    // SAFETY: all zero is a valid action; the other values are the program's own.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        action.sa_sigaction = HANDLER.load(Acquire);
        action.sa_flags = FLAGS.load(Relaxed);
        (&raw mut action.sa_mask).cast::<u64>().write_unaligned(MASK.load(Relaxed));
        // Other signals would end the process.
        if action.sa_sigaction == libc::SIG_DFL && signal != libc::SIGURG {
            action.sa_sigaction = libc::SIG_IGN;
        }
        libc::sigaction(signal, &action, core::ptr::null_mut());
    }
}

/// Whether a set contains all signals with few exceptions: a program that means to block or read ours names
/// it among a few.
///
/// # Safety
/// The pointer is valid.
pub unsafe fn are_nearly_all(set: *const libc::sigset_t) -> bool {
    // SAFETY: by contract; a set is at least one word of 64 signals.
    unsafe { set.cast::<u64>().read_unaligned().count_ones() > u64::BITS / 2 }
}

/// All signals, the C library's own too, which `sigfillset` leaves out: a thread that is cancelled unwinds from
/// the top of its stack, and must not do so in a handler of ours.
pub fn all() -> libc::sigset_t {
    // SAFETY: a set is words of bits; the kernel has 64 signals, and reads no more.
    unsafe {
        let mut all: libc::sigset_t = MaybeUninit::zeroed().assume_init();
        (&raw mut all).cast::<u64>().write_unaligned(u64::MAX);
        all
    }
}

/// The set of our signal alone.
pub fn ours() -> libc::sigset_t {
    let mut ours = MaybeUninit::uninit();
    // SAFETY: the first call makes it a set.
    unsafe {
        libc::sigemptyset(ours.as_mut_ptr());
        libc::sigaddset(ours.as_mut_ptr(), number());
        ours.assume_init()
    }
}

/// The calling thread may be sampled: it has not blocked our signal, or nearly all, as its creator may have done.
pub fn unblock() {
    // SAFETY: the sets are local.
    unsafe {
        let mut now = MaybeUninit::uninit();
        libc::pthread_sigmask(libc::SIG_SETMASK, core::ptr::null(), now.as_mut_ptr());
        if are_nearly_all(now.as_ptr()) {
            libc::pthread_sigmask(libc::SIG_UNBLOCK, &ours(), core::ptr::null_mut());
        }
    }
}

fn is_free(signal: c_int) -> bool {
    // SAFETY: only queries the action.
    unsafe {
        let mut action: libc::sigaction = MaybeUninit::zeroed().assume_init();
        libc::sigaction(signal, core::ptr::null(), &mut action) == 0
            && (action.sa_sigaction == libc::SIG_DFL
                || action.sa_sigaction == libc::SIG_IGN && signal == libc::SIGURG)
    }
}

/// The program's setting: its handler (or `SIG_DFL`, `SIG_IGN`), the flags and the first 64 signals of the
/// mask, which are all that exist.
static HANDLER: AtomicUsize = AtomicUsize::new(libc::SIG_DFL);
static FLAGS: AtomicI32 = AtomicI32::new(0);
static MASK: AtomicU64 = AtomicU64::new(0);

/// Whether the program handles signals of this number itself.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub fn is_handled_by_program() -> bool {
    !matches!(HANDLER.load(Relaxed), libc::SIG_DFL | libc::SIG_IGN)
}

/// Emulates `sigaction` for our signal.
///
/// # Safety
/// The pointers are null or valid, as for `sigaction`.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub unsafe fn exchange(new: *const libc::sigaction, old: *mut libc::sigaction) {
    // SAFETY: by contract; a set is at least one word of 64 signals.
    unsafe {
        let (handler, flags, mask) = (HANDLER.load(Acquire), FLAGS.load(Relaxed), MASK.load(Relaxed));
        if let Some(new) = new.as_ref() {
            MASK.store((&raw const new.sa_mask).cast::<u64>().read_unaligned(), Relaxed);
            FLAGS.store(new.sa_flags, Relaxed);
            HANDLER.store(new.sa_sigaction, Release);
        }
        if let Some(old) = old.as_mut() {
            *old = MaybeUninit::zeroed().assume_init();
            (old.sa_sigaction, old.sa_flags) = (handler, flags);
            (&raw mut old.sa_mask).cast::<u64>().write_unaligned(mask);
        }
    }
}

/// Passes a signal that is not from our timers to the program's handler, under its requested mask. A thread that
/// is cancelled in that handler unwinds through this function, and nothing is dropped.
///
/// # Safety
/// Called from the handler with its arguments.
pub unsafe extern "C-unwind" fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let (handler, flags) = (HANDLER.load(Acquire), FLAGS.load(Relaxed));
    if matches!(handler, libc::SIG_DFL | libc::SIG_IGN) {
        return;
    }
    if flags & libc::SA_RESETHAND != 0 {
        HANDLER.store(libc::SIG_DFL, Release);
    }
    // SAFETY: the kernel's own context; the program set the handler with these flags. The kernel restores the
    // interrupted code's mask afterwards.
    unsafe {
        let mut mask = (*context.cast::<libc::ucontext_t>()).uc_sigmask;
        let word = (&raw mut mask).cast::<u64>();
        word.write_unaligned(word.read_unaligned() | MASK.load(Relaxed));
        if flags & libc::SA_NODEFER == 0 {
            libc::sigaddset(&mut mask, signal);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &mask, core::ptr::null_mut());
        if flags & libc::SA_SIGINFO != 0 {
            core::mem::transmute::<usize, Handler>(handler)(signal, info, context);
        } else {
            core::mem::transmute::<usize, unsafe extern "C-unwind" fn(c_int)>(handler)(signal);
        }
    }
}

/// Whether a signal is one that our timers sent.
///
/// # Safety
/// `info` is the kernel's argument to the handler.
pub unsafe fn is_ours(info: *const libc::siginfo_t) -> bool {
    // SAFETY: by contract; a timer's signal carries the value that the timer was made with.
    unsafe { (*info).si_code == libc::SI_TIMER && (*info).si_value().sival_ptr == value() }
}

/// Value that our timers pass with the signal.
pub fn value() -> *mut c_void {
    NUMBER.as_ptr().cast()
}
