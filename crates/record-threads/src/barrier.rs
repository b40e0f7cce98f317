//! Barriers. The recorder counts arrivals, so that the last thread of a round is known.

use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::Ordering::*;

use taskscope_event::models::wait::kind;

use crate::c_library::call;
use crate::events::{self, POSIX};
use crate::objects::{Object, this_thread};

type Pointer = *mut c_void;

pub unsafe extern "C-unwind" fn pthread_barrier_init(
    barrier: Pointer,
    attributes: *const libc::pthread_barrierattr_t,
    parties: c_uint,
    _caller: usize,
) -> c_int {
    type Attributes = *const libc::pthread_barrierattr_t;
    // SAFETY: the program's own call, passed on.
    let result = unsafe {
        call!(pthread_barrier_init(barrier: Pointer, attributes: Attributes, parties: c_uint) -> c_int)
    };
    if result == 0
        && let Some(object) = Object::of(barrier as usize)
    {
        let mut shared = libc::PTHREAD_PROCESS_PRIVATE;
        if !attributes.is_null() {
            // SAFETY: initialised attributes, by contract of the function that was called.
            unsafe { libc::pthread_barrierattr_getpshared(attributes, &mut shared) };
        }
        // Arrivals of other processes are not seen.
        let is_own = shared == libc::PTHREAD_PROCESS_PRIVATE;
        object.arrivals.store(0, Relaxed);
        object.parties.store(if is_own { parties } else { 0 }, Release);
    }
    result
}

pub unsafe extern "C-unwind" fn pthread_barrier_wait(barrier: Pointer, caller: usize) -> c_int {
    // SAFETY: the program's own call, passed on.
    let whole = || unsafe { call!(pthread_barrier_wait(barrier: Pointer) -> c_int) };
    let object = Object::find(barrier as usize);
    let records = this_thread().is_some();
    if records {
        events::begin(kind::THREAD_BARRIER, barrier as usize, caller, None);
    }
    // Counted after the begin: that of each thread of a round is before the event of the last one. Threads that
    // do not record are counted, too.
    let parties = object.map_or(0, |object| u64::from(object.parties.load(Acquire)));
    let arrival = object.map_or(0, |object| object.arrivals.fetch_add(1, AcqRel) + 1);
    if records && parties > 0 && arrival.is_multiple_of(parties) {
        events::wakes(kind::THREAD_BARRIER, barrier as usize, caller, true);
    }
    let result = whole();
    if records {
        events::end(kind::THREAD_BARRIER, POSIX.outcome(result));
    }
    result
}
