//! Off-CPU times of threads, from the operating system.

use crate::ids::ThreadIndex;

/// Source of the times off the CPU of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum OsSource {
    /// Nothing: not known, which is not none.
    #[default]
    Unknown,
    /// Its context switches: each time is known.
    Switches,
    /// Sums over periods of about 10 ms, spread over the thread's states: estimated.
    Estimated,
}

impl OsSource {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            OsSource::Unknown => "unknown",
            OsSource::Switches => "context-switches",
            OsSource::Estimated => "estimated",
        }
    }
}

/// An interval in which a thread could run and had no CPU, or was blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffCpu {
    /// The thread.
    pub thread: ThreadIndex,
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
}

/// A sum: somewhere from `start` to `end` the thread had no CPU, or was blocked, for `ns` nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunDelay {
    /// First nanosecond of the period.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Its nanoseconds.
    pub ns: u64,
}

/// Growth of the kernel's sums of a thread over the recording, nanoseconds; `None` if unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OsTotals {
    /// Time on a CPU.
    pub on_cpu_ns: Option<u64>,
    /// Time runnable without a CPU (`run_delay` of `schedstat`).
    pub run_delay_ns: Option<u64>,
}

/// Times off the CPU of one thread, as recorded.
#[derive(Clone, Debug, Default)]
pub struct OsTimes {
    /// Intervals in which the thread could run: start, and first nanosecond after it.
    pub runnable: Vec<(u64, u64)>,
    /// Intervals in which it was blocked.
    pub blocked: Vec<(u64, u64)>,
    /// Sums of runnable time.
    pub run_delays: Vec<RunDelay>,
    /// Sums of blocked time.
    pub blocked_sums: Vec<RunDelay>,
    /// The kernel's sums over the recording.
    pub totals: OsTotals,
    /// Blocked intervals that are in the sums only.
    pub coalesced: u64,
}
