//! Functions that create threads: a new thread begins to record before its routine. The call is repeated if one of the recorder's
//! own threads used up the limit.
//!
//! C11's threads are made inside the C library: its `thrd_create` does not call `pthread_create` by name.

use core::ffi::{c_int, c_void};
use core::mem::transmute;

use libc::{pthread_attr_t, pthread_t};
use taskscope_record::fork_gate::Allocating;
use taskscope_record::{cancellation, own_threads};

use super::next;
use crate::sampler::{Bounds, code_map, filters, host::host, is_active};

type Routine = unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void;
type C11Routine = unsafe extern "C-unwind" fn(*mut c_void) -> c_int;

/// `thrd_error`, the result of C11's function at a limit.
const THRD_ERROR: c_int = 2;

/// Start arguments of a new thread, with its type of routine.
#[derive(Clone, Copy)]
struct Start<R> {
    routine: R,
    argument: *mut c_void,
}

/// Begins the calling thread, which runs the routine at this address next.
fn begin(routine: usize) {
    if !Bounds::current_thread().is_small() {
        let _deferred = cancellation::Deferred::begin();
        code_map::refresh_if_suspected();
        if let Some(host) = host() {
            (host.begin_thread)(routine);
        }
    }
}

unsafe extern "C-unwind" fn started(start: *mut c_void) -> *mut c_void {
    let allocating = Allocating::begin();
    // SAFETY: made for this thread by `pthread_create`.
    let Start { routine, argument } = *unsafe { Box::from_raw(start.cast::<Start<Routine>>()) };
    begin(routine as usize);
    drop(allocating);
    // SAFETY: the program's own routine with its argument.
    unsafe { routine(argument) }
}

unsafe extern "C-unwind" fn started_by_c11(start: *mut c_void) -> c_int {
    let allocating = Allocating::begin();
    // SAFETY: made for this thread by `thrd_create`.
    let Start { routine, argument } = *unsafe { Box::from_raw(start.cast::<Start<C11Routine>>()) };
    begin(routine as usize);
    drop(allocating);
    // SAFETY: the program's own routine with its argument.
    unsafe { routine(argument) }
}

/// Creates a thread by `call` with a routine and its argument: `started` with those of `start`. `limit` is the result of a call that
/// fails at a limit; 0 that of one that succeeds.
fn create<R: Copy>(
    start: Start<R>,
    started: R,
    limit: c_int,
    call: impl Fn(R, *mut c_void) -> c_int,
) -> c_int {
    if own_threads::are_being_started() {
        return call(start.routine, start.argument);
    }
    let create = |routine, argument| {
        let attempt = || call(routine, argument);
        own_threads::try_again(attempt, |failed| *failed == limit && !filters::has_left())
    };
    if !is_active() {
        return create(start.routine, start.argument);
    }
    let start = Box::into_raw(Box::new(start));
    let failed = create(started, start.cast());
    if failed != 0 {
        // SAFETY: made above, and no thread has it.
        drop(unsafe { Box::from_raw(start) });
    }
    failed
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_create(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    type Function =
        unsafe extern "C-unwind" fn(*mut pthread_t, *const pthread_attr_t, Routine, *mut c_void) -> c_int;
    // SAFETY: the C library's function of this name has this type.
    let next = unsafe { transmute::<usize, Function>(next::pthread_create.address()) };
    // SAFETY: the arguments are the caller's, or ours.
    let call = |routine, argument| unsafe { next(thread, attributes, routine, argument) };
    create(Start { routine, argument }, started, libc::EAGAIN, call)
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn thrd_create(
    thread: *mut pthread_t,
    routine: C11Routine,
    argument: *mut c_void,
) -> c_int {
    type Function = unsafe extern "C-unwind" fn(*mut pthread_t, C11Routine, *mut c_void) -> c_int;
    // SAFETY: the C library's function of this name has this type.
    let next = unsafe { transmute::<usize, Function>(next::thrd_create.address()) };
    // SAFETY: the arguments are the caller's, or ours.
    let call = |routine, argument| unsafe { next(thread, routine, argument) };
    create(Start { routine, argument }, started_by_c11, THRD_ERROR, call)
}
