//! The task graph of a run: the input of analyses of causes, from any runtime.
//!
//! Tasks with the data that they read and produce, copies of data between nodes, the pieces of time in
//! which workers executed tasks, and their other activities. An import or a model fills a
//! [`GraphBuilder`]; [`GraphBuilder::finish`] checks every precondition below and names violations.
//!
//! Invariants of a [`TaskGraph`], which analyses need not check:
//! - pieces of one worker are sorted, do not overlap, have positive length, and are within its life;
//! - a producer starts before its data is produced, and produced ≤ sent ≤ arrived;
//! - a task starts when all its inputs are available on its node, or later. So there are no cycles.
//!
//! Rows are `u32` numbers, [`NONE`] if there is none. Data are ordered by their id, tasks too. Times
//! are nanoseconds of one clock, [`NO_TIME`](crate::NO_TIME) if not known: not known is never zero.

mod builder;
mod check;
mod device_work;
mod from_execution;
mod lists;
mod messages;
mod row;
mod rows_of_workers;
mod task_graph;

pub use crate::accesses::{Access, DeclaredGraph};
pub use builder::{GraphBuilder, NewData, NewTask};
pub use check::{GraphError, Table};
pub use device_work::{
    AwaitedOperation, DeviceWait, DeviceWork, Operation, OperationWait, SubmittedOperation,
};
pub use from_execution::{NamedAddress, Names, from_execution};
pub use lists::Lists;
pub use row::NONE;
pub use task_graph::{
    Activity, ActivityKind, Copy, Data, Node, Piece, RecordedFacts, Role, TaskGraph, TaskType, Tasks, Worker,
};
