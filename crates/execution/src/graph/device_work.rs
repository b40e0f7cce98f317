//! Operations of devices that workers waited for, and their submitters.

use super::NONE;
use crate::ThreadIndex;

/// A wait of a thread for operations of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceWait {
    /// The waiting thread.
    pub thread: ThreadIndex,
    /// Begin time.
    pub start: u64,
    /// End time.
    pub end: u64,
    /// The device's activity meanwhile.
    pub name: String,
}

/// An operation of a device, as its source reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmittedOperation {
    /// Its name and queue.
    pub name: String,
    /// The submitter, if known.
    pub submitter: Option<ThreadIndex>,
    /// Begin of its submission.
    pub submitted: u64,
    /// Begin time.
    pub start: u64,
    /// End time.
    pub end: u64,
    /// Index in the list of the operation whose end it awaited, as submitted.
    pub after: Option<u32>,
}

/// A wait of a thread that was over when an operation was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AwaitedOperation {
    /// The waiting thread.
    pub thread: ThreadIndex,
    /// Begin time.
    pub start: u64,
    /// End time.
    pub end: u64,
    /// Place of the operation in the list.
    pub operation: u32,
}

/// The devices' part of a recorded run's graph.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceWork {
    /// Waits of threads, instant by instant.
    pub waits: Vec<DeviceWait>,
    /// Operations.
    pub operations: Vec<SubmittedOperation>,
    /// Waits by the operation that ended them.
    pub awaited: Vec<AwaitedOperation>,
}

/// An operation in the graph. It was submitted before it began, and began before it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Row of [`TaskGraph::names`](super::TaskGraph::names).
    pub name: u32,
    /// Row of the worker that submitted it, or [`NONE`].
    pub submitter: u32,
    /// Submission time.
    pub submitted: u64,
    /// Begin time.
    pub start: u64,
    /// End time.
    pub end: u64,
    /// Row of the operation whose end it awaited, which ended before it began; or [`NONE`].
    pub after: u32,
}

/// Time in which a worker waited for an operation that had ended at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationWait {
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Row of the operation.
    pub operation: u32,
}

/// Operations as reported, without contradictions to the order above: such an operation has no submitter, or no
/// predecessor.
pub(super) fn in_order(mut operations: Vec<Operation>) -> Vec<Operation> {
    let ends: Vec<u64> = operations.iter().map(|operation| operation.end).collect();
    for operation in &mut operations {
        if operation.submitted > operation.start {
            operation.submitter = NONE;
        }
        // So each ends before the next one does, and chains of them have a begin.
        let before = ends.get(operation.after as usize).is_some_and(|end| *end <= operation.start);
        if !before || operation.start >= operation.end {
            operation.after = NONE;
        }
    }
    operations
}
