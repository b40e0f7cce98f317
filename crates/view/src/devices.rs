//! Device queues: what they did with their time, what was out of place, what the clocks are worth.

use crate::format::{count, counted, fit, percent, time};
use anstyle::Style;
use rustc_hash::FxHashMap;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use taskscope_analysis::devices::{QueueLedger, ledgers, submitter};
use taskscope_execution::devices::{CallThread, Class, Operation, Purpose, Queue};
use taskscope_session::{Session, call_waits};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Rows of kernels that are shown for each queue.
const NAMES_SHOWN: usize = 5;
/// Rows of waits that are shown.
const WAITS_SHOWN: usize = 5;

/// The report's section, empty without queues.
pub fn report_text(session: &Session) -> String {
    let mut page = String::new();
    if session.devices.queues.is_empty() {
        return page;
    }
    // Nobody else says what this trace is.
    if session.events == 0 {
        let (first, last) = session.devices.range();
        let lost: u64 = session.devices.queues.iter().map(|queue| queue.count("lost")).sum();
        let _ = writeln!(
            page,
            "{}: {}  {}  {}  {} lost",
            session.root.display(),
            time(last - first),
            counted(session.devices.queues.len() as u64, "device queue"),
            counted(session.devices.operations(), "operation"),
            count(lost)
        );
    }
    let _ = writeln!(
        page,
        "\n  {BOLD}{:<26}{:>10}{:>11}{:>9}{:>9}{:>9}  idle because{BOLD:#}",
        "Device queues", "operations", "span", "kernels", "copies", "idle"
    );
    for (queue, ledger) in session.devices.queues.iter().zip(ledgers(&session.devices)) {
        let span = ledger.time.total();
        let _ = writeln!(
            page,
            "  {:<26}{:>10}{:>11}{:>9}{:>9}{:>9}  {}",
            fit(&queue.name, 25),
            count(queue.operations.len() as u64),
            time(span),
            percent(ledger.time.kernels, span),
            percent(ledger.time.transfers, span),
            percent(ledger.time.idle(), span),
            idle_causes(&ledger)
        );
        if let Some(mean) = ledger.queueing.checked_div(ledger.submissions) {
            let _ = writeln!(
                page,
                "  {DIM}{:<26}waits {} from submission to start on average, {} at most{DIM:#}",
                "",
                time(mean),
                time(ledger.longest_queueing)
            );
        }
        let rows = by_name(session, queue);
        for row in rows.iter().take(NAMES_SHOWN) {
            // Instances of a template may have one name.
            let is_shared = rows.iter().filter(|other| other.short == row.short).count() > 1;
            let _ = writeln!(
                page,
                "    {:<24}{:>10}{:>11}  {DIM}{}{DIM:#}",
                fit(if is_shared { &row.name } else { &row.short }, 23),
                count(row.operations),
                time(row.time),
                row.submitted_by
            );
        }
        for sentence in account_sentences(queue) {
            let _ = writeln!(page, "    {sentence}");
        }
    }
    host_rows(session, &mut page);
    wait_rows(session, &mut page);
    page
}

/// Waits of threads in calls of one name for operations of one name.
struct Waits {
    call: String,
    /// As `KERNEL on QUEUE`; `None` while nothing ran.
    operation: Option<String>,
    threads: BTreeSet<(i64, i64)>,
    nanos: u64,
}

/// The longest in all first.
fn waits(session: &Session) -> Vec<Waits> {
    let mut by_kind: BTreeMap<(String, Option<String>), Waits> = BTreeMap::new();
    for wait in call_waits(&session.devices) {
        let key = (wait.call.clone(), wait.operation.clone());
        let (call, operation) = (wait.call, wait.operation);
        let row = by_kind.entry(key).or_insert_with(|| Waits {
            call,
            operation,
            threads: BTreeSet::new(),
            nanos: 0,
        });
        row.threads.insert((wait.pid, wait.tid));
        row.nanos += wait.end - wait.start;
    }
    let mut waits: Vec<Waits> = by_kind.into_values().collect();
    waits.sort_by(|a, b| b.nanos.cmp(&a.nanos).then_with(|| a.call.cmp(&b.call)));
    waits
}

/// What threads waited for, by call, queue and operation.
fn wait_rows(session: &Session, page: &mut String) {
    let waits = waits(session);
    if waits.is_empty() {
        return;
    }
    let total: u64 = waits.iter().map(|wait| wait.nanos).sum();
    let _ = writeln!(
        page,
        "\n  {BOLD}{:<58}{:>8}{:>11}{:>9}{BOLD:#}",
        "Waits for devices, longest first", "threads", "time", "share"
    );
    for wait in waits.iter().take(WAITS_SHOWN) {
        let text = match &wait.operation {
            Some(operation) => format!("in {} for {operation}", wait.call),
            None => format!("in {} while nothing runs on the device", wait.call),
        };
        let _ = writeln!(
            page,
            "  {:<58}{:>8}{:>11}{:>9}",
            fit(&text, 57),
            wait.threads.len(),
            time(wait.nanos),
            percent(wait.nanos, total)
        );
    }
    if waits.len() > WAITS_SHOWN {
        let _ = writeln!(page, "  {DIM}{} more{DIM:#}", waits.len() - WAITS_SHOWN);
    }
}

/// What each thread of the host did for devices: rows beside those of the queues.
fn host_rows(session: &Session, page: &mut String) {
    let threads: Vec<_> = session.devices.calls.iter().filter(|thread| !thread.calls.is_empty()).collect();
    if threads.is_empty() {
        return;
    }
    let _ = writeln!(
        page,
        "\n  {BOLD}{:<26}{:>10}{:>11}{:>11}{:>11}{:>11}{BOLD:#}",
        "Calls for devices", "calls", "submitting", "waiting", "other", "overhead"
    );
    let waited = waited_in_calls(session);
    for thread in threads {
        let spent = spent_in_calls(thread, &waited);
        let _ = writeln!(
            page,
            "  {:<26}{:>10}{:>11}{:>11}{:>11}{:>11}",
            format!("thread {}", thread.tid),
            count(thread.calls.len() as u64),
            time(spent[0]),
            time(spent[1]),
            time(spent[2]),
            time(spent[3]),
        );
    }
}

/// Nanoseconds of waiting in calls of each thread, by process and thread.
fn waited_in_calls(session: &Session) -> BTreeMap<(i64, i64), u64> {
    let mut waited = BTreeMap::new();
    for wait in call_waits(&session.devices) {
        *waited.entry((wait.pid, wait.tid)).or_default() += wait.end - wait.start;
    }
    waited
}

/// Time in calls that submit, wait, do something else, and in the vendor's own overhead. What blocking copies wait
/// counts as waiting.
fn spent_in_calls(thread: &CallThread, waited: &BTreeMap<(i64, i64), u64>) -> [u64; 4] {
    let mut spent = [0; 4];
    for call in &thread.calls {
        let place = match call.purpose() {
            Purpose::Submits => 0,
            Purpose::Waits => 1,
            Purpose::Other => 2,
            Purpose::Overhead => 3,
        };
        spent[place] += call.end - call.start;
    }
    let in_copies = waited.get(&(thread.pid, thread.tid)).copied().unwrap_or(0).saturating_sub(spent[1]);
    spent[0] = spent[0].saturating_sub(in_copies);
    spent[1] += in_copies;
    spent
}

fn idle_causes(ledger: &QueueLedger) -> String {
    let idle = &ledger.time;
    let causes = [
        ("nothing is submitted", idle.host_bound),
        ("the device copies", idle.transfer_bound),
        ("other queues compute", idle.device_busy),
        ("it waits for events or the driver", idle.dependency_bound),
        ("(submissions were not recorded)", idle.unknown),
    ];
    let mut causes: Vec<_> = causes.into_iter().filter(|(_, nanos)| *nanos > 0).collect();
    causes.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
    // Nobody reads on for less than half a thousandth.
    let total = ledger.time.total();
    let shown = causes.iter().take_while(|(_, nanos)| nanos * 2000 >= total).count();
    causes.truncate(shown.max(1));
    let texts: Vec<String> = causes
        .iter()
        .map(|(text, nanos)| format!("{text} {}", percent(*nanos, ledger.time.total())))
        .collect();
    texts.join(", ")
}

struct NameRow {
    name: String,
    /// Without namespaces and arguments.
    short: String,
    operations: u64,
    time: u64,
    submitted_by: String,
}

/// Operations of one name are one row; the longest in all first.
fn by_name(session: &Session, queue: &Queue) -> Vec<NameRow> {
    let mut rows: FxHashMap<u32, (u64, u64, &Operation)> = FxHashMap::default();
    for operation in queue.operations.iter().filter(|operation| operation.lane.is_some()) {
        let row = rows.entry(operation.name).or_insert((0, 0, operation));
        row.0 += 1;
        row.1 += operation.end - operation.start;
    }
    let mut rows: Vec<NameRow> = rows
        .into_iter()
        .map(|(name, (operations, time, example))| NameRow {
            name: match queue.name_of(name) {
                "" => example.kind_name().to_owned(),
                name => name.to_owned(),
            },
            short: queue.shown_name(example).to_owned(),
            operations,
            time,
            submitted_by: submitted_by(session, queue, name),
        })
        .collect();
    rows.sort_by(|a, b| b.time.cmp(&a.time).then_with(|| a.name.cmp(&b.name)));
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

/// What the recorder or the import says was wrong with the delivery, largest first.
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

/// What `info` says about queues and their clocks; empty without queues.
pub fn info_text(session: &Session) -> String {
    let mut page = String::new();
    if session.devices.queues.is_empty() {
        return page;
    }
    let _ = writeln!(
        page,
        "\n  {BOLD}{:<26}{:<22}{:>9}{:>10}{:>10}{:>6}{:>7}{BOLD:#}",
        "device queue", "order", "appended", "delivered", "cancelled", "lost", "lanes"
    );
    for queue in &session.devices.queues {
        let order = if queue.in_order { "in-order" } else { "out-of-order" };
        let _ = writeln!(
            page,
            "  {:<26}{:<22}{:>9}{:>10}{:>10}{:>6}{:>7}",
            fit(&queue.name, 25),
            format!("{order} ({})", queue.order_from),
            count(queue.count("appended")),
            count(queue.count("delivered")),
            count(queue.count("cancelled")),
            count(queue.count("lost")),
            count(queue.count("lanes")),
        );
        for sentence in account_sentences(queue).into_iter().chain(clock_sentences(queue)) {
            let _ = writeln!(page, "    {sentence}");
        }
    }
    if vendor_dropped(session) > 0 {
        let _ =
            writeln!(page, "  vendors' interfaces dropped {}", counted(vendor_dropped(session), "record"));
    }
    page
}

/// The map of the queue's clock, its room, and what it violates.
fn clock_sentences(queue: &Queue) -> Vec<String> {
    let clock = &queue.clock;
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
    let _ = write!(text, ", room {} below and {} above", room(clock.slack_ns.0), room(clock.slack_ns.1));
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
        sentences
            .push(format!("clock: a step of {sign}{} at device time {ticks}", time(nanos.unsigned_abs())));
    }
    sentences
}

/// The report's `devices`.
pub fn report_json(session: &Session) -> Value {
    let queues: Vec<Value> = (session.devices.queues.iter().zip(ledgers(&session.devices)))
        .map(|(queue, ledger)| {
            let time = &ledger.time;
            let names: Vec<Value> = by_name(session, queue)
                .into_iter()
                .map(|row| {
                    json!({"name": row.name, "operations": row.operations, "time_ns": row.time, "submitted_by": row.submitted_by})
                })
                .collect();
            let mut value = queue_json(queue);
            value["span_ns"] = json!(time.total());
            value["time_ns"] = json!({
                "kernels": time.kernels,
                "transfers": time.transfers,
                "other": time.other,
                "idle_host_bound": time.host_bound,
                "idle_transfer_bound": time.transfer_bound,
                "idle_device_busy": time.device_busy,
                "idle_dependency_bound": time.dependency_bound,
                "idle_unknown": time.unknown,
            });
            value["queueing_ns"] = json!({
                "operations": ledger.submissions,
                "total": ledger.queueing,
                "longest": ledger.longest_queueing,
            });
            value["names"] = json!(names);
            value
        })
        .collect();
    let waits: Vec<Value> = waits(session)
        .into_iter()
        .map(|wait| {
            let threads = wait.threads.len();
            json!({"call": wait.call, "operation": wait.operation, "threads": threads, "time_ns": wait.nanos})
        })
        .collect();
    json!({
        "queues": queues,
        "calls": calls_json(session),
        "waits": waits,
        "vendor_dropped": vendor_dropped(session),
    })
}

/// `info`'s `devices`.
pub fn info_json(session: &Session) -> Value {
    let queues: Vec<Value> = session.devices.queues.iter().map(queue_json).collect();
    json!({ "queues": queues, "calls": calls_json(session), "vendor_dropped": vendor_dropped(session) })
}

/// Records that vendors' interfaces dropped, in all processes.
fn vendor_dropped(session: &Session) -> u64 {
    session.devices.dropped.values().sum()
}

fn calls_json(session: &Session) -> Value {
    let waited = waited_in_calls(session);
    let threads = session.devices.calls.iter().map(|thread| {
        let total: u64 = thread.calls.iter().map(|call| call.end - call.start).sum();
        let [submitting, waiting, other, overhead] = spent_in_calls(thread, &waited);
        json!({
            "pid": thread.pid, "tid": thread.tid, "calls": thread.calls.len(), "time_ns": total,
            "submitting_ns": submitting, "waiting_ns": waiting, "other_ns": other, "overhead_ns": overhead,
        })
    });
    threads.collect()
}

fn queue_json(queue: &Queue) -> Value {
    let account: serde_json::Map<String, Value> =
        queue.account.iter().map(|(name, number)| (name.clone(), json!(number))).collect();
    let anomalies: serde_json::Map<String, Value> =
        anomalies(queue).into_iter().map(|(name, number)| (name.to_owned(), json!(number))).collect();
    let clock = &queue.clock;
    let of_class = |class| queue.operations.iter().filter(|operation| operation.class() == class).count();
    json!({
        "name": queue.name,
        "path": queue.path,
        "device": queue.device,
        "pid": queue.pid,
        "order": if queue.in_order { "in-order" } else { "out-of-order" },
        "order_from": queue.order_from,
        "finished": queue.finished,
        "operations": queue.operations.len(),
        "kernels": of_class(Class::Kernel),
        "transfers": of_class(Class::Transfer),
        "lost": queue.lost.len(),
        "late": queue.late.len(),
        "duplicates": queue.duplicates,
        "account": account,
        "anomalies": anomalies,
        "foreign": queue.foreign,
        "remarks": account_sentences(queue),
        "clock": {
            "source": clock.source,
            "knots": clock.knots,
            "bounds": clock.bounds,
            "violated": clock.violated,
            "worst_violation_ns": clock.worst_violation_ns,
            "lower_slack_ns": clock.slack_ns.0,
            "upper_slack_ns": clock.slack_ns.1,
            "steps": clock.steps,
            "drift_ppm": clock.drift_ppm,
        },
    })
}
