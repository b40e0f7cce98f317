//! Device queues: their use of time, misplaced records, and the accuracy of their clocks.

use crate::documents::Word;
use crate::format::{Cell, count, counted, fit, percent, time};
use crate::sheet::{BOLD, DIM, Sheet};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use taskscope_analysis::devices::{QueueLedger, ledgers, nanos_in, reaches_into, submitter};
use taskscope_execution::devices::{Call, CallThread, Class, Operation, Purpose, Queue};
use taskscope_session::{Session, call_waits};

/// Rows of kernels that are shown for each queue.
const NAMES_SHOWN: usize = 5;
/// Rows of waits that are shown.
const WAITS_SHOWN: usize = 5;

impl DevicesInTime {
    /// The header of a trace with only device queues; empty without queues.
    pub(crate) fn header_text(&self, trace: &str) -> String {
        if self.queues.is_empty() {
            return String::new();
        }
        let operations: usize = self.queues.iter().map(|row| row.queue.recorded).sum();
        let lost: u64 = self.queues.iter().map(|row| row.queue.account_of("lost")).sum();
        format!(
            "{trace}: {}  {}  {}  {} lost\n",
            time(self.run_wall_ns),
            counted(self.queues.len() as u64, "device queue"),
            counted(operations as u64, "operation"),
            count(lost)
        )
    }

    /// The section as text in lines of `width` columns, empty without queues.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut sheet = Sheet::new(width);
        if self.queues.is_empty() {
            return sheet.text;
        }
        let columns = [("operations", 12), ("span", 11), ("kernels", 9), ("copies", 9), ("idle", 9)];
        sheet.heading("Device queues", &columns);
        for row in &self.queues {
            row.write(&mut sheet);
        }
        self.write_calls(&mut sheet);
        self.write_waits(&mut sheet);
        sheet.text
    }

    /// Device calls of each host thread: rows beside those of the queues.
    fn write_calls(&self, sheet: &mut Sheet) {
        let threads: Vec<&DeviceCalls> = self.calls.iter().filter(|thread| thread.calls > 0).collect();
        if threads.is_empty() {
            return;
        }
        let titles = ["calls", "submitting", "waiting", "other", "overhead"];
        sheet.heading("Calls for devices", &titles.map(|title| (title, 11)));
        let has_several = threads.iter().any(|thread| thread.pid != threads[0].pid);
        for thread in threads {
            let times =
                [thread.submitting_ns, thread.waiting_ns, thread.other_ns, thread.overhead_ns].map(time);
            let calls = count(thread.calls as u64);
            let columns: Vec<(&str, usize)> =
                [&calls].into_iter().chain(&times).map(|text| (text.as_str(), 11)).collect();
            let process = if has_several { format!(" of process {}", thread.pid) } else { String::new() };
            sheet.row(0, &format!("thread {}{process}", thread.tid), &columns);
        }
    }

    /// Waits of threads for devices, by call, queue and operation.
    fn write_waits(&self, sheet: &mut Sheet) {
        if self.waits.is_empty() {
            return;
        }
        let total: u64 = self.waits.iter().map(|wait| wait.time_ns).sum();
        sheet.heading("Waits for devices, longest first", &[("threads", 9), ("time", 11), ("share", 9)]);
        for wait in self.waits.iter().take(WAITS_SHOWN) {
            let text = match &wait.operation {
                Some(operation) => format!("in {} for {operation}", wait.call),
                None => format!("in {} while nothing runs on the device", wait.call),
            };
            let (threads, share) = (count(wait.threads as u64), percent(wait.time_ns, total));
            sheet.row(0, &text, &[(&threads, 9), (&time(wait.time_ns), 11), (&share, 9)]);
        }
        if self.waits.len() > WAITS_SHOWN {
            sheet.line(&format!("  {DIM}{} more{DIM:#}", self.waits.len() - WAITS_SHOWN));
        }
    }
}

impl DeviceQueueInTime {
    /// The queue's row, and lines on its idle time, operations and records.
    fn write(&self, sheet: &mut Sheet) {
        let (spent, span) = (&self.time_ns, self.span_ns);
        let operations = count(self.queue.operations as u64);
        let shares = [spent.kernels, spent.transfers, spent.idle()].map(|ns| percent(ns, span));
        let columns =
            [(&*operations, 12), (&*time(span), 11), (&*shares[0], 9), (&*shares[1], 9), (&*shares[2], 9)];
        sheet.row(0, &self.queue.name, &columns);
        if spent.idle() > 0 {
            sheet.aside("idle because", &self.idle_causes());
        }
        if let Some(mean) = self.queueing_ns.total.checked_div(self.queueing_ns.operations) {
            let (mean, longest) = (time(mean), time(self.queueing_ns.longest));
            sheet.aside("from submission to start", &format!("{mean} on average, {longest} at most"));
        }
        for row in self.names.iter().take(NAMES_SHOWN) {
            // Instances of a template may have one name.
            let is_shared = self.names.iter().filter(|other| other.short_name == row.short_name).count() > 1;
            let name = if is_shared { &row.name } else { &row.short_name };
            // Below the columns of the queue.
            let columns = [(&*count(row.operations), 12), (&*time(row.time_ns), 11), ("", 27)];
            sheet.row(2, name, &columns);
            if !row.submitted_by.is_empty() {
                sheet.aside("submitted", &row.submitted_by);
            }
        }
        for sentence in &self.queue.remarks {
            sheet.line(&format!("    {sentence}"));
        }
    }

    /// The causes of idle time with their shares of the span, largest first.
    fn idle_causes(&self) -> String {
        let (idle, total) = (&self.time_ns, self.span_ns);
        let causes = [
            ("nothing is submitted", idle.idle_host_bound),
            ("the device copies", idle.idle_transfer_bound),
            ("other queues compute", idle.idle_device_busy),
            ("it waits for events or the driver", idle.idle_dependency_bound),
            ("(submissions were not recorded)", idle.idle_unknown),
        ];
        let mut causes: Vec<_> = causes.into_iter().filter(|(_, nanos)| *nanos > 0).collect();
        causes.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        // Shares below half a thousandth are omitted.
        let shown = causes.iter().take_while(|(_, nanos)| nanos * 2000 >= total).count();
        causes.truncate(shown.max(1));
        let texts: Vec<String> =
            causes.iter().map(|(text, nanos)| format!("{text} {}", percent(*nanos, total))).collect();
        texts.join(", ")
    }
}

impl QueueTimes {
    /// Nanoseconds in which nothing of the queue ran.
    fn idle(&self) -> u64 {
        let ready = self.idle_device_busy + self.idle_dependency_bound + self.idle_unknown;
        self.idle_host_bound + self.idle_transfer_bound + ready
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
fn calls_in<'a>(session: &'a Session, thread: &'a CallThread) -> impl Iterator<Item = &'a Call> {
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
    let mut rows: FxHashMap<u32, (u64, u64, &Operation)> = FxHashMap::default();
    for operation in operations_in(queue, session.times).filter(|operation| operation.lane.is_some()) {
        let row = rows.entry(operation.name).or_insert((0, 0, operation));
        row.0 += 1;
        row.1 += nanos_in((operation.start, operation.end), session.times);
    }
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
            submitted_by: submitted_by(session, queue, name),
        })
        .collect();
    rows.sort_by(|a, b| b.time_ns.cmp(&a.time_ns).then_with(|| a.name.cmp(&b.name)));
    rows
}

/// Threads, and the call and the task that submitted the first of the operations.
fn submitted_by(session: &Session, queue: &Queue, name: u32) -> String {
    let operations = || queue.operations.iter().filter(|operation| operation.name == name);
    let mut threads: Vec<i64> =
        operations().map(|operation| operation.thread).filter(|tid| *tid != 0).collect();
    threads.sort_unstable();
    threads.dedup();
    let mut text = match threads[..] {
        [] => return String::new(),
        [one] => format!("by thread {one}"),
        [first, second] => format!("by threads {first}, {second}"),
        ref many => format!("by {} threads", many.len()),
    };
    if let Some(first) = operations().next() {
        let submitter = submitter(&session.execution, &session.devices, queue, first);
        if let Some(call) = submitter.call {
            let _ = write!(text, " in {call}");
        }
        if let Some(task) = submitter.task {
            let name = session.places.type_name(session.execution.tasks.ty[task.index()]);
            let _ = write!(text, " of {name}");
        }
    }
    text
}

/// Delivery problems that the recorder or the import reported, largest first.
fn account_sentences(queue: &Queue) -> Vec<String> {
    let mut sentences = Vec::new();
    let mut tell = |number: u64, text: String| {
        if number > 0 {
            sentences.push(text);
        }
    };
    let lost = queue.lost.len() as u64;
    tell(lost, format!("{} lost: submitted, but no record came", counted(lost, "operation")));
    let untimed = queue.count("untimed");
    tell(untimed, format!("{} without usable times", counted(untimed, "record")));
    let out_of_place = queue.count("out_of_place");
    tell(
        out_of_place,
        format!(
            "{} came out of place, by {} at most; {} held for others at most",
            counted(out_of_place, "record"),
            time(queue.count("worst_late_ns")),
            count(queue.count("held_peak"))
        ),
    );
    tell(
        queue.foreign.len() as u64,
        format!("foreign: {}", queue.foreign.first().cloned().unwrap_or_default()),
    );
    tell(queue.duplicates, format!("{} came twice", counted(queue.duplicates, "record")));
    let overlaps = queue.count("overlaps");
    tell(
        overlaps,
        format!(
            "overlaps on this in-order queue: {}, by {} at most; its clock is wrong by as much",
            counted(overlaps, "record"),
            time(queue.count("worst_overlap_ns"))
        ),
    );
    for (name, number) in anomalies(queue).into_iter().filter(|(name, _)| *name != "overlap") {
        tell(number, format!("{}: {name}", counted(number, "record")));
    }
    if !queue.finished {
        sentences
            .push("the program ended before the queue's stream did: later records are missing".to_owned());
    }
    sentences
}

fn anomalies(queue: &Queue) -> Vec<(&'static str, u64)> {
    let mut by_name: FxHashMap<&'static str, u64> = FxHashMap::default();
    for name in queue.operations.iter().flat_map(Operation::anomaly_names) {
        *by_name.entry(name).or_default() += 1;
    }
    let mut anomalies: Vec<_> = by_name.into_iter().collect();
    anomalies.sort_unstable();
    anomalies
}

impl Devices {
    /// Operations of all queues.
    pub(crate) fn recorded(&self) -> u64 {
        self.queues.iter().map(|queue| queue.recorded as u64).sum()
    }

    /// The lines of `info` on queues and their clocks; empty without queues.
    pub(crate) fn text(&self) -> String {
        let mut page = String::new();
        if self.queues.is_empty() {
            return page;
        }
        let _ = writeln!(
            page,
            "\n  {BOLD}{:<26}{:<22}{:>9}{:>10}{:>10}{:>6}{:>7}{BOLD:#}",
            "device queue", "order", "appended", "delivered", "cancelled", "lost", "lanes"
        );
        for queue in &self.queues {
            let _ = writeln!(
                page,
                "  {:<26}{:<22}{:>9}{:>10}{:>10}{:>6}{:>7}",
                Cell(fit(&queue.name, 25)),
                Cell(format!("{} ({})", queue.order, queue.order_from)),
                count(queue.account_of("appended")),
                count(queue.account_of("delivered")),
                count(queue.account_of("cancelled")),
                count(queue.account_of("lost")),
                count(queue.account_of("lanes")),
            );
            for sentence in queue.remarks.iter().chain(&queue.clock.sentences()) {
                let _ = writeln!(page, "    {sentence}");
            }
        }
        if self.vendor_dropped > 0 {
            let dropped = counted(self.vendor_dropped, "record");
            let _ = writeln!(page, "  vendors' interfaces dropped {dropped}");
        }
        page
    }
}

impl DeviceQueue {
    /// A count of the recorder or import; 0 without it.
    fn account_of(&self, name: &str) -> u64 {
        self.account.get(name).copied().unwrap_or(0)
    }
}

impl DeviceClock {
    /// The map of the queue's clock, its tolerance, and its violations.
    fn sentences(&self) -> Vec<String> {
        let clock = self;
        let mut sentences = Vec::new();
        if clock.bounds == 0 && clock.source.is_empty() {
            return sentences;
        }
        let mut text = String::from("clock: ");
        if !clock.source.is_empty() {
            let _ = write!(text, "{}; ", clock.source);
        }
        let pieces = clock.knots.len().saturating_sub(1).max(1);
        let _ = write!(text, "{} through {}", counted(pieces as u64, "line"), counted(clock.bounds, "bound"));
        if clock.drift_ppm.abs() >= 0.05 {
            let _ = write!(text, ", drift {:+.1} ppm", clock.drift_ppm);
        }
        let room = |slack: Option<u64>| slack.map_or("–".to_owned(), time);
        let _ = write!(
            text,
            ", room {} below and {} above",
            room(clock.lower_slack_ns),
            room(clock.upper_slack_ns)
        );
        sentences.push(text);
        if clock.violated > 0 {
            sentences.push(format!(
                "clock: {} bounds are violated, by {} at most: operations start before they were submitted, or end after they were seen to have ended",
                count(clock.violated),
                time(clock.worst_violation_ns)
            ));
        }
        for (ticks, nanos) in clock.steps.iter().take(3) {
            let sign = if *nanos < 0 { "−" } else { "+" };
            sentences.push(format!(
                "clock: a step of {sign}{} at device time {ticks}",
                time(nanos.unsigned_abs())
            ));
        }
        sentences
    }
}

/// Device queues and the calls of the host that concern them.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Devices {
    /// The queues.
    pub queues: Vec<DeviceQueue>,
    /// Device calls of each host thread.
    pub calls: Vec<DeviceCalls>,
    /// Records that vendors' interfaces dropped, in all processes.
    pub vendor_dropped: u64,
}

/// Device queues with sums of time, as in a report.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DevicesInTime {
    /// Nanoseconds from the first submission, start or call of the whole run to the last end.
    pub run_wall_ns: u64,
    /// The queues.
    pub queues: Vec<DeviceQueueInTime>,
    /// Device calls of each host thread.
    pub calls: Vec<DeviceCalls>,
    /// Waits of threads in calls, including blocking copies, by call and by concurrent operation; the longest
    /// total first.
    pub waits: Vec<DeviceWaits>,
    /// Records that vendors' interfaces dropped, in all processes.
    pub vendor_dropped: u64,
}

/// A device queue and its records.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceQueue {
    /// Its name.
    pub name: String,
    /// Path of its location below the trace's root.
    pub path: String,
    /// Its device; empty if unknown.
    pub device: String,
    /// Process id of the program; null for imports.
    pub pid: Option<i64>,
    /// Whether it runs its operations one after the other.
    #[schemars(extend("enum" = ["in-order", "out-of-order"]))]
    pub order: Word,
    /// Source of that fact.
    #[schemars(extend("enum" = ["told", "overlaps", "assumed"]))]
    pub order_from: String,
    /// Whether its stream ended properly.
    pub finished: bool,
    /// Operations that were recorded, in all.
    pub recorded: usize,
    /// Operations that reach into the selected part of the time.
    pub operations: usize,
    /// Kernels among them.
    pub kernels: usize,
    /// Copies among them.
    pub transfers: usize,
    /// Operations that were submitted and of which no record came.
    pub lost: usize,
    /// Records that came after their operation was declared lost.
    pub late: usize,
    /// Further records of operations that had ended already.
    pub duplicates: u64,
    /// Counts of the recorder or import: appended = delivered + cancelled + lost, and misplaced records.
    pub account: BTreeMap<String, u64>,
    /// Records by anomaly (docs/device-records.md).
    pub anomalies: BTreeMap<Word, u64>,
    /// Records that were in the buffer of another thread, each as a sentence.
    pub foreign: Vec<String>,
    /// Problems with the delivery of its records, as worded in the text report.
    pub remarks: Vec<String>,
    /// The map from the device's clock to the host's.
    pub clock: DeviceClock,
}

/// The map from a device's clock to the host's, and how well it satisfies its bounds.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceClock {
    /// The source of the clock map.
    pub source: String,
    /// Knots of the piecewise linear map: device ticks, host nanoseconds.
    pub knots: Vec<(u64, i64)>,
    /// Bounds that were collected: an operation starts after its submission, ends before its record comes.
    pub bounds: u64,
    /// Bounds that the map violates, of the tightest.
    pub violated: u64,
    /// The worst violation, nanoseconds.
    pub worst_violation_ns: u64,
    /// Room to the tightest bound below, nanoseconds.
    pub lower_slack_ns: Option<u64>,
    /// Room to the tightest bound above, nanoseconds.
    pub upper_slack_ns: Option<u64>,
    /// Jumps: device ticks, nanoseconds.
    pub steps: Vec<(u64, i64)>,
    /// Difference from the nominal rate, parts per million.
    pub drift_ppm: f64,
}

/// A device queue with sums of its time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceQueueInTime {
    /// The queue.
    #[serde(flatten)]
    pub queue: DeviceQueue,
    /// Nanoseconds from the first submission to the last end; the sum of `time_ns`.
    pub span_ns: u64,
    /// Every nanosecond of the span by its cause.
    pub time_ns: QueueTimes,
    /// Time from submission to start.
    pub queueing_ns: Queueing,
    /// Operations by name, the longest in all first.
    pub names: Vec<DeviceOperations>,
}

/// Nanoseconds of a queue.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QueueTimes {
    /// Time in kernels.
    pub kernels: u64,
    /// Time in copies.
    pub transfers: u64,
    /// Time in other operations.
    pub other: u64,
    /// Idle: nothing was submitted.
    pub idle_host_bound: u64,
    /// Idle while the device copied.
    pub idle_transfer_bound: u64,
    /// Idle while other queues computed.
    pub idle_device_busy: u64,
    /// Idle: operations waited for events or the driver.
    pub idle_dependency_bound: u64,
    /// Idle, with submissions not recorded.
    pub idle_unknown: u64,
}

/// Waiting of operations between their submission and their start.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Queueing {
    /// Operations with a known submission.
    pub operations: u64,
    /// Sum, nanoseconds.
    pub total: u64,
    /// The longest, nanoseconds.
    pub longest: u64,
}

/// Operations of one name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceOperations {
    /// The name, or the kind of one without a name.
    pub name: String,
    /// Number of operations.
    pub operations: u64,
    /// Nanoseconds of all.
    pub time_ns: u64,
    /// Threads, and the call and the task that submitted the first; empty if unknown.
    pub submitted_by: String,
    /// The name without namespaces and arguments.
    pub short_name: String,
}

/// Calls of one thread of the host.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceCalls {
    /// Process id.
    pub pid: i64,
    /// Thread id.
    pub tid: i64,
    /// Number of calls.
    pub calls: usize,
    /// Nanoseconds of all.
    pub time_ns: u64,
    /// Nanoseconds in calls that submit, without the waiting of blocking copies.
    pub submitting_ns: u64,
    /// Nanoseconds of waiting, that of blocking copies included.
    pub waiting_ns: u64,
    /// Nanoseconds in other calls.
    pub other_ns: u64,
    /// Nanoseconds of the vendor's own overhead.
    pub overhead_ns: u64,
}

/// Waits of threads in calls of one name for operations of one name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct DeviceWaits {
    /// The call.
    pub call: String,
    /// Operation and queue, as `KERNEL on QUEUE`; null while nothing ran on the device.
    pub operation: Option<String>,
    /// Number of threads that waited.
    pub threads: usize,
    /// Nanoseconds of all.
    pub time_ns: u64,
}

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
    let of_thread = |thread: &CallThread| {
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
    session.devices.calls.iter().map(of_thread).collect()
}

/// Operations that reach into a part of the time.
fn operations_in(queue: &Queue, part: (u64, u64)) -> impl Iterator<Item = &Operation> {
    // Those without usable times are in no part, and in the whole.
    let is_in = move |operation: &&Operation| {
        part == (0, u64::MAX)
            || operation.lane.is_some() && reaches_into((operation.start, operation.end), part)
    };
    queue.operations.iter().filter(is_in)
}

fn facts_of(queue: &Queue, part: (u64, u64)) -> DeviceQueue {
    let clock = &queue.clock;
    let of_class = |class| operations_in(queue, part).filter(|operation| operation.class() == class).count();
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
        kernels: of_class(Class::Kernel),
        transfers: of_class(Class::Transfer),
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
