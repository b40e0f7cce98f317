//! The ledger of a task graph: the use of every nanosecond of every worker, and the charged parties.
//!
//! Each instant of each worker has exactly one `Cause`, in this order: its own activity first (lock, call,
//! runtime, system), then the body of a task, then the wait of its next task. If that depends on another
//! worker (create, depend, sync), the blame goes to that worker's activity at that instant, or to the reason
//! of *its* wait (mode `root` of [`slo`](crate::slo)). All tables are projections of one `Ledger`, with
//! leaf causes in place of the states' inner nodes: causes sum to the capacity, rows of the table to their
//! causes, and the SLOW view to the capacity again, all in whole nanoseconds.

mod booking;
mod drain;
mod ready;
mod tables;

use crate::slo::deciding_inputs;
use crate::timeline::activity_segments;
use booking::Booking;
pub use ready::{ReadyTable, ReadyWork};
pub use tables::{CauseInterval, CauseRow, Causes, DataOf, GraphCharge, GraphEntry, Queue, Slow};
use taskscope_execution::graph::TaskGraph;

/// Books every nanosecond of every worker.
pub fn book_causes(graph: &TaskGraph) -> Causes {
    let segments = activity_segments(graph);
    let deciding = deciding_inputs(graph);
    Booking::new(graph, &segments, &deciding, (0, u64::MAX)).run()
}

/// Books the nanoseconds from `begin` (included) to `end` (not included), of the trace's clock: each in the cause, and charged to
/// the same, as in the whole, so that parts which tile a time add up to it.
pub fn book_causes_in(graph: &TaskGraph, (begin, end): (u64, u64)) -> Causes {
    let segments = activity_segments(graph);
    let deciding = deciding_inputs(graph);
    Booking::new(graph, &segments, &deciding, (begin, end.max(begin))).run()
}

/// As [`book_causes_in`], with the intervals themselves, in the order of their ends: 24 bytes each.
pub fn book_intervals_in(graph: &TaskGraph, (begin, end): (u64, u64)) -> (Causes, Vec<CauseInterval>) {
    let segments = activity_segments(graph);
    let deciding = deciding_inputs(graph);
    Booking::new(graph, &segments, &deciding, (begin, end.max(begin))).run_with_intervals()
}
