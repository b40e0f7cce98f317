//! The read-write locks that the calling thread holds together with other readers: many threads hold one, so the
//! lock's entry has no room for them.

use core::cell::Cell;

/// Locks that a thread can hold at a time and be known as their holder.
const MAX_HELD: usize = 8;

/// Address of the lock and return address of the call that took it; 0 is free.
type Hold = (usize, usize);

std::thread_local! {
    static HELD: [Cell<Hold>; MAX_HELD] = const { [const { Cell::new((0, 0)) }; MAX_HELD] };
}

/// The thread has taken a lock. Beyond [`MAX_HELD`] it is not remembered.
pub fn add(lock: usize, caller: usize) {
    HELD.with(|held| {
        if let Some(free) = held.iter().find(|hold| hold.get().0 == 0) {
            free.set((lock, caller));
        }
    });
}

/// Removes the thread's hold of a lock before its release. Returns the place of the acquisition, if it holds
/// it as a reader.
pub fn remove(lock: usize) -> Option<usize> {
    HELD.with(|held| {
        let hold = held.iter().rfind(|hold| hold.get().0 == lock)?;
        Some(hold.replace((0, 0)).1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_are_found_by_lock() {
        add(16, 1);
        add(32, 2);
        assert_eq!(remove(16), Some(1));
        assert_eq!(remove(16), None);
        (0..2 * MAX_HELD).for_each(|number| add(64 + number, 3));
        assert_eq!(remove(32), Some(2));
    }
}
