//! Makes the documents of device queues from a session.

use super::anomaly_text::{account_sentences, anomalies};
use super::document::*;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use taskscope_analysis::devices::{QueueLedger, ledgers, nanos_in, reaches_into, submitter};
use taskscope_execution::devices::{CallThread, Class, DeviceCall, DeviceOperation, Purpose, Queue};
use taskscope_session::{Session, call_waits};

/// The report's `devices`; `None` without queues and calls.
pub fn in_time(session: &Session) -> Option<DevicesInTime> {
    let with_time = |(queue, ledger): (&Queue, QueueLedger)| {
        let time = &ledger.time;
        DeviceQueueInTime {
            queue: facts_of(queue, session.times),
            span_ns: time.total(),
            time_ns: QueueTimes {
                kernels: time.kernels,
                transfers: time.transfers,
                other: time.other,
                idle_host_bound: time.host_bound,
                idle_transfer_bound: time.transfer_bound,
                idle_device_busy: time.device_busy,
                idle_dependency_bound: time.dependency_bound,
                idle_unknown: time.unknown,
            },
            queueing_ns: Queueing {
                operations: ledger.submissions,
                total: ledger.queueing,
                longest: ledger.longest_queueing,
            },
            names: by_name(session, queue),
        }
    };
    let (first, last) = session.devices.range();
    (!session.devices.is_empty()).then(|| DevicesInTime {
        run_wall_ns: last - first,
        queues: session
            .devices
            .queues
            .iter()
            .zip(ledgers(&session.devices, session.times))
            .map(with_time)
            .collect(),
        calls: calls(session),
        waits: waits(session),
        vendor_dropped: vendor_dropped(session),
    })
}

/// The devices of `info`; `None` without queues and calls.
pub fn facts(session: &Session) -> Option<Devices> {
    (!session.devices.is_empty()).then(|| Devices {
        queues: session.devices.queues.iter().map(|queue| facts_of(queue, session.times)).collect(),
        calls: calls(session),
        vendor_dropped: vendor_dropped(session),
    })
}

/// Records that vendors' interfaces dropped, in all processes.
fn vendor_dropped(session: &Session) -> u64 {
    session.devices.dropped.values().sum()
}

fn calls(session: &Session) -> Vec<DeviceCalls> {
    let waited = waited_in_copies(session);
    let thread_facts = |thread: &CallThread| {
        let [submitting_ns, waiting_ns, other_ns, overhead_ns] = spent_in_calls(session, thread, &waited);
        DeviceCalls {
            pid: thread.pid,
            tid: thread.tid,
            calls: calls_in(session, thread).count(),
            time_ns: [submitting_ns, waiting_ns, other_ns, overhead_ns].iter().sum(),
            submitting_ns,
            waiting_ns,
            other_ns,
            overhead_ns,
        }
    };
    session.devices.calls.iter().map(thread_facts).collect()
}

/// Operations that reach into a part of the time.
fn operations_in(queue: &Queue, part: (u64, u64)) -> impl Iterator<Item = &DeviceOperation> {
    // Those without usable times are in no part, and in the whole.
    let is_in = move |operation: &&DeviceOperation| {
        part == (0, u64::MAX)
            || operation.lane.is_some() && reaches_into((operation.start, operation.end), part)
    };
    queue.operations.iter().filter(is_in)
}

fn facts_of(queue: &Queue, part: (u64, u64)) -> DeviceQueue {
    let clock = &queue.clock;
    let count_class =
        |class| operations_in(queue, part).filter(|operation| operation.class() == class).count();
    DeviceQueue {
        name: queue.name.clone(),
        path: queue.path.clone(),
        device: queue.device.clone(),
        pid: queue.pid,
        order: if queue.in_order { "in-order" } else { "out-of-order" }.into(),
        order_from: queue.order_from.clone(),
        finished: queue.finished,
        recorded: queue.operations.len(),
        operations: operations_in(queue, part).count(),
        kernels: count_class(Class::Kernel),
        transfers: count_class(Class::Transfer),
        lost: queue.lost.len(),
        late: queue.late.len(),
        duplicates: queue.duplicates,
        account: queue.account.iter().cloned().collect(),
        anomalies: anomalies(queue).into_iter().map(|(name, count)| (name.into(), count)).collect(),
        foreign: queue.foreign.clone(),
        remarks: account_sentences(queue),
        clock: DeviceClock {
            source: clock.source.clone(),
            knots: clock.knots.clone(),
            bounds: clock.bounds,
            violated: clock.violated,
            worst_violation_ns: clock.worst_violation_ns,
            lower_slack_ns: clock.slack_ns.0,
            upper_slack_ns: clock.slack_ns.1,
            steps: clock.steps.clone(),
            drift_ppm: clock.drift_ppm,
        },
    }
}

/// The longest in all first.
fn waits(session: &Session) -> Vec<DeviceWaits> {
    type OfKind = (BTreeSet<(i64, i64)>, u64);
    let mut by_kind: BTreeMap<(String, Option<String>), OfKind> = BTreeMap::new();
    for wait in call_waits(&session.devices) {
        let time_ns = nanos_in((wait.start, wait.end), session.times);
        if time_ns > 0 {
            let (threads, sum) = by_kind.entry((wait.call, wait.operation)).or_default();
            threads.insert((wait.pid, wait.tid));
            *sum += time_ns;
        }
    }
    let row = |((call, operation), (threads, time_ns)): (_, OfKind)| DeviceWaits {
        call,
        operation,
        threads: threads.len(),
        time_ns,
    };
    let mut waits: Vec<DeviceWaits> = by_kind.into_iter().map(row).collect();
    waits.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| a.call.cmp(&b.call)));
    waits
}

/// Nanoseconds of waiting in blocking copies of each thread, by process and thread.
fn waited_in_copies(session: &Session) -> BTreeMap<(i64, i64), u64> {
    let mut waited = BTreeMap::new();
    for wait in call_waits(&session.devices).iter().filter(|wait| wait.purpose == Purpose::Submits) {
        *waited.entry((wait.pid, wait.tid)).or_default() += nanos_in((wait.start, wait.end), session.times);
    }
    waited
}

/// Calls of a thread within the selected time.
fn calls_in<'a>(session: &'a Session, thread: &'a CallThread) -> impl Iterator<Item = &'a DeviceCall> {
    thread.calls.iter().filter(|call| reaches_into((call.start, call.end), session.times))
}

/// Time in calls that submit, wait or do other work, and in the vendor's own overhead. The wait inside a
/// blocking copy counts as waiting.
fn spent_in_calls(session: &Session, thread: &CallThread, waited: &BTreeMap<(i64, i64), u64>) -> [u64; 4] {
    let mut spent = [0; 4];
    for call in &thread.calls {
        let place = match call.purpose() {
            Purpose::Submits => 0,
            Purpose::Waits => 1,
            Purpose::Other => 2,
            Purpose::Overhead => 3,
        };
        spent[place] += nanos_in((call.start, call.end), session.times);
    }
    let in_copies = waited.get(&(thread.pid, thread.tid)).copied().unwrap_or(0);
    spent[0] = spent[0].saturating_sub(in_copies);
    spent[1] += in_copies;
    spent
}

/// Operations of one name are one row; the longest in all first.
fn by_name(session: &Session, queue: &Queue) -> Vec<DeviceOperations> {
    let mut rows: FxHashMap<u32, (u64, u64, &DeviceOperation)> = FxHashMap::default();
    for operation in operations_in(queue, session.times).filter(|operation| operation.lane.is_some()) {
        let row = rows.entry(operation.name).or_insert((0, 0, operation));
        row.0 += 1;
        row.1 += nanos_in((operation.start, operation.end), session.times);
    }
    let submitters = submitters(queue);
    let mut rows: Vec<DeviceOperations> = rows
        .into_iter()
        .map(|(name, (operations, time_ns, example))| DeviceOperations {
            name: match queue.name_of(name) {
                "" => example.kind_name().to_owned(),
                name => name.to_owned(),
            },
            short_name: queue.shown_name(example).to_owned(),
            operations,
            time_ns,
            submitted_by: submitters
                .get(&name)
                .map(|(threads, first)| submitted_by(session, queue, threads, first))
                .unwrap_or_default(),
        })
        .collect();
    rows.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// By names of operations: the threads that submitted any, and the first operation.
fn submitters(queue: &Queue) -> FxHashMap<u32, (BTreeSet<i64>, &DeviceOperation)> {
    let mut submitters: FxHashMap<u32, (BTreeSet<i64>, &DeviceOperation)> = FxHashMap::default();
    for operation in &queue.operations {
        let (threads, _) = submitters.entry(operation.name).or_insert_with(|| (BTreeSet::new(), operation));
        if operation.thread != 0 {
            threads.insert(operation.thread);
        }
    }
    submitters
}

/// Threads, and the call and the task that submitted the first of the operations.
fn submitted_by(
    session: &Session,
    queue: &Queue,
    threads: &BTreeSet<i64>,
    first: &DeviceOperation,
) -> String {
    let threads: Vec<i64> = threads.iter().copied().collect();
    let mut text = match threads[..] {
        [] => return String::new(),
        [one] => format!("by thread {one}"),
        [first, second] => format!("by threads {first}, {second}"),
        ref many => format!("by {} threads", many.len()),
    };
    let submitter = submitter(&session.execution, &session.devices, queue, first);
    if let Some(call) = submitter.call {
        let _ = write!(text, " in {call}");
    }
    if let Some(task) = submitter.task {
        let name = session.places.type_name(session.execution.tasks.ty[task.index()]);
        let _ = write!(text, " of {name}");
    }
    text
}
