//! The report as a document; its schema is `docs/report.schema.json`. Text, JSON and pages print it.

use crate::call_paths::json::CallPathTables;
use crate::cpus::{CpuShortage, ProcessCpus};
use crate::devices::DevicesInTime;
use crate::documents::{Named, Notice, Word, some_text};
use crate::efficiency_factors::EfficiencyFactors;
use crate::findings::{CpuTimes, FindingRow, Findings, Losses, Whose, finding_row};
use crate::instrumentation::Instrumentation;
use crate::mpi_calls::MpiCalls;
use crate::notices;
use crate::ranks::Rank;
use crate::report_rows::{
    IncompleteStream, LockTimes, RegionTimes, StarvationTimes, StateTimes, TaskTypeTimes, ThreadTimes,
    Uncertain, WorksharingTimes, by_state, incomplete, locks, regions, starvation, task_types, threads,
    uncertain, worksharing,
};
use crate::section::Section;
use crate::thread_split::{ThreadSplit, thread_splits};
use crate::thread_waits::ThreadWaitTimes;
use crate::words;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taskscope_analysis::{Analysis, Problem};
use taskscope_cause::{Blamed, Cause};
use taskscope_execution::State;
use taskscope_session::{ProblemKind, Session};

/// The report of a run.
///
/// Times are integers in nanoseconds: lengths, or times since the first event of the trace.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-report/1")]
pub struct Report {
    /// The directory, as it was given.
    pub trace: String,
    /// The program and its arguments; null if unknown.
    pub command: Option<Vec<String>>,
    /// The host on which it was started; null if unknown.
    pub host: Option<String>,
    /// The launcher of the job, and its number of processes, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launcher: Option<String>,
    /// Variables of the environment that set up runtimes and libraries; missing if they were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<BTreeMap<String, String>>,
    /// Nanoseconds since 1970 (UTC) at the start of the program under `taskscope record`; null if unknown.
    #[serde(default)]
    pub start_unix_ns: Option<u64>,
    /// The program's exit code; null if unknown, or if a signal ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Whether every stream ended properly and could be read to its end.
    pub complete: bool,
    /// Number of streams.
    pub streams: usize,
    /// Streams that did not end properly.
    pub incomplete_streams: Vec<IncompleteStream>,
    /// Problems of the streams by kind, without ends that are missing.
    pub problems: Vec<ProblemCount>,
    /// The part of the trace that was selected with `--range` and `--where`; null for the whole.
    pub part: Option<String>,
    /// Whether `--where` left events out: states and charges are then those of the other events.
    pub filtered: bool,
    /// Uncertain intervals of threads, and of CPUs if these are the workers.
    pub uncertain: Uncertain,
    /// Time from the first to the last event of the trace, or to the last sample of threads that had not
    /// ended; nanoseconds.
    pub wall_ns: u64,
    /// The verdict on the run in one sentence; null if the recording has no duration.
    pub verdict: Option<String>,
    /// Time from the start to the end of the program under `taskscope record`, nanoseconds.
    pub run_wall_ns: Option<u64>,
    /// Sum over processes of workers times the time from the process's first to its last event.
    pub capacity_ns: u64,
    /// Whether samples of call stacks are the only source, as of a program without OpenMP: efficiency and causes are then
    /// without meaning.
    pub samples_alone: bool,
    /// Number of workers.
    pub workers: usize,
    /// Number of threads, workers or not.
    pub threads: usize,
    /// CPUs that the processes may use, over all nodes; the worker CPUs for Nanos6, nOS-V and NODES. 0 if
    /// unknown.
    pub cpus: usize,
    /// Whether CPUs are the workers; the threads that run on them are then not workers.
    pub cpus_are_workers: bool,
    /// The CPUs as named in the header, such as `1 of 2 CPUs (0)`; null if unknown.
    pub cpus_text: Option<String>,
    /// The CPUs of each process of which they are known.
    pub process_cpus: Vec<ProcessCpus>,
    /// Worker-time runnable without a CPU; null unless it is known of all workers.
    pub no_cpu: Option<CpuShortage>,
    /// Threads that are not workers, outside capacity.
    pub other_threads: usize,
    /// Number of processes.
    pub processes: usize,
    /// Explicit tasks that began.
    pub tasks: u64,
    /// Number of events.
    pub events: u64,
    /// Number of lost events.
    pub lost_events: u64,
    /// Cost of recording an event, nanoseconds; null if not measured.
    pub recording_cost_ns_per_event: Option<f64>,
    /// Facts that change how the numbers are to be read.
    pub notices: Vec<Notice>,
    /// Factors of the parallel efficiency.
    pub efficiency: EfficiencyFactors,
    /// Processes with a rank of an MPI job, by rank; empty without any.
    pub ranks: Vec<Rank>,
    /// Calls of MPI by function and place, the longest first; empty without any.
    pub mpi_calls: Vec<MpiCalls>,
    /// Worker-nanoseconds by state: sums exactly to `capacity_ns`.
    pub states: StateTimes,
    /// The use of every worker-nanosecond: sums exactly to `capacity_ns`, and state by state to `states`.
    pub causes: Vec<CauseTimes>,
    /// The charges of each waiting or idle worker-nanosecond: sums, state by state, exactly to the causes of that state.
    pub blame: Vec<ChargedWait>,
    /// The total that findings are shares of: time of workers; of CPUs, if waits of threads are recorded and no runtime
    /// (`cpu_time`); of threads, if samples are the only source (`samples_alone`); of device queues, if no thread is recorded.
    pub findings_of: Whose,
    /// That time, nanoseconds: of workers `capacity_ns`, of CPUs that of `cpu_time`.
    pub findings_base_ns: u64,
    /// The use of the CPUs; present if findings are shares of their time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_time: Option<CpuTimes>,
    /// Hangs, then all losses, largest first. Losses of workers, including the waits of a hang, sum exactly
    /// to `capacity_ns` minus `useful_ns`, those of CPUs to the unused time of `cpu_time`. For threads, cause `work` is the time in which they ran, which is
    /// not a loss.
    pub findings: Vec<FindingRow>,
    /// Threads and their times.
    pub thread_states: Vec<ThreadTimes>,
    /// Task types of each process.
    pub task_types: Vec<TaskTypeTimes>,
    /// Worksharing constructs of each process.
    pub worksharing: Vec<WorksharingTimes>,
    /// Parallel constructs of each process.
    pub regions: Vec<RegionTimes>,
    /// Locks and critical constructs.
    pub locks: Vec<LockTimes>,
    /// Waits between threads outside a runtime's constructs, sleep and I/O (`record --threads`), by the time
    /// charged to other threads, largest first; absent without any. They cover all threads and are not part of
    /// the capacity.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_waits: Vec<ThreadWaitTimes>,
    /// Tasks that were ready and did not run; null if the program does not record readiness.
    pub starvation: Option<StarvationTimes>,
    /// Threads by their scheduling and waits, those that ran most first: all if samples are the only source
    /// (`samples_alone`), those that are not workers if waits of threads are recorded; otherwise absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub thread_splits: Vec<ThreadSplit>,
    /// Device queues; absent without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub devices: Option<DevicesInTime>,
    /// Time, waiting and blame by call paths; present if samples were taken, or on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call_paths: Option<CallPathTables>,
    /// The program's own instrumentation (docs/instrumenting.md); present if there is any, or on request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instrumentation: Option<Instrumentation>,
}

impl Report {
    /// The findings, and the time that they are a part of.
    pub fn losses(&self) -> Losses<'_> {
        Losses { rows: &self.findings, base_ns: self.findings_base_ns, whose: self.findings_of }
    }
}

/// Problems of one kind.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProblemCount {
    /// The kind, as `check` names it.
    pub name: Word,
    /// Their number.
    pub count: u64,
}

/// Worker-time of one state at one place.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CauseTimes {
    /// The cause that the state counts as.
    pub cause: Named<Cause>,
    /// The state.
    pub state: Named<State>,
    /// Worker-nanoseconds.
    pub ns: u64,
    /// The place in words; null if unknown.
    #[serde(rename = "where")]
    pub place: Option<String>,
}

/// Waiting of one state that is charged to one place.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChargedWait {
    /// The cause that the state counts as.
    pub cause: Named<Cause>,
    /// The state of the waiting threads.
    pub state: Named<State>,
    /// Worker-nanoseconds.
    pub ns: u64,
    /// The charged party.
    pub blamed: Named<Blamed>,
    /// The state of the charged thread; null if a device or nothing is charged.
    pub blamed_state: Option<Named<State>>,
    /// Its place in words; null if unknown.
    #[serde(rename = "where")]
    pub place: Option<String>,
}

/// The whole report, without call paths and instrumentation, which have options.
pub fn report(session: &Session, analysis: &Analysis, problems: &[Problem]) -> Report {
    report_of(session, analysis, problems, Section::ALL)
}

/// The report for some sections. The tables of other sections are empty: looking up the names of their places takes time.
pub fn report_of(
    session: &Session,
    analysis: &Analysis,
    problems: &[Problem],
    sections: &[Section],
) -> Report {
    let ledger = &analysis.ledger;
    let execution = &session.execution;
    let run = session.run.as_ref();
    let wants = |section: Section| sections.contains(&section);
    // Names are resolved first, so that notices can say which were missing.
    let samples_alone = execution.knows_samples_alone();
    let has_splits = samples_alone || !execution.thread_waits.waits.is_empty();
    let has_findings = wants(Section::Summary) || wants(Section::Findings);
    let findings = if has_findings { Findings::of(session, analysis) } else { Findings::none(session) };
    let mpi_calls = table(wants(Section::Calls), || crate::mpi_calls::rows(session));
    let causes = table(wants(Section::Time), || causes(session, analysis));
    let blame = table(wants(Section::Blame), || charges(session, analysis));
    let starvation = if wants(Section::Findings) { starvation(session, analysis) } else { None };
    let task_types = table(wants(Section::Tasks), || task_types(session, analysis));
    let worksharing = table(wants(Section::Constructs), || worksharing(session, analysis));
    let regions = table(wants(Section::Constructs), || regions(session, analysis));
    let locks = table(wants(Section::Locks), || locks(session, analysis));
    let thread_waits = table(wants(Section::Waits), || crate::thread_waits::rows(session, analysis));
    Report {
        trace: session.root.display().to_string(),
        command: run.map(|run| run.command.clone()),
        host: run.map(|run| run.host.clone()),
        launcher: run.and_then(|run| run.launcher.clone()),
        settings: run.and_then(|run| run.settings.clone()),
        start_unix_ns: run.and_then(|run| run.start_unix_ns),
        exit_code: run.and_then(|run| run.exit_code),
        signal: run.and_then(|run| run.signal),
        complete: session.is_complete(),
        streams: session.streams.len(),
        incomplete_streams: incomplete(session),
        problems: problem_counts(session),
        part: session.part.clone(),
        filtered: session.filtered,
        uncertain: uncertain(session),
        wall_ns: ledger.wall_ns,
        verdict: findings.verdict,
        run_wall_ns: run.and_then(|run| run.wall_ns),
        capacity_ns: ledger.capacity_ns,
        samples_alone,
        workers: ledger.workers,
        threads: ledger.os_threads(),
        cpus: if ledger.cpus > 0 { ledger.cpus } else { crate::cpus::allowed(execution) },
        cpus_are_workers: ledger.cpus > 0,
        cpus_text: match ledger.cpus {
            0 => crate::cpus::header(execution),
            cpus => Some(crate::format::counted(cpus as u64, "CPU")),
        },
        process_cpus: crate::cpus::process_cpus(execution),
        no_cpu: if wants(Section::Time) { crate::cpus::shortage(execution, analysis) } else { None },
        other_threads: ledger.other_threads,
        processes: execution.process_count(),
        tasks: analysis.tasks,
        events: session.events,
        lost_events: session.lost_events(),
        recording_cost_ns_per_event: run.and_then(|run| run.recording_cost_ns_per_event),
        notices: notices::notices(session, problems),
        efficiency: EfficiencyFactors::of(&analysis.efficiency, &findings.rows),
        ranks: table(wants(Section::Ranks), || crate::ranks::ranks(session, analysis)),
        mpi_calls,
        states: by_state(&ledger.by_state),
        causes,
        blame,
        findings_of: findings.whose,
        findings_base_ns: findings.base_ns,
        cpu_time: findings.cpu_time,
        findings: findings.rows.into_iter().map(|row| finding_row(row, Some((session, analysis)))).collect(),
        thread_states: table(wants(Section::Threads), || threads(session, analysis)),
        task_types,
        worksharing,
        regions,
        locks,
        thread_waits,
        starvation,
        thread_splits: table(has_splits && wants(Section::Threads), || {
            thread_splits(execution, !samples_alone)
        }),
        devices: if wants(Section::Devices) { crate::devices::in_time(session) } else { None },
        call_paths: None,
        instrumentation: None,
    }
}

/// A table, if its section is wanted.
fn table<T>(is_wanted: bool, rows: impl FnOnce() -> Vec<T>) -> Vec<T> {
    if is_wanted { rows() } else { Vec::new() }
}

fn causes(session: &Session, analysis: &Analysis) -> Vec<CauseTimes> {
    let rows = words::causes(&session.places, analysis).into_iter().map(|(state, place, ns)| CauseTimes {
        cause: Named(state.cause()),
        state: Named(state),
        ns,
        place: some_text(place),
    });
    rows.collect()
}

fn charges(session: &Session, analysis: &Analysis) -> Vec<ChargedWait> {
    let rows = words::blame(session, analysis).into_iter().map(|row| ChargedWait {
        cause: Named(row.state.cause()),
        state: Named(row.state),
        ns: row.ns,
        blamed: Named(row.blamed),
        blamed_state: row.in_state.map(Named),
        place: some_text(row.place),
    });
    rows.collect()
}

/// Problems of the streams by kind, without missing ends.
fn problem_counts(session: &Session) -> Vec<ProblemCount> {
    let mut counts: std::collections::BTreeMap<&'static str, u64> = Default::default();
    for problem in session.problems.iter().filter(|p| p.kind != ProblemKind::UnfinishedStream) {
        *counts.entry(problem.kind.name()).or_default() += problem.count.max(1);
    }
    counts.into_iter().map(|(name, count)| ProblemCount { name: name.into(), count }).collect()
}
