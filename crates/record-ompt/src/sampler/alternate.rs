//! The alternate signal stack of a sampled thread.
//!
//! The kernel writes a handler's frame to the current stack, unless the thread has an alternate stack. A
//! program that switches to small stacks of its own (fibers, user-level threads) expects no signals on them,
//! so each sampled thread gets an alternate stack: the program's if it has set one that holds a sample, else
//! the recorder's. If the library is preloaded, `sigaltstack` does not show the recorder's. Once the program
//! has a handler with `SA_ONSTACK`, no further thread without an alternate stack gets the recorder's: that
//! handler would run on it. On threads that have it by then, the handler does: so the recorder's is large. It cannot be
//! taken back: the program may have adopted it, as Go's runtime does with any that it finds.

use core::cell::Cell;
use core::ffi::c_int;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use super::OwnStack;
use super::bounds::STACK_FACTOR;
use super::signal;
use crate::pause;

/// Bytes that the handler takes of the stack that it begins on, until it changes to the recorder's.
const HANDLER_BYTES: usize = 1024 * STACK_FACTOR as usize;

/// The system call, as the function may be ours.
///
/// # Safety
/// As for the function.
unsafe fn sigaltstack(new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
    // SAFETY: by contract.
    unsafe { libc::syscall(libc::SYS_sigaltstack, new, old) as c_int }
}

/// Whether the program has had a handler that runs on alternate stacks.
static PROGRAM_HAS_HANDLERS: AtomicBool = AtomicBool::new(false);

/// Notes an action that the program, or the recorder, is about to set.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub fn note(action: &libc::sigaction) {
    let is_own = |handler| signal::is_own_handler(handler) || handler == pause::toggle as *const () as usize;
    let is_handler = !matches!(action.sa_sigaction, libc::SIG_DFL | libc::SIG_IGN);
    if is_handler && !is_own(action.sa_sigaction) && action.sa_flags & libc::SA_ONSTACK != 0 {
        PROGRAM_HAS_HANDLERS.store(true, Relaxed);
    }
}

/// The recorder's stack of one thread, and the program's own setting while that is in force.
pub struct Alternate {
    stack: OwnStack,
    asked: Cell<libc::stack_t>,
}

const NONE: libc::stack_t =
    libc::stack_t { ss_sp: core::ptr::null_mut(), ss_flags: libc::SS_DISABLE, ss_size: 0 };

impl Alternate {
    /// Sets the recorder's stack on the calling thread if its own alternate stack is missing or too small.
    /// `None` without memory.
    pub fn new() -> Option<Alternate> {
        let own = Alternate { stack: OwnStack::for_handlers()?, asked: Cell::new(NONE) };
        let present = present()?;
        let is_off = present.ss_flags & libc::SS_DISABLE != 0;
        if is_too_small(&present) || is_off && !PROGRAM_HAS_HANDLERS.load(Relaxed) {
            // SAFETY: the memory is there until `remove`.
            unsafe { own.set(&present) };
        }
        Some(own)
    }

    /// The recorder's stack.
    pub fn stack(&self) -> &OwnStack {
        &self.stack
    }

    fn is_own(&self, stack: &libc::stack_t) -> bool {
        stack.ss_flags & libc::SS_DISABLE == 0 && stack.ss_sp == self.stack.as_alternate().ss_sp
    }

    /// Puts the recorder's in force.
    ///
    /// # Safety
    /// As for `sigaltstack`.
    unsafe fn set(&self, asked: &libc::stack_t) -> c_int {
        // SAFETY: by contract.
        let failed = unsafe { sigaltstack(&self.stack.as_alternate(), core::ptr::null_mut()) };
        if failed == 0 {
            self.asked.set(*asked);
        }
        failed
    }

    /// Behaves as `sigaltstack` does without the recorder's stack.
    ///
    /// # Safety
    /// Called on the thread of this stack; the pointers are null or valid, as for `sigaltstack`.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub unsafe fn exchange(&self, new: *const libc::stack_t, old: *mut libc::stack_t) -> c_int {
        let Some(present) = present() else { return -1 };
        let shown = if self.is_own(&present) { self.asked.get() } else { present };
        // SAFETY: by contract. `new` and `old` may be the same.
        unsafe {
            let failed = match new.as_ref() {
                Some(asked) if asked.ss_flags & libc::SS_DISABLE != 0 => self.set(&NONE),
                Some(asked) if is_too_small(asked) => self.set(asked),
                Some(_) => sigaltstack(new, core::ptr::null_mut()),
                None => 0,
            };
            if failed == 0
                && let Some(old) = old.as_mut()
            {
                *old = shown;
            }
            failed
        }
    }

    /// Takes the recorder's stack back from the calling thread, which has it.
    pub fn remove(&self) {
        if present().is_some_and(|present| self.is_own(&present)) {
            // SAFETY: the program's setting, or none.
            unsafe { sigaltstack(&self.asked.get(), core::ptr::null_mut()) };
        }
    }
}

/// The alternate stack in force on the calling thread.
fn present() -> Option<libc::stack_t> {
    let mut present = MaybeUninit::uninit();
    // SAFETY: only queries; initialised on success.
    unsafe { (sigaltstack(core::ptr::null(), present.as_mut_ptr()) == 0).then(|| present.assume_init()) }
}

/// Whether the kernel accepts a stack that cannot hold its own frame of a handler with the one of ours: the process would end by the
/// first sample.
fn is_too_small(stack: &libc::stack_t) -> bool {
    /// `AT_MINSIGSTKSZ`: the largest frame of the kernel's on this processor.
    const AT_MINSIGSTKSZ: libc::c_ulong = 51;
    // SAFETY: no preconditions; 0 on kernels that do not report it.
    let frame = unsafe { libc::getauxval(AT_MINSIGSTKSZ) } as usize;
    let wanted = frame.max(libc::MINSIGSTKSZ) + HANDLER_BYTES;
    stack.ss_flags & libc::SS_DISABLE == 0 && (libc::MINSIGSTKSZ..wanted).contains(&stack.ss_size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(memory: &mut [u8]) -> libc::stack_t {
        libc::stack_t { ss_sp: memory.as_mut_ptr().cast(), ss_flags: 0, ss_size: memory.len() }
    }

    fn same(one: &libc::stack_t, other: &libc::stack_t) -> bool {
        (one.ss_sp, one.ss_flags, one.ss_size) == (other.ss_sp, other.ss_flags, other.ss_size)
    }

    #[test]
    fn the_program_sees_only_its_own_alternate_stack() {
        // SAFETY: the thread is this test's own, and ends without an alternate stack; all pointers lead to its locals, or to
        // memory that outlives the stack's use.
        let thread = std::thread::spawn(|| unsafe {
            let mut before = MaybeUninit::uninit();
            assert_eq!(sigaltstack(&NONE, before.as_mut_ptr()), 0);
            let before: libc::stack_t = before.assume_init();
            let own = Alternate::new().unwrap();
            let in_force = || present().unwrap();
            assert!(own.is_own(&in_force()));
            let (mut large, mut small) = (vec![0; 128 << 10], vec![0; libc::MINSIGSTKSZ]);
            let mut last = NONE;
            for (next, is_own) in [(asked(&mut small), true), (asked(&mut large), false), (NONE, true)] {
                let mut old = MaybeUninit::uninit();
                assert_eq!(own.exchange(&next, old.as_mut_ptr()), 0);
                assert!(same(&old.assume_init(), &last));
                assert_eq!(own.is_own(&in_force()), is_own);
                last = next;
            }
            let tiny = libc::stack_t { ss_size: 100, ..asked(&mut large) };
            assert_eq!(own.exchange(&tiny, core::ptr::null_mut()), -1);
            own.remove();
            assert!(same(&in_force(), &NONE));
            sigaltstack(&before, core::ptr::null_mut());
        });
        thread.join().unwrap();
    }
}
