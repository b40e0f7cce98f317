//! The activity of a thread, as far as CPUs are concerned.

use taskscope_execution::ThreadIndex;

/// Pieces of threads' time at most; chains of further waits are not followed.
pub(super) const MAX_PIECES: usize = 4_000_000;

/// The activity of a thread at an instant, as far as CPUs are concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    Runs,
    HasNoCpu,
    /// Would run otherwise; the number of the loss.
    Waits(u32),
    /// It is not known whether it would run otherwise: a recorded wait, the number of the loss.
    WaitsUnknown(u32),
    /// The same outside of recorded waits: whether it is blocked.
    NotKnown(bool),
    /// Sleeps by itself, without other work; the number of the loss.
    Sleeps(u32),
    /// Waits for requests from outside.
    Listens,
    /// Waits for the end of a thread, or for a wake that does not come.
    Rests,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Piece {
    pub(super) thread: ThreadIndex,
    pub(super) from: u64,
    pub(super) until: u64,
    pub(super) doing: Doing,
}
