//! Interface between the sampler and its recorder.

use core::sync::atomic::{AtomicPtr, Ordering::*};

use taskscope_record::InHandler;

use super::Sampler;

/// The functions of the recorder that the sampler calls.
pub struct Host {
    /// The sampler of the thread with this user data, if it is sampled. Async-signal-safe.
    pub sampler_of: unsafe fn(user: *mut ()) -> Option<&'static Sampler>,
    /// Takes a sample of the calling thread, which stays in its recorder. Async-signal-safe; the context is the kernel's.
    pub take_sample: unsafe fn(&mut InHandler, *const libc::ucontext_t),
    /// Starts recording on the calling thread, which is to run the routine at this address.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub begin_thread: fn(routine: usize),
    /// Writes the modules that were loaded since, on a thread that records.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub write_modules: fn(),
    /// Completes the recording before the process ends by `_exit`. Async-signal-safe.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub before_exit: fn(),
    /// Ends the recording while the program continues.
    #[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
    pub finish: fn(),
}

static CURRENT: AtomicPtr<Host> = AtomicPtr::new(core::ptr::null_mut());

/// Names the recorder of this process.
pub fn set_host(host: &'static Host) {
    CURRENT.store(core::ptr::from_ref(host).cast_mut(), Release);
}

/// The recorder of this process; `None` before it is named.
#[inline]
pub fn host() -> Option<&'static Host> {
    // SAFETY: null, or a static.
    unsafe { CURRENT.load(Acquire).as_ref() }
}
