//! Calls that may block, which a recorder of waits is informed of: futex calls, sleep, input and output.

use core::ffi::{c_int, c_long};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use taskscope_record::clock;

/// The C library's `syscall`, with its maximum of arguments.
pub type Syscall = unsafe extern "C-unwind" fn(c_long, usize, usize, usize, usize, usize, usize) -> c_long;

/// A recorder of waits.
pub struct BlockingRecorder {
    /// Makes a futex call that returns to `caller`, with these arguments of the system call.
    pub futex: unsafe fn(caller: usize, arguments: [usize; 6], next: Syscall) -> c_long,
    /// A call of this thread begins. Returns a token for `returned`; 0 if nothing is to be undone.
    pub begins: fn(call: Blocking) -> u64,
    /// A call of this thread has returned. It has a token, or has lasted [`MIN_BLOCKED_NS`].
    pub returned: fn(returned: &Returned),
}

/// A call that has returned.
#[derive(Clone, Copy, Debug)]
pub struct Returned {
    /// The call.
    pub call: Blocking,
    /// Its result.
    pub result: i64,
    /// Its begin, nanoseconds of `CLOCK_MONOTONIC`.
    pub begun: u64,
    /// Its end.
    pub ended: u64,
    /// The token of its begin.
    pub token: u64,
}

/// A call that may block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocking {
    /// For a time.
    Sleep,
    /// For data of a descriptor.
    Reads(c_int),
    /// For room of a descriptor, or for its device.
    Writes(c_int),
    /// For a lock of a descriptor's file, which the whole process holds or the descriptor alone.
    FileLock {
        /// The descriptor.
        descriptor: c_int,
        /// Whether only other processes can hold it.
        is_of_process: bool,
    },
    /// For one of several descriptors, in `poll`: a list of so many `pollfd`.
    Poll(usize, usize),
    /// For one of several descriptors, in `select`: the number of descriptors, and those to be read.
    Select(c_int, usize),
    /// For one of several descriptors, in `epoll_wait`: the set, and its events.
    Epoll(c_int, usize),
    /// For one of several descriptors that are not known.
    Several,
    /// For the semaphore at this address.
    Semaphore(usize),
    /// For a signal, another process, a message queue or a semaphore set.
    Other,
}

/// The shortest call without a token that is reported, nanoseconds.
pub const MIN_BLOCKED_NS: u64 = 50_000;

static RECORDER: AtomicPtr<BlockingRecorder> = AtomicPtr::new(core::ptr::null_mut());

/// Has `recorder` called from now on.
pub fn set_recorder(recorder: &'static BlockingRecorder) {
    RECORDER.store(core::ptr::from_ref(recorder).cast_mut(), Release);
}

/// The recorder of waits, if there is one.
#[inline(always)]
#[cfg_attr(test, allow(dead_code, reason = "tests intercept nothing"))]
pub fn recorder() -> Option<&'static BlockingRecorder> {
    // SAFETY: null, or stored by `set_recorder`.
    unsafe { RECORDER.load(Acquire).as_ref() }
}

/// A call that has begun.
#[derive(Clone, Copy)]
pub struct Begun {
    /// 0 without a recorder of waits.
    at: u64,
    token: u64,
}

/// The begin of a call that may block.
#[inline(always)]
pub fn begin(call: Blocking) -> Begun {
    match recorder() {
        // The time is before the call can be seen by others.
        Some(recorder) => Begun { at: clock::kernel_ns(), token: (recorder.begins)(call) },
        None => Begun { at: 0, token: 0 },
    }
}

/// A call has returned.
#[inline(always)]
pub fn end(begun: Begun, call: Blocking, result: i64) {
    if begun.at != 0 {
        report(begun, call, result);
    }
}

#[cold]
#[inline(never)]
fn report(begun: Begun, call: Blocking, result: i64) {
    let ended = clock::kernel_ns();
    if (begun.token != 0 || ended.saturating_sub(begun.at) >= MIN_BLOCKED_NS)
        && let Some(recorder) = recorder()
    {
        (recorder.returned)(&Returned { call, result, begun: begun.at, ended, token: begun.token });
    }
}
