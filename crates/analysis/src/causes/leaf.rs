//! The leaves of the ledger.

use crate::forest::Letter;
use crate::keys::Who;

/// What a worker's nanosecond went into. Every nanosecond has exactly one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Leaf {
    /// The body of a task.
    Work,
    /// Waiting for a lock.
    LockWait,
    /// In a communication call.
    Communication,
    /// Waiting for an operation of a device.
    Device,
    /// Starting or ending a library of the job.
    Start,
    /// On a CPU that is left free for the noise of the system.
    AbsorbingNoise,
    /// In a known section of the runtime.
    Runtime,
    /// Able to run, but not on a CPU.
    System,
    /// Blocked in the kernel, in code of the program.
    Blocked,
    /// The next task was not created yet.
    CreateWait,
    /// Its inputs were not all produced.
    DependWait,
    /// They were, but the last was not sent.
    SendWait,
    /// It was under way.
    Transfer,
    /// It had arrived, and the runtime had not noticed.
    Deliver,
    /// The task could start, and did not.
    Dispatch,
    /// In a barrier, taskwait or the like, for others to arrive or end.
    Sync,
    /// After the worker's last task, while others executed.
    Drain,
    /// After all tasks.
    Shutdown,
}

impl Leaf {
    /// All leaves.
    pub const ALL: [Leaf; 18] = [
        Leaf::Work,
        Leaf::LockWait,
        Leaf::Communication,
        Leaf::Device,
        Leaf::Start,
        Leaf::AbsorbingNoise,
        Leaf::Runtime,
        Leaf::System,
        Leaf::Blocked,
        Leaf::CreateWait,
        Leaf::DependWait,
        Leaf::SendWait,
        Leaf::Transfer,
        Leaf::Deliver,
        Leaf::Dispatch,
        Leaf::Sync,
        Leaf::Drain,
        Leaf::Shutdown,
    ];

    /// Its name in tables, in JSON, and for `explain`.
    pub const fn name(self) -> &'static str {
        match self {
            Leaf::Work => "work",
            Leaf::LockWait => "lock.wait",
            Leaf::Communication => "comm",
            Leaf::Device => "device.wait",
            Leaf::Start => "runtime.start",
            Leaf::AbsorbingNoise => "absorbing",
            Leaf::Runtime => "runtime",
            Leaf::System => "os",
            Leaf::Blocked => "blocked",
            Leaf::CreateWait => "create.wait",
            Leaf::DependWait => "depend.wait",
            Leaf::SendWait => "send.wait",
            Leaf::Transfer => "transfer",
            Leaf::Deliver => "deliver",
            Leaf::Dispatch => "dispatch",
            Leaf::Sync => "sync",
            Leaf::Drain => "drain",
            Leaf::Shutdown => "shutdown",
        }
    }

    /// Whether the worker had nothing of its own to do.
    pub const fn is_idle(self) -> bool {
        self as u8 >= Leaf::CreateWait as u8
    }

    /// Whether the cause of such a wait is that of another worker.
    pub(crate) const fn follows_another(self) -> bool {
        matches!(self, Leaf::CreateWait | Leaf::DependWait | Leaf::Sync)
    }
}

/// The letter under which a culprit's time counts in the SLOW view.
pub fn letter_of(who: Who) -> Letter {
    match who {
        Who::Task(_) | Who::Creator(_) | Who::Peer(_) => Letter::Starvation,
        Who::Link(..) | Who::Call(_) | Who::Device(_) | Who::Blocked(_) => Letter::Latency,
        Who::Lock(..) => Letter::Contention,
        Who::Uniform(_)
        | Who::Dispatch(_)
        | Who::Runtime(_)
        | Who::Start(_)
        | Who::AbsorbingNoise(_)
        | Who::Send
        | Who::Startup
        | Who::System(_)
        | Who::Delivery(_)
        | Who::Nobody => Letter::Overhead,
    }
}
