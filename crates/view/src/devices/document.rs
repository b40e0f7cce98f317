//! Device queues in documents.

use crate::documents::Word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

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
