//! Place of an event in its trace.

use taskscope_event::Code;

/// The event that is being played, as far as reports need it.
#[derive(Clone, Copy, Default)]
pub(super) struct Current {
    pub stream: usize,
    pub code: Option<Code>,
    pub offset: u64,
    pub time_ns: i64,
}
