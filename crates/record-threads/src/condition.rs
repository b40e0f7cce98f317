//! Conditions. A wait for one releases its mutex and takes it again.

use core::ffi::{c_int, c_void};

use libc::{clockid_t, timespec};
use taskscope_event::models::wait::kind;

use crate::c_library::call;
use crate::events::{self, C11, POSIX};
use crate::gil;
use crate::lock;
use crate::objects::{Object, this_thread};

type Pointer = *mut c_void;

macro_rules! waits {
    ($( $name:ident($($argument:ident : $type:ty),*), $codes:expr, limited $is_limited:expr; )*) => { $(
        pub unsafe extern "C-unwind" fn $name(condition: Pointer, mutex: Pointer $(, $argument: $type)*, caller: usize) -> c_int {
            // SAFETY: the program's own call, passed on. A cancelled thread unwinds from it, and nothing is dropped.
            let whole = || unsafe { call!($name(condition: Pointer, mutex: Pointer $(, $argument: $type)*) -> c_int) };
            let Some(thread) = this_thread() else { return whole() };
            if $is_limited && gil::is_awaited(condition as usize, mutex as usize) {
                // Until the mutex is unlocked.
                gil::begins(condition as usize, caller);
                lock::before_release(kind::MUTEX, mutex as usize, thread, caller);
                let result = whole();
                lock::after_condition(mutex as usize, thread, caller);
                return result;
            }
            let object = Object::of(condition as usize);
            if let Some(object) = object {
                object.begin_waiting();
            }
            events::begin(kind::CONDITION, condition as usize, caller, None);
            lock::before_release(kind::MUTEX, mutex as usize, thread, caller);
            let result = whole();
            lock::after_condition(mutex as usize, thread, caller);
            if let Some(object) = object {
                object.end_waiting();
            }
            events::end(kind::CONDITION, $codes.outcome(result));
            result
        }
    )* };
}

waits! {
    pthread_cond_wait(), POSIX, limited false;
    pthread_cond_timedwait(until: *const timespec), POSIX, limited true;
    pthread_cond_clockwait(clock: clockid_t, until: *const timespec), POSIX, limited true;
    cnd_wait(), C11, limited false;
    cnd_timedwait(until: *const timespec), C11, limited true;
}

macro_rules! signals {
    ($( $name:ident, $all:expr; )*) => { $(
        pub unsafe extern "C-unwind" fn $name(condition: Pointer, caller: usize) -> c_int {
            if this_thread().is_some() && Object::find(condition as usize).is_some_and(Object::has_waiting) {
                match gil::is_signalled(condition as usize) {
                    true => gil::hands_over(condition as usize, caller),
                    false => events::wakes(kind::CONDITION, condition as usize, caller, $all),
                }
            }
            // SAFETY: the program's own call, passed on.
            unsafe { call!($name(condition: Pointer) -> c_int) }
        }
    )* };
}

signals! {
    pthread_cond_signal, false;
    pthread_cond_broadcast, true;
    cnd_signal, false;
    cnd_broadcast, true;
}
