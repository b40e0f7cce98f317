//! Communication between processes: calls of a communication library, messages, collective operations.
//!
//! Sends and receives are paired as MPI matches them: of one communicator, sender, receiver and tag, the n-th send
//! belongs to the n-th receive, both in the order in which they were posted.

use crate::{Place, ProcessIndex, TaskIndex, ThreadIndex};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_event::models::messages::FUNCTIONS;

mod partners;

pub use partners::{OpenCalls, Owed, Partner, Partners};

/// One call of the library, or several that poll for the same without a pause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MpiCall {
    /// The calling thread.
    pub thread: ThreadIndex,
    /// Number of the function in `taskscope_event::models::messages::FUNCTIONS`.
    pub function: u32,
    /// Its place in the code.
    pub place: Place,
    /// Begin.
    pub start: u64,
    /// End, or [`NO_TIME`](crate::NO_TIME) until it is known.
    pub end: u64,
    /// Calls that this row represents, at least 1.
    pub count: u32,
    /// Bytes that it sends, receives, passes to an operation, or accesses; `u64::MAX` if not known.
    pub bytes: u64,
    /// Its wait for a process, if any.
    pub wait: Option<PeerWait>,
}

impl MpiCall {
    /// The function's name, without the library's prefix.
    pub fn function_name(&self) -> Option<&'static str> {
        FUNCTIONS.get(self.function as usize).copied()
    }
}

/// The reason why a call waits for another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PeerWaitKind {
    /// Receives a message that had not been sent yet.
    LateSender,
    /// Sends, without a buffer, before the receive.
    LateReceiver,
    /// Takes part in an operation before other members.
    LateMember,
    /// Accesses a window that another process had locked.
    LockHolder,
    /// Accesses the memory of a process that did not call MPI, which would have let the access proceed.
    LateTarget,
}

impl PeerWaitKind {
    /// All kinds.
    pub const ALL: [PeerWaitKind; 5] = [
        PeerWaitKind::LateSender,
        PeerWaitKind::LateReceiver,
        PeerWaitKind::LateMember,
        PeerWaitKind::LockHolder,
        PeerWaitKind::LateTarget,
    ];

    /// The name in tables and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            PeerWaitKind::LateSender => "late sender",
            PeerWaitKind::LateReceiver => "late receiver",
            PeerWaitKind::LateMember => "late member of a collective operation",
            PeerWaitKind::LockHolder => "holder of a window's lock",
            PeerWaitKind::LateTarget => "target outside MPI",
        }
    }
}

/// The part of a call, from its begin, in which it waited for another process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerWait {
    /// The reason.
    pub kind: PeerWaitKind,
    /// The last process to arrive.
    pub culprit: ProcessIndex,
    /// Arrival of the other process; after the begin of the call, and not after its end.
    pub until: u64,
}

/// A message that was sent and received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The sending thread.
    pub sender: ThreadIndex,
    /// Send time.
    pub sent: u64,
    /// The thread that noticed the arrival.
    pub receiver: ThreadIndex,
    /// Time at which a receive was posted for it.
    pub posted: u64,
    /// Time at which its arrival was known.
    pub received: u64,
    /// Row of the call in which its arrival was noticed, or `u32::MAX`; messages recorded by the program itself
    /// (instrumentation) have no call.
    pub call: u32,
    /// Size; `u64::MAX` if not known.
    pub bytes: u64,
    /// The tag; none of a message recorded by the program itself.
    pub tag: Option<i32>,
}

/// A process's part in a collective operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Participation {
    /// Number of the communicator, the same for all its members.
    pub comm: u64,
    /// Number of the operation in it.
    pub sequence: u64,
    /// The thread that began it.
    pub thread: ThreadIndex,
    /// Begin time.
    pub begun: u64,
    /// The thread that learned of its completion.
    pub completer: ThreadIndex,
    /// Time of completion; [`NO_TIME`](crate::NO_TIME) if it did not complete.
    pub completed: u64,
    /// Row of the call in which that was, or `u32::MAX`.
    pub call: u32,
    /// The root's process; none if there is no root.
    pub root: ProcessIndex,
    /// Number of the function.
    pub function: u32,
    /// Bytes that it gave.
    pub bytes: u64,
}

/// The partner of a call that had not ended at the end of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Awaited {
    /// A message that had not come.
    Message {
        /// Number of the communicator, the same for all its members.
        comm: u64,
        /// The sender's rank in the job; none for a wildcard.
        source: Option<u32>,
        /// The tag; none for a wildcard.
        tag: Option<i32>,
    },
    /// The receiver of a message that cannot be sent before it is received.
    Receiver {
        /// Its rank in the job.
        rank: u32,
        /// The message's tag.
        tag: i32,
        /// The message's size; `u64::MAX` if not known.
        bytes: u64,
    },
    /// Other members' parts in a collective operation.
    Operation {
        /// Number of the communicator, window or file.
        comm: u64,
        /// Number of the operation in it.
        sequence: u64,
    },
    /// A call of one-sided communication by another process.
    Access {
        /// Its rank in the job; `u32::MAX` if any process will do.
        rank: u32,
        /// Number of the function that it has to call.
        function: u32,
    },
}

/// Messages of one sender, receiver, communicator and tag that no receive has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreceived {
    /// The sending process.
    pub sender: ProcessIndex,
    /// The process that they were sent to.
    pub receiver: ProcessIndex,
    /// Number of the communicator.
    pub comm: u64,
    /// Their tag.
    pub tag: i32,
    /// Number of messages.
    pub messages: u64,
}

/// A communicator, window or file, as its members made it known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// Number of members, including those without a trace.
    pub size: u32,
    /// Members with a trace, in no order.
    pub processes: Vec<ProcessIndex>,
}

impl Members {
    /// Whether all members are known.
    pub fn is_complete(&self) -> bool {
        self.size > 0 && self.processes.len() >= self.size as usize
    }
}

/// A task that ended when a message or operation had completed, not when its body did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fulfilment {
    /// The task.
    pub task: TaskIndex,
    /// End time.
    pub at: u64,
    /// Row of the message that it waited for, or `u32::MAX`.
    pub message: u32,
    /// Row of the participation that it waited for, or `u32::MAX`.
    pub participation: u32,
}

/// A process's place in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rank {
    /// The job's number.
    pub job: u64,
    /// Rank, from 0.
    pub rank: u32,
    /// Number of ranks.
    pub ranks: u32,
}

/// All communication between processes.
#[derive(Clone, Debug, Default)]
pub struct Communication {
    /// Ranks of processes, by [`ProcessIndex`], if known.
    pub ranks: FxHashMap<u32, Rank>,
    /// Calls, by their begins.
    pub calls: Vec<MpiCall>,
    /// Messages, by the time they were received.
    pub messages: Vec<Message>,
    /// Partners of calls that had not ended, by their rows.
    pub awaited: Vec<(u32, Awaited)>,
    /// Messages that were not received.
    pub unreceived: Vec<Unreceived>,
    /// Communicators, windows and files by their numbers.
    pub members: FxHashMap<u64, Members>,
    /// Sends without a receive in the trace.
    pub unmatched_sends: u64,
    /// Receives without a send in the trace.
    pub unmatched_receives: u64,
    /// Parts in collective operations, by their begins.
    pub participations: Vec<Participation>,
    /// Tasks that ended with a message.
    pub fulfilments: Vec<Fulfilment>,
}

impl Communication {
    /// The process of a rank in the job of another process; none without a trace of it.
    pub fn process_of_rank(&self, beside: ProcessIndex, rank: u32) -> Option<ProcessIndex> {
        let job = self.ranks.get(&beside.0)?.job;
        let rank_owner = self.ranks.iter().find(|(_, known)| known.job == job && known.rank == rank);
        rank_owner.map(|(process, _)| ProcessIndex(*process))
    }

    /// The calls of a thread, in order.
    pub fn calls_of(&self, thread: ThreadIndex) -> impl Iterator<Item = &MpiCall> {
        self.calls.iter().filter(move |call| call.thread == thread)
    }

    /// The members that the completion of this part had to wait for, besides itself, in the order of `operations`.
    pub fn awaited<'a>(
        &'a self,
        operations: &'a FxHashMap<(u64, u64), Vec<u32>>,
        part: &'a Participation,
        process_of: impl Fn(ThreadIndex) -> ProcessIndex + Copy + 'a,
    ) -> impl Iterator<Item = &'a Participation> + 'a {
        let own = process_of(part.thread);
        let function = FUNCTIONS.get(part.function as usize).copied().unwrap_or("");
        let (from_root, to_root) = (is_from_root(function), is_to_root(function));
        let others = operations.get(&(part.comm, part.sequence)).into_iter().flatten();
        others.map(|row| &self.participations[*row as usize]).filter(move |other| {
            let other = process_of(other.thread);
            other != own
                && (part.root == ProcessIndex::NONE
                    || from_root && other == part.root
                    || to_root && own == part.root
                    || !from_root && !to_root)
        })
    }

    /// Rows of participations by communicator and number of the operation, those that began last first.
    pub fn operations(&self) -> FxHashMap<(u64, u64), Vec<u32>> {
        let mut operations: FxHashMap<_, Vec<u32>> = FxHashMap::default();
        for (row, part) in self.participations.iter().enumerate() {
            operations.entry((part.comm, part.sequence)).or_default().push(row as u32);
        }
        for rows in operations.values_mut() {
            rows.sort_unstable_by_key(|row| Reverse((self.participations[*row as usize].begun, *row)));
        }
        operations
    }
}

/// The operation of a function of MPI, without the variant in its name.
pub fn operation(function: &str) -> &str {
    let base = function.strip_suffix("_c").unwrap_or(function);
    let base = base.strip_suffix("_init").unwrap_or(base);
    match base.strip_prefix('I') {
        Some(rest) if rest.starts_with(char::is_lowercase) => rest,
        _ => base,
    }
}

/// Whether a member of an operation of this function may leave it without the parts of all others: its partners are its
/// neighbours in the communicator's topology, which are not recorded.
pub fn is_among_neighbours(function: &str) -> bool {
    operation(function).to_ascii_lowercase().starts_with("neighbor_")
}

/// Whether an operation of this function moves data from its root to all others.
pub fn is_from_root(function: &str) -> bool {
    ["bcast", "scatter", "scatterv"].iter().any(|name| operation(function).eq_ignore_ascii_case(name))
}

/// Whether an operation of this function moves data from all others to its root.
pub fn is_to_root(function: &str) -> bool {
    ["reduce", "gather", "gatherv"].iter().any(|name| operation(function).eq_ignore_ascii_case(name))
}
