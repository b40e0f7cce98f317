//! A thread's records of messages.

use crate::messages::{Awaited, Rank};
use crate::{Place, TaskIndex};

/// A thread's record of messages.
#[derive(Clone, Copy, Debug)]
pub enum MessageChange {
    /// The thread's process has this rank.
    IsRank(Rank),
    /// The thread's process is a member of this communicator, window or file.
    IsMember {
        /// Its number.
        comm: u64,
        /// Number of members.
        size: u32,
    },
    /// Enters a function of the library.
    CallBegins {
        /// Its number.
        function: u32,
        /// The place in the code.
        place: Place,
    },
    /// The call that has begun just now is at this place.
    CallIsAt(Place),
    /// The last call has been repeated, and continues.
    CallRepeats,
    /// The supposed repetition of the last call is a new call, which begins next.
    CallRepeatsNot,
    /// Leaves it.
    CallEnds,
    /// Posts a send.
    Sends {
        /// The process's number of the posted operation.
        post: u64,
        /// The communicator, as all its members know it.
        comm: u64,
        /// Rank of the receiver.
        peer: u32,
        /// Tag.
        tag: i32,
        /// Size.
        bytes: u64,
    },
    /// A send that it posted is over.
    Sent {
        /// Its number.
        post: u64,
    },
    /// Has received a message.
    Received {
        /// The number of the receive.
        post: u64,
        /// Nanoseconds since that was posted.
        age: u64,
        /// The communicator.
        comm: u64,
        /// Rank of the sender.
        peer: u32,
        /// Tag.
        tag: i32,
        /// Size.
        bytes: u64,
    },
    /// Begins its part in a collective operation.
    TakesPart {
        /// The communicator.
        comm: u64,
        /// Number of the operation in it.
        sequence: u64,
        /// The root's rank.
        root: u32,
        /// Number of the function.
        function: u32,
        /// Bytes of its own.
        bytes: u64,
        /// Whether the call ends before the operation does.
        nonblocking: bool,
    },
    /// The call concerns a rank of a window, a file or a port.
    Concerns {
        /// The object's number, equal for all its members.
        comm: u64,
        /// The rank; `u32::MAX` for none or all.
        peer: u32,
        /// Bytes that it accesses.
        bytes: u64,
    },
    /// The call does not end before this has come.
    Awaits(Awaited),
    /// The call does not end before a message that it, or a call before it, sent has been received or copied.
    AwaitsSent {
        /// The process's number of the send.
        post: u64,
    },
    /// Has found a message that it has not received yet.
    Probed {
        /// The communicator.
        comm: u64,
        /// Rank of the sender.
        peer: u32,
        /// Tag.
        tag: i32,
    },
    /// A nonblocking operation has completed.
    Completed {
        /// The communicator.
        comm: u64,
        /// Number of the operation in it.
        sequence: u64,
    },
    /// The program records that it sends a message of its own.
    ProgramSends {
        /// Number of its domain in the trace, which decides the receivers.
        domain: u32,
        /// Its id there.
        id: u64,
        /// Size; `u64::MAX` if not known.
        bytes: u64,
    },
    /// The program records that it has received one.
    ProgramReceives {
        /// Domain number of the sender.
        domain: u32,
        /// Id of the sender.
        id: u64,
    },
    /// Ends a task after its body has ended.
    Fulfils {
        /// The task.
        task: TaskIndex,
    },
}
