//! Rows of events in the file.

use crate::spans::{KindRow, ProcessRow, ThreadRow};

/// A row of events in the file: a thread, or a stream of a device.
#[derive(Default)]
pub(super) struct Lane {
    pub process: ProcessRow,
    pub tid: String,
    pub name: String,
    pub thread: Option<ThreadRow>,
    pub queue: Option<u32>,
    /// Begins and ends that are not in one event.
    pub halves: Vec<Half>,
}

/// A begin or an end.
pub(super) struct Half {
    pub at: u64,
    pub number: usize,
    /// The kind of the begin; none for an end.
    pub begins: Option<KindRow>,
}
