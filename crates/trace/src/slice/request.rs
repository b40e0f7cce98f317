//! The part of a trace that a slice keeps, and its size.

/// The part to keep.
#[derive(Clone, Debug, Default)]
pub struct Slice {
    /// Corrected clocks: begin (included) and end (not included); `None` keeps all.
    pub clocks: Option<(i64, i64)>,
    /// Thread ids; empty keeps all.
    pub threads: Vec<i64>,
    /// Names of models besides `ovni`; empty keeps all.
    pub models: Vec<String>,
}

/// Loom and process id.
pub(super) type Process<'a> = (Option<&'a str>, Option<i64>);

/// Counts of the kept events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sliced {
    /// Streams that have events in the slice.
    pub streams: u64,
    /// Events of the trace.
    pub events: u64,
    /// Events that are added to them: restored states at the borders, and declarations of removed threads.
    pub added: u64,
}
