//! How an event of the instrument model gets into the trace, and to sinks.
//!
//! ```text
//!  put ── all is well: clock, store ──▶ the thread's taskscope.obs
//!    └── not attached, switched off, filtered, sinks loaded, ended ──▶ put_slow
//! ```
//! Events are stored without reserving room for an end, which may come on another thread; [`crate::unpaired`]
//! handles a lack of room.

use core::sync::atomic::Ordering::Relaxed;

use taskscope_event::Code;
use taskscope_event::models::instrument as i;

use super::attaching::attach_with_own_stream;
use super::dictionary;
use super::feature::IS_COMPILED_IN;
use super::sinks;
use crate::thread::{self, enter, enter_plain};
use crate::{event_filter, late_count, late_events, process};

/// Stores an event on the fast path. Returns whether it was stored; if not, it may still be wanted.
#[inline(always)]
fn store<const N: usize>(code: Code, payload: [u8; N]) -> bool {
    let Some(mut recorder) = enter_plain() else { return false };
    let at = recorder.now();
    recorder.own_unpaired(at, code, payload);
    true
}

/// Records an event. Returns whether it was wanted, so that its end is, too.
#[inline(always)]
pub(super) fn put<const N: usize>(code: Code, payload: [u8; N]) -> bool {
    IS_COMPILED_IN && (store(code, payload) || put_slow(code, payload, false))
}

/// [`put`] for the end of a recorded section, which is recorded whatever the switch's state.
#[inline(always)]
pub(super) fn put_end<const N: usize>(code: Code, payload: [u8; N]) {
    let _ = IS_COMPILED_IN && (store(code, payload) || put_slow(code, payload, true));
}

/// [`put`] and [`put_end`] for libraries, whose threads outlive the recording: events after its end are no mistakes, and are
/// not counted.
#[inline]
pub(super) fn put_until_the_end<const N: usize>(code: Code, payload: [u8; N], is_end: bool) -> bool {
    // Streams are closed after recording has finished.
    IS_COMPILED_IN && (store(code, payload) || (!process::has_finished() && put_slow(code, payload, is_end)))
}

#[cold]
#[inline(never)]
pub(super) fn put_slow<const N: usize>(code: Code, payload: [u8; N], is_end: bool) -> bool {
    if !is_wanted(code, is_end) {
        return false;
    }
    sinks::pass(code, &payload, |least| {
        if let Some(mut recorder) = enter() {
            recorder.raise_clock(least);
            let at = recorder.now();
            recorder.own_unpaired(at, code, payload);
            return Some(at);
        }
        None
    })
}

/// [`put`] with data of any length.
pub(super) fn put_data(code: Code, data: &[u8]) -> bool {
    if !is_wanted(code, false) {
        return false;
    }
    sinks::pass(code, data, |least| {
        let mut recorder = enter()?;
        recorder.raise_clock(least);
        let at = recorder.now();
        recorder.own_jumbo(at, code, &[data]);
        Some(at)
    })
}

/// Whether the event is to be recorded or shown at all; attaches the thread if need be.
fn is_wanted(code: Code, is_end: bool) -> bool {
    if !IS_COMPILED_IN {
        return false;
    }
    if process::has_finished() {
        late_count::count(code);
        return false;
    }
    if !event_filter::wants(code) && !is_end {
        return false;
    }
    attach() || sinks::are_loaded()
}

/// Starts recording the calling thread, if the process records. Returns whether it records now.
pub(super) fn attach() -> bool {
    if thread::is_attached() {
        return true;
    }
    let attached = attach_with_own_stream();
    if attached {
        dictionary::write_what_is_new();
    }
    attached
}

/// An event of the instrument model as taskscope.h's functions raise it: `code`, then its payload of 0, 4, 8,
/// 12 or 16 bytes. Returns whether it was wanted.
#[doc(hidden)]
pub fn raise(code: Code, payload: &[u8], is_end: bool) -> bool {
    debug_assert_eq!(code.model(), i::LETTER);
    match payload.len() {
        0 => put_slow::<0>(code, [], is_end),
        4 => put_slow::<4>(code, fixed(payload), is_end),
        8 => put_slow::<8>(code, fixed(payload), is_end),
        12 => put_slow::<12>(code, fixed(payload), is_end),
        _ => put_slow::<16>(code, fixed(payload), is_end),
    }
}

/// [`raise`] for a model's events with data of any length, also as short as a payload.
#[doc(hidden)]
pub fn raise_data(code: Code, data: &[u8]) -> bool {
    debug_assert_eq!(code.model(), i::LETTER);
    put_data(code, data)
}

fn fixed<const N: usize>(payload: &[u8]) -> [u8; N] {
    let mut bytes = [0; N];
    for (to, from) in bytes.iter_mut().zip(payload) {
        *to = *from;
    }
    bytes
}

/// Events that came after the end of recording.
#[doc(hidden)]
pub fn late_events() -> u64 {
    late_events::COUNT.load(Relaxed)
}
