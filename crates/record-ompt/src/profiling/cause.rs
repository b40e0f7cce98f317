//! The causes that a thread's time is booked to.

use taskscope_cause::State;

/// Cause of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Cause {
    // The program's own work.
    Task,
    Worksharing,
    Masked,
    ImplicitTask,
    Serial,
    // Waiting for a lock, or taking a free one.
    CriticalWait,
    LockWait,
    OrderedWait,
    AtomicWait,
    // Other time in which the thread has work, and nothing works for it.
    TaskCreation,
    Barrier,
    JoinBarrier,
    Taskwait,
    TaskwaitDepend,
    Taskgroup,
    Communication,
    // The rest.
    ForkJoin,
    TargetWait,
    Idle,
    NotStarted,
    Ended,
    /// Recording was paused.
    Unknown,
    // No thread has these: estimated parts of others (`no_cpu`).
    OutOfCpu,
    Oversubscribed,
}

/// How many causes there are.
pub const CAUSES: usize = Cause::ALL.len();

impl Cause {
    /// All causes, by number.
    pub const ALL: [Cause; 24] = {
        use Cause::*;
        [
            Task,
            Worksharing,
            Masked,
            ImplicitTask,
            Serial,
            CriticalWait,
            LockWait,
            OrderedWait,
            AtomicWait,
            TaskCreation,
            Barrier,
            JoinBarrier,
            Taskwait,
            TaskwaitDepend,
            Taskgroup,
            Communication,
            ForkJoin,
            TargetWait,
            Idle,
            NotStarted,
            Ended,
            Unknown,
            OutOfCpu,
            Oversubscribed,
        ]
    };

    /// The state of a trace's ledger that it is.
    pub const fn state(self) -> State {
        match self {
            Cause::Task => State::Task,
            Cause::Worksharing => State::Worksharing,
            Cause::Masked => State::Masked,
            Cause::ImplicitTask => State::ImplicitTask,
            Cause::Serial => State::Serial,
            Cause::TaskCreation => State::TaskCreation,
            Cause::ForkJoin => State::ForkJoin,
            Cause::Barrier => State::Barrier,
            Cause::JoinBarrier => State::JoinBarrier,
            Cause::Taskwait => State::Taskwait,
            Cause::TaskwaitDepend => State::TaskwaitDepend,
            Cause::Taskgroup => State::Taskgroup,
            Cause::CriticalWait => State::CriticalWait,
            Cause::LockWait => State::LockWait,
            Cause::OrderedWait => State::OrderedWait,
            Cause::AtomicWait => State::AtomicWait,
            Cause::TargetWait => State::TargetWait,
            Cause::Communication => State::Communication,
            Cause::Idle => State::Idle,
            Cause::NotStarted => State::NotStarted,
            Cause::Ended => State::Ended,
            Cause::Unknown => State::Unknown,
            Cause::OutOfCpu => State::OutOfCpu,
            Cause::Oversubscribed => State::Oversubscribed,
        }
    }

    /// Whether it is the program's own work.
    pub const fn is_useful(self) -> bool {
        (self as u8) <= Cause::Serial as u8
    }

    /// Whether it is waiting for a lock, or taking a free one.
    pub const fn is_mutex(self) -> bool {
        (self as u8) >= Cause::CriticalWait as u8 && (self as u8) <= Cause::AtomicWait as u8
    }

    /// Whether a worker in it lacks work.
    pub const fn is_idle(self) -> bool {
        matches!(self, Cause::Idle | Cause::NotStarted | Cause::Ended)
    }
}

/// Nanoseconds by cause.
pub type Sums = [u64; CAUSES];

/// Adds to a cause; the sums go around at the end of 64 bits, so that a part may be taken away again.
pub fn book(sums: &mut Sums, cause: Cause, ns: u64) {
    if let Some(sum) = sums.get_mut(cause as usize) {
        *sum = sum.wrapping_add(ns);
    }
}
