//! Attaching of threads by the recorder that the collectors are linked into.
//!
//! The first event of a thread may be an annotation. Its recorder must then be the host's, which follows OpenMP and samples
//! on this thread, too: a thread that the instrument model attaches has neither.

use core::sync::atomic::{AtomicPtr, Ordering::*};

use taskscope_record::thread::is_attached;

/// The host's function, or null.
static ATTACH: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Makes `attach` start the recording of a thread before its first annotation.
pub fn set(attach: fn()) {
    ATTACH.store(attach as *mut (), Release);
}

/// Starts recording the calling thread, unless it is recorded.
#[inline]
pub fn thread() {
    if !is_attached() {
        attach();
    }
}

#[cold]
fn attach() {
    let function = ATTACH.load(Acquire);
    if !function.is_null() {
        // SAFETY: stored by `set` alone.
        let attach: fn() = unsafe { core::mem::transmute(function) };
        attach();
    }
}
