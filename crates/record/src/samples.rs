//! The stream that a signal handler writes, and nobody else.
//!
//! ```text
//!   thread     enter ── events: stream.obs, taskscope.obs ── leave       its entry lock
//!   handler          ┊ enter_in_handler: samples.obs ┊                   an entry lock of its own
//!   finisher   closes both entry locks, waits for both
//! ```
//! Everything here is async-signal-safe: no lock, no allocation. A full region costs a few system
//! calls (`open`, `fallocate`, `pwrite`, `close`), which handlers may make.

use std::path::{Path, PathBuf};

use taskscope_event::Code;

use crate::clock::ThreadClock;
use crate::entry_lock::{Entry, EntryLock};
use crate::stream::{Stream, StreamFile};
use crate::thread::ThreadRecorder;
use crate::tls;

/// A thread's sample stream, its entry lock, and a clock for the handler alone.
pub(crate) struct Samples {
    pub(crate) entry_lock: EntryLock,
    clock: ThreadClock,
    stream: Option<Stream>,
    path: PathBuf,
}

impl Samples {
    /// No stream: nothing can be sampled.
    pub(crate) fn none() -> Self {
        Samples {
            entry_lock: EntryLock::open(),
            clock: ThreadClock::default(),
            stream: None,
            path: PathBuf::new(),
        }
    }

    /// Creates `samples.obs`.
    pub(crate) fn create(directory: &Path) -> Option<Self> {
        let stream = Stream::create(directory, StreamFile::Samples).ok()?;
        let path = directory.join(StreamFile::Samples.file_name());
        Some(Samples { stream: Some(stream), path, ..Samples::none() })
    }

    /// Samples that found no room.
    pub(crate) fn lost_events(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.lost_events)
    }

    /// As [`Stream::finish`]; a stream without samples leaves no file.
    pub(crate) fn finish(&mut self) -> Option<Vec<PathBuf>> {
        let Some(mut stream) = self.stream.take() else { return Some(vec![]) };
        let is_empty = stream.is_empty();
        let tails = stream.finish();
        if is_empty {
            let _ = std::fs::remove_file(&self.path);
        }
        tails
    }
}

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

    /// What `attach` was given.
    pub fn user(&self) -> *mut () {
        // SAFETY: the recorder lives; this field never changes.
        unsafe { (*self.0).user() }
    }

    /// Whether the thread was interrupted while it recorded an event: what it knows of itself may be
    /// half changed.
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
