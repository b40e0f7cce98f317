//! Intervals off the CPU.

/// An interval off the CPU, or a period with sums of them.
pub(super) struct OffCpu {
    pub start: u64,
    pub end: u64,
    pub kind: Kind,
}

/// How a thread was off the CPU.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Runnable.
    Preempted,
    /// Blocked, and runnable for the last part of it.
    Blocked { delay_ns: u64 },
    /// Blocked, and not at its end yet.
    StillBlocked,
    /// Runnable without a CPU for a part of it.
    RunDelay { ns: u64 },
    /// Blocked for a part of it.
    BlockedSum { ns: u64 },
}
