//! Something that one thread counts into while another one takes away what was counted.
//!
//! ```text
//!   counting thread                    housekeeping thread
//!   busy = 1                           current = the other half
//!   ── compiler fence ──               ── membarrier: a full fence on every thread ──
//!   half = current                     busy == 0 ? the half is nobody's, until the next turn
//!   … counts …
//!   busy = 0
//! ```
//! Either the thread sees the new half, or the other one sees it busy. So the counting side, which may be
//! a signal handler, pays three plain stores. Until the first turn nobody has seen the second half: who turns
//! prepares it, and a short run pays nothing for it.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*, compiler_fence};

/// Two of them; one is counted into.
#[repr(C)]
pub struct Halves<T> {
    busy: AtomicU32,
    /// Bytes from the first half to the one that is counted into.
    current: AtomicUsize,
    halves: [UnsafeCell<T>; 2],
    has_turned: AtomicBool,
}

// SAFETY: a half is touched by the counting thread alone while it is current, and by who turned it away
// alone afterwards, as drawn above.
unsafe impl<T: Send> Sync for Halves<T> {}

impl<T> Halves<T> {
    /// Of two empty ones, of which the first is counted into.
    pub fn new(first: T, second: T) -> Halves<T> {
        let halves = [first, second].map(UnsafeCell::new);
        let (busy, current) = (AtomicU32::new(0), AtomicUsize::new(0));
        Halves { busy, current, halves, has_turned: AtomicBool::new(false) }
    }

    /// The half that lies so many bytes after the first: none, or as many as one has.
    #[inline(always)]
    fn half(&self, offset: usize) -> *mut T {
        debug_assert!(offset == 0 || offset == size_of::<UnsafeCell<T>>());
        self.halves.as_ptr().wrapping_byte_add(offset).cast_mut().cast()
    }

    /// Counts. On the one counting thread only, or its handler, and not within another `count` of the
    /// same halves. Async-signal-safe if `count` is.
    #[inline(always)]
    pub fn count<R>(&self, count: impl FnOnce(&mut T) -> R) -> R {
        count(&mut self.counting())
    }

    /// The half to count into, while what is returned lives; as [`count`](Self::count). Where a call would
    /// cost more than counting does.
    #[inline(always)]
    pub fn counting(&self) -> Counting<'_, T> {
        self.busy.store(1, Relaxed);
        compiler_fence(SeqCst);
        Counting { half: self.half(self.current.load(Acquire)), busy: &self.busy }
    }

    /// Turns the halves; `prepare` gets the second one before it is counted into for the first time.
    /// [`turned_away`](Self::turned_away) may be called after a fence on every thread.
    pub fn turn(&self, prepare: impl FnOnce(&mut T)) {
        if !self.has_turned.swap(true, Relaxed) {
            // SAFETY: the counting thread sees it from the turn on only, and turns come from one thread at a time.
            prepare(unsafe { &mut *self.half(size_of::<UnsafeCell<T>>()) });
        }
        self.current.fetch_xor(size_of::<UnsafeCell<T>>(), Release);
    }

    /// Hands out the half that is not counted into; nothing while the thread still counts into it.
    /// `turn`, a fence and this come one after the other, and from one thread at a time.
    pub fn turned_away(&self, take: impl FnOnce(&mut T)) -> bool {
        let other = self.half(self.current.load(Relaxed) ^ size_of::<UnsafeCell<T>>());
        if self.busy.load(Acquire) != 0 {
            return false;
        }
        // SAFETY: after the fence, a thread that is not busy sees the new half when it comes back.
        take(unsafe { &mut *other });
        true
    }

    /// Hands out both, when the counting thread counts no more.
    ///
    /// # Safety
    /// Nobody counts, nor will.
    pub unsafe fn both(&self, mut take: impl FnMut(&mut T)) {
        for half in &self.halves {
            // SAFETY: by contract.
            take(unsafe { &mut *half.get() });
        }
    }
}

/// The half that is counted into.
pub struct Counting<'a, T> {
    half: *mut T,
    busy: &'a AtomicU32,
}

impl<T> Deref for Counting<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this thread alone counts, and `busy` keeps the other one from this half.
        unsafe { &*self.half }
    }
}

impl<T> DerefMut for Counting<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.half }
    }
}

impl<T> Drop for Counting<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        self.busy.store(0, Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn nothing_is_lost_between_the_halves() {
        let _ = taskscope_record::fence_all_threads();
        let (halves, ended) = (Arc::new(Halves::new(0u64, 0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (halves, ended) = (halves.clone(), ended.clone());
            move || {
                for _ in 0..200_000 {
                    halves.count(|sum| *sum += 1);
                }
                ended.store(true, Release);
            }
        });
        let mut taken = 0;
        let (mut turns, mut prepared) = (0, 0);
        loop {
            halves.turn(|_| prepared += 1);
            if !taskscope_record::fence_all_threads() {
                halves.turn(|_| prepared += 1);
                break;
            }
            while !halves.turned_away(|sum| taken += core::mem::take(sum)) {
                std::thread::yield_now();
            }
            turns += 1;
            if ended.load(Acquire) {
                break;
            }
        }
        thread.join().unwrap();
        // SAFETY: the thread has ended.
        unsafe { halves.both(|sum| taken += core::mem::take(sum)) };
        assert_eq!(taken, 200_000, "after {turns} turns");
        assert_eq!(prepared, 1, "the second half, once");
    }
}
