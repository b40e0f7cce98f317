//! How a thread opens its recorder for an event, and leaves it.

use core::ops::{Deref, DerefMut};
use core::sync::atomic::{Ordering::*, compiler_fence};

use taskscope_event::Code;
use taskscope_event::framing::EVENT_HEADER_BYTES;

use super::ThreadRecorder;
use crate::entry_lock::Entry;
use crate::stream::Nesting;
use crate::{event_filter, nested_recorder, tls};

/// The calling thread's recorder while it is held open for events. Keep it for one callback only.
pub struct Recording(*mut ThreadRecorder);

/// Opens the calling thread's recorder. `None` if the thread is not attached, in a forked child, and after
/// the end. In a signal handler that interrupted another [`Recording`] it returns a recorder of its own; its
/// events (up to 2 KiB) follow the interrupted one's.
#[inline(always)]
pub fn enter() -> Option<Recording> {
    enter_at(tls::get().cast::<ThreadRecorder>())
}

/// [`enter`] for a caller that already has the thread's pointer.
#[inline(always)]
fn enter_at(recorder: *mut ThreadRecorder) -> Option<Recording> {
    if recorder.is_null() {
        return None;
    }
    // SAFETY: the pointer was set by `attach`, and the memory is never unmapped. Only atomics are
    // touched until the entry lock is ours.
    unsafe {
        if (*recorder).pending.load(Relaxed) != 0 {
            // A handler between an entry lock's release and its settling emits after the pending events.
            nested_recorder::settle(recorder);
        }
    }
    // SAFETY: as above.
    match unsafe { &(*recorder).entry_lock }.enter() {
        Entry::Open => Some(Recording(recorder)),
        // SAFETY: as above.
        Entry::Busy => unsafe { nested_recorder::enter(recorder) }.map(Recording),
        Entry::Closed => None,
    }
}

/// [`enter`] for callers that obey the switch and the filter: `None` too if `code` is filtered out.
#[inline(always)]
pub fn enter_for(code: Code) -> Option<Recording> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    if recorder.is_null() {
        return None;
    }
    // SAFETY: as in `enter`.
    let filter = unsafe { (*recorder).filter.load(Relaxed) };
    if filter != event_filter::ALL && (filter == event_filter::OFF || !event_filter::lets_pass(code)) {
        return None;
    }
    enter_at(recorder)
}

/// [`enter`] for the usual case only: `None` also if the switch, the filter or sinks apply.
#[inline(always)]
pub(crate) fn enter_plain() -> Option<Recording> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`.
    if recorder.is_null() || unsafe { (*recorder).filter.load(Relaxed) } != event_filter::ALL {
        return None;
    }
    enter_at(recorder)
}

/// [`enter_for`] and [`ThreadRecorder::raw`] for the usual case; otherwise returns `false` without an effect,
/// and those two handle the event. All calls here are tail calls, so the event path saves no registers.
///
/// # Safety
/// As many bytes as `flags` specify are readable at `payload`.
#[inline(always)]
pub unsafe fn store_plain(at: u64, flags: u8, code: Code, payload: *const u8, nesting: Nesting) -> bool {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`; the stream is ours while the entry lock is. The payload by contract.
    unsafe {
        if recorder.is_null()
            || (*recorder).filter.load(Relaxed) != event_filter::ALL
            // A handler's pending events precede the next ones.
            || (*recorder).pending.load(Relaxed) != 0
            || (*recorder).entry_lock.enter() != Entry::Open
        {
            return false;
        }
        let stored = (*recorder).standard.raw_if_room(at, flags, code, payload, nesting);
        (*recorder).entry_lock.leave();
        compiler_fence(SeqCst);
        if stored && (*recorder).pending.load(Relaxed) != 0 {
            nested_recorder::settle(recorder);
        }
        // An event that is not stored here is retried, and pending ones are settled then.
        stored
    }
}

/// The calling thread's [`ThreadRecorder::now`] after all its earlier loads, in the usual case. As
/// [`store_plain`].
#[inline(always)]
pub fn ordered_now_plain() -> Option<u64> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`; the clock is ours while the entry lock is.
    unsafe {
        if recorder.is_null() || (*recorder).entry_lock.enter() != Entry::Open {
            return None;
        }
        let now = (*recorder).clock.ordered_now_of_anchor();
        (*recorder).entry_lock.leave();
        compiler_fence(SeqCst);
        match now {
            Some(now) if (*recorder).pending.load(Relaxed) != 0 => Some(settle_then(recorder, now)),
            now => now,
        }
    }
}

/// # Safety
/// The conditions of [`nested_recorder::settle`].
#[cold]
#[inline(never)]
unsafe fn settle_then(recorder: *mut ThreadRecorder, now: u64) -> u64 {
    // SAFETY: by contract.
    unsafe { nested_recorder::settle(recorder) };
    now
}

/// [`enter`] for fast paths of callbacks: `None` also if [`enter`] would do more than open the entry lock.
/// Dropping the result does not close the entry lock.
#[inline(always)]
pub fn enter_fast() -> Option<FastRecording> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    // SAFETY: as in `enter`.
    (!recorder.is_null() && unsafe { &(*recorder).entry_lock }.enter() == Entry::Open)
        .then_some(FastRecording(recorder))
}

/// The calling thread's recorder while it is held open by [`enter_fast`], until one of
/// [`FastRecording::leave`] and [`FastRecording::settle`]. All methods but the last are leaf functions, so
/// the caller has no registers to save.
#[must_use]
pub struct FastRecording(*mut ThreadRecorder);

impl FastRecording {
    /// [`ThreadRecorder::user`].
    #[inline(always)]
    pub fn user(&self) -> *mut () {
        // SAFETY: the entry lock is ours; the memory stays.
        unsafe { (*self.0).user }
    }

    /// [`ThreadRecorder::now`], if it does not need the kernel's clock.
    #[inline(always)]
    pub fn now(&mut self) -> Option<u64> {
        // SAFETY: as above.
        unsafe { (*self.0).clock.now_of_anchor() }
    }

    /// [`ThreadRecorder::point`] at the current time, if there is room and the kernel's clock is not needed;
    /// otherwise has no effect.
    #[inline(always)]
    pub fn point<const N: usize>(&mut self, code: Code, payload: [u8; N]) -> Option<()> {
        self.put(code, payload, Nesting::Point)
    }

    /// [`ThreadRecorder::begin`], as [`point`](Self::point), if there is room for its end, too.
    #[inline(always)]
    pub fn begin<const N: usize>(
        &mut self,
        code: Code,
        payload: [u8; N],
        end_payload_bytes: usize,
    ) -> Option<()> {
        self.put(code, payload, Nesting::Begin { end_bytes: EVENT_HEADER_BYTES + end_payload_bytes })
    }

    /// [`ThreadRecorder::end`], as [`point`](Self::point).
    #[inline(always)]
    pub fn end<const N: usize>(&mut self, code: Code, payload: [u8; N]) -> Option<()> {
        self.put(code, payload, Nesting::End)
    }

    #[inline(always)]
    fn put<const N: usize>(&mut self, code: Code, payload: [u8; N], nesting: Nesting) -> Option<()> {
        // SAFETY: the entry lock is ours; the memory stays.
        let ThreadRecorder { standard, clock, .. } = unsafe { &mut *self.0 };
        standard.put_now_if_room(clock, code, payload, nesting)
    }

    /// Leaves. If it returns a value, the caller must [`settle`](Self::settle) it.
    #[inline(always)]
    pub fn leave(self) -> Option<FastRecording> {
        // SAFETY: the memory stays; after leaving only atomics are touched.
        unsafe {
            (*self.0).entry_lock.leave();
            compiler_fence(SeqCst);
            ((*self.0).pending.load(Relaxed) != 0).then_some(self)
        }
    }

    /// Writes the events that a signal handler has left.
    #[cold]
    #[inline(never)]
    pub fn settle(self) {
        // SAFETY: it has been left.
        unsafe { nested_recorder::settle(self.0) }
    }
}

impl Deref for Recording {
    type Target = ThreadRecorder;
    #[inline(always)]
    fn deref(&self) -> &ThreadRecorder {
        // SAFETY: this thread holds the entry lock, so there is no other access; the memory stays.
        unsafe { &*self.0 }
    }
}

impl DerefMut for Recording {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut ThreadRecorder {
        // SAFETY: as above.
        unsafe { &mut *self.0 }
    }
}

impl Drop for Recording {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the memory stays; after leaving only atomics are touched.
        unsafe {
            (*self.0).entry_lock.leave();
            compiler_fence(SeqCst);
            if (*self.0).pending.load(Relaxed) != 0 {
                nested_recorder::settle(self.0);
            }
        }
    }
}
