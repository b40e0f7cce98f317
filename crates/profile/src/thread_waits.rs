//! Waits of threads for each other: sums by object, call, and charged code.
//!
//! A row has the waits of the threads of one process for one object, in calls at one place. Its parts sum to the waited time.
//! The meaning of the parts is that of the report of a trace (`docs/threads.md`): each nanosecond belongs to one end of a
//! chain of waits.

use crate::{NO_MODULE, NodeId};
use taskscope_event::models::wait::kind;

/// A call: a place in the code, and the call path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct WaitCall {
    /// The module; [`NO_MODULE`] without one.
    pub module: u32,
    /// Address in the module's file, inside of the call; 0 if unknown.
    pub offset: u64,
    /// The call path, which includes the call.
    pub path: NodeId,
}

/// Relation of a thread to the thread that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum WaitTie {
    /// Held the lock, taken at the place; the path is that of the release.
    Holds(WaitCall),
    /// Woke the waiting thread in this call.
    Wakes(WaitCall),
    /// Was joined; the place is that of its routine, and the path one of its own.
    IsJoined(WaitCall),
}

/// The end of the chain for a part of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum WaitEnd {
    /// The last thread of the chain ran, or could have run.
    Ran = 1,
    /// The last thread of the chain had no CPU.
    NoCpu = 2,
    /// The lock was free, or the thread had been woken: until it ran again.
    Handover = 3,
    /// The caller's time limit expired.
    TimedOut = 4,
    /// The last thread of the chain slept.
    Slept = 5,
    /// It waited for a device, a peer or another process.
    Outside = 6,
    /// The wait is not over.
    Open = 7,
    /// The awaited thread is not recorded.
    NotKnown = 8,
}

impl WaitEnd {
    /// All ends, by number.
    pub const ALL: [WaitEnd; 8] = {
        use WaitEnd::*;
        [Ran, NoCpu, Handover, TimedOut, Slept, Outside, Open, NotKnown]
    };

    pub(crate) fn of(number: u8) -> Option<WaitEnd> {
        WaitEnd::ALL.into_iter().find(|end| *end as u8 == number)
    }
}

/// A part of the waits of a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WaitPart {
    /// The end of the chain.
    pub end: WaitEnd,
    /// The thread waited for; `None` without one.
    pub first: Option<WaitTie>,
    /// The last thread of the chain; the same as `first` in a chain of one.
    pub last: Option<WaitTie>,
    /// Kind (`taskscope_event::models::wait::kind`) and call of the sleep or I/O of the last thread of the chain.
    pub blocked: Option<(u32, WaitCall)>,
    /// Threads in the chain.
    pub length: u32,
    /// Thread-nanoseconds.
    pub ns: u64,
    /// CPU-nanoseconds that were unused because of it; 0 if the use of CPUs is not known.
    pub cpu_ns: u64,
}

/// The meaning of a part of a wait for the use of CPUs. The rules are those of traces (`taskscope_analysis::cpu_time`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WaitMeaning {
    /// Another thread makes it wait.
    Charged,
    /// The thread sleeps by itself.
    Sleeps,
    /// It waits for a file.
    Device,
    /// It waits for a request, a timer or input, or had a limit in time.
    Listens,
    /// It waits for the end of a thread, or until the end of the run.
    Rests,
    /// The wait is over, and the thread does not run yet.
    HandedOver,
    /// The last thread of the chain had no CPU.
    NoCpu,
    /// The awaited thread is not known.
    NotKnown,
}

impl WaitMeaning {
    /// The meaning of a part of a wait of kind `of` with this end. `holds` is whether the thread waited for holds a lock, `None`
    /// without a thread; `blocked` is the kind of the sleep or I/O at the end of the chain.
    pub fn of(of: u32, end: WaitEnd, holds: Option<bool>, blocked: Option<u32>) -> WaitMeaning {
        let is_file = blocked.unwrap_or(of) == kind::FILE;
        match (end, holds) {
            (WaitEnd::NoCpu, None) => WaitMeaning::NoCpu,
            (WaitEnd::Handover, None) => WaitMeaning::HandedOver,
            _ if of == kind::JOIN => WaitMeaning::Rests,
            (WaitEnd::NoCpu, _) => WaitMeaning::NoCpu,
            (WaitEnd::Open, _) => WaitMeaning::Rests,
            (WaitEnd::TimedOut, _) => WaitMeaning::Listens,
            (WaitEnd::NotKnown, _) | (WaitEnd::Ran, None) => WaitMeaning::NotKnown,
            (WaitEnd::Slept, None) => WaitMeaning::Sleeps,
            (WaitEnd::Outside, None) if is_file => WaitMeaning::Device,
            (WaitEnd::Outside, None) => WaitMeaning::Listens,
            // It may be a device, or a peer with requests.
            (WaitEnd::Outside, Some(false)) if blocked == Some(kind::OPERATIONS) => WaitMeaning::NotKnown,
            // A lock is held by a thread that waits for the outside; else its thread waits for requests, too.
            (WaitEnd::Outside, Some(false)) if !is_file => WaitMeaning::Listens,
            _ => WaitMeaning::Charged,
        }
    }
}

impl WaitPart {
    /// Whether the awaited lock was free, as its next holder did not run yet.
    pub fn is_of_free_lock(&self) -> bool {
        self.end == WaitEnd::Handover && self.length == 1 && matches!(self.first, Some(WaitTie::Holds(_)))
    }

    /// Its meaning for the use of CPUs, in a wait of kind `of`.
    pub fn meaning(&self, of: u32) -> WaitMeaning {
        let holds = self.first.map(|first| matches!(first, WaitTie::Holds(_)));
        WaitMeaning::of(of, self.end, holds, self.blocked.map(|(kind, _)| kind))
    }
}

/// The waits for an object in calls at one place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WaitRow {
    /// The process, by its place in [`Profile::processes`](crate::Profile::processes).
    pub process: u32,
    /// `taskscope_event::models::wait::kind`.
    pub kind: u32,
    /// The module that contains the object; [`NO_MODULE`] of those on a heap or stack, and of descriptors.
    pub module: u32,
    /// Address in the module's file; without a module an address or a descriptor's number, 0 without an object.
    pub object: u64,
    /// The call.
    pub call: WaitCall,
    /// Number of waits.
    pub waits: u64,
    /// Threads that waited.
    pub threads: u32,
    /// The longest, nanoseconds.
    pub longest_ns: u64,
    /// The waits by charged thread.
    pub parts: Vec<WaitPart>,
}

impl WaitRow {
    /// Thread-nanoseconds waited.
    pub fn waited_ns(&self) -> u64 {
        self.parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.ns))
    }

    /// Moves it to a profile in which `node` and `module` return the places of this one's paths and modules.
    pub(crate) fn moved(
        mut self,
        first_process: u32,
        node: impl Fn(NodeId) -> NodeId,
        module: impl Fn(u32) -> u32,
    ) -> WaitRow {
        let call = |call: WaitCall| WaitCall {
            module: if call.module == NO_MODULE { NO_MODULE } else { module(call.module) },
            path: node(call.path),
            ..call
        };
        let tie = |tie: WaitTie| match tie {
            WaitTie::Holds(of) => WaitTie::Holds(call(of)),
            WaitTie::Wakes(of) => WaitTie::Wakes(call(of)),
            WaitTie::IsJoined(of) => WaitTie::IsJoined(call(of)),
        };
        self.process = self.process.saturating_add(first_process);
        self.module = if self.module == NO_MODULE { NO_MODULE } else { module(self.module) };
        self.call = call(self.call);
        for part in &mut self.parts {
            part.first = part.first.map(tie);
            part.last = part.last.map(tie);
            part.blocked = part.blocked.map(|(kind, of)| (kind, call(of)));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_joins_one_without_a_cpu_wants_none() {
        let without_cpu = |of, holds| WaitMeaning::of(of, WaitEnd::NoCpu, holds, None);
        assert_eq!(without_cpu(kind::JOIN, Some(false)), WaitMeaning::Rests);
        assert_eq!(without_cpu(kind::JOIN, None), WaitMeaning::NoCpu, "the joined thread has ended");
        assert_eq!(without_cpu(kind::MUTEX, Some(true)), WaitMeaning::NoCpu);
    }
}
