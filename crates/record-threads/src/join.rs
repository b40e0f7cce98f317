//! Joins.

use core::ffi::{c_int, c_void};

use libc::{clockid_t, pthread_t, timespec};
use taskscope_event::models::wait::kind;

use crate::c_library::call;
use crate::events::{self, C11, POSIX};
use crate::objects::this_thread;

type Result = *mut *mut c_void;

macro_rules! joins {
    ($( $name:ident($($argument:ident : $type:ty),*); )*) => { $(
        pub unsafe extern "C-unwind" fn $name(thread: pthread_t, result: Result $(, $argument: $type)*, caller: usize) -> c_int {
            // SAFETY: the program's own call, passed on. A cancelled thread unwinds from it, and nothing is dropped.
            let whole = || unsafe { call!($name(thread: pthread_t, result: Result $(, $argument: $type)*) -> c_int) };
            if this_thread().is_none() {
                return whole();
            }
            // SAFETY: likewise.
            let ended = unsafe { call!(pthread_tryjoin_np(thread: pthread_t, result: Result) -> c_int) };
            if ended != libc::EBUSY {
                return ended;
            }
            events::begin(kind::JOIN, thread as usize, caller, None);
            let joined = whole();
            events::end(kind::JOIN, POSIX.outcome(joined));
            joined
        }
    )* };
}

joins! {
    pthread_join();
    pthread_timedjoin_np(until: *const timespec);
    pthread_clockjoin_np(clock: clockid_t, until: *const timespec);
}

pub unsafe extern "C-unwind" fn thrd_join(thread: pthread_t, result: *mut c_int, caller: usize) -> c_int {
    type Status = *mut c_int;
    // SAFETY: the program's own call, passed on. Whether it waits is unknown beforehand.
    let whole = || unsafe { call!(thrd_join(thread: pthread_t, result: Status) -> c_int) };
    if this_thread().is_none() {
        return whole();
    }
    events::begin(kind::JOIN, thread as usize, caller, None);
    let joined = whole();
    events::end(kind::JOIN, C11.outcome(joined));
    joined
}
