//! A double buffer: one writer, drained by another thread without locks.
//!
//! ```text
//!   writer                             drainer
//!   busy = 1                           current = the other buffer
//!   ── compiler fence ──               ── membarrier: a full fence on every thread ──
//!   buffer = current                   busy == 0 ? the inactive buffer has no writer until the next swap
//!   … counts …
//!   busy = 0
//! ```
//! Either the writer sees the new buffer, or the drainer sees it busy. So the writer, which may be a signal
//! handler, pays three plain stores. The second buffer is prepared by the first swap: a short run does not
//! pay for it.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::*, compiler_fence};

/// Two values, of which one is current.
#[repr(C)]
pub struct DoubleBuffer<T> {
    busy: AtomicU32,
    /// Bytes from the first buffer to the current one.
    current: AtomicUsize,
    buffers: [UnsafeCell<T>; 2],
    has_swapped: AtomicBool,
}

// SAFETY: only the writer touches the current buffer, and only the drainer the inactive one, as drawn above.
unsafe impl<T: Send> Sync for DoubleBuffer<T> {}

impl<T> DoubleBuffer<T> {
    /// Creates a double buffer from two empty values; the first is current.
    pub fn new(first: T, second: T) -> DoubleBuffer<T> {
        let buffers = [first, second].map(UnsafeCell::new);
        let (busy, current) = (AtomicU32::new(0), AtomicUsize::new(0));
        DoubleBuffer { busy, current, buffers, has_swapped: AtomicBool::new(false) }
    }

    /// The buffer at an offset from the first: 0, or the size of one.
    #[inline(always)]
    fn buffer(&self, offset: usize) -> *mut T {
        debug_assert!(offset == 0 || offset == size_of::<UnsafeCell<T>>());
        self.buffers.as_ptr().wrapping_byte_add(offset).cast_mut().cast()
    }

    /// Changes the current buffer. For the writer only, a thread or its signal handler, and not within another `count` of the
    /// same double buffer. Async-signal-safe if `count` is.
    #[inline(always)]
    pub fn count<R>(&self, count: impl FnOnce(&mut T) -> R) -> R {
        count(&mut self.counting())
    }

    /// The current buffer, held until the guard is dropped, as in [`count`](Self::count). For code in which a call would
    /// cost more than the change.
    #[inline(always)]
    pub fn counting(&self) -> Counting<'_, T> {
        self.busy.store(1, Relaxed);
        compiler_fence(SeqCst);
        Counting { buffer: self.buffer(self.current.load(Acquire)), busy: &self.busy }
    }

    /// Makes the other buffer current; `prepare` gets the second one before its first use.
    /// [`drain_inactive`](Self::drain_inactive) may be called after a fence on every thread.
    pub fn swap(&self, prepare: impl FnOnce(&mut T)) {
        if !self.has_swapped.swap(true, Relaxed) {
            // SAFETY: the writer sees it only after the swap, and one thread at a time swaps.
            prepare(unsafe { &mut *self.buffer(size_of::<UnsafeCell<T>>()) });
        }
        self.current.fetch_xor(size_of::<UnsafeCell<T>>(), Release);
    }

    /// Passes the inactive buffer to `take`; returns false while the writer is still in it. [`swap`](Self::swap), a
    /// fence and this come in this order, from one thread at a time.
    pub fn drain_inactive(&self, take: impl FnOnce(&mut T)) -> bool {
        let other = self.buffer(self.current.load(Relaxed) ^ size_of::<UnsafeCell<T>>());
        if self.busy.load(Acquire) != 0 {
            return false;
        }
        // SAFETY: after the fence, a writer that is not busy sees the new buffer when it returns.
        take(unsafe { &mut *other });
        true
    }

    /// Passes both buffers to `take`, after the last use by the writer.
    ///
    /// # Safety
    /// The writer neither uses the buffers now nor will again.
    pub unsafe fn both(&self, mut take: impl FnMut(&mut T)) {
        for buffer in &self.buffers {
            // SAFETY: by contract.
            take(unsafe { &mut *buffer.get() });
        }
    }
}

/// Guard of the current buffer.
pub struct Counting<'a, T> {
    buffer: *mut T,
    busy: &'a AtomicU32,
}

impl<T> Deref for Counting<'_, T> {
    type Target = T;
    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: this is the writer, and `busy` keeps the drainer from this buffer.
        unsafe { &*self.buffer }
    }
}

impl<T> DerefMut for Counting<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.buffer }
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
    fn no_count_is_lost_between_the_buffers() {
        let _ = taskscope_record::fence_all_threads();
        let (buffers, ended) = (Arc::new(DoubleBuffer::new(0u64, 0)), Arc::new(AtomicBool::new(false)));
        let thread = std::thread::spawn({
            let (buffers, ended) = (buffers.clone(), ended.clone());
            move || {
                for _ in 0..200_000 {
                    buffers.count(|sum| *sum += 1);
                }
                ended.store(true, Release);
            }
        });
        let mut taken = 0;
        let (mut swaps, mut prepared) = (0, 0);
        loop {
            buffers.swap(|_| prepared += 1);
            if !taskscope_record::fence_all_threads() {
                buffers.swap(|_| prepared += 1);
                break;
            }
            while !buffers.drain_inactive(|sum| taken += core::mem::take(sum)) {
                std::thread::yield_now();
            }
            swaps += 1;
            if ended.load(Acquire) {
                break;
            }
        }
        thread.join().unwrap();
        // SAFETY: the thread has ended.
        unsafe { buffers.both(|sum| taken += core::mem::take(sum)) };
        assert_eq!(taken, 200_000, "after {swaps} swaps");
        assert_eq!(prepared, 1, "the second buffer, once");
    }
}
