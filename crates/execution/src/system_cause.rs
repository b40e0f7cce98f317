//! Times that the operating system took, with causes.

use crate::change::Section;
use crate::ids::{ObjectIndex, ThreadIndex};
use taskscope_cause::State;

/// The reason why the system is the cause.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum SystemCause {
    /// Something else had the CPU: another process, the kernel, or the limit of a control group; or a signal had stopped the process.
    NoCpu,
    /// The job's own threads had all CPUs that it may use.
    MoreWorkers,
    /// The system is not the cause: the thread was blocked in the kernel, in code of the program. That code alone is to
    /// blame, and others wait for the thread as for a running one; its sections are cut like those of the other causes.
    Blocked,
    /// The system is not the cause: the thread waited for a device in a call, in code of the program.
    Device,
}

impl SystemCause {
    /// All causes, in the order of their numbers.
    pub const ALL: [SystemCause; 4] =
        [SystemCause::NoCpu, SystemCause::MoreWorkers, SystemCause::Blocked, SystemCause::Device];

    /// The state of a worker in time with this cause.
    pub const fn state(self) -> State {
        match self {
            SystemCause::NoCpu => State::OutOfCpu,
            SystemCause::MoreWorkers => State::Oversubscribed,
            SystemCause::Blocked => State::Blocked,
            SystemCause::Device => State::TargetWait,
        }
    }

    /// Whether the thread wanted a CPU, and the system is the cause.
    pub const fn is_off_cpu(self) -> bool {
        matches!(self, SystemCause::NoCpu | SystemCause::MoreWorkers)
    }
}

/// A part of a thread's time that the system took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SystemTime {
    /// The thread.
    pub thread: ThreadIndex,
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// The reason.
    pub cause: SystemCause,
}

impl SystemTime {
    /// The section of the thread's track, changed by the cause.
    pub(crate) fn section(&self, under: &Section) -> Section {
        Section { state: self.cause.state(), object: ObjectIndex::NONE, ..*under }
    }
}
