//! The samples of the interrupted thread, for a signal handler.

use taskscope_event::Code;

use crate::entry_lock::Entry;
use crate::samples::Samples;
use crate::thread::ThreadRecorder;
use crate::tls;

/// The calling thread's recorder, as a signal handler may use it.
pub struct InHandler(*mut ThreadRecorder);

/// For a signal handler: the calling thread's samples. `None` when the thread is not attached, was
/// forked, has ended, or when the handler interrupted another one that is in.
#[inline]
pub fn enter_in_handler() -> Option<InHandler> {
    let recorder = tls::get().cast::<ThreadRecorder>();
    if recorder.is_null() {
        return None;
    }
    // SAFETY: set by `attach`, never unmapped; only atomics are touched until the entry lock is ours.
    match unsafe { &(*recorder).samples.entry_lock }.enter() {
        Entry::Open => Some(InHandler(recorder)),
        Entry::Busy | Entry::Closed => None,
    }
}

impl InHandler {
    /// Nanoseconds of `CLOCK_MONOTONIC`.
    pub fn now(&mut self) -> u64 {
        self.samples().clock.now()
    }

    /// The user data of `attach`.
    pub fn user(&self) -> *mut () {
        // SAFETY: the recorder lives; this field never changes.
        unsafe { (*self.0).user() }
    }

    /// Whether the thread was interrupted while it recorded an event: its own data may be half changed.
    pub fn interrupted_an_event(&self) -> bool {
        // SAFETY: the recorder lives; only an atomic is read.
        unsafe { (*self.0).is_busy() }
    }

    /// Writes a sample, stored as `parts` one after another. Returns whether there was room.
    pub fn sample(&mut self, at: u64, code: Code, parts: &[&[u8]]) -> bool {
        self.samples().stream.as_mut().is_some_and(|stream| stream.jumbo(at, code, parts))
    }

    fn samples(&mut self) -> &mut Samples {
        // SAFETY: the entry lock is ours, and only its holder touches the rest.
        unsafe { &mut (*self.0).samples }
    }
}

impl Drop for InHandler {
    fn drop(&mut self) {
        // SAFETY: the memory stays.
        unsafe { (*self.0).samples.entry_lock.leave() }
    }
}
