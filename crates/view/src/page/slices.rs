//! A range of time as a trace of its own, in one archive for a browser to save.

use super::Page;
use std::cell::Cell;
use std::io;
use std::ops::ControlFlow;
use taskscope_analysis::lives_of_threads;
use taskscope_session::devices::{operations_of_part, read_devices};
use taskscope_session::{off_cpu_of_run, waits_of_part};
use taskscope_trace::{MergedEvent, OpenOptions, Slice, Trace};

/// Larger slices are left to the command line, which writes them to disk.
pub const MAX_SLICE_BYTES: u64 = 512 << 20;

/// Code and clock of an event.
const EVENT_HEAD_BYTES: u64 = 12;

/// The reason why a slice cannot be made.
#[derive(Debug)]
pub enum SliceError {
    /// The trace cannot be read any more, or the temporary directory cannot be written.
    Io(io::Error),
    /// The range has no events.
    Empty,
    /// More than [`MAX_SLICE_BYTES`].
    TooLarge,
}

impl Page {
    /// The trace from `from` to before `to`, nanoseconds since the start of the trace, as a tar archive with
    /// one directory called `name`. Only the temporary directory is written.
    ///
    /// # Errors
    /// Fails if the slice does not exist, or if it is too large.
    pub fn slice_archive(&self, from: u64, to: u64, name: &str) -> Result<Vec<u8>, SliceError> {
        let trace = Trace::open(&self.root, &OpenOptions::default())
            .map_err(|error| SliceError::Io(io::Error::other(error)))?;
        let clock = |at: u64| i64::try_from(self.start().saturating_add(at)).unwrap_or(i64::MAX);
        let off_cpu = trace.may_have_os_times().then(|| off_cpu_of_run(&self.execution));
        let clocks = (clock(from), clock(to));
        let waits = trace
            .has_thread_waits()
            .then(|| waits_of_part(&self.execution, clocks, &[], &lives_of_threads(&self.execution)));
        let operations = Some(operations_of_part(&read_devices(&trace), clocks));
        let slice = Slice { clocks: Some(clocks), off_cpu, waits, operations, ..Slice::default() };
        let folder = tempfile::tempdir().map_err(SliceError::Io)?;
        let root = folder.path().join("slice");
        // Slices are made in memory.
        let bytes = Cell::new(0);
        let is_too_large = || bytes.get() > MAX_SLICE_BYTES;
        let keeps = |merged: &MergedEvent<'_>| {
            if merged.event.clock_ns >= clocks.0 {
                bytes.set(bytes.get() + EVENT_HEAD_BYTES + merged.event.payload.len() as u64);
            }
            true
        };
        let between = |_| if is_too_large() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
        let sliced = match trace.write_part(&slice, &root, keeps, between) {
            Err(_) if is_too_large() => return Err(SliceError::TooLarge),
            sliced => sliced.map_err(SliceError::Io)?,
        };
        if sliced.streams == 0 {
            return Err(SliceError::Empty);
        }
        let bytes = size_of(&root).map_err(SliceError::Io)?;
        if bytes > MAX_SLICE_BYTES {
            return Err(SliceError::TooLarge);
        }
        let mut archive = tar::Builder::new(Vec::with_capacity(bytes as usize + (1 << 16)));
        archive.append_dir_all(name, &root).and_then(|()| archive.into_inner()).map_err(SliceError::Io)
    }
}

fn size_of(directory: &std::path::Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        let kind = entry.metadata()?;
        bytes += if kind.is_dir() { size_of(&entry.path())? } else { kind.len() };
    }
    Ok(bytes)
}
