//! Events of a signal handler that interrupts the recorder of its own thread.
//!
//! ```text
//!   thread   enter ──── half an event … ┊ … the rest ──── leave, and copy the side events
//!   handler                             ┊ enter: a nested recorder, with its streams in the side areas
//! ```
//! The side areas are part of the mapped tails ([`taskscope_event::tail`]), so they survive the
//! process as the streams do. Handlers that interrupt anything else find the entry lock free, and write the
//! stream itself. The copied events are given at least the clock of the event that they interrupted.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering::Relaxed;

use taskscope_event::tail;

use crate::entry_lock::Entry;
use crate::stream::Stream;
use crate::thread::ThreadRecorder;

/// The side stream of a stream.
pub(crate) fn stream(of: &Stream) -> Stream {
    let area = of.side_area();
    Stream::in_memory(area, if area.is_null() { 0 } else { tail::SIDE.bytes as usize })
}

/// Enters the nested recorder of `main`, which is busy; `None` (and a counted loss) for a handler that
/// interrupted a handler.
///
/// # Safety
/// `main` is the calling thread's recorder.
#[cold]
#[inline(never)]
pub(crate) unsafe fn enter(main: *mut ThreadRecorder) -> Option<*mut ThreadRecorder> {
    // SAFETY: only atomics and a pointer that never changes are touched.
    unsafe {
        let nested = (*main).nested;
        if nested.is_null() || !(*main).entry_lock.is_recording() {
            return None;
        }
        if (*nested).entry_lock.enter() == Entry::Open {
            return Some(nested);
        }
        (*main).reentered.fetch_add(1, Relaxed);
        None
    }
}

/// Completes a left entry lock with pending work: a nested recorder notifies its main one, a main one copies
/// the events.
///
/// # Safety
/// `recorder` is one of the calling thread.
#[cold]
#[inline(never)]
pub(crate) unsafe fn settle(recorder: *mut ThreadRecorder) {
    // SAFETY: only atomics are touched without the entry lock; the masks are valid for writing.
    unsafe {
        let main = (*recorder).main;
        if !main.is_null() {
            (*main).pending.store(1, Relaxed);
            return;
        }
        while (*recorder).pending.load(Relaxed) != 0 {
            // A handler that came now would find both entry locks busy, and its events would be lost.
            let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            libc::sigfillset(all.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_BLOCK, all.as_ptr(), before.as_mut_ptr());
            let open = (*recorder).entry_lock.enter() == Entry::Open;
            if open {
                drain(&mut *recorder);
                (*recorder).entry_lock.leave();
            }
            libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut());
            if !open {
                return;
            }
        }
    }
}

/// Copies the nested recorder's events; the caller is in, or is the finisher.
pub(crate) fn drain(recorder: &mut ThreadRecorder) {
    if recorder.nested.is_null() {
        return;
    }
    recorder.pending.store(0, Relaxed);
    // SAFETY: the nested recorder has memory of its own, and holding its entry lock keeps handlers out.
    let nested = unsafe { &mut *recorder.nested };
    nested.entry_lock.hold();
    let latest = recorder.clock.last_ns();
    let areas = (recorder.standard.side_area(), recorder.own.side_area());
    if !areas.0.is_null() {
        recorder.standard.append_from_side(&mut nested.standard, areas.0, latest);
    }
    if !areas.1.is_null() && nested.own.is_at_or_after(areas.1) {
        recorder.own.append_from_side(&mut nested.own, areas.1, latest);
    }
    recorder.own.lost_events += core::mem::take(&mut nested.own.lost_events);
    nested.entry_lock.leave();
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::ovni;

    #[test]
    fn each_event_without_room_is_lost() {
        let mut area = [0; 64];
        let mut side = Stream::in_memory(area.as_mut_ptr(), area.len());
        (1..=3).for_each(|at| assert!(side.point(at, ovni::BURST, [])));
        let mut full = Stream::in_memory(core::ptr::null_mut(), 0);
        full.append_from_side(&mut side, area.as_mut_ptr(), 0);
        assert_eq!(full.lost_events, 3);
    }
}
