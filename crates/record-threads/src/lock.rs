//! Mutexes, spin locks and read-write locks.
//!
//! ```text
//!  lock ── trylock ──▶ taken: mark
//!            └───────▶ busy: begin ▸ lock ▸ mark ▸ end
//!  unlock: take the mark away ▸ others wait: hand over ▸ unlock
//! ```

use core::ffi::{c_int, c_void};

use libc::{clockid_t, timespec};
use taskscope_event::models::wait::kind;
use taskscope_record::clock;

use crate::c_library::call;
use crate::events::{self, C11, Codes, POSIX};
use crate::gil;
use crate::late_wakes;
use crate::objects::{Object, Released, this_thread};
use crate::read_holds;

type Pointer = *mut c_void;

/// Mode of an acquisition.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    /// One thread alone.
    Exclusive,
    /// Together with other readers.
    Shared,
}

fn is_taken(result: c_int) -> bool {
    result == 0 || result == libc::EOWNERDEAD
}

#[inline(always)]
fn mark(mode: Mode, lock: usize, thread: usize, caller: usize) {
    match mode {
        Mode::Exclusive => {
            if let Some(object) = Object::of(lock) {
                object.take(thread, caller);
            }
        }
        Mode::Shared => read_holds::add(lock, caller),
    }
}

/// Waits in `call`.
#[cold]
#[inline(never)]
fn wait(
    (kind, codes, mode): (u32, Codes, Mode),
    (lock, thread, caller): (usize, usize, usize),
    call: impl FnOnce() -> c_int,
) -> c_int {
    let object = Object::of(lock);
    if let Some(object) = object {
        object.begin_waiting();
    }
    events::begin(kind, lock, caller, object.and_then(Object::mark));
    let result = call();
    if is_taken(result) {
        mark(mode, lock, thread, caller);
    }
    if let Some(object) = object {
        object.end_waiting();
    }
    events::end(kind, codes.outcome(result));
    result
}

/// The function `$name` of a lock: `$try` first, then the function itself.
macro_rules! locks {
    ($( $(#[$about:meta])* $name:ident($($argument:ident : $type:ty),*), $kind:expr, $codes:expr, $mode:expr, $try:ident; )*) => { $(
        $(#[$about])*
        pub unsafe extern "C-unwind" fn $name(lock: Pointer $(, $argument: $type)*, caller: usize) -> c_int {
            // SAFETY: the program's own call, passed on.
            let whole = || unsafe { call!($name(lock: Pointer $(, $argument: $type)*) -> c_int) };
            let Some(thread) = this_thread() else { return whole() };
            // SAFETY: likewise.
            let result = unsafe { call!($try(lock: Pointer) -> c_int) };
            if result != $codes.busy {
                if is_taken(result) {
                    mark($mode, lock as usize, thread, caller);
                }
                return result;
            }
            wait(($kind, $codes, $mode), (lock as usize, thread, caller), whole)
        }
    )* };
}

locks! {
    pthread_mutex_lock(), kind::MUTEX, POSIX, Mode::Exclusive, pthread_mutex_trylock;
    pthread_mutex_timedlock(until: *const timespec), kind::MUTEX, POSIX, Mode::Exclusive, pthread_mutex_trylock;
    pthread_mutex_clocklock(clock: clockid_t, until: *const timespec), kind::MUTEX, POSIX, Mode::Exclusive, pthread_mutex_trylock;
    pthread_spin_lock(), kind::SPIN_LOCK, POSIX, Mode::Exclusive, pthread_spin_trylock;
    pthread_rwlock_wrlock(), kind::RW_LOCK, POSIX, Mode::Exclusive, pthread_rwlock_trywrlock;
    pthread_rwlock_timedwrlock(until: *const timespec), kind::RW_LOCK, POSIX, Mode::Exclusive, pthread_rwlock_trywrlock;
    pthread_rwlock_clockwrlock(clock: clockid_t, until: *const timespec), kind::RW_LOCK, POSIX, Mode::Exclusive, pthread_rwlock_trywrlock;
    pthread_rwlock_rdlock(), kind::RW_LOCK, POSIX, Mode::Shared, pthread_rwlock_tryrdlock;
    pthread_rwlock_timedrdlock(until: *const timespec), kind::RW_LOCK, POSIX, Mode::Shared, pthread_rwlock_tryrdlock;
    pthread_rwlock_clockrdlock(clock: clockid_t, until: *const timespec), kind::RW_LOCK, POSIX, Mode::Shared, pthread_rwlock_tryrdlock;
    mtx_lock(), kind::MUTEX, C11, Mode::Exclusive, mtx_trylock;
    mtx_timedlock(until: *const timespec), kind::MUTEX, C11, Mode::Exclusive, mtx_trylock;
}

/// Functions that take a lock if it is free.
macro_rules! tries {
    ($( $name:ident, $mode:expr; )*) => { $(
        pub unsafe extern "C-unwind" fn $name(lock: Pointer, caller: usize) -> c_int {
            // SAFETY: the program's own call, passed on.
            let result = unsafe { call!($name(lock: Pointer) -> c_int) };
            if is_taken(result) && let Some(thread) = this_thread() {
                mark($mode, lock as usize, thread, caller);
            }
            result
        }
    )* };
}

tries! {
    pthread_mutex_trylock, Mode::Exclusive;
    pthread_spin_trylock, Mode::Exclusive;
    pthread_rwlock_trywrlock, Mode::Exclusive;
    pthread_rwlock_tryrdlock, Mode::Shared;
    mtx_trylock, Mode::Exclusive;
}

/// This thread is about to release a lock, or to wait for a condition, which releases its mutex.
#[inline(always)]
pub fn before_release(kind: u32, lock: usize, thread: usize, caller: usize) {
    if let Some(object) = Object::find(lock)
        && let Released::Contended(taken_at) = object.release(thread)
    {
        before_contended_release(object, (kind, lock), taken_at, caller);
    }
}

#[cold]
#[inline(never)]
fn before_contended_release(object: &Object, (kind, lock): (u32, usize), taken_at: usize, caller: usize) {
    // The threads that are woken now have not waited for it yet.
    let woken = late_wakes::record(lock, object);
    if object.has_waiting() && object.notes_release(clock::kernel_ns()) {
        events::hands_over(kind, lock, taken_at, caller);
    }
    object.add_woken(woken);
}

/// This thread holds a mutex again, after it has waited for a condition.
pub fn after_condition(lock: usize, thread: usize, caller: usize) {
    mark(Mode::Exclusive, lock, thread, caller);
}

/// Functions that release a lock of one holder. (That of C11's mutexes returns nothing, which is passed on.)
macro_rules! unlocks {
    ($( $name:ident, $kind:expr; )*) => { $(
        pub unsafe extern "C-unwind" fn $name(lock: Pointer, caller: usize) -> c_int {
            if let Some(thread) = this_thread() {
                before_release($kind, lock as usize, thread, caller);
                gil::unlocks(lock as usize);
            }
            // SAFETY: the program's own call, passed on.
            unsafe { call!($name(lock: Pointer) -> c_int) }
        }
    )* };
}

unlocks! {
    pthread_mutex_unlock, kind::MUTEX;
    pthread_spin_unlock, kind::SPIN_LOCK;
    mtx_unlock, kind::MUTEX;
}

pub unsafe extern "C-unwind" fn pthread_rwlock_unlock(lock: Pointer, caller: usize) -> c_int {
    if let Some(thread) = this_thread() {
        match read_holds::remove(lock as usize) {
            Some(taken_at) => {
                if Object::find(lock as usize).is_some_and(Object::has_waiting) {
                    events::hands_over(kind::RW_LOCK, lock as usize, taken_at, caller);
                }
            }
            None => before_release(kind::RW_LOCK, lock as usize, thread, caller),
        }
    }
    // SAFETY: the program's own call, passed on.
    unsafe { call!(pthread_rwlock_unlock(lock: Pointer) -> c_int) }
}

/// Functions that destroy awaited objects.
macro_rules! destroys {
    ($( $name:ident; )*) => { $(
        pub unsafe extern "C-unwind" fn $name(object: Pointer, _caller: usize) -> c_int {
            Object::destroy(object as usize);
            // SAFETY: the program's own call, passed on.
            unsafe { call!($name(object: Pointer) -> c_int) }
        }
    )* };
}

destroys! {
    pthread_mutex_destroy;
    pthread_spin_destroy;
    pthread_rwlock_destroy;
    pthread_cond_destroy;
    pthread_barrier_destroy;
    sem_destroy;
    mtx_destroy;
    cnd_destroy;
}
