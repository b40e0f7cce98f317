//! Calls that may block, which a recorder of waits is informed of: futex calls, sleep, input and output.

use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use taskscope_record::clock;

/// The C library's `syscall`, with its maximum of arguments.
pub type Syscall = unsafe extern "C-unwind" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

/// A recorder of waits.
pub struct Recorder {
    /// Makes a futex call that returns to `caller`, with these arguments of the system call.
    pub futex: unsafe fn(caller: usize, arguments: [usize; 6], next: Syscall) -> c_long,
    /// A call of this thread has lasted from `begun` until `ended`, nanoseconds of `CLOCK_MONOTONIC`, and has this result.
    pub returned: fn(call: Blocking, result: i64, begun: u64, ended: u64),
}

/// A call that may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// For a time.
    Sleep,
    /// For data or room of a descriptor.
    Descriptor(c_int),
    /// For one of several descriptors; 0 if the time was over.
    Several,
    /// For the semaphore at this address.
    Semaphore(usize),
    /// For a signal, a message queue or a semaphore set.
    Other,
}

/// The shortest call that is reported, nanoseconds.
const MIN_BLOCKED_NS: u64 = 50_000;

static RECORDER: AtomicPtr<Recorder> = AtomicPtr::new(core::ptr::null_mut());

/// Has `recorder` called from now on.
pub fn set_recorder(recorder: &'static Recorder) {
    RECORDER.store(core::ptr::from_ref(recorder).cast_mut(), Release);
}

/// The recorder of waits, if there is one.
#[inline(always)]
#[cfg_attr(test, allow(dead_code, reason = "tests intercept nothing"))]
pub fn recorder() -> Option<&'static Recorder> {
    // SAFETY: null, or stored by `set_recorder`.
    unsafe { RECORDER.load(Acquire).as_ref() }
}

/// The begin of a call that may block; 0 without a recorder of waits.
#[inline(always)]
#[cfg_attr(test, allow(dead_code, reason = "tests intercept nothing"))]
pub fn begin() -> u64 {
    recorder().map_or(0, |_| clock::kernel_ns())
}

/// The call that began then has returned.
#[inline(always)]
#[cfg_attr(test, allow(dead_code, reason = "tests intercept nothing"))]
pub fn end(begun: u64, call: Blocking, result: i64) {
    if begun != 0 {
        report(begun, call, result);
    }
}

#[cold]
#[inline(never)]
fn report(begun: u64, call: Blocking, result: i64) {
    let ended = clock::kernel_ns();
    if ended.saturating_sub(begun) >= MIN_BLOCKED_NS
        && let Some(recorder) = recorder()
    {
        (recorder.returned)(call, result, begun, ended);
    }
}
