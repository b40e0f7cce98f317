//! Findings and their rows in documents.

use crate::documents::{CodePlace, Named, some_text};
use crate::format::Unit;
use crate::hang::{HangWords, json::HangFacts};
use crate::named_finding::NamedFinding;
use crate::report_rows::{StateTimes, by_state};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use taskscope_analysis::{Analysis, Confidence};
use taskscope_cause::{Blamed, Cause, Pattern};
use taskscope_session::Session;

/// The total that findings are shares of.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Whose {
    /// All time of workers (threads of a runtime, or CPUs): the capacity.
    Workers,
    /// The lifetimes of threads without runtime events.
    Threads,
    /// The CPUs that processes without runtime events may use, over their time.
    Cpus,
    /// The spans of device queues, from the first submission to the last end of each.
    Queues,
}

impl Whose {
    /// `worker-seconds` and the like.
    pub const fn unit(self, unit: Unit) -> &'static str {
        match (self, unit) {
            (Whose::Workers, unit) => unit.worker_label(),
            (Whose::Threads, Unit::Micros) => "thread-µs",
            (Whose::Threads, Unit::Millis) => "thread-ms",
            (Whose::Threads, Unit::Seconds) => "thread-seconds",
            (Whose::Cpus, Unit::Micros) => "CPU-µs",
            (Whose::Cpus, Unit::Millis) => "CPU-ms",
            (Whose::Cpus, Unit::Seconds) => "CPU-seconds",
            (Whose::Queues, Unit::Micros) => "queue-µs",
            (Whose::Queues, Unit::Millis) => "queue-ms",
            (Whose::Queues, Unit::Seconds) => "queue-seconds",
        }
    }

    /// The owners in words.
    pub const fn name(self) -> &'static str {
        match self {
            Whose::Workers => "workers",
            Whose::Threads => "threads",
            Whose::Cpus => "CPUs",
            Whose::Queues => "queues",
        }
    }
}

/// The findings of a recording.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Hangs, then the largest.
    pub rows: Vec<NamedFinding>,
    /// The time that they are a part of, nanoseconds.
    pub base_ns: u64,
    /// The owner of that time.
    pub whose: Whose,
    /// The verdict on the run in one sentence; `None` if the recording has no duration.
    pub verdict: Option<String>,
    /// The use of CPUs, if findings are shares of it.
    pub cpu_time: Option<CpuTimes>,
}

/// The CPU time of processes without runtime events (`record --threads`).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CpuTimes {
    /// CPUs that the processes may use, in thousandths: by their affinity masks, or by the limit of their control group.
    pub millicpus: u64,
    /// CPU-nanoseconds that the processes could have used.
    pub capacity_ns: u64,
    /// CPU-nanoseconds in which threads ran, outside of waits for each other. With the findings they sum to `capacity_ns`.
    pub used_ns: u64,
    /// Nanoseconds of all threads, from their begins to their ends.
    pub threads_ns: u64,
}

impl Findings {
    /// The unit of their column.
    pub fn unit(&self) -> Unit {
        Unit::for_total(self.base_ns)
    }

    /// The finding with this number: `F1`, `f2`, …
    pub fn named(&self, id: &str) -> Option<&NamedFinding> {
        self.rows.iter().find(|finding| finding.id.eq_ignore_ascii_case(id))
    }
}

/// A loss with its cause, or a hang.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FindingRow {
    /// `F1`, `F2`, …
    #[schemars(regex(pattern = "^F[0-9]+$"))]
    pub id: String,
    /// The cause.
    pub cause: Named<Cause>,
    /// The charged party.
    pub blamed: Named<Blamed>,
    /// The pattern, if one decides the remedy.
    pub pattern: Option<Named<Pattern>>,
    /// Nanoseconds, a part of the time that `findings_of` names.
    pub ns: u64,
    /// Confidence in the cause.
    pub confidence: Named<Confidence>,
    /// The finding as a sentence.
    pub text: String,
    /// The remedy, in the terms of the recorded runtime.
    #[serde(rename = "try")]
    pub remedy: String,
    /// The states of the lost time, and the evidence for the cause; empty for a hang.
    pub evidence: String,
    /// The place that causes the loss.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Lost nanoseconds by state; empty of queues.
    pub victims: StateTimes,
    /// The part, nanoseconds, in which the cause alone ran or held the awaited object.
    pub sole_ns: u64,
    /// The call path of most of the cause, outermost first; of profiles and samples.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub path: Vec<String>,
    /// Its code; absent if unknown.
    #[serde(flatten)]
    pub code: Option<CodePlace>,
    /// Tasks created there; only of creation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tasks_created: Option<u64>,
    /// Load balance of the construct; only of an imbalance.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1))]
    pub load_balance: Option<f64>,
    /// Size and cost of the tasks; only of pattern `too-fine`.
    #[serde(flatten)]
    pub grain: Option<TaskGrain>,
    /// The waits and their needs; only for pattern `hung`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hang: Option<HangFacts>,
    /// The late process; only of cause `mpi.late`.
    #[serde(flatten)]
    pub late: Option<LateRank>,
}

/// The findings of a document, and the time that they are a part of.
#[derive(Clone, Copy, Debug)]
pub struct Losses<'d> {
    /// Hangs, then the largest.
    pub rows: &'d [FindingRow],
    /// The time that they are a part of, nanoseconds.
    pub base_ns: u64,
    /// The owners of that time.
    pub whose: Whose,
}

impl Losses<'_> {
    /// Whether a finding is large enough for lines of its own.
    pub fn is_worth(&self, finding: &FindingRow, floor: f64) -> bool {
        finding.hang.is_some() || finding.ns > 0 && finding.ns as f64 >= self.base_ns as f64 * floor
    }
}

/// Size and cost of the tasks of a type.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskGrain {
    /// Tasks of the type that ran.
    pub tasks: u64,
    /// Mean time in a body, nanoseconds.
    pub task_mean_ns: u64,
    /// Mean cost of running a task of the process, nanoseconds.
    pub task_cost_ns: u64,
}

/// A process that came late.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LateRank {
    /// Its process id.
    pub late_pid: i64,
    /// Its rank; null without one.
    pub late_rank: Option<u32>,
}

/// The row of a finding; hangs and code are those of a trace.
pub(crate) fn finding_row(finding: NamedFinding, trace: Option<(&Session, &Analysis)>) -> FindingRow {
    let hang = trace.and_then(|(session, analysis)| {
        let hang = analysis.hangs.get(finding.hang?)?;
        Some(HangWords::of(session, hang).facts())
    });
    FindingRow {
        id: finding.id,
        cause: Named(finding.cause),
        blamed: Named(finding.blamed),
        pattern: finding.pattern.map(Named),
        ns: finding.ns,
        confidence: Named(finding.confidence),
        text: finding.text,
        remedy: finding.remedy,
        evidence: finding.evidence,
        place: some_text(finding.place),
        victims: by_state(&finding.victims),
        sole_ns: finding.sole_ns,
        path: finding.path,
        code: trace.and_then(|(session, _)| CodePlace::of(&session.places, finding.site)),
        tasks_created: (finding.tasks_created > 0).then_some(finding.tasks_created),
        load_balance: finding.work.map(|work| work.load.balance()),
        grain: finding.grain.map(|grain| TaskGrain {
            tasks: grain.tasks,
            task_mean_ns: grain.mean_ns,
            task_cost_ns: grain.cost_ns,
        }),
        hang,
        late: finding.late.map(|late| LateRank { late_pid: late.pid, late_rank: late.rank }),
    }
}
