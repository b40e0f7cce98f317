//! The state machine against ground truth: programs with threads in each state by construction, for times
//! that they stamp themselves (`programs/states.c`), in virtual time. Shares of samples, of the trace and of
//! the profile must equal those of the stamps within three points.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::common::{Compiler, LIBOMP, Run, Trace, fresh_directory, tool, try_compile, virtual_time};
use taskscope_event::models::samples::state;
use taskscope_execution::{State, ThreadIndex};
use taskscope_profile::Profile;
use taskscope_session::Session;

/// Points of the share that a state may be off.
const TOLERANCE: f64 = 3.0;
/// Milliseconds that the programs work at a time.
const MILLISECONDS: &str = "10";

/// The program's name for a sample's state.
fn name_of_sample(number: i128, compiler: Compiler) -> &'static str {
    match number as u32 {
        state::WORK_SERIAL => "serial",
        state::WORK_PARALLEL => "parallel",
        state::WORK_REDUCTION => "reduction",
        state::BARRIER_PARALLEL => "barrier_parallel",
        state::BARRIER_WORKSHARE => "barrier_workshare",
        state::BARRIER_EXPLICIT => "barrier_explicit",
        // The runtime's interface for gcc's programs does not distinguish barriers.
        state::BARRIER_IMPLEMENTATION if compiler == Compiler::Gcc => "barrier",
        state::BARRIER_IMPLEMENTATION => "barrier_implementation",
        state::BARRIER_TEAMS => "barrier_teams",
        state::TASKWAIT => "taskwait",
        state::TASKGROUP => "taskgroup",
        state::TASKWAIT_DEPEND => "taskwait_depend",
        state::LOCK => "lock",
        state::NEST_LOCK => "nest_lock",
        state::CRITICAL => "critical",
        state::ATOMIC => "atomic",
        state::ORDERED => "ordered",
        state::TARGET => "target",
        state::IDLE => "idle",
        state::OVERHEAD => "overhead",
        state::NO_OPENMP => "no_openmp",
        _ => "a number without a meaning",
    }
}

/// Name of the trace's state, which merges some of the program's names.
fn name_of_span(state: State) -> &'static str {
    match state {
        State::Serial => "serial",
        State::Task | State::Worksharing | State::Masked | State::ImplicitTask => "parallel",
        State::Barrier => "barrier",
        State::JoinBarrier => "join_barrier",
        State::LockWait => "lock",
        State::CriticalWait => "critical",
        State::OrderedWait => "ordered",
        State::AtomicWait => "atomic",
        State::Taskwait => "taskwait",
        State::TaskwaitDepend => "taskwait_depend",
        State::Taskgroup => "taskgroup",
        State::TargetWait => "target",
        State::Idle => "idle",
        State::ForkJoin | State::Runtime | State::Scheduling | State::TaskCreation => "overhead",
        other => other.name(),
    }
}

fn coarser(name: &str) -> &str {
    match name {
        "barrier_explicit" | "barrier_workshare" => "barrier",
        "barrier_parallel" | "barrier_teams" => "join_barrier",
        "nest_lock" => "lock",
        other => other,
    }
}

/// Times by name, nanoseconds.
type Times = BTreeMap<String, u64>;

/// The program's stamps: per thread, the times in a known state.
struct Truth(Vec<(String, i64, u64, u64)>);

impl Truth {
    fn parse(text: &str) -> Truth {
        let line = |line: &str| {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |index: usize| words[index].parse().unwrap();
            (words[0].to_owned(), number(1) as i64, number(2), number(3))
        };
        Truth(text.lines().map(line).collect())
    }

    fn times(&self, name: impl Fn(&str) -> String) -> Times {
        let mut times = Times::new();
        for (state, _, begin, end) in &self.0 {
            *times.entry(name(state)).or_default() += end - begin;
        }
        times
    }

    /// Known time of this thread in `begin..end`.
    fn overlap(&self, thread: i64, begin: u64, end: u64) -> u64 {
        let thread_rows = self.0.iter().filter(|(_, known, ..)| *known == thread);
        thread_rows.map(|(.., from, to)| end.min(*to).saturating_sub(begin.max(*from))).sum()
    }
}

/// Runs a mode, with these compiler flags; `None` if the compiler is missing.
fn run(compiler: Compiler, mode: &str, flags: &[&str]) -> Option<(Truth, Trace, Session)> {
    if !compiler.is_installed() {
        return None;
    }
    let program = try_compile(compiler, "states", &[&["-pthread"], flags].concat())?;
    let directory = fresh_directory();
    let output = run_in(&directory, &program, compiler, mode).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{mode}: {output:?}");
    let result = read(&directory, &String::from_utf8(output.stdout).unwrap());
    let _ = std::fs::remove_dir_all(&directory);
    Some(result)
}

/// Traces and profiles have no state for a thread unknown to OpenMP, nor for a barrier's reduction.
fn has_no_state(mode: &str) -> bool {
    matches!(mode, "foreign" | "reduction")
}

/// Whether a mode runs in real time: the runtime's own work and that of devices take no virtual time. Then only
/// the presence of states is checked.
fn is_in_real_time(mode: &str) -> bool {
    matches!(mode, "forks" | "target")
}

/// The command that runs a mode.
fn run_in(directory: &Path, program: &Path, compiler: Compiler, mode: &str) -> Command {
    let mut preloaded = tool().display().to_string();
    if compiler == Compiler::Gcc {
        preloaded = format!("{preloaded}:{LIBOMP}");
    }
    if !is_in_real_time(mode) {
        preloaded = format!("{preloaded}:{}", virtual_time().display());
    }
    // A worker that is about to sleep is not woken for the first task of a team, so these workers never sleep.
    let (policy, block_time) =
        if mode.starts_with("task") { ("active", "infinite") } else { ("passive", "0") };
    let mut command = Run::program(compiler, program)
        .env("TASKSCOPE_TRACE_DIR", directory)
        .env("TASKSCOPE_SAMPLE", "1000")
        .env("TASKSCOPE_OS_TIME", "off")
        .env("OMP_WAIT_POLICY", policy)
        .env("KMP_FORCE_REDUCTION", "tree")
        .env("KMP_BLOCKTIME", block_time)
        .env("TASKSCOPE_CLOCK", "kernel")
        .env("LD_PRELOAD", preloaded)
        .env("LD_LIBRARY_PATH", "/usr/lib/llvm-19/lib")
        .command;
    command.args([mode, MILLISECONDS]);
    command
}

/// Runs a mode in profile mode; returns its stamps, and the workers' time by state.
fn profiled(compiler: Compiler, mode: &str, flags: &[&str]) -> Option<(Truth, Times)> {
    let program = try_compile(compiler, "states", &[&["-pthread"], flags].concat())?;
    let directory = fresh_directory();
    let output =
        run_in(&directory, &program, compiler, mode).env("TASKSCOPE_MODE", "profile").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{mode}: {output:?}");
    let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
    let file = files.into_iter().find(|path| path.extension().is_some_and(|e| e == "tsprof")).unwrap();
    let profile = Profile::read(&std::fs::read(file).unwrap()).unwrap();
    let _ = std::fs::remove_dir_all(&directory);
    let mut times = Times::new();
    for (name, ns) in &profile.totals {
        if let Some(state) = State::ALL.into_iter().find(|state| *name == format!("state.{}", state.name())) {
            *times.entry(name_of_span(state).to_owned()).or_default() += ns;
        }
    }
    Some((Truth::parse(&String::from_utf8(output.stdout).unwrap()), times))
}

/// As [`check`], for a profile, which has sums only: each state has at least its known time, and at most that
/// plus all unknown time.
fn check_profile(compiler: Compiler, mode: &str, flags: &[&str]) {
    if has_no_state(mode) {
        return;
    }
    let Some((truth, profiled)) = profiled(compiler, mode, flags) else { return };
    let truth = truth.times(|name| coarser(name).to_owned());
    let (known, all) = (truth.values().sum::<u64>(), profiled.values().sum::<u64>());
    let unknown = all.saturating_sub(known);
    if is_in_real_time(mode) {
        assert!(
            truth.keys().all(|name| profiled.get(name).is_some_and(|ns| *ns > 0)),
            "{truth:?} {profiled:?}"
        );
        return;
    }
    for name in truth.keys().chain(profiled.keys()) {
        let of = |times: &Times| *times.get(name).unwrap_or(&0);
        let (least, most) = (of(&truth), of(&truth) + unknown);
        let off = least.saturating_sub(of(&profiled)).max(of(&profiled).saturating_sub(most));
        let points = off as f64 / known as f64 * 100.0;
        assert!(points <= TOLERANCE, "{mode} ({compiler:?}) {name}: {points} points: {truth:?} {profiled:?}");
    }
}

fn read(directory: &Path, text: &str) -> (Truth, Trace, Session) {
    (Truth::parse(text), Trace::read(directory), Session::open(directory).unwrap())
}

/// Times of the samples, clipped to the stamped intervals.
fn sampled(truth: &Truth, trace: &Trace, compiler: Compiler) -> Times {
    let mut times = Times::new();
    for stream in &trace.streams {
        let thread = stream.metadata["ovni"]["tid"].as_i64().unwrap_or_default();
        for sample in &stream.samples {
            let begin = sample.at - sample.number("weight_ns") as u64;
            let name = name_of_sample(sample.number("state"), compiler);
            *times.entry(name.to_owned()).or_default() += truth.overlap(thread, begin, sample.at);
        }
    }
    times
}

/// Times of the trace's states, clipped to the stamped intervals.
fn traced(truth: &Truth, session: &Session) -> Times {
    let mut times = Times::new();
    for (index, thread) in session.execution.threads.iter().enumerate() {
        for span in session.execution.spans_of_run(ThreadIndex::of(index)) {
            let name = name_of_span(span.section.state);
            *times.entry(name.to_owned()).or_default() += truth.overlap(thread.tid, span.start, span.end);
        }
    }
    times
}

/// The largest difference of shares, in points, with the state's name.
fn worst(truth: &Times, measured: &Times) -> (f64, String) {
    let whole = truth.values().sum::<u64>() as f64;
    let share = |times: &Times, name: &String| *times.get(name).unwrap_or(&0) as f64 / whole * 100.0;
    let names = truth.keys().chain(measured.keys());
    let off = names.map(|name| ((share(measured, name) - share(truth, name)).abs(), name.clone()));
    off.fold((0.0, String::new()), |a, b| if a.0 < b.0 { b } else { a })
}

/// Checks that a mode has `state`, and every state its share, in samples and trace.
fn check(compiler: Compiler, mode: &str, state: &str, flags: &[&str]) {
    let Some((truth, trace, session)) = run(compiler, mode, flags) else {
        taskscope_prerequisite::missing(format_args!("{mode} cannot be compiled here"));
        return;
    };
    let fine = truth.times(|name| match compiler {
        Compiler::Gcc if matches!(name, "barrier_explicit" | "barrier_workshare") => "barrier".to_owned(),
        _ => name.to_owned(),
    });
    assert!(fine.contains_key(state) || compiler == Compiler::Gcc, "{mode}: {fine:?}");
    let (samples, spans) = (sampled(&truth, &trace, compiler), traced(&truth, &session));
    let coarse = truth.times(|name| coarser(name).to_owned());
    if is_in_real_time(mode) {
        assert!(coarse.keys().all(|name| spans.get(name).is_some_and(|ns| *ns > 0)), "{coarse:?} {spans:?}");
        return;
    }
    let sample_error = worst(&fine, &samples);
    assert!(sample_error.0 <= TOLERANCE, "{mode} ({compiler:?}): {sample_error:?}: {fine:?} {samples:?}");
    if !has_no_state(mode) {
        let trace_error = worst(&coarse, &spans);
        assert!(trace_error.0 <= TOLERANCE, "{mode} ({compiler:?}): {trace_error:?}: {coarse:?} {spans:?}");
    }
}

macro_rules! modes {
    ($( $test:ident: $mode:literal has $state:literal $(with $flag:literal)*; )*) => { $(
        #[test]
        fn $test() {
            check(Compiler::Clang, $mode, $state, &[$($flag),*]);
            check_profile(Compiler::Clang, $mode, &[$($flag),*]);
        }
    )* };
}

modes! {
    serial_code_idle_workers_and_ends_of_regions: "regions" has "idle";
    barriers_of_the_program: "barrier" has "barrier_explicit";
    barriers_of_loops: "workshare" has "barrier_workshare";
    ends_of_leagues: "teams" has "barrier_teams";
    taskwaits: "taskwait" has "taskwait";
    taskwaits_for_dependences: "taskwait_depend" has "taskwait_depend";
    taskgroups: "taskgroup" has "taskgroup";
    locks: "lock" has "lock";
    nestable_locks: "nest_lock" has "nest_lock";
    criticals: "critical" has "critical";
    ordered_constructs: "ordered" has "ordered";
    atomics_of_the_runtime: "atomic" has "atomic";
    reductions_of_the_runtime: "reduction" has "reduction";
    forking: "forks" has "overhead";
    devices: "target" has "target" with "-fopenmp-targets=x86_64-pc-linux-gnu";
    threads_that_openmp_does_not_know: "foreign" has "no_openmp";
}

#[test]
fn programs_of_gcc_on_llvms_runtime() {
    let modes = [
        ("regions", "idle"),
        ("barrier", "barrier"),
        ("workshare", "barrier"),
        ("taskwait", "taskwait"),
        ("taskgroup", "taskgroup"),
        ("lock", "lock"),
        ("nest_lock", "nest_lock"),
        ("critical", "critical"),
        ("ordered", "ordered"),
        ("atomic", "atomic"),
        ("forks", "overhead"),
    ];
    for (mode, state) in modes {
        check(Compiler::Gcc, mode, state, &[]);
        check_profile(Compiler::Gcc, mode, &[]);
    }
}
