//! The result of an import for each queue.

use schemars::JsonSchema;
use serde::Serialize;
use taskscope_reorder::{Account, clock::ClockMap};

/// Imported queues, counts and problems.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Imported {
    /// Rows that were read.
    pub records: u64,
    /// The queues, by their first record.
    pub queues: Vec<ImportedQueue>,
    /// Records from the buffer of another thread.
    pub foreign: Vec<Foreign>,
    /// Unreadable data, with file and line.
    pub problems: Vec<String>,
    /// The most records that waited for others at one time, over all queues: the sum of their peaks.
    pub held_peak: u64,
}

/// A record in a file with records of another thread otherwise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Foreign {
    /// The vendor's id, if any.
    pub id: Option<u64>,
    /// Its queue.
    pub queue: String,
    /// Its number in the queue.
    pub seq: u64,
    /// Its thread.
    pub thread: String,
    /// The file.
    pub file: String,
    /// The thread of the file's other records.
    pub files_thread: String,
}

/// A queue and the irregularities of its records.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImportedQueue {
    /// Its name.
    pub name: String,
    /// The order: `in-order` or `out-of-order`.
    pub order: &'static str,
    /// Source of this fact: `told`, `overlaps`, or `assumed`.
    pub order_from: &'static str,
    /// The column that its sequence comes from.
    pub sequence_from: &'static str,
    /// Records delivered.
    pub delivered: u64,
    /// Duplicate records.
    pub duplicates: u64,
    /// Records without usable times.
    pub untimed: u64,
    /// Records that were delivered after a later one.
    pub out_of_place: u64,
    /// The longest and the shortest that such a record was late, nanoseconds.
    pub latest_ns: u64,
    /// The shortest.
    pub least_late_ns: u64,
    /// Deliveries that start before the delivery just before.
    pub inversions: u64,
    /// Records that start before an earlier one of the in-order queue ends.
    pub overlaps: u64,
    /// The longest such overlap, nanoseconds.
    pub longest_overlap_ns: u64,
    /// Records with impossible times.
    pub anomalous: u64,
    /// The most records that waited for others at one time.
    pub held_peak: u64,
    /// Lanes that its records need.
    pub lanes: u32,
    /// Anomalies by name.
    pub anomalies: Vec<(&'static str, u64)>,
}

impl ImportedQueue {
    /// The account as JSON for `taskscope.json`.
    pub(crate) fn json(account: &Account) -> serde_json::Value {
        serde_json::json!({
            "appended": account.appended,
            "delivered": account.delivered,
            "cancelled": account.cancelled,
            "lost": account.lost,
            "untimed": account.untimed,
            "duplicates": account.duplicates,
            "late_after_lost": account.late,
            "unannounced": account.unannounced,
            "refused": account.refused,
            "out_of_place": account.out_of_place,
            "worst_late_ns": account.worst_late,
            "inversions": account.inversions,
            "overlaps": account.overlaps,
            "worst_overlap_ns": account.worst_overlap,
            "anomalous": account.anomalous,
            "held_peak": account.held_peak,
            "spilled": account.spilled,
            "lanes": account.lanes,
        })
    }
}

/// A device's clock, as JSON for `taskscope.json`.
pub(crate) fn clock_json(map: &ClockMap) -> serde_json::Value {
    let knots: Vec<_> = map.knots.iter().map(|knot| serde_json::json!([knot.ticks, knot.nanos])).collect();
    let steps: Vec<_> = map.steps.iter().map(|(ticks, nanos)| serde_json::json!([ticks, nanos])).collect();
    serde_json::json!({
        "nanos_per_tick": map.nanos_per_tick,
        "knots": knots,
        "bounds": map.bounds,
        "violated": map.violated,
        "worst_violation_ns": map.worst_violation,
        "lower_slack_ns": map.slack.0,
        "upper_slack_ns": map.slack.1,
        "steps": steps,
        "drift_ppm": map.drift_ppm,
    })
}
