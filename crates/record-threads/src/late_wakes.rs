//! Wakes of threads that need a mutex which the waking thread still holds.
//!
//! ```text
//!   lock ▸ signal ▸ …work… ▸ unlock        the waking thread
//!          │ kept            │ recorded
//!          ▼                 ▼
//!   ── wait for the condition ──▶ has the mutex again: the wait is over
//! ```
//! A thread that waits for a condition needs its mutex to return. So a wake under that mutex is recorded before the release, by which
//! the wait ends; its place is that of the signal. No thread can begin or end a wait for the condition in between. While a wake is kept,
//! the mutex counts one more waiting thread, so that its release takes the slow path.

use core::cell::Cell;

use taskscope_event::models::wait::kind;
use taskscope_record::clock;

use crate::events::{self, WakePlace};
use crate::objects::Object;

/// A wake that is not recorded yet.
#[derive(Clone, Copy)]
struct Wake {
    mutex: usize,
    condition: usize,
    /// Whether it is for all waiting threads.
    all: bool,
    place: WakePlace,
}

/// Wakes that a thread keeps; further ones are recorded at once.
const MAX_KEPT: usize = 4;

std::thread_local! {
    static KEPT: [Cell<Option<Wake>>; MAX_KEPT] = const { [const { Cell::new(None) }; MAX_KEPT] };
}

/// Keeps a wake by a call that returns to `caller` until this thread releases the mutex. Returns whether there is room.
#[cold]
#[inline(never)]
pub fn keep(mutex: usize, condition: usize, all: bool, caller: usize) -> bool {
    KEPT.with(|kept| {
        let Some(free) = kept.iter().find(|wake| wake.get().is_none()) else { return false };
        free.set(Some(Wake { mutex, condition, all, place: events::place_of_wake(caller) }));
        true
    })
}

/// This thread is about to release a mutex: its kept wakes are recorded, and no longer counted as waiting for it. Returns how many threads
/// need the mutex because of them.
pub fn record(address: usize, mutex: &Object) -> u32 {
    KEPT.with(|kept| {
        let mut woken = 0;
        let of_mutex = kept.iter().filter(|wake| wake.get().is_some_and(|wake| wake.mutex == address));
        for wake in of_mutex.filter_map(Cell::take) {
            mutex.end_waiting();
            events::wakes_from(kind::CONDITION, wake.condition, wake.place, wake.all);
            let condition = Object::find(wake.condition);
            woken += condition.map_or(0, |condition| condition.wake(wake.all, clock::kernel_ns()));
        }
        woken
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::objects::tests::prepared;

    #[test]
    fn wakes_are_kept_until_their_mutex_is_released() {
        let _table = prepared();
        let (mutex, condition) = (Object::of(0x5000).unwrap(), Object::of(0x6000).unwrap());
        (0..3).for_each(|_| condition.begin_waiting());
        let keep_one = |mutex: usize| {
            let is_kept = keep(mutex, 0x6000, false, 0);
            Object::of(mutex).unwrap().begin_waiting();
            is_kept
        };
        assert!(keep_one(0x5000) && keep_one(0x7000) && keep_one(0x5000));
        assert_eq!([record(0x5008, mutex), record(0x5000, mutex), record(0x5000, mutex)], [0, 2, 0]);
        assert!(!mutex.has_waiting());
        assert_eq!(record(0x7000, Object::of(0x7000).unwrap()), 1);
        let kept = (0..2 * MAX_KEPT).filter(|_| keep(0x5000, 0x6000, true, 0)).count();
        assert_eq!(kept, MAX_KEPT);
        assert_eq!(record(0x5000, mutex), 0, "all are woken");
        assert!(KEPT.with(|kept| kept.iter().all(|wake| wake.get().is_none())));
    }
}
