//! `pthread_once`: threads that come while another one runs the routine wait for it.
//!
//! The C library calls the routine without an argument: the thread that calls it keeps the routine in memory of its own.

use core::cell::Cell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Acquire};

use taskscope_event::models::wait::{kind, outcome};

use crate::c_library::call;
use crate::events;
use crate::objects::{Object, Released, this_thread};

type Pointer = *mut c_void;
type Routine = unsafe extern "C-unwind" fn();

/// The routine that the thread is about to run, its object, and the return address of its call.
type Pending = (Option<Routine>, usize, usize);

std::thread_local! {
    static PENDING: Cell<Pending> = const { Cell::new((None, 0, 0)) };
}

/// A routine is being run, or was: the C library's states of the object.
const IN_PROGRESS: u32 = 1;
const DONE: u32 = 2;

/// Runs the routine that the calling thread has left. If it is cancelled or throws, the mark stays until another thread runs it.
unsafe extern "C-unwind" fn run() {
    let (routine, once, caller) = PENDING.take();
    let thread = this_thread();
    let object = thread.and_then(|_| Object::of(once));
    if let (Some(object), Some(thread)) = (object, thread) {
        object.take(thread, caller);
    }
    if let Some(routine) = routine {
        // SAFETY: the program's own routine.
        unsafe { routine() };
    }
    if let (Some(object), Some(thread)) = (object, thread) {
        match object.release(thread) {
            Released::Contended(taken_at) => events::hands_over(kind::ONCE, once, taken_at, caller),
            // It runs once: nothing waits for it any more.
            Released::Unseen => Object::destroy(once),
        }
    }
}

pub unsafe extern "C-unwind" fn pthread_once(
    once: Pointer,
    routine: Option<Routine>,
    caller: usize,
) -> c_int {
    let whole = |routine: Option<Routine>| {
        type Run = Option<Routine>;
        // SAFETY: the program's own call, passed on.
        unsafe { call!(pthread_once(once: Pointer, routine: Run) -> c_int) }
    };
    let state = || {
        // SAFETY: not null; the C library's object is one number, which other threads change.
        let state = unsafe { AtomicU32::from_ptr(once.cast()) };
        state.load(Acquire)
    };
    if once.is_null() || routine.is_none() || state() & DONE != 0 || this_thread().is_none() {
        return whole(routine);
    }
    let address = once as usize;
    let before = PENDING.replace((routine, address, caller));
    let waits = state() & IN_PROGRESS != 0;
    let object = if waits { Object::of(address) } else { None };
    if waits {
        if let Some(object) = object {
            object.begin_waiting();
        }
        events::begin(kind::ONCE, address, caller, object.and_then(Object::mark));
    }
    let result = whole(Some(run));
    if waits {
        if let Some(object) = object {
            object.end_waiting();
        }
        events::end(kind::ONCE, outcome::DONE);
    }
    PENDING.set(before);
    result
}
