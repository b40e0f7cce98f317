//! Cancellation of threads (pthread_cancel(3)).
//!
//! Files are written at cancellation points. A thread that were cancelled within the recorder would leave its locks held.

use std::ffi::c_int;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, old: *mut c_int) -> c_int;
}

/// `PTHREAD_CANCEL_DISABLE`.
const DISABLED: c_int = 1;

/// Defers cancellation of the calling thread while it lives.
#[derive(Debug)]
pub struct Deferred {
    before: c_int,
}

impl Deferred {
    /// Defers cancellation from now on.
    #[must_use]
    pub fn begin() -> Deferred {
        let mut before = 0;
        // SAFETY: `before` is valid for writing.
        unsafe { pthread_setcancelstate(DISABLED, &mut before) };
        Deferred { before }
    }
}

impl Drop for Deferred {
    fn drop(&mut self) {
        // SAFETY: a state that this function has returned.
        unsafe { pthread_setcancelstate(self.before, std::ptr::null_mut()) };
    }
}
