//! All kinds of findings with their sentences and remedies, in one golden file to read side by side.

use super::rows::Whose;
use super::wait_rows::sentence_of_wait;
use crate::named_finding::NamedFinding;
use crate::verdict;
use crate::words::{Source, sentence};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;
use taskscope_analysis::{ByState, Confidence, LateProcess, RegionGrain};
use taskscope_cause::{Blamed, Cause, Pattern, Runtime};
use taskscope_execution::{ProcessIndex, SiteIndex, State};

const RUNTIMES: [Runtime; 9] = [
    Runtime::OpenMp,
    Runtime::OpenMpV,
    Runtime::Nanos6,
    Runtime::Nodes,
    Runtime::Nosv,
    Runtime::Instrumented,
    Runtime::Mpi,
    Runtime::Threads,
    Runtime::Devices,
];

/// Causes that only the task graph knows: their remedies are in section diagnosis.
const OF_GRAPHS: [Cause; 9] = [
    Cause::WaitStart,
    Cause::WaitCreate,
    Cause::WaitDepend,
    Cause::WaitSend,
    Cause::WaitTransfer,
    Cause::WaitDeliver,
    Cause::WaitDispatch,
    Cause::WaitDrain,
    Cause::WaitEnd,
];

const ALL_NS: u64 = 100;

fn finding(
    (cause, blamed): (Cause, Blamed),
    pattern: Option<Pattern>,
    (state, place): (State, &str),
    victims: &[State],
) -> NamedFinding {
    let mut sums = ByState::default();
    for (row, victim) in victims.iter().enumerate() {
        // Most of the first.
        sums.add(*victim, if row == 0 { ALL_NS - victims.len() as u64 + 1 } else { 1 });
    }
    let confidence = Confidence::High;
    let new = NamedFinding::new((cause, blamed), (state, place.to_owned()), ALL_NS, confidence);
    NamedFinding { pattern, victims: sums, tasks_created: 40, ..new }
}

/// Findings of the events of a runtime.
fn event_findings() -> Vec<NamedFinding> {
    use Blamed::*;
    use State::*;
    let waits = |blamed, pattern, place: (State, &str), victim| {
        finding((Cause::Wait, blamed), pattern, place, &[victim])
    };
    let own =
        |cause, blamed, pattern, place: (State, &str)| finding((cause, blamed), pattern, place, &[place.0]);
    let task = (State::Task, "step [task at a.c:9]");
    let code = (ImplicitTask, "work [code at a.c:5]");
    let serial = "serial code after work [parallel at a.c:5]";
    let (lock, region) = ("add [lock at a.c:4]", "work [parallel at a.c:5]");
    let free = |finding: NamedFinding| NamedFinding { free_ns: 80, ..finding };
    let grain = RegionGrain { site: SiteIndex::NONE, regions: 12_000, mean_ns: 9_000, work_ns: 2_000 };
    let short = |finding: NamedFinding| NamedFinding { regions: Some(grain), ..finding };
    let alone = NamedFinding { sole_ns: ALL_NS, ..waits(Blamed::Task, None, task, Taskwait) };
    let late = |cause, state| {
        let late = LateProcess { process: ProcessIndex(0), pid: 77, rank: Some(3) };
        let of = own(cause, Rank, None, (state, "main [MPI_Allreduce at a.c:12]"));
        NamedFinding { late: Some(late), ..of }
    };
    let mut all = vec![
        waits(Blamed::Serial, None, (State::Serial, serial), Idle),
        alone,
        waits(Blamed::Task, None, task, Taskwait),
        waits(Blamed::Task, Some(Pattern::TooFine), task, Taskwait),
        waits(Loop, None, (Worksharing, "work [for at a.c:6]"), Barrier),
        waits(Single, None, (Masked, "work [masked at a.c:7]"), Barrier),
        waits(Code, None, code, JoinBarrier),
        waits(Code, Some(Pattern::OutsideTeam), code, Idle),
        waits(Creation, None, (ImplicitTask, "make [code at a.c:8]"), Taskwait),
        waits(Nobody, None, (Taskwait, "make [taskwait at a.c:9]"), Taskwait),
        waits(Nobody, None, (NotStarted, ""), NotStarted),
        waits(Nobody, None, (Ended, ""), Ended),
        waits(Nobody, Some(Pattern::NoTasks), (Idle, ""), Idle),
        finding((Cause::Lock, Holder), None, (LockWait, "add [lock at a.c:4]"), &[LockWait]),
        finding(
            (Cause::Lock, Holder),
            Some(Pattern::Ordered),
            (LockWait, "put [ordered at a.c:3]"),
            &[OrderedWait],
        ),
        finding((Cause::Lock, Blamed::Runtime), Some(Pattern::FreeLock), (LockWait, lock), &[Barrier]),
        finding((Cause::Lock, Nobody), None, (LockWait, "add [lock at a.c:4]"), &[LockWait]),
        free(finding((Cause::Lock, Holder), Some(Pattern::FreeLock), (LockWait, lock), &[LockWait])),
        free(finding((Cause::Lock, Nobody), Some(Pattern::FreeLock), (LockWait, lock), &[LockWait])),
        short(waits(Code, Some(Pattern::ShortRegions), code, JoinBarrier)),
        short(own(Cause::RuntimeFork, Blamed::Runtime, Some(Pattern::ShortRegions), (ForkJoin, region))),
        waits(Nobody, Some(Pattern::NoWork), (Idle, ""), Idle),
        own(Cause::Device, Operation, None, (TargetWait, "main [target at a.c:2]")),
        finding((Cause::Device, Operation), None, (TargetWait, "main [target at a.c:2]"), &[Idle]),
        late(Cause::MpiLate, Communication),
        late(Cause::MpiStart, MpiStart),
        own(Cause::MpiStart, Call, None, (MpiStart, "main [MPI_Init at a.c:1]")),
        own(Cause::MpiTransfer, Call, None, (Communication, "main [MPI_Allreduce at a.c:12]")),
        own(Cause::Mpi, Call, None, (Communication, "")),
        own(Cause::CpuNone, System, None, (OutOfCpu, "")),
        own(Cause::CpuNone, System, Some(Pattern::Stopped), (OutOfCpu, "")),
        own(Cause::CpuNone, System, Some(Pattern::Throttled), (OutOfCpu, "")),
        own(Cause::Cpu, System, None, (OutOfCpu, "")),
        own(Cause::CpuOversubscribed, System, None, (Oversubscribed, "")),
        own(Cause::Blocked, Code, None, (Blocked, task.1)),
        own(Cause::Blocked, Code, Some(Pattern::BlockedSerial), (Blocked, serial)),
        own(Cause::Blocked, Code, Some(Pattern::ThreadsEnd), (Blocked, serial)),
        own(Cause::Work, Code, None, (State::Serial, "main")),
        own(Cause::Unknown, Nobody, None, (Unknown, "")),
        own(Cause::Unknown, Nobody, Some(Pattern::NoSections), (NoSubsystem, "")),
        finding(
            (Cause::Wait, Nobody),
            Some(Pattern::Hung),
            (Taskwait, "make [taskwait at a.c:9]"),
            &[Taskwait],
        ),
    ];
    let runtime_states = State::ALL.iter().filter(|state| state.cause().is_in(Cause::Runtime));
    all.extend(
        runtime_states
            .map(|state| own(state.cause(), Blamed::Runtime, None, (*state, "make [task at a.c:9]"))),
    );
    all.push(own(Cause::Runtime, Blamed::Runtime, None, (State::Runtime, "")));
    all
}

/// Findings of recorded waits of workers, with the awaited object and the words for its end.
fn wait_findings() -> Vec<(NamedFinding, &'static str, &'static str)> {
    use Blamed::*;
    use State::*;
    let place = "merge [lock at a.c:4]";
    let of = |cause, blamed, pattern, state| finding((cause, blamed), pattern, (state, place), &[state]);
    let held = "held by merge [lock at a.c:4]";
    vec![
        (of(Cause::Lock, Holder, None, LockWait), "mutex m", held),
        (of(Cause::Lock, Holder, Some(Pattern::FreeLock), LockWait), "mutex m", held),
        (of(Cause::Lock, Holder, Some(Pattern::InterpreterLock), LockWait), "the GIL", held),
        (of(Cause::WaitSignal, Waker, None, Blocked), "condition c", "until put wakes them"),
        (of(Cause::WaitSync, Waker, None, Blocked), "barrier b", "until put comes to it"),
        (of(Cause::Wait, Nobody, Some(Pattern::HandOver), Blocked), "", ""),
        (of(Cause::Wait, Nobody, Some(Pattern::NoWork), Idle), "", ""),
        (of(Cause::Wait, Blamed::Serial, None, Idle), "", ""),
        (of(Cause::BlockedSleep, Code, None, Blocked), "", ""),
        (of(Cause::BlockedIo, Code, None, Blocked), "", ""),
        (
            of(Cause::Blocked, Code, Some(Pattern::TimeLimit), Blocked),
            "condition",
            "until the time limit of the call",
        ),
        (
            of(Cause::Blocked, Code, Some(Pattern::Outside), Blocked),
            "socket",
            "which no thread of the program ends",
        ),
        (of(Cause::Blocked, Code, Some(Pattern::Unrecorded), Blocked), "condition c", "log_writer (42)"),
        (of(Cause::Blocked, Code, None, Blocked), "condition", ""),
        (of(Cause::Blocked, Code, None, Blocked), "", ""),
        (of(Cause::CpuOversubscribed, System, Some(Pattern::Bound), Oversubscribed), "0", ""),
        (of(Cause::Unknown, Nobody, None, Unknown), "", ""),
    ]
}

/// Findings of device queues, with the sentences that they have.
fn queue_findings() -> Vec<NamedFinding> {
    let of = |blamed, pattern| finding((Cause::Wait, blamed), Some(pattern), (State::Idle, "queue 0"), &[]);
    vec![
        of(Blamed::Code, Pattern::HostBound),
        of(Blamed::Operation, Pattern::TransferBound),
        of(Blamed::Nobody, Pattern::DependencyBound),
    ]
}

fn write_finding(out: &mut String, finding: &NamedFinding, text: &str) {
    let pattern = finding.pattern.map(|pattern| format!(", {}", pattern.name())).unwrap_or_default();
    let _ = writeln!(out, "{}, {}{pattern}\n  {text}", finding.cause.name(), finding.blamed.name());
    let _ = writeln!(out, "  verdict: {}", verdict::label(finding));
    let mut remedies: Vec<(&str, Vec<&str>)> = Vec::new();
    for runtime in RUNTIMES {
        let remedy = verdict::remedy(finding, Some(runtime));
        match remedies.iter_mut().find(|(known, _)| *known == remedy) {
            Some((_, names)) => names.push(runtime.name()),
            None => remedies.push((remedy, vec![runtime.name()])),
        }
    }
    for (remedy, names) in &remedies {
        let names = if names.len() * 2 > RUNTIMES.len() { "others".to_owned() } else { names.join(", ") };
        let _ = writeln!(out, "  try ({names}): {remedy}");
    }
    out.push('\n');
}

/// Read the difference of this file before it is committed: does each remedy fit its sentence?
#[test]
fn each_sentence_has_its_remedy_in_the_words_of_each_runtime() {
    let source = Source {
        what: "trace",
        workers: "workers",
        knows_off_cpu: true,
        waits_in_calls: false,
        no_cpu: "threads had no CPU: other programs used 1.0 of 2 CPUs".to_owned(),
        more_workers: "more workers than CPUs: 4 workers share 2 CPUs".to_owned(),
    };
    let mut out = String::new();
    let (events, waits, queues) = (event_findings(), wait_findings(), queue_findings());
    for finding in &events {
        write_finding(&mut out, finding, &sentence(finding, &source));
    }
    let part = "0.040 of 1.000 worker-seconds";
    for (finding, object, by) in &waits {
        let text = sentence_of_wait(finding, part, Whose::Workers, (object, by));
        write_finding(&mut out, finding, &text.expect("waits have sentences of their own"));
    }
    for finding in &queues {
        write_finding(&mut out, finding, "(of a device queue)");
    }
    let all = || events.iter().chain(waits.iter().map(|(finding, ..)| finding)).chain(&queues);
    let causes: BTreeSet<Cause> = all().map(|finding| finding.cause).collect();
    for cause in Cause::ALL.into_iter().filter(|cause| !OF_GRAPHS.contains(cause)) {
        assert!(causes.contains(&cause), "{} is not in the list", cause.name());
    }
    let patterns: BTreeSet<Pattern> = all().filter_map(|finding| finding.pattern).collect();
    // Those of section diagnosis.
    let graph_patterns = [Pattern::TooCoarse, Pattern::BadlyDistributed, Pattern::BadLocality];
    for pattern in Pattern::ALL.into_iter().filter(|pattern| !graph_patterns.contains(pattern)) {
        assert!(patterns.contains(&pattern), "{} is not in the list", pattern.name());
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/advice.txt");
    if std::env::var_os("TASKSCOPE_UPDATE").is_some() {
        std::fs::write(&path, &out).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(out == golden, "advice.txt differs; TASKSCOPE_UPDATE=1 rewrites it. Now:\n{out}");
}
