//! Rows of the report's tables on threads, tasks, constructs and locks, for text, pages and JSON.

use crate::documents::{CodePlace, Named, Word, some_text};
use crate::names::{cpu_name, pid_of_object, pid_of_site, pid_of_type};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taskscope_analysis::{Analysis, ByState, Load};
use taskscope_execution::{Doubt, NO_TIME, OsSource, ProcessNames, RuntimeRole, State};
use taskscope_session::Session;

/// Nanoseconds by state; states without time are left out.
pub type StateTimes = BTreeMap<Named<State>, u64>;

/// Times by the states' names.
pub(crate) fn by_state(times: &ByState) -> StateTimes {
    times.iter().map(|(state, ns)| (Named(state), ns)).collect()
}

/// A stream that did not end properly.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct IncompleteStream {
    /// Its directory below the trace's root.
    pub stream: String,
    /// Whether it ended properly.
    pub finished: bool,
    /// Whether it could be read to its end.
    pub whole: bool,
    /// Number of its events.
    pub events: u64,
    /// Its last event, nanoseconds; null without one.
    pub kept_until_ns: Option<u64>,
}

/// Streams that did not end properly.
pub(crate) fn incomplete(session: &Session) -> Vec<IncompleteStream> {
    let start = session.execution.range().0;
    let open = session.streams.iter().filter(|stream| !(stream.finished && stream.whole));
    open.map(|stream| IncompleteStream {
        stream: stream.path.clone(),
        finished: stream.finished,
        whole: stream.whole,
        events: stream.events,
        kept_until_ns: stream.last.map(|last| last.saturating_sub(start)),
    })
    .collect()
}

/// Uncertain intervals of threads, and of CPUs if these are the workers.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Uncertain {
    /// Number of intervals.
    pub count: usize,
    /// Nanoseconds of all.
    pub ns: u64,
    /// The longest, a hundred at most.
    pub longest: Vec<UncertainInterval>,
}

/// An interval that is uncertain.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UncertainInterval {
    /// Process id; of a CPU 0.
    pub process: i64,
    /// Thread id; of a CPU its physical id.
    pub thread: i64,
    /// The thread's name; empty for none.
    pub thread_name: String,
    /// The thread's kind.
    pub kind: Word,
    /// Begin, nanoseconds.
    pub start_ns: u64,
    /// End, nanoseconds.
    pub end_ns: u64,
    /// The reason. `stream-ends`: the stream ends before the thread's exit. `does-not-fit`: the event at the
    /// end contradicts the state before. `clock-goes-back`: the thread's clock went back over it.
    /// `cpu-shared`: several threads run on the CPU at once. A CPU is uncertain while the thread that runs on
    /// it is.
    #[schemars(extend("enum" = Doubt::ALL.map(Doubt::name)))]
    pub why: Word,
}

/// Intervals that are listed; the longest ones.
const LISTED_UNCERTAIN: usize = 100;

/// Intervals that are uncertain.
pub(crate) fn uncertain(session: &Session) -> Uncertain {
    let execution = &session.execution;
    let start = execution.range().0;
    let mut longest: Vec<_> = execution.uncertain.iter().collect();
    longest.sort_by_key(|part| (std::cmp::Reverse(part.end - part.start), part.start));
    let listed = longest.iter().take(LISTED_UNCERTAIN).map(|part| {
        let thread = &execution.threads[part.thread.index()];
        UncertainInterval {
            process: execution.processes[thread.process.index()].pid,
            thread: thread.tid,
            thread_name: thread.name.to_string(),
            kind: thread.kind.name().into(),
            start_ns: part.start.saturating_sub(start),
            end_ns: part.end.saturating_sub(start),
            why: part.doubt.name().into(),
        }
    });
    Uncertain {
        count: longest.len(),
        ns: longest.iter().map(|part| part.end - part.start).sum(),
        longest: listed.collect(),
    }
}

/// Factors of the efficiency with their words, in the order of reports.
pub(crate) const FACTORS: [(&str, &str); 8] = [
    ("parallel", "Parallel efficiency"),
    ("cpu_availability", "CPU availability"),
    ("load_balance", "Load balance"),
    ("serialization", "Serialization"),
    ("device_offload", "Device offload"),
    ("blocked", "Blocked"),
    ("runtime_overhead", "Runtime overhead"),
    ("known", "Known"),
];

/// A thread and its time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThreadTimes {
    /// Its loom.
    pub loom: String,
    /// Process id.
    pub pid: i64,
    /// Thread id.
    pub tid: i64,
    /// The name that the program gave it (pthread_setname_np); empty without one. Any text.
    pub name: String,
    /// Its words in text: `12/34 solver`, or `CPU 3`.
    pub label: String,
    /// Its kind.
    #[schemars(extend("enum" = ["initial", "worker", "other", "cpu", "unknown"]))]
    pub kind: Word,
    /// The Nanos6 or nOS-V name of its role; null if not recorded.
    pub role: Option<Named<RuntimeRole>>,
    /// Whether it is a worker.
    pub worker: bool,
    /// Whether it has ended.
    pub ended: bool,
    /// Its first event, nanoseconds.
    pub first_ns: u64,
    /// Its last event, nanoseconds.
    pub last_ns: u64,
    /// Number of its events.
    pub events: u64,
    /// Number of its events that were lost.
    pub lost_events: u64,
    /// CPUs that it may use most of its time, such as `0-3,8`; null if not recorded per thread.
    pub cpus: Option<String>,
    /// The source of its off-CPU times; if unknown, these times are in the other states.
    #[schemars(extend("enum" = ["unknown", "context-switches", "estimated"]))]
    pub off_cpu: Word,
    /// Nanoseconds on a CPU over the recording, from the kernel; null if unknown.
    pub on_cpu_ns: Option<u64>,
    /// Growth of `run_delay` in its schedstat over the recording, nanoseconds; null if unknown.
    pub run_delay_ns: Option<u64>,
    /// Nanoseconds runnable without a CPU, also in waits: all intervals, of which `out_of_cpu` has those in
    /// code of the program; without `stopped_ns` it is `run_delay`. Null if unknown.
    pub runnable_ns: Option<u64>,
    /// Nanoseconds of `runnable_ns` in which a signal had stopped the process. Null if unknown.
    pub stopped_ns: Option<u64>,
    /// Nanoseconds blocked in the kernel, in any state; null if unknown.
    pub blocked_ns: Option<u64>,
    /// Nanoseconds by state.
    pub states: StateTimes,
}

/// Threads and their times.
pub(crate) fn threads(session: &Session, analysis: &Analysis) -> Vec<ThreadTimes> {
    let start = session.execution.range().0;
    let since = |at: u64| if at == NO_TIME { 0 } else { at.saturating_sub(start) };
    let execution = &session.execution;
    let total = |times: Vec<(u64, u64)>| times.iter().map(|(start, end)| end - start).sum::<u64>();
    let rows = analysis.ledger.threads.iter().map(|row| {
        let thread = &execution.threads[row.thread.index()];
        let process = &execution.processes[thread.process.index()];
        let known_off = thread.os_source != OsSource::Unknown;
        ThreadTimes {
            loom: process.loom.to_string(),
            pid: process.pid,
            tid: thread.tid,
            name: thread.name.to_string(),
            label: cpu_name(execution, row.thread)
                .unwrap_or_else(|| crate::format::thread_words(process, thread)),
            kind: thread.kind.name().into(),
            role: thread.role.map(Named),
            worker: thread.worker,
            ended: thread.ended,
            first_ns: since(thread.first),
            last_ns: since(thread.last),
            events: thread.events,
            lost_events: thread.lost_events,
            cpus: crate::cpus::mask_of(execution, row.thread),
            off_cpu: thread.os_source.name().into(),
            on_cpu_ns: thread.os_totals.on_cpu_ns,
            run_delay_ns: thread.os_totals.run_delay_ns,
            runnable_ns: known_off.then(|| total(execution.runnable_times(row.thread))),
            stopped_ns: known_off.then(|| execution.stopped_ns(row.thread)),
            blocked_ns: known_off.then(|| total(execution.blocked_times(row.thread))),
            states: by_state(&row.by_state),
        }
    });
    rows.collect()
}

/// Tasks of a type in a process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskTypeTimes {
    /// The type's name.
    pub name: String,
    /// Process id.
    pub pid: Option<i64>,
    /// Number of tasks that were created.
    pub created: u64,
    /// Number of tasks that began.
    pub began: u64,
    /// Nanoseconds in bodies, on a CPU: without waits, nested tasks and regions, and times off the CPU.
    pub body_ns: u64,
    /// Nanoseconds in which bodies were blocked in the kernel.
    pub blocked_ns: u64,
    /// Mean body, nanoseconds.
    pub mean_ns: u64,
    /// Median body, nanoseconds.
    pub median_ns: u64,
    /// 95th percentile of bodies, nanoseconds.
    pub p95_ns: u64,
    /// Longest body, nanoseconds.
    pub max_ns: u64,
    /// Nanoseconds between creation and begin, of all tasks.
    pub queued_ns: u64,
    /// Its code; absent if unknown.
    #[serde(flatten)]
    pub code: Option<CodePlace>,
}

/// Task types.
pub(crate) fn task_types(session: &Session, analysis: &Analysis) -> Vec<TaskTypeTimes> {
    let places = &session.places;
    let rows = analysis.task_types.iter().map(|row| TaskTypeTimes {
        name: places.type_name(row.ty),
        pid: pid_of_type(session, row.ty),
        created: row.created,
        began: row.began,
        body_ns: row.body_ns,
        blocked_ns: row.blocked_ns,
        mean_ns: row.mean_ns(),
        median_ns: row.median_ns,
        p95_ns: row.p95_ns,
        max_ns: row.max_ns,
        queued_ns: row.queued_ns,
        code: CodePlace::of(places, places.type_site(row.ty)),
    });
    rows.collect()
}

/// Work of a team and its balance.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TeamLoad {
    /// Executions of the construct.
    pub executions: u64,
    /// Shares of threads in them.
    pub shares: u64,
    /// Nanoseconds of useful work in all shares.
    pub busy_ns: u64,
    /// Thread-nanoseconds between the longest share of each execution and the others.
    pub imbalance_ns: u64,
    /// `busy_ns` divided by its value if all shares were as long as the longest.
    #[schemars(range(min = 0, max = 1))]
    pub load_balance: f64,
}

impl From<&Load> for TeamLoad {
    fn from(load: &Load) -> TeamLoad {
        TeamLoad {
            executions: load.executions,
            shares: load.shares,
            busy_ns: load.busy_ns,
            imbalance_ns: load.imbalance_ns(),
            load_balance: load.balance(),
        }
    }
}

/// A worksharing construct in a process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WorksharingTimes {
    /// Its name.
    pub name: String,
    /// Process id.
    pub pid: Option<i64>,
    /// Number of chunks.
    pub chunks: u64,
    /// Number of iterations.
    pub iterations: u64,
    /// Its work.
    #[serde(flatten)]
    pub load: TeamLoad,
    /// Its code; absent if unknown.
    #[serde(flatten)]
    pub code: Option<CodePlace>,
}

/// Worksharing constructs.
pub(crate) fn worksharing(session: &Session, analysis: &Analysis) -> Vec<WorksharingTimes> {
    let places = &session.places;
    let rows = analysis.works.iter().map(|row| WorksharingTimes {
        name: places.type_name(row.ty),
        pid: pid_of_type(session, row.ty),
        chunks: row.chunks,
        iterations: row.iterations,
        load: TeamLoad::from(&row.load),
        code: CodePlace::of(places, places.type_site(row.ty)),
    });
    rows.collect()
}

/// A parallel construct in a process.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RegionTimes {
    /// Its name.
    pub name: String,
    /// Process id.
    pub pid: Option<i64>,
    /// Nanoseconds from begin to end, of all executions.
    pub duration_ns: u64,
    /// Its work.
    #[serde(flatten)]
    pub load: TeamLoad,
    /// Its code; absent if unknown.
    #[serde(flatten)]
    pub code: Option<CodePlace>,
}

/// Parallel constructs.
pub(crate) fn regions(session: &Session, analysis: &Analysis) -> Vec<RegionTimes> {
    let places = &session.places;
    let rows = analysis.regions.iter().map(|row| RegionTimes {
        name: places.construct("parallel", row.site),
        pid: pid_of_site(session, row.site),
        duration_ns: row.duration_ns,
        load: TeamLoad::from(&row.load),
        code: CodePlace::of(places, row.site),
    });
    rows.collect()
}

/// A lock or critical construct.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LockTimes {
    /// Its name: the place that took it first; of several locks of one place the second is #2.
    pub object: String,
    /// Process id.
    pub pid: Option<i64>,
    /// Address in its process, or another id that the runtime gives.
    pub address: Option<u64>,
    /// Number of acquisitions.
    pub acquisitions: u64,
    /// Nanoseconds held.
    pub held_ns: u64,
    /// The longest, nanoseconds.
    pub longest_hold_ns: u64,
    /// Number of waits.
    pub waits: u64,
    /// Thread-nanoseconds waited: the sum of the holders' and of `unheld_ns`.
    pub waited_ns: u64,
    /// Waits in which no other thread held it, nanoseconds: the cost of acquiring a free one.
    pub unheld_ns: u64,
    /// Holders during waits.
    pub holders: Vec<LockHolder>,
}

/// A place that held a lock while others waited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LockHolder {
    /// The place that took the lock.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Thread-nanoseconds that others waited meanwhile.
    pub ns: u64,
    /// Its code; absent if unknown.
    #[serde(flatten)]
    pub code: Option<CodePlace>,
}

/// Locks.
pub(crate) fn locks(session: &Session, analysis: &Analysis) -> Vec<LockTimes> {
    let places = &session.places;
    let rows = analysis.locks.iter().map(|row| {
        let kind = places.object_kind(row.object);
        let holders = row.holders.iter().map(|holder| LockHolder {
            place: some_text(places.construct(kind, holder.site)),
            ns: holder.ns,
            code: CodePlace::of(places, holder.site),
        });
        LockTimes {
            object: places.object_name(row.object),
            pid: pid_of_object(session, row.object),
            address: session.execution.catalog.objects.get(row.object.index()).map(|row| row.id),
            acquisitions: row.acquisitions,
            held_ns: row.held_ns,
            longest_hold_ns: row.longest_hold_ns,
            waits: row.waits,
            waited_ns: row.waited_ns,
            unheld_ns: row.unheld_ns,
            holders: holders.collect(),
        }
    });
    rows.collect()
}

/// Tasks that were able to run and did not.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StarvationTimes {
    /// Task-nanoseconds between being able to run and running.
    pub waited_ns: u64,
    /// Number of waits.
    pub waits: u64,
    /// The longest, nanoseconds.
    pub longest_wait_ns: u64,
    /// The code that ran meanwhile.
    pub by: Vec<StarvingCode>,
}

/// Tasks of a type that ran while others waited.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct StarvingCode {
    /// The type.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Task-nanoseconds that others waited.
    pub waited_ns: u64,
    /// Pieces of tasks that ran meanwhile.
    pub pieces: u64,
    /// The longest of them, nanoseconds.
    pub longest_ns: u64,
    /// The number in its process of the task of the longest; null for a task without one.
    pub longest_task: Option<u64>,
    /// The task of the longest in words.
    pub longest_task_name: String,
    /// Its process id.
    pub longest_pid: i64,
    /// Its thread id.
    pub longest_tid: i64,
    /// Its thread's name; empty for none.
    pub longest_thread_name: String,
    /// Its begin, nanoseconds.
    pub longest_at_ns: u64,
}

/// Starvation of tasks; `None` if the program does not record readiness.
pub(crate) fn starvation(session: &Session, analysis: &Analysis) -> Option<StarvationTimes> {
    let found = &analysis.starvation;
    let (names, start) = (ProcessNames::of(&session.execution), session.execution.range().0);
    let by = found.by.iter().filter(|row| row.waited_ns > 0).map(|row| {
        let thread = &session.execution.threads[row.longest_on.index()];
        StarvingCode {
            place: some_text(session.places.type_name(row.ty)),
            waited_ns: row.waited_ns,
            pieces: row.pieces,
            longest_ns: row.longest_ns,
            longest_task: session.execution.tasks.number(row.longest_task),
            longest_task_name: names.task(row.longest_task),
            longest_pid: session.execution.processes[thread.process.index()].pid,
            longest_tid: thread.tid,
            longest_thread_name: thread.name.to_string(),
            longest_at_ns: row.longest_at.saturating_sub(start),
        }
    });
    (found.waits > 0).then(|| StarvationTimes {
        waited_ns: found.waited_ns,
        waits: found.waits,
        longest_wait_ns: found.longest_ns,
        by: by.collect(),
    })
}
