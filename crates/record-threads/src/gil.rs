//! The global interpreter lock of CPython (GIL), as a lock with a holder.
//!
//! CPython makes it of a flag, a mutex and a condition. A thread that wants the lock waits for the condition again and again, for
//! 5 ms at most, until the flag is clear; a thread that gives it up clears the flag and signals.
//!
//! ```text
//!   take: lock the mutex ▸ flag set? wait for the condition, limited ▸ …again ▸ set the flag ▸ unlock the mutex
//!   drop: lock the mutex ▸ clear the flag ▸ signal the condition ▸ unlock the mutex
//! ```
//! So a wait begins with the first wait for that condition and ends when its thread unlocks that mutex; and the thread that signals is
//! the holder, which gives up the lock.
//!
//! **Which condition.** The first one of a limited wait that lies in the interpreter's `_PyRuntime`: no other condition there is waited for
//! with a limit (CPython 3.9 to 3.13). The mutex is that of the same call, so no offsets are needed. Locks of further interpreters of
//! one process, which are on the heap, are conditions as any other.

use core::cell::Cell;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use taskscope_event::models::wait::{kind, outcome};
use taskscope_ompt::shared;

use crate::events;
use crate::objects::Object;
use crate::switches;

/// The condition and the mutex of the lock; 0 before they are known.
static CONDITION: AtomicUsize = AtomicUsize::new(0);
static MUTEX: AtomicUsize = AtomicUsize::new(0);

std::thread_local! {
    /// Whether the thread waits for the lock.
    static WAITS: Cell<bool> = const { Cell::new(false) };
}

/// Whether a limited wait for a condition is one for the lock.
#[inline]
pub fn is_awaited(condition: usize, mutex: usize) -> bool {
    match CONDITION.load(Relaxed) {
        0 => learn(condition, mutex),
        known => known == condition,
    }
}

#[cold]
fn learn(condition: usize, mutex: usize) -> bool {
    let is_inside = shared::python_runtime().is_some_and(|data| data.contains(&(condition as u64)));
    if is_inside && CONDITION.compare_exchange(0, condition, AcqRel, Acquire).is_ok() {
        MUTEX.store(mutex, Release);
    }
    is_inside && CONDITION.load(Relaxed) == condition
}

/// The calling thread is about to wait for the lock, maybe again.
pub fn begins(condition: usize, caller: usize) {
    if WAITS.replace(true) {
        // The end notes the last one alone.
        return switches::begin();
    }
    if let Some(object) = Object::of(condition) {
        object.begin_waiting();
    }
    events::begin(kind::GIL, condition, caller, None);
}

/// A thread unlocks a mutex: if it waited for the lock, it has it now.
#[inline(always)]
pub fn unlocks(mutex: usize) {
    if mutex == MUTEX.load(Relaxed) {
        ends();
    }
}

#[cold]
fn ends() {
    if WAITS.replace(false) {
        if let Some(object) = Object::find(CONDITION.load(Relaxed)) {
            object.end_waiting();
        }
        events::end(kind::GIL, outcome::DONE);
    }
}

/// Whether a signalled condition is that of the lock: its holder gives it up.
#[inline(always)]
pub fn is_signalled(condition: usize) -> bool {
    condition == CONDITION.load(Relaxed)
}

/// This thread gives up the lock, for which others wait.
pub fn hands_over(condition: usize, caller: usize) {
    events::hands_over(kind::GIL, condition, caller, caller);
}
