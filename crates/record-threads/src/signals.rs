//! Functions that send signals: a thread that waits for one is woken by them.

use core::ffi::{c_int, c_void};

use libc::{pid_t, pthread_t};

use crate::c_library::call;
use crate::objects::this_thread;
use crate::{blocking, exchange};

/// The value of a signal, `union sigval`, which is passed as pointers are.
type Value = *mut c_void;

/// Before a signal is sent to a thread, or to this process.
#[inline]
fn before(thread: Option<pthread_t>, number: c_int) {
    if this_thread().is_some() {
        exchange::signalled(thread.map(|thread| thread as usize), number, |kind, object| {
            blocking::wake(kind, object, false);
        });
    }
}

fn before_to_process(process: pid_t, number: c_int) {
    // SAFETY: no preconditions.
    if process == unsafe { libc::getpid() } {
        before(None, number);
    }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_kill(thread: pthread_t, number: c_int) -> c_int {
    before(Some(thread), number);
    // SAFETY: the program's own call, passed on.
    unsafe { call!(pthread_kill(thread: pthread_t, number: c_int) -> c_int) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn pthread_sigqueue(thread: pthread_t, number: c_int, value: Value) -> c_int {
    before(Some(thread), number);
    // SAFETY: likewise.
    unsafe { call!(pthread_sigqueue(thread: pthread_t, number: c_int, value: Value) -> c_int) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn kill(process: pid_t, number: c_int) -> c_int {
    before_to_process(process, number);
    // SAFETY: likewise.
    unsafe { call!(kill(process: pid_t, number: c_int) -> c_int) }
}

#[unsafe(no_mangle)]
unsafe extern "C-unwind" fn sigqueue(process: pid_t, number: c_int, value: Value) -> c_int {
    before_to_process(process, number);
    // SAFETY: likewise.
    unsafe { call!(sigqueue(process: pid_t, number: c_int, value: Value) -> c_int) }
}
