//! Rules for device queues: requirements of their traces, and signs of wrong vendor records. `taskscope check` prints
//! every violation.

use rustc_hash::FxHashMap;
use taskscope_event::Counted;
use taskscope_event::models::device::anomaly;
use taskscope_execution::devices::{DeviceOperation, Devices, Queue};

/// The rules and their demands.
pub const RULES: [(&str, &str); 11] = [
    ("device-account", "every appended operation ends once: delivered, cancelled or lost"),
    ("device-lane", "begins and ends of a lane never go back in time"),
    (
        "device-release-order",
        "an in-order queue is released by sequence, but for operations that were submitted at once",
    ),
    ("device-lost", "every submitted operation has a record"),
    ("device-dropped", "the vendor's interface drops no records"),
    ("device-untimed", "every record has a start and an end, in this order"),
    ("device-overlap", "operations of an in-order queue do not overlap"),
    ("device-start-before-submit", "no operation starts before it was submitted"),
    ("device-start-goes-back", "no operation starts before one that was released earlier"),
    ("device-unannounced", "every operation is announced before its record comes"),
    ("device-clock", "the clock's map satisfies its bounds"),
];

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A name of [`RULES`].
    pub rule: &'static str,
    /// Path of the queue below the trace's root.
    pub location: String,
    /// The operation, if it concerns one.
    pub seq: Option<u64>,
    /// Description of the violation.
    pub text: String,
}

/// All violations: those of processes, then by queue.
pub fn violations(devices: &Devices) -> Vec<Violation> {
    let dropped = devices.dropped.iter().map(|(process, records)| Violation {
        rule: "device-dropped",
        location: process.clone(),
        seq: None,
        text: format!("the vendor's interface dropped {} of the process", Counted(*records, "record")),
    });
    let calls = submissions(devices);
    dropped.chain(devices.queues.iter().flat_map(|queue| queue_violations(queue, &calls))).collect()
}

/// Begin and end of the calls that submitted operations, by process, queue's number and sequence.
type Submissions = FxHashMap<(i64, u64, u64), (u64, u64)>;

fn submissions(devices: &Devices) -> Submissions {
    let calls = devices.calls.iter().flat_map(|thread| thread.calls.iter().map(|call| (thread.pid, call)));
    calls
        .filter_map(|(pid, call)| Some(((pid, call.operation?.0, call.operation?.1), (call.start, call.end))))
        .collect()
}

fn queue_violations(queue: &Queue, calls: &Submissions) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut report =
        |rule, seq, text| found.push(Violation { rule, location: queue.path.clone(), seq, text });
    let count = |name| queue.count(name);
    let ended = ["delivered", "cancelled", "lost"].map(count).into_iter().fold(0, u64::saturating_add);
    if queue.finished && count("appended") != ended {
        report("device-account", None, format!("{} appended, but {ended} have ended", count("appended")));
    }
    for lost in &queue.lost {
        let text = format!("no record came of {} (id {})", shown(queue.name_of(lost.name)), lost.id);
        report("device-lost", Some(lost.seq), text);
    }
    if queue.clock.violated > 0 {
        let text = format!(
            "{} bounds are violated, by {} ns at most",
            queue.clock.violated, queue.clock.worst_violation_ns
        );
        report("device-clock", None, text);
    }
    let mut lanes: FxHashMap<u32, u64> = FxHashMap::default();
    let mut last = None;
    for operation in &queue.operations {
        if let Some(lane) = operation.lane {
            let end = lanes.entry(lane).or_insert(0);
            if operation.raw.0 < *end || operation.raw.1 < operation.raw.0 {
                report("device-lane", Some(operation.seq), format!("lane {lane} goes back in time"));
            }
            *end = operation.raw.1.max(*end);
        }
        // Which of two that were submitted at once comes first is the driver's choice.
        let call = |seq| calls.get(&(queue.pid?, queue.number, seq));
        let at_once = |other| {
            let (Some(own), Some(other)) = (call(operation.seq), call(other)) else { return false };
            own.0 < other.1 && other.0 < own.1
        };
        if let Some(later) = last.filter(|last| queue.in_order && *last >= operation.seq && !at_once(*last)) {
            let text = format!("it comes after a later one ({later})");
            report("device-release-order", Some(operation.seq), text);
        }
        last = Some(operation.seq);
        for (rule, text) in operation_violations(queue, operation) {
            report(rule, Some(operation.seq), text);
        }
    }
    found
}

fn operation_violations(queue: &Queue, operation: &DeviceOperation) -> Vec<(&'static str, String)> {
    let rules = [
        (anomaly::UNTIMED | anomaly::END_BEFORE_START, "device-untimed"),
        (anomaly::OVERLAP, "device-overlap"),
        (anomaly::START_NOT_AFTER_SUBMIT | anomaly::START_BEFORE_APPEND, "device-start-before-submit"),
        (anomaly::START_GOES_BACK, "device-start-goes-back"),
        (anomaly::UNANNOUNCED, "device-unannounced"),
    ];
    let broken = rules.into_iter().filter(|(bits, _)| operation.anomalies & bits != 0);
    let name = shown(queue.name_of(operation.name));
    let (start, end) = operation.raw;
    broken.map(|(_, rule)| (rule, format!("{name} (id {}) from {start} to {end}", operation.id))).collect()
}

fn shown(name: &str) -> &str {
    if name.is_empty() { "an operation" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(seq: u64, start: u64, end: u64, lane: Option<u32>, anomalies: u32) -> DeviceOperation {
        DeviceOperation { seq, raw: (start, end), lane, anomalies, ..DeviceOperation::default() }
    }

    #[test]
    fn accounts_of_the_largest_numbers_are_compared() {
        let account = [("appended", 0), ("delivered", u64::MAX), ("lost", 1)];
        let account = account.map(|(name, count)| (name.to_string(), count)).to_vec();
        let queue = Queue { finished: true, account, ..Queue::default() };
        let found = violations(&Devices { queues: vec![queue], ..Devices::default() });
        assert_eq!(found.iter().map(|violation| violation.rule).collect::<Vec<_>>(), ["device-account"]);
    }

    #[test]
    fn each_violation_is_reported_with_its_operation() {
        let queue = Queue {
            in_order: true,
            finished: true,
            operations: vec![
                operation(0, 10, 20, Some(0), 0),
                operation(2, 15, 25, Some(0), anomaly::OVERLAP),
                operation(1, 0, 0, None, anomaly::UNTIMED),
            ],
            account: vec![("appended".into(), 5), ("delivered".into(), 3), ("lost".into(), 1)],
            ..Queue::default()
        };
        let found = violations(&Devices { queues: vec![queue], calls: Vec::new(), ..Devices::default() });
        let rules: Vec<_> = found.iter().map(|violation| (violation.rule, violation.seq)).collect();
        let expected = [
            ("device-account", None),
            ("device-lane", Some(2)),
            ("device-overlap", Some(2)),
            ("device-release-order", Some(1)),
            ("device-untimed", Some(1)),
        ];
        assert_eq!(rules, expected);
        assert!(found.iter().all(|violation| RULES.iter().any(|(name, _)| *name == violation.rule)));
    }
}
