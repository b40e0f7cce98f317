//! Waits of threads for devices: the running operation at each instant, and the operation that ended each wait.

use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use taskscope_event::models::device::kind;
use taskscope_execution::devices::{CallThread, DeviceCall, DeviceOperation, Devices, Purpose};
use taskscope_execution::graph::{AwaitedOperation, DeviceWait, DeviceWork, SubmittedOperation};
use taskscope_execution::{Execution, OffCpu, State, TargetWaitPart, ThreadIndex};

/// A part of a wait of a thread of the host for a device, in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallWait {
    /// Process id.
    pub pid: i64,
    /// System thread id.
    pub tid: i64,
    /// Name of the call.
    pub call: String,
    /// Other effect of the call.
    pub purpose: Purpose,
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// Operation and queue, as `KERNEL on QUEUE`; `None` while nothing ran.
    pub operation: Option<String>,
}

/// Waits of all threads in calls, with the awaited operation at each instant.
pub fn call_waits(devices: &Devices) -> Vec<CallWait> {
    let mut waits = Vec::new();
    for pid in pids(devices) {
        let known = Operations::of(devices, pid, 0);
        for thread in devices.calls.iter().filter(|thread| thread.pid == pid) {
            for call in &thread.calls {
                let Some(wait) = known.waiting_part(thread, call) else { continue };
                known.split(thread.tid, wait, |start, end, operation| {
                    let operation = operation.map(|operation| operation.name.clone());
                    let (name, purpose) = (name_of(thread, call).to_owned(), call.purpose());
                    waits.push(CallWait { pid, tid: thread.tid, call: name, purpose, start, end, operation });
                });
            }
        }
    }
    waits
}

/// Waits of the execution's threads in calls, by thread and time.
pub(crate) fn device_waits(execution: &Execution, devices: &Devices) -> Vec<OffCpu> {
    let mut waits = Vec::new();
    for pid in pids(devices) {
        let known = Operations::of(devices, pid, 0);
        for thread in devices.calls.iter().filter(|thread| thread.pid == pid) {
            let Some(waiter) = thread_of(execution, pid, thread.tid) else { continue };
            let parts = thread.calls.iter().filter_map(|call| known.waiting_part(thread, call));
            waits.extend(parts.map(|(start, end)| OffCpu { thread: waiter, start, end }));
        }
    }
    waits.sort_unstable_by_key(|wait| (wait.thread, wait.start, wait.end));
    waits
}

/// Processes that call for devices.
fn pids(devices: &Devices) -> BTreeSet<i64> {
    devices.calls.iter().map(|thread| thread.pid).collect()
}

/// Waits of threads in calls that wait for devices: the running operation at each instant, or none; and the operations,
/// so that each wait leads to the submitter of the awaited operation.
pub(crate) fn device_work(execution: &Execution, devices: &Devices) -> DeviceWork {
    let mut work = DeviceWork::default();
    for pid in pids(devices) {
        let known = Operations::of(devices, pid, work.operations.len() as u32);
        for thread in devices.calls.iter().filter(|thread| thread.pid == pid) {
            let Some(waiter) = thread_of(execution, pid, thread.tid) else { continue };
            for call in &thread.calls {
                let Some((begin, finish)) = known.waiting_part(thread, call) else { continue };
                known.split(thread.tid, (begin, finish), |start, end, operation| {
                    let name = match operation {
                        Some(operation) => operation.name.clone(),
                        None => format!("nothing runs on the device ({})", name_of(thread, call)),
                    };
                    work.waits.push(DeviceWait { thread: waiter, start, end, name });
                });
                if let Some(operation) = known.awaited(call, begin, finish) {
                    let (start, end) = (begin, finish);
                    work.awaited.push(AwaitedOperation { thread: waiter, start, end, operation });
                }
            }
        }
        let mut threads: FxHashMap<i64, Option<ThreadIndex>> = FxHashMap::default();
        work.operations.extend(known.rows.into_iter().map(|row| {
            SubmittedOperation {
                submitter: row
                    .submitter
                    .and_then(|tid| *threads.entry(tid).or_insert_with(|| thread_of(execution, pid, tid))),
                name: row.name,
                submitted: row.submitted,
                start: row.start,
                end: row.end,
                after: row.after,
            }
        }));
    }
    work
}

/// Adds the operations that devices ran while threads waited for them, in device constructs and in calls.
pub(crate) fn add_target_waits(execution: &mut Execution, devices: &Devices) {
    let pids: BTreeSet<i64> = devices.queues.iter().filter_map(|queue| queue.pid).collect();
    let mut waits: Vec<TargetWaitPart> = Vec::new();
    let mut names: FxHashMap<String, u32> = FxHashMap::default();
    let mut catalog = Vec::new();
    for pid in pids {
        let known = Operations::of(devices, pid, 0);
        for (row, thread) in execution.threads.iter().enumerate() {
            if execution.processes[thread.process.index()].pid != pid {
                continue;
            }
            let waiter = ThreadIndex(row as u32);
            let spans = execution.spans_of_run(waiter).filter(|span| span.section.state == State::TargetWait);
            for wait in spans {
                known.split(thread.tid, (wait.start, wait.end), |start, end, operation| {
                    let Some(operation) = operation else { return };
                    let operation = *names.entry(operation.name.clone()).or_insert_with(|| {
                        catalog.push(operation.name.clone());
                        catalog.len() as u32 - 1
                    });
                    waits.push(TargetWaitPart { thread: waiter, start, end, operation });
                });
            }
        }
    }
    waits.sort_unstable_by_key(|wait| (wait.thread, wait.start));
    execution.target_waits = waits;
    execution.catalog.operations = catalog;
}

/// An operation that took time.
struct Row {
    /// Its name and queue.
    name: String,
    /// System id of the thread that submitted it, if known.
    submitter: Option<i64>,
    submitted: u64,
    start: u64,
    end: u64,
    /// Index of the operation whose end it awaited, among those of all processes.
    after: Option<u32>,
    /// Whether a call that submits it may wait for it.
    may_block: bool,
}

/// Rows of which the latest end is kept.
const BLOCK: usize = 64;

/// The operations of a process's queues that took time, by their starts.
struct Operations {
    rows: Vec<Row>,
    /// The latest end up to each row.
    latest_ends: Vec<u64>,
    /// The latest end of each block of rows.
    ends_of_blocks: Vec<u64>,
    /// Rows by their ends.
    by_end: Vec<u32>,
    /// Rows by the queue's number and the operation's number in it.
    numbers: FxHashMap<(u64, u64), u32>,
    /// Number of operations of other processes before these.
    first: u32,
}

impl Operations {
    fn of(devices: &Devices, pid: i64, first: u32) -> Operations {
        let queues = || devices.queues.iter().enumerate().filter(|(_, queue)| queue.pid == Some(pid));
        let mut order: Vec<(u64, u64, usize, usize)> = queues()
            .flat_map(|(number, queue)| {
                let timed = queue.operations.iter().enumerate().filter(|(_, of)| of.start < of.end);
                timed.map(move |(row, of)| (of.start, of.end, number, row))
            })
            .collect();
        order.sort_unstable();
        let (mut rows, mut latest_ends, mut latest) = (Vec::new(), Vec::new(), 0);
        let mut numbers = FxHashMap::default();
        for (start, end, number, row) in &order {
            let queue = &devices.queues[*number];
            let operation: &DeviceOperation = &queue.operations[*row];
            numbers.insert((queue.number, operation.seq), rows.len() as u32);
            // A submission at 0 is one of which nothing is known.
            let known = operation.append != 0 && operation.append <= *start;
            rows.push(Row {
                name: format!("{} on {}", queue.shown_name(operation), queue.name),
                submitter: Some(operation.thread).filter(|tid| known && *tid != 0),
                submitted: operation.append,
                start: *start,
                end: *end,
                after: None,
                may_block: matches!(operation.kind, kind::COPY | kind::COPY_IN | kind::COPY_OUT | kind::MAP),
            });
            latest = latest.max(*end);
            latest_ends.push(latest);
        }
        let mut by_end: Vec<u32> = (0..rows.len() as u32).collect();
        by_end.sort_by_key(|row| rows[*row as usize].end);
        let latest_end = |block: &[Row]| block.iter().map(|row| row.end).max().unwrap_or(0);
        let ends_of_blocks = rows.chunks(BLOCK).map(latest_end).collect();
        let mut known = Operations { rows, latest_ends, ends_of_blocks, by_end, numbers, first };
        known.find_predecessors(devices, &order);
        known
    }

    /// An operation that was submitted while another ran on its device, and began after that had ended, waited for it: of
    /// several for the one that ended last.
    fn find_predecessors(&mut self, devices: &Devices, order: &[(u64, u64, usize, usize)]) {
        // Queues of unknown devices have one each.
        let device = |row: u32| {
            let queue = &devices.queues[order[row as usize].2];
            let own = if queue.device.is_empty() { order[row as usize].2 } else { usize::MAX };
            (queue.device.as_str(), own)
        };
        let mut last_end: FxHashMap<(&str, usize), u32> = FxHashMap::default();
        let mut ended = self.by_end.iter().copied().peekable();
        for row in 0..self.rows.len() {
            let (submitted, start) = (self.rows[row].submitted, self.rows[row].start);
            while let Some(before) = ended.next_if(|before| self.rows[*before as usize].end <= start) {
                last_end.insert(device(before), before);
            }
            let before = last_end.get(&device(row as u32)).copied();
            let waited = |before: &u32| submitted != 0 && self.rows[*before as usize].end > submitted;
            let before = before.filter(waited);
            self.rows[row].after = before.map(|before| self.first + before);
        }
    }

    /// The part of a call in which it waits: all of one that is for waiting; of one that submits a copy or map and
    /// returns after that has ended (a blocking read), from the submission to that end. No other call that submits
    /// waits, however short its operation is.
    fn waiting_part(&self, thread: &CallThread, call: &DeviceCall) -> Option<(u64, u64)> {
        let part = match call.purpose() {
            Purpose::Waits => (call.start, call.end),
            Purpose::Submits => {
                let operation = &self.rows[*self.numbers.get(&call.operation?)? as usize];
                if operation.end > call.end || !operation.may_block || name_of(thread, call).contains("Async")
                {
                    return None;
                }
                (operation.submitted.max(call.start), operation.end)
            }
            _ => return None,
        };
        (part.0 < part.1).then_some(part)
    }

    /// The operation with the end that a wait was for: the one that the call submitted, else the last one that ended in
    /// it.
    fn awaited(&self, call: &DeviceCall, begin: u64, finish: u64) -> Option<u32> {
        if call.purpose() == Purpose::Submits {
            return self.numbers.get(&call.operation?).map(|row| self.first + row);
        }
        let ended = self.by_end.partition_point(|row| self.rows[*row as usize].end <= finish);
        let last = self.by_end[ended.checked_sub(1)?];
        (self.rows[last as usize].end > begin).then_some(self.first + last)
    }

    /// Cuts a wait of the thread with this system id by the running operations: those that the thread submitted itself,
    /// and while none of these ran, those of others. Of several the one that began first counts.
    fn split(&self, waiter: i64, wait: (u64, u64), mut part: impl FnMut(u64, u64, Option<&Row>)) {
        let is_own = |operation: &Row| operation.submitter == Some(waiter);
        self.cover(is_own, wait, &mut |start, end, own| match own {
            Some(own) => part(start, end, Some(own)),
            None => self.cover(|_| true, (start, end), &mut part),
        });
    }

    /// Cuts a stretch of time by those of these operations that ran, of several the one that began first.
    fn cover(
        &self,
        is_meant: impl Fn(&Row) -> bool,
        (begin, finish): (u64, u64),
        part: &mut impl FnMut(u64, u64, Option<&Row>),
    ) {
        let mut at = begin;
        let mut row = self.latest_ends.partition_point(|end| *end <= begin);
        while let Some(operation) = self.rows.get(row).filter(|of| of.start < finish && at < finish) {
            // One that runs long has many behind it that have ended.
            if row.is_multiple_of(BLOCK) && self.ends_of_blocks[row / BLOCK] <= at {
                row += BLOCK;
                continue;
            }
            row += 1;
            let (start, end) = (operation.start.max(at), operation.end.min(finish));
            if start >= end || !is_meant(operation) {
                continue;
            }
            if start > at {
                part(at, start, None);
            }
            part(start, end, Some(operation));
            at = end;
        }
        if at < finish {
            part(at, finish, None);
        }
    }
}

fn name_of<'a>(thread: &'a CallThread, call: &DeviceCall) -> &'a str {
    thread.names.get(call.name as usize).map_or("", String::as_str)
}

/// The thread of the execution with this id of the system.
fn thread_of(execution: &Execution, pid: i64, tid: i64) -> Option<ThreadIndex> {
    let found = execution.threads.iter().position(|thread| {
        let process = &execution.processes[thread.process.index()];
        thread.tid == tid && process.pid == pid && !process.has_cpus
    });
    found.map(|row| ThreadIndex(row as u32))
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::devices::{DeviceOperation, Queue};
    use taskscope_execution::{Change, ExecutionBuilder, Observer, Section};

    #[test]
    fn a_wait_is_split_by_the_devices_operations() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.7", 7);
        builder.add_thread(process, 70);
        let execution = builder.finish();
        let operation = |start, end, name| DeviceOperation {
            start,
            end,
            name,
            kind: kind::KERNEL,
            ..DeviceOperation::default()
        };
        let queue = Queue {
            name: "q".into(),
            pid: Some(7),
            operations: vec![
                operation(100, 200, 1),
                operation(150, 260, 2),
                DeviceOperation { seq: 8, append: 390, kind: kind::COPY_OUT, ..operation(400, 900, 1) },
                DeviceOperation { seq: 9, append: 910, ..operation(920, 930, 2) },
            ],
            names: vec![String::new(), "a".into(), "b".into()],
            ..Queue::default()
        };
        let call = |start, end, kind| DeviceCall { start, end, name: 1, kind, operation: None };
        let calls = CallThread {
            path: String::new(),
            pid: 7,
            tid: 70,
            calls: vec![
                call(120, 300, kind::WAITING_CALL),
                DeviceCall { operation: Some((0, 8)), ..call(500, 600, kind::SUBMITTING_CALL) },
                DeviceCall { operation: Some((0, 8)), ..call(800, 950, kind::SUBMITTING_CALL) },
                // A kernel that ends before its launch returns: no wait.
                DeviceCall { operation: Some((0, 9)), ..call(910, 990, kind::SUBMITTING_CALL) },
            ],
            names: vec![String::new(), "clFinish".into()],
        };
        let devices = Devices { queues: vec![queue], calls: vec![calls], ..Devices::default() };
        let work = device_work(&execution, &devices);
        let by_calls = call_waits(&devices).into_iter().map(|wait| (wait.tid, wait.start, wait.end));
        assert!(by_calls.eq(work.waits.iter().map(|wait| (70, wait.start, wait.end))));
        let reported: Vec<(u64, u64, &str)> =
            work.waits.iter().map(|w| (w.start, w.end, w.name.as_str())).collect();
        let idle = "nothing runs on the device (clFinish)";
        // The first call that submits comes back before its operation ends, the second does not.
        assert_eq!(
            reported,
            [(120, 200, "a on q"), (200, 260, "b on q"), (260, 300, idle), (800, 900, "a on q")]
        );
    }

    /// Both threads have an operation running: each waits for its own, and while that does not run for the other's.
    #[test]
    fn threads_in_device_constructs_wait_for_their_own_operations() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.7", 7);
        let threads = [70, 71].map(|tid| builder.add_thread(process, tid));
        for thread in threads {
            builder.event(thread, 50);
            builder.change(thread, 50, Change::Becomes(Section::of(State::TargetWait)));
            builder.event(thread, 300);
            builder.change(thread, 300, Change::Becomes(Section::of(State::Serial)));
        }
        let mut execution = builder.finish();
        let operation = |start, end, thread, name| DeviceOperation {
            append: 50,
            start,
            end,
            name,
            thread,
            kind: kind::KERNEL,
            ..DeviceOperation::default()
        };
        let queue = Queue {
            name: "q".into(),
            pid: Some(7),
            operations: vec![operation(100, 200, 70, 1), operation(110, 260, 71, 2)],
            names: vec![String::new(), "a".into(), "b".into()],
            ..Queue::default()
        };
        add_target_waits(&mut execution, &Devices { queues: vec![queue], ..Devices::default() });
        let reported: Vec<(u32, u64, u64, &str)> = (execution.target_waits.iter())
            .map(|w| (w.thread.0, w.start, w.end, &*execution.catalog.operations[w.operation as usize]))
            .collect();
        let expected = [
            (0, 100, 200, "a on q"),
            (0, 200, 260, "b on q"),
            (1, 100, 110, "a on q"),
            (1, 110, 260, "b on q"),
        ];
        assert_eq!(reported, expected);
    }

    /// Thread 71 submits `a` at 90 and `b` at 120 to one device; `b` begins when `a` has ended. Thread 70 waits for both.
    #[test]
    fn a_wait_leads_to_the_operation_that_ended_it_and_to_those_before() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.7", 7);
        let waiter = builder.add_thread(process, 70);
        let submitter = builder.add_thread(process, 71);
        let execution = builder.finish();
        let operation = |seq, append, start, end| DeviceOperation {
            seq,
            append,
            start,
            end,
            thread: 71,
            name: seq as u32,
            kind: kind::KERNEL,
            ..DeviceOperation::default()
        };
        let queue = Queue {
            name: "q".into(),
            pid: Some(7),
            operations: vec![
                operation(1, 90, 100, 200),
                operation(2, 120, 205, 300),
                operation(3, 0, 700, 800),
            ],
            names: vec![String::new(), "a".into(), "b".into(), "c".into()],
            ..Queue::default()
        };
        let call = |start, end| DeviceCall { start, end, name: 0, kind: kind::WAITING_CALL, operation: None };
        let calls = vec![call(130, 310), call(400, 500), call(750, 790)];
        let calls = CallThread { path: String::new(), pid: 7, tid: 70, calls, names: vec![String::new()] };
        let work = device_work(
            &execution,
            &Devices { queues: vec![queue], calls: vec![calls], ..Devices::default() },
        );
        // Nothing ended in the second wait, nor in the third.
        assert_eq!(work.awaited, [AwaitedOperation { thread: waiter, start: 130, end: 310, operation: 1 }]);
        let reported: Vec<_> =
            work.operations.iter().map(|of| (of.name.as_str(), of.submitter, of.after)).collect();
        let known = Some(submitter);
        assert_eq!(reported, [("a on q", known, None), ("b on q", known, Some(0)), ("c on q", None, None)]);
    }

    /// An operation that runs all the time, and many short ones of the waiting thread.
    #[test]
    fn a_wait_in_a_long_operation_is_split_by_the_short_ones_in_it() {
        let operation = |start, end, thread, name| DeviceOperation {
            append: 1,
            start,
            end,
            thread,
            name,
            kind: kind::KERNEL,
            ..DeviceOperation::default()
        };
        let short = (1..=300).map(|row| operation(100 * row + 10, 100 * row + 60, 70, 2));
        let queue = Queue {
            name: "q".into(),
            pid: Some(7),
            operations: [operation(5, 40_000, 71, 1)].into_iter().chain(short).collect(),
            names: vec![String::new(), "long".into(), "short".into()],
            ..Queue::default()
        };
        let known = Operations::of(&Devices { queues: vec![queue], ..Devices::default() }, 7, 0);
        for (begin, finish) in [(2, 90), (15_000, 15_300), (15_030, 29_999), (29_000, 41_000)] {
            let mut parts: Vec<(u64, u64, Option<String>)> = Vec::new();
            known.split(70, (begin, finish), |start, end, row| {
                parts.push((start, end, row.map(|row| row.name.clone())));
            });
            let name_at = |at: u64| match at % 100 {
                10..60 if (110..30_060).contains(&at) => Some("short on q"),
                _ => (5..40_000).contains(&at).then_some("long on q"),
            };
            let found = parts
                .iter()
                .flat_map(|(start, end, name)| (*start..*end).map(move |at| (at, name.as_deref())));
            assert!(found.eq((begin..finish).map(|at| (at, name_at(at)))), "{begin}..{finish}: {parts:?}");
        }
    }
}
