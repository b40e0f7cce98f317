//! Intervals of a thread in which its state is uncertain.

use crate::ids::ThreadIndex;

/// The reason why an interval of a thread is uncertain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Doubt {
    /// Its stream ends here, before the thread: the last state is shown.
    StreamEnds,
    /// The event at its end contradicts the known state, so an earlier event is missing.
    DoesNotFit,
    /// The thread's clock went back over it: its events were recorded later, without their times.
    ClockGoesBack,
    /// Several threads run on one CPU.
    CpuShared,
}

impl Doubt {
    /// All doubts, in the order of their numbers.
    pub const ALL: [Doubt; 4] =
        [Doubt::StreamEnds, Doubt::DoesNotFit, Doubt::ClockGoesBack, Doubt::CpuShared];

    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Doubt::StreamEnds => "stream-ends",
            Doubt::DoesNotFit => "does-not-fit",
            Doubt::ClockGoesBack => "clock-goes-back",
            Doubt::CpuShared => "cpu-shared",
        }
    }
}

/// An uncertain interval of a thread or a CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncertain {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its first nanosecond.
    pub start: u64,
    /// The first nanosecond after it.
    pub end: u64,
    /// The reason.
    pub doubt: Doubt,
}
