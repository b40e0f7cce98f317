//! What a slice keeps of a trace, and how much that was.

/// What to keep.
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

/// What was kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sliced {
    /// Streams that have events in the slice.
    pub streams: u64,
    /// Events of the trace.
    pub events: u64,
    /// Events that are added to them: what is open at the borders, and what threads that are left out had told.
    pub added: u64,
}
