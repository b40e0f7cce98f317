//! The state of a thread.

use super::channel::ChannelState;
use super::task::Body;

/// State of a thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThreadState {
    /// Before its execution.
    #[default]
    Unknown,
    /// Running on its CPU.
    Running,
    /// Blocked.
    Paused,
    /// Ended.
    Dead,
    /// About to be blocked.
    Cooling,
    /// About to run.
    Warming,
}

impl ThreadState {
    /// Whether it may hold a CPU: running, cooling or warming.
    #[inline]
    pub fn is_active(self) -> bool {
        matches!(self, ThreadState::Running | ThreadState::Cooling | ThreadState::Warming)
    }

    /// Its value in views.
    pub(crate) fn value(self) -> i64 {
        match self {
            ThreadState::Unknown => 0,
            ThreadState::Running => 1,
            ThreadState::Paused => 2,
            ThreadState::Dead => 3,
            ThreadState::Cooling => 4,
            ThreadState::Warming => 5,
        }
    }
}

/// State of a thread in the machine.
#[derive(Default)]
pub(crate) struct ThreadMachine {
    pub(crate) state: ThreadState,
    pub(crate) cpu: Option<u32>,
    /// Whether it is in the count of running threads of that CPU.
    pub(crate) counted_on_cpu: bool,
    pub(crate) out_of_cpu: bool,
    pub(crate) channels: Vec<ChannelState>,
    pub(crate) nanos6_bodies: Vec<Body>,
    pub(crate) nosv_bodies: Vec<Body>,
    pub(crate) openmp_bodies: Vec<Body>,
    pub(crate) flush_begin_ns: i64,
    pub(crate) bursts: Vec<i64>,
    /// Number of the last event that rewrote the whole row.
    pub(crate) row_written_at: u64,
    pub(crate) state_written: bool,
    pub(crate) affinity_written: bool,
}

impl ThreadMachine {
    pub(crate) fn new(channels: Vec<ChannelState>) -> Self {
        ThreadMachine { channels, ..ThreadMachine::default() }
    }
}
