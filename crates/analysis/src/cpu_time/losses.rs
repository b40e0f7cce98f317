//! Unused CPU time with its reasons.

use taskscope_execution::{ObjectIndex, ThreadIndex};

use crate::wait_chains::{ThreadCall, Tie};

/// The reason why CPUs were not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LostTo {
    /// Threads could run and had no CPU, or waited for such threads.
    NoCpu,
    /// The same, because they are bound to CPUs on which other threads of the program run: the first thread with that mask.
    Bound(ThreadIndex),
    /// Threads wait for another thread.
    Wait {
        /// `taskscope_event::models::wait::kind`.
        kind: u32,
        /// The object.
        object: ObjectIndex,
        /// The call in which they wait.
        at: ThreadCall,
        /// The thread waited for.
        first: Tie,
        /// The last thread of the chain of waits, the same in a chain of one.
        last: Tie,
        /// Threads in the chain.
        length: u32,
        /// The sleep or I/O of the last thread; `None` if it ran.
        blocked: Option<(u32, ThreadCall)>,
        /// Whether the awaited lock was free: its next holder did not run yet.
        is_free: bool,
    },
    /// Threads sleep or wait for a device: the kind and call.
    Blocked(u32, ThreadCall),
    /// Locks were free, or threads woken, and they did not run yet.
    Handover,
    /// Too few threads have work.
    Alone,
    /// No thread has work.
    Idle,
    /// Threads wait in a recorded call (its kind), and the thread that ends the wait is not known.
    WaitUnknown(u32, ThreadCall),
    /// Threads wait for another thread, which is blocked in a call that is not recorded.
    WaitUnrecorded {
        /// `taskscope_event::models::wait::kind`.
        kind: u32,
        /// The object.
        object: ObjectIndex,
        /// The call in which they wait.
        at: ThreadCall,
        /// The last thread of the chain of waits.
        thread: ThreadIndex,
    },
    /// Threads wait in a recorded call (its kind) until the time that its caller allows is over.
    TimedOut(u32, ThreadCall),
    /// Threads wait in a recorded call (its kind) that no recorded thread ends: for a peer, a timer, another process.
    Outside(u32, ThreadCall),
    /// Threads are blocked in calls that are not recorded.
    BlockedUnknown,
    /// The activity of threads is not recorded.
    Unknown,
}

/// CPU time that was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuLoss {
    /// The charged party.
    pub to: LostTo,
    /// CPU-nanoseconds.
    pub ns: u64,
    /// Nanoseconds of the threads concerned, over the whole time; whether or not CPUs were unused.
    pub threads_ns: u64,
}

/// The CPU time of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CpuTime {
    /// CPUs that the processes may use, in thousandths; over all hosts.
    pub millicpus: u64,
    /// CPU-nanoseconds that the processes could have used.
    pub capacity_ns: u64,
    /// CPU-nanoseconds in which threads ran, outside of recorded waits.
    pub used_ns: u64,
    /// Nanoseconds of all threads, from their begins to their ends.
    pub threads_ns: u64,
    /// The unused rest, largest first; with `used_ns` it sums to `capacity_ns`.
    pub losses: Vec<CpuLoss>,
    /// Times in which threads ran while too few others had work, by thread and time.
    pub alone: Vec<(ThreadIndex, u64, u64)>,
    /// Whether the times of some thread off the CPU are estimated.
    pub is_estimated: bool,
}
