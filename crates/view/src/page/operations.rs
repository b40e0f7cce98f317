//! Operations of device queues.

use super::Page;
use schemars::JsonSchema;
use serde::Serialize;
use taskscope_execution::devices::DeviceOperation;
use taskscope_execution::{Span, ThreadIndex};

/// An operation of a device queue. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct OperationFacts {
    /// `devices`.
    #[schemars(extend("const" = "devices"))]
    pub view: &'static str,
    /// The row.
    pub track: u32,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
    /// Its name, else its kind.
    pub label: String,
    /// Its kind.
    pub kind: &'static str,
    /// The queue.
    pub queue: String,
    /// The device.
    pub device: String,
    /// Its number in the queue.
    pub seq: u64,
    /// Begin of its submission; null if unknown.
    pub submitted: Option<u64>,
    /// Nanoseconds from submission to begin; null if unknown.
    pub waited_ns: Option<u64>,
    /// Bytes moved.
    pub bytes: u64,
    /// The id of the thread that submitted it.
    pub thread: i64,
    /// That thread's track; null if it is not in the trace.
    pub submitter: Option<usize>,
    /// Delay of its record, nanoseconds.
    pub late_by_ns: u64,
    /// Anomalies of its times.
    pub anomalies: Vec<&'static str>,
}

/// An operation that a section submitted. Times are nanoseconds since the start of the trace.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SubmittedFacts {
    /// The row of device queues.
    pub row: u32,
    /// Its name, else its kind.
    pub label: String,
    /// Begin of its submission.
    pub submitted: u64,
    /// Begin.
    pub start: u64,
    /// End.
    pub end: u64,
}

/// Operations that a section submitted.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Submissions {
    /// The first ones by begin, 16 at most.
    pub first: Vec<SubmittedFacts>,
    /// Number of all.
    pub count: usize,
}

/// Listed operations of a section.
const LISTED: usize = 16;

impl Page {
    /// Operations of device queues that a thread submitted in a section; `None` if there are none.
    pub(super) fn submissions_of(&self, track: ThreadIndex, span: &Span) -> Option<Submissions> {
        if self.queues.is_empty() {
            return None;
        }
        let thread = self.execution.threads.get(track.index())?;
        let pid = self.execution.processes.get(thread.process.index()).map(|process| process.pid);
        let found = self.queues.submitted(pid, thread.tid, (span.start, span.end));
        let first = found.iter().take(LISTED).map(|(row, operation, name)| {
            let as_device = DeviceOperation { kind: operation.kind, ..DeviceOperation::default() };
            SubmittedFacts {
                row: *row,
                label: if name.is_empty() { as_device.kind_name() } else { name }.to_owned(),
                submitted: self.since_start(operation.append),
                start: self.since_start(operation.start),
                end: self.since_start(operation.end),
            }
        });
        (!found.is_empty()).then(|| Submissions { first: first.collect(), count: found.len() })
    }

    /// The operation of a row of the device queues at a time, or the one after or before it, with
    /// everything that is known of it. Times are nanoseconds since the start of the trace.
    pub fn operation(&self, row: u32, at: u64, step: Option<bool>) -> Option<OperationFacts> {
        let (queue, found) = self.queues.find(row, self.start().checked_add(at)?, step)?;
        let as_device =
            DeviceOperation { kind: found.kind, anomalies: found.anomalies, ..DeviceOperation::default() };
        let is_submitted = found.append > 0;
        let name = queue.names.get(found.name as usize).filter(|name| !name.is_empty());
        Some(OperationFacts {
            view: "devices",
            track: row,
            start: self.since_start(found.start),
            end: self.since_start(found.end),
            label: name.map_or(as_device.kind_name(), String::as_str).to_owned(),
            kind: as_device.kind_name(),
            queue: queue.name.clone(),
            device: queue.device.clone(),
            seq: found.seq,
            submitted: is_submitted.then(|| self.since_start(found.append)),
            waited_ns: is_submitted.then(|| found.start.saturating_sub(found.append)),
            bytes: found.bytes,
            thread: found.thread,
            submitter: self.thread_of(queue.pid, found.thread),
            late_by_ns: found.late_by,
            anomalies: as_device.anomaly_names().collect(),
        })
    }

    /// The track of a system thread id.
    pub(super) fn thread_of(&self, pid: Option<i64>, tid: i64) -> Option<usize> {
        let is_in_process = |thread: &taskscope_execution::Thread| {
            pid.is_none() || self.execution.processes.get(thread.process.index()).map(|p| p.pid) == pid
        };
        self.execution.threads.iter().position(|thread| thread.tid == tid && is_in_process(thread))
    }
}
