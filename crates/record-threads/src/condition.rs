//! Conditions. A wait for one releases its mutex and takes it again.
//!
//! ```text
//!   wait ──────────── woken ─── others hold the mutex ─── has it
//!   │ condition         │ mutex: one wait more, recorded here │
//! ```
//! From the wake until it has the mutex, a woken thread is counted as waiting for that: so the releases of others are recorded.

use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;

use libc::{clockid_t, timespec};
use taskscope_event::models::wait::{kind, outcome};
use taskscope_record::clock;

use crate::c_library::call;
use crate::events::{self, C11, POSIX};
use crate::gil;
use crate::late_wakes;
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
                object.set_mutex(mutex as usize);
                object.begin_waiting();
            }
            events::begin(kind::CONDITION, condition as usize, caller, None);
            lock::before_release(kind::MUTEX, mutex as usize, thread, caller);
            let result = whole();
            lock::after_condition(mutex as usize, thread, caller);
            let outcome = $codes.outcome(result);
            if let Some(object) = object {
                has_mutex(object, mutex as usize, outcome, caller);
            }
            events::end(kind::CONDITION, outcome);
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

/// This thread has the mutex again after its wait for a condition, which is not over yet. If others have held it since the wake, that
/// time was a wait for the mutex.
fn has_mutex(object: &Object, mutex: usize, outcome: u32, caller: usize) {
    let is_woken = outcome == outcome::DONE;
    if !object.end_condition_wait(is_woken) {
        return;
    }
    let Some(lock) = Object::find(mutex) else { return };
    lock.end_woken();
    let woken_at = object.arrivals.load(Relaxed);
    if is_woken && lock.arrivals.load(Relaxed) > woken_at {
        events::waited_for_mutex(mutex, caller, woken_at);
    }
}

/// Records a wake, or keeps it until this thread releases the mutex that the woken thread needs.
fn wakes(object: &Object, condition: usize, thread: usize, all: bool, caller: usize) {
    let mutex = object.mutex();
    let lock = Object::find(mutex).filter(|_| mutex != 0);
    match lock {
        Some(lock) if lock.is_held_by(thread) && late_wakes::keep(mutex, condition, all, caller) => {
            lock.begin_waiting();
        }
        lock => {
            events::wakes(kind::CONDITION, condition, caller, all);
            let woken = object.wake(all, clock::kernel_ns());
            if let Some(lock) = lock {
                lock.add_woken(woken);
            }
        }
    }
}

macro_rules! signals {
    ($( $name:ident, $all:expr; )*) => { $(
        pub unsafe extern "C-unwind" fn $name(condition: Pointer, caller: usize) -> c_int {
            if let Some(thread) = this_thread()
                && let Some(object) = Object::find(condition as usize).filter(|object| object.has_waiting())
            {
                match gil::is_signalled(condition as usize) {
                    true => gil::hands_over(condition as usize, caller),
                    false => wakes(object, condition as usize, thread, $all, caller),
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
