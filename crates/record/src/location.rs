//! The stream of a location that is not a thread, such as a device queue: one `taskscope.obs` with its tail,
//! and a `taskscope.json`. It is written by one thread at a time, which need not be attached.

use crate::metadata::{Json, replace_file};
use crate::stream::Stream;
use std::io;
use std::path::{Path, PathBuf};
use taskscope_event::{Code, StreamFile, layout};

/// A location's stream. Stored events survive a `kill -9`, as a thread's do.
pub struct LocationStream {
    stream: Stream,
    directory: PathBuf,
}

// SAFETY: the stream is a file and its mappings, with no other references.
unsafe impl Send for LocationStream {}

impl LocationStream {
    /// Makes the directory, which must not exist, and the stream in it.
    ///
    /// # Errors
    /// Those of the system; a file that cannot be created counts as out of space.
    pub fn create(directory: &Path) -> io::Result<Self> {
        std::fs::create_dir(directory)?;
        let stream = Stream::create(directory, StreamFile::Own).map_err(|_| io::ErrorKind::StorageFull)?;
        Ok(LocationStream { stream, directory: directory.to_owned() })
    }

    /// An event of at most 16 bytes. Returns whether there was room.
    pub fn point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        self.stream.point(at, code, payload)
    }

    /// An event with data of any length, stored as `parts` one after another. Returns whether there
    /// was room.
    pub fn jumbo(&mut self, at: u64, code: Code, parts: &[&[u8]]) -> bool {
        self.stream.jumbo(at, code, parts)
    }

    /// Number of events lost for lack of room.
    pub fn lost_events(&self) -> u64 {
        self.stream.lost_events
    }

    /// Replaces `taskscope.json`.
    ///
    /// # Errors
    /// Those of the system; the earlier file stays.
    pub fn write_metadata(&self, metadata: &Json) -> io::Result<()> {
        replace_file(metadata.as_str(), &self.directory.join(layout::LOCATION_METADATA))
    }

    /// Ends the stream; `metadata` must mark it as finished. On failure the stream stays unfinished, and
    /// readable as such.
    ///
    /// # Errors
    /// Those of the system.
    pub fn finish(mut self, metadata: &Json) -> io::Result<()> {
        let tails = self.stream.finish().ok_or(io::ErrorKind::StorageFull)?;
        self.write_metadata(metadata)?;
        tails.iter().for_each(|tail| {
            let _ = std::fs::remove_file(tail);
        });
        Ok(())
    }
}
