//! Options for opening a trace.

use std::path::PathBuf;

/// The order in which the events of a file are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReadOrder {
    /// Unsorted regions sorted, clocks that go back raised: clocks never decrease.
    #[default]
    Repaired,
    /// The stored order, with unmodified clocks.
    Stored,
}

/// Source of the offsets between the clocks of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ClockSource {
    /// `clock-offsets.txt` in the trace's root, if present.
    #[default]
    Beside,
    /// This file.
    File(PathBuf),
    /// No correction.
    None,
}

/// Options for opening a trace.
#[derive(Clone, Debug)]
pub struct OpenOptions {
    /// Offsets between hosts.
    pub clocks: ClockSource,
    /// Whether to read `taskscope.obs` too.
    pub own_events: bool,
    /// The order in which events are read.
    pub order: ReadOrder,
    /// Whether to keep the clocks of turns while streams are surveyed, for a caller of [`Trace::turns`](crate::Trace::turns).
    pub turns: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            clocks: ClockSource::Beside,
            own_events: true,
            order: ReadOrder::Repaired,
            turns: false,
        }
    }
}
