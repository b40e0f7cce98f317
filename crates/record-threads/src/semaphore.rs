//! Semaphores. Those that wait with a timeout are in [`blocking`].

use core::ffi::{c_int, c_void};

use taskscope_event::models::wait::{kind, outcome};

use crate::blocking;
use crate::c_library::call;
use crate::events;
use crate::objects::{Object, this_thread};

type Pointer = *mut c_void;

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

pub unsafe extern "C-unwind" fn sem_wait(semaphore: Pointer, caller: usize) -> c_int {
    // SAFETY: the program's own call, passed on. A cancelled thread unwinds from it, and nothing is dropped.
    let whole = || unsafe { call!(sem_wait(semaphore: Pointer) -> c_int) };
    if this_thread().is_none() {
        return whole();
    }
    // SAFETY: `errno` is the thread's own; the call is the program's. The function is a cancellation point even if it
    // does not wait.
    unsafe {
        pthread_testcancel();
        let errno = libc::__errno_location();
        let kept = *errno;
        if call!(sem_trywait(semaphore: Pointer) -> c_int) == 0 {
            return 0;
        }
        *errno = kept;
    }
    let object = Object::of(semaphore as usize);
    if let Some(object) = object {
        object.begin_waiting();
    }
    events::begin(kind::SEMAPHORE, semaphore as usize, caller, None);
    let result = whole();
    if let Some(object) = object {
        object.end_waiting();
    }
    events::end(kind::SEMAPHORE, if result == 0 { outcome::DONE } else { outcome::FAILED });
    result
}

pub unsafe extern "C-unwind" fn sem_post(semaphore: Pointer, caller: usize) -> c_int {
    events::begin_in_child();
    if this_thread().is_some() && Object::find(semaphore as usize).is_some_and(Object::has_waiting) {
        blocking::note_wake();
        events::wakes(kind::SEMAPHORE, semaphore as usize, caller, false);
    }
    // SAFETY: the program's own call, passed on.
    unsafe { call!(sem_post(semaphore: Pointer) -> c_int) }
}
