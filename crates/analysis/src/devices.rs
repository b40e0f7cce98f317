//! The use of device queues' time, and the reasons for their idleness.
//!
//! Each nanosecond of a queue, from its first submission to its last end, has exactly one cause; so
//! the causes of a queue add up to its span. While nothing of the queue runs:
//!
//! | first in the queue | running elsewhere on its device | cause |
//! | --- | --- | --- |
//! | nothing | – | host-bound: the program has not submitted more |
//! | an operation | copies only | transfer-bound |
//! | an operation | a kernel | device busy with other queues |
//! | an operation | nothing | dependency-bound: it waits for an event, a barrier, or the driver |
//! | unknown: submissions were not recorded | – | unknown |

use rustc_hash::FxHashMap;
use taskscope_execution::devices::{Class, DeviceOperation, Devices, Queue};
use taskscope_execution::{Execution, PlaceKind, State, TaskIndex, ThreadIndex};

/// Nanoseconds of a queue by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueTime {
    /// A kernel runs.
    pub kernels: u64,
    /// A copy or fill runs, and no kernel.
    pub transfers: u64,
    /// Something else runs: a marker, a map, code of the host.
    pub other: u64,
    /// Idle: nothing was submitted.
    pub host_bound: u64,
    /// Idle: something waits while the device only copies.
    pub transfer_bound: u64,
    /// Idle: something waits while the device runs a kernel of another queue.
    pub device_busy: u64,
    /// Idle: something waits while the device does nothing.
    pub dependency_bound: u64,
    /// Idle, and submissions were not recorded.
    pub unknown: u64,
}

impl QueueTime {
    /// The queue's span.
    pub fn total(&self) -> u64 {
        self.busy() + self.idle()
    }

    /// While something runs.
    pub fn busy(&self) -> u64 {
        self.kernels + self.transfers + self.other
    }

    /// While nothing runs.
    pub fn idle(&self) -> u64 {
        self.host_bound + self.transfer_bound + self.device_busy + self.dependency_bound + self.unknown
    }
}

/// A queue's time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueLedger {
    /// First submission (or start), and last end.
    pub span: (u64, u64),
    /// The span by cause.
    pub time: QueueTime,
    /// Operations with usable times.
    pub timed: u64,
    /// Operations with a known submission.
    pub submissions: u64,
    /// Sum of the times from submission to start.
    pub queueing: u64,
    /// The longest of them.
    pub longest_queueing: u64,
}

/// The ledger of every queue, in their order, of the times from `part.0` to before `part.1`. Times of consecutive parts add up; an
/// operation is in each part that it reaches into.
pub fn ledgers(devices: &Devices, part: (u64, u64)) -> Vec<QueueLedger> {
    let mut running: FxHashMap<(&str, Option<i64>), Vec<Step>> = FxHashMap::default();
    let ledgers = devices.queues.iter().map(|queue| {
        let device = running.entry((queue.device.as_str(), queue.pid));
        ledger(queue, device.or_insert_with(|| running_on_device(devices, queue)), part)
    });
    ledgers.collect()
}

/// The nanoseconds from `start` to `end` within a part of the time.
pub fn nanos_in((start, end): (u64, u64), part: (u64, u64)) -> u64 {
    end.min(part.1).saturating_sub(start.max(part.0))
}

/// Whether any time from `start` to `end` is within a part of the time.
pub fn reaches_into((start, end): (u64, u64), part: (u64, u64)) -> bool {
    // An operation without duration counts at its start.
    nanos_in((start, end), part) > 0 || start == end && part.0 <= start && start < part.1
}

/// Running operations from a time on: kernels, and transfers.
type Step = (u64, i32, i32);

fn is_timed(operation: &&DeviceOperation) -> bool {
    operation.lane.is_some()
}

fn steps<'a>(operations: impl Iterator<Item = &'a DeviceOperation>) -> Vec<Step> {
    let mut edges: Vec<(u64, i32, i32)> = Vec::new();
    for operation in operations.filter(is_timed) {
        let class = operation.class();
        let (kernel, transfer) = (i32::from(class == Class::Kernel), i32::from(class == Class::Transfer));
        edges.push((operation.start, kernel, transfer));
        edges.push((operation.end, -kernel, -transfer));
    }
    edges.sort_unstable_by_key(|edge| edge.0);
    // The end of an operation without duration may come before its begin.
    let (mut kernels, mut transfers) = (0, 0);
    let mut steps: Vec<Step> = Vec::with_capacity(edges.len());
    for (at, kernel, transfer) in edges {
        kernels += kernel;
        transfers += transfer;
        match steps.last_mut() {
            Some(last) if last.0 == at => (last.1, last.2) = (kernels, transfers),
            _ => steps.push((at, kernels, transfers)),
        }
    }
    steps
}

fn running_on_device(devices: &Devices, of: &Queue) -> Vec<Step> {
    let others = devices.queues.iter().filter(|queue| queue.device == of.device && queue.pid == of.pid);
    steps(others.flat_map(|queue| &queue.operations))
}

fn ledger(queue: &Queue, device: &[Step], part: (u64, u64)) -> QueueLedger {
    let mut ledger = QueueLedger::default();
    let timed = || queue.operations.iter().filter(is_timed);
    let Some(last_end) = timed().map(|operation| operation.end).max() else { return ledger };
    // Submissions later than the start show a clock that is off; they count as at the start.
    let submitted = |operation: &DeviceOperation| operation.append.min(operation.start);
    let known = timed().all(|operation| operation.append != 0);
    let first = timed().map(|operation| if known { submitted(operation) } else { operation.start }).min();
    let span = (first.unwrap_or(0), last_end);
    ledger.span = (span.0.max(part.0).min(part.1), span.1.min(part.1).max(part.0));
    // +1 waiting at submission, −1 at start; running by kind.
    let mut edges: Vec<(u64, i32, [i32; 3])> = Vec::new();
    for operation in timed() {
        let class = match operation.class() {
            Class::Kernel => [1, 0, 0],
            Class::Transfer => [0, 1, 0],
            Class::Other => [0, 0, 1],
        };
        if known {
            edges.push((submitted(operation), 1, [0; 3]));
        }
        edges.push((operation.start, -i32::from(known), class));
        edges.push((operation.end, 0, class.map(|count| -count)));
        ledger.timed += u64::from(reaches_into((operation.start, operation.end), part));
        let queued = (operation.append, operation.start.max(operation.append));
        if operation.append != 0 && reaches_into(queued, part) {
            let queueing = nanos_in(queued, part);
            ledger.submissions += 1;
            ledger.queueing += queueing;
            ledger.longest_queueing = ledger.longest_queueing.max(queueing);
        }
    }
    edges.sort_unstable_by_key(|edge| edge.0);
    let (mut waiting, mut running, mut at) = (0i32, [0i32; 3], span.0);
    let time = &mut ledger.time;
    for (next, waits, class) in edges {
        if next > at {
            let span = nanos_in((at, next), part);
            match (running, waiting, known) {
                ([1..=i32::MAX, _, _], _, _) => time.kernels += span,
                ([_, 1..=i32::MAX, _], _, _) => time.transfers += span,
                ([_, _, 1..=i32::MAX], _, _) => time.other += span,
                (_, _, false) => time.unknown += span,
                (_, 1.., _) => idle_while_waiting(time, at.max(part.0), next.min(part.1), device),
                _ => time.host_bound += span,
            }
            at = next;
        }
        waiting += waits;
        (0..3).for_each(|index| running[index] += class[index]);
    }
    ledger
}

/// Splits a gap with a waiting operation by the device's concurrent operations.
fn idle_while_waiting(time: &mut QueueTime, from: u64, to: u64, device: &[Step]) {
    let mut index = device.partition_point(|step| step.0 <= from);
    let mut at = from;
    while at < to {
        let next = device.get(index).map_or(to, |step| step.0.min(to));
        let (_, kernels, transfers) = index.checked_sub(1).map_or((0, 0, 0), |before| device[before]);
        let place = match (kernels, transfers) {
            (1.., _) => &mut time.device_busy,
            (_, 1..) => &mut time.transfer_bound,
            _ => &mut time.dependency_bound,
        };
        *place += next - at;
        at = next;
        index += 1;
    }
}

/// The submitter of an operation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Submitter {
    /// Name of the call of the host.
    pub call: Option<String>,
    /// The thread, if the trace knows more of it than its number.
    pub thread: Option<ThreadIndex>,
    /// The task that it ran.
    pub task: Option<TaskIndex>,
    /// The thread's state.
    pub state: Option<State>,
    /// Whether a place in the code is known.
    pub place: Option<PlaceKind>,
}

/// The call, the thread and the task that submitted `operation` of `queue`.
pub fn submitter(
    execution: &Execution,
    devices: &Devices,
    queue: &Queue,
    operation: &DeviceOperation,
) -> Submitter {
    let mut submitter = Submitter::default();
    if operation.append == 0 {
        return submitter;
    }
    let calls =
        devices.calls.iter().find(|calls| Some(calls.pid) == queue.pid && calls.tid == operation.thread);
    if let Some(calls) = calls {
        // Submitting calls do not nest: the last one that began before is the one.
        let after = calls.calls.partition_point(|call| call.start <= operation.append);
        let before = calls.calls[..after].iter().rev();
        let operation_key = (queue.number, operation.seq);
        let call = before.take(8).find(|call| call.operation == Some(operation_key));
        submitter.call = call.map(|call| calls.names.get(call.name as usize).cloned().unwrap_or_default());
    }
    let is_submitter = |thread: &taskscope_execution::Thread| {
        let pid = execution.processes[thread.process.index()].pid;
        thread.tid == operation.thread && queue.pid.is_none_or(|known| known == pid)
    };
    if let Some(index) = execution.threads.iter().position(is_submitter) {
        submitter.thread = Some(ThreadIndex(index as u32));
        let track = &execution.threads[index].track;
        if let Some(row) = track.row_at(operation.append) {
            let section = track.span(row).section;
            submitter.task = section.task.is_some().then_some(section.task);
            submitter.state = Some(section.state);
            submitter.place = Some(section.place.kind());
        }
    }
    submitter
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::device::kind;

    const ALL: (u64, u64) = (0, u64::MAX);

    fn operation(kind: u32, append: u64, start: u64, end: u64) -> DeviceOperation {
        DeviceOperation { kind, append, start, end, lane: Some(0), ..DeviceOperation::default() }
    }

    fn queue(name: &str, operations: Vec<DeviceOperation>) -> Queue {
        Queue { name: name.into(), operations, ..Queue::default() }
    }

    #[test]
    fn every_nanosecond_of_a_queue_has_one_cause() {
        let first = vec![
            operation(kind::KERNEL, 100, 150, 200),
            // Submitted at once, but it waits for a copy of the other queue, then for its event.
            operation(kind::KERNEL, 110, 300, 400),
            // Submitted after 50 ns in which the program had nothing to run.
            operation(kind::COPY_IN, 450, 460, 500),
        ];
        let second = vec![operation(kind::COPY_IN, 100, 190, 280)];
        let devices = Devices {
            queues: vec![queue("a", first), queue("b", second)],
            calls: Vec::new(),
            ..Devices::default()
        };
        let ledgers = ledgers(&devices, ALL);
        let expected = QueueTime {
            kernels: 150,
            transfers: 40,
            transfer_bound: 80,
            dependency_bound: 50 + 20 + 10,
            host_bound: 50,
            ..QueueTime::default()
        };
        assert_eq!(ledgers[0].time, expected);
        assert_eq!((ledgers[0].span, ledgers[0].time.total()), ((100, 500), 400));
        assert_eq!((ledgers[0].queueing, ledgers[0].longest_queueing), (50 + 190 + 10, 190));
        assert_eq!(ledgers[1].time.device_busy, 40);
        // Parts add up, wherever the run is cut.
        for border in 90..510 {
            let parts = [super::ledgers(&devices, (0, border)), super::ledgers(&devices, (border, u64::MAX))];
            for (queue, whole) in ledgers.iter().enumerate() {
                let sum = |of: &dyn Fn(&QueueLedger) -> u64| of(&parts[0][queue]) + of(&parts[1][queue]);
                assert_eq!(sum(&|part| part.queueing), whole.queueing, "{border}");
                assert_eq!(sum(&|part| part.span.1 - part.span.0), whole.time.total(), "{border}");
                for of in [
                    |time: &QueueTime| time.kernels,
                    |time: &QueueTime| time.transfers,
                    |time: &QueueTime| time.host_bound,
                    |time: &QueueTime| time.transfer_bound,
                    |time: &QueueTime| time.device_busy,
                    |time: &QueueTime| time.dependency_bound,
                ] {
                    assert_eq!(sum(&|part| of(&part.time)), of(&whole.time), "{border}");
                }
            }
        }
        assert_eq!(ledgers[1].time.total(), 180);
    }

    #[test]
    fn operations_without_duration_keep_no_device_busy() {
        // So many and so mixed that sorting moves begins and ends of one time past each other.
        let instants = (0..1000).map(|number| 10 + number * 7919 % 1000);
        let second = instants.map(|at| operation(kind::KERNEL, at, at, at)).collect();
        let first = vec![operation(kind::KERNEL, 5, 2000, 2100)];
        let devices = Devices { queues: vec![queue("a", first), queue("b", second)], ..Devices::default() };
        assert_eq!(
            ledgers(&devices, ALL)[0].time,
            QueueTime { kernels: 100, dependency_bound: 1995, ..QueueTime::default() }
        );
    }

    #[test]
    fn without_submissions_idle_time_has_no_known_cause() {
        let operations = vec![operation(kind::KERNEL, 0, 10, 20), operation(kind::KERNEL, 0, 35, 40)];
        let devices =
            Devices { queues: vec![queue("a", operations)], calls: Vec::new(), ..Devices::default() };
        assert_eq!(
            ledgers(&devices, ALL)[0].time,
            QueueTime { kernels: 15, unknown: 15, ..QueueTime::default() }
        );
    }
}
