//! The stream that only a signal handler writes.
//!
//! ```text
//!   thread     enter ── events: stream.obs, taskscope.obs ── leave       its entry lock
//!   handler          ┊ enter_in_handler: samples.obs ┊                   an entry lock of its own
//!   finisher   closes both entry locks, waits for both
//! ```
//! Everything here is async-signal-safe: no lock, no allocation. A full region costs a few system
//! calls (`open`, `fallocate`, `pwrite`, `close`), which handlers may make.

use std::path::{Path, PathBuf};
use taskscope_event::StreamFile;

use crate::clock::ThreadClock;
use crate::entry_lock::EntryLock;
use crate::stream::Stream;

/// A thread's sample stream, its entry lock, and a clock for the handler alone.
pub(crate) struct Samples {
    pub(crate) entry_lock: EntryLock,
    pub(crate) clock: ThreadClock,
    pub(crate) stream: Option<Stream>,
    path: PathBuf,
}

impl Samples {
    /// No stream: sampling is off.
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
        let path = directory.join(StreamFile::Samples.name());
        Some(Samples { stream: Some(stream), path, ..Samples::none() })
    }

    /// Gives the stream up, as [`Stream::discard`].
    pub(crate) fn discard(&mut self) {
        self.stream.take().iter_mut().for_each(Stream::discard);
    }

    /// Samples that found no room.
    pub(crate) fn lost_events(&self) -> u64 {
        self.stream.as_ref().map_or(0, |stream| stream.lost_events)
    }

    /// Finishes the stream as [`Stream::finish`] does; a stream without samples leaves no file.
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
