//! The operations of device queues that a part of a run needs, for a slice of it.
//!
//! - Those that are submitted, wait or run in the part, and those that end the waits of calls that reach beyond its end.
//! - The last one of each queue before the part and the first one after it: between them the queue exists. A later one of the
//!   device may have waited for the last one before.
//! - One of each queue without a known submission, as it makes the reasons of all idle time unknown.
//! - Those without a time: they are in every part.

use rustc_hash::FxHashSet;
use taskscope_execution::devices::{DeviceOperation, Devices, Purpose, Queue};
use taskscope_trace::KeptOperation;

/// The operations that the time from `clocks.0` to before `clocks.1` of the host's clock needs.
pub fn operations_of_part(devices: &Devices, clocks: (i64, i64)) -> FxHashSet<KeptOperation> {
    let (begin, end) = (clocks.0.max(0).cast_unsigned(), clocks.1.max(0).cast_unsigned());
    let mut kept = FxHashSet::default();
    for queue in &devices.queues {
        let row = |operation: &DeviceOperation| {
            (queue.path.clone(), [operation.seq, operation.raw.0, operation.raw.1])
        };
        let timed = || queue.operations.iter().filter(|operation| operation.lane.is_some());
        let within = queue.operations.iter().filter(|operation| {
            let (from, until) = life(operation);
            operation.lane.is_none() || from < end && until >= begin
        });
        let before =
            timed().filter(|operation| life(operation).1 < begin).max_by_key(|operation| operation.end);
        let after =
            timed().filter(|operation| life(operation).0 >= end).min_by_key(|operation| life(operation).0);
        let unknown = timed().find(|operation| operation.append == 0);
        kept.extend(within.chain(before).chain(after).chain(unknown).map(row));
        kept.extend(awaited(devices, queue, (begin, end)).map(row));
    }
    kept
}

/// The time in which an operation is of interest: from its submission, if known, to its end.
fn life(operation: &DeviceOperation) -> (u64, u64) {
    let begin = if operation.append == 0 { operation.start } else { operation.append.min(operation.start) };
    (begin, operation.end.max(operation.start).max(operation.append))
}

/// The operation of a queue that ends last in each call that waits across the end of the part.
fn awaited<'a>(
    devices: &'a Devices,
    queue: &'a Queue,
    (begin, end): (u64, u64),
) -> impl Iterator<Item = &'a DeviceOperation> {
    let calls = devices.calls.iter().filter(|calls| Some(calls.pid) == queue.pid);
    let calls = calls.flat_map(|calls| &calls.calls);
    let waits = calls.filter(move |call| {
        call.purpose() == Purpose::Waits && call.start < end && call.end > end && call.end > begin
    });
    waits.filter_map(|call| {
        let ended = queue.operations.iter().filter(|operation| operation.start < operation.end);
        ended.filter(|operation| operation.end <= call.end).max_by_key(|operation| operation.end)
    })
}
