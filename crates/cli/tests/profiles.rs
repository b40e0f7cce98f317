//! Profiles beside traces of the same program, and as they are reported.

mod common;

use common::call_paths::{VIRTUAL_TIME, virtual_time_flags};
use common::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A program with workers that wait for known reasons for about as long as they work.
fn program(here: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/beside.c");
    let flags = virtual_time_flags();
    let mut options: Vec<&str> = flags.iter().map(String::as_str).collect();
    options.push("-Wl,-z,now");
    Compiler::Clang.build_file(&source, &here.join("beside"), &options)
}

fn parsed(command: &mut std::process::Command) -> Value {
    serde_json::from_slice(&output(command).stdout).unwrap()
}

/// Records a program in virtual time. Returns its output.
fn recorded(here: &Path, program: &Path, options: &[&str]) -> String {
    let run = output(
        record(here)
            .env("OMP_NUM_THREADS", "2")
            // A trace sets apart when the machine had no CPU for a thread; a profile does not know.
            .env("TASKSCOPE_OS_TIME", "off")
            .envs(VIRTUAL_TIME)
            .args(options)
            .arg("--")
            .arg(program),
    );
    assert!(run.status.success(), "{run:?}");
    text_of(run.stdout)
}

/// Times by construction, each as the trace and as the profile have it.
#[test]
fn a_profile_and_a_trace_of_one_program_agree() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--sample", "500", "-o", "trace"]);
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "profile"]);
    let [trace, profile] = ["trace", "profile"]
        .map(|name| parsed(taskscope().args(["report", "--json"]).arg(here.path().join(name))));
    // In milliseconds: one waits 20 ms in each of five rounds, and idles for as long.
    for (metric, owed) in [
        ("work_ns", 400.0),
        ("taken_barrier_ns", 100.0),
        ("given_barrier_ns", 100.0),
        ("taken_idle_ns", 100.0),
    ] {
        for report in [&trace, &profile] {
            let found = report["call_paths"]["totals"][metric].as_f64().unwrap_or(0.0) / 1e6;
            // Samples are 2 ms apart.
            assert!((found - owed).abs() <= 4.0, "{metric}: {found} ms of {owed}");
        }
    }
    let [one, other] = [&trace, &profile].map(Shares::of);
    let paths: BTreeSet<&String> = one.work.keys().chain(other.work.keys()).collect();
    for path in paths {
        let (first, second) = (one.of_work(path), other.of_work(path));
        assert!((first - second).abs() < 0.02, "{path}: {first:.3} of the trace, {second:.3} of the profile");
    }
}

/// A difference of times has its unit, even without a table below.
#[test]
fn a_difference_has_a_unit() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "one"]);
    let first_line = |column: &str| -> String {
        let mut command = taskscope();
        command.current_dir(here.path()).args(["diff", "--sort", column, "one", "one"]);
        let shown = text(&output(&mut command).stdout);
        shown.lines().next().unwrap().to_string()
    };
    let waiting = first_line("waiting");
    assert!(waiting.ends_with(" ms") || waiting.ends_with(" s"), "{waiting}");
    assert_eq!(waiting.matches("s   ").count(), 2, "{waiting}");
    assert!(first_line("samples").ends_with("+0"));
}

#[test]
fn info_lists_the_processes_of_a_profile() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "-o", "profile"]);
    let info = parsed(taskscope().args(["info", "--json"]).arg(here.path().join("profile")));
    let processes = info["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1);
    assert!(processes[0]["command"].as_str().unwrap().contains("beside"), "{info}");
    assert!(info["paths"].as_u64().unwrap() > 1);
    let printed = text_of(output(taskscope().arg("info").arg(here.path().join("profile"))).stdout);
    assert!(printed.contains("profile of 1 process") && printed.contains("wall_ns"), "{printed}");
}

/// A request for trace-only data of a profile is rejected, without a substitute.
#[test]
fn a_profile_has_no_timeline() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "-o", "one"]);
    for words in [
        &["view", "one"][..],
        &["report", "--timeline", "one"],
        &["report", "--range", "10%..20%", "one"],
        &["report", "--where", "thread = 1", "one"],
        &["report", "--section", "call-paths,locks", "one"],
        &["report", "--task-context", "execution", "one"],
        &["export", "--to", "pprof", "--task-context", "execution", "one"],
    ] {
        let told = output(taskscope().current_dir(here.path()).args(words));
        let said = text(&told.stderr);
        assert_eq!((told.status.code(), told.stdout.len()), (Some(2), 0), "{words:?}: {said}");
        assert!(
            said.contains("one is a profile") && said.contains("taskscope report one"),
            "{words:?}: {said}"
        );
    }
    for verb in ["report", "export"] {
        let help = output(taskscope().args([verb, "--help"]));
        assert!(text(&help.stdout).contains("by its creation or, in traces, by its execution"), "{verb}");
    }
}

/// Time of samples at work, by call path.
struct Shares {
    work: BTreeMap<String, f64>,
}

impl Shares {
    fn of(report: &Value) -> Shares {
        let mut work = BTreeMap::new();
        for path in report["call_paths"]["paths"].as_array().unwrap() {
            let value = |name: &str| path["values"][name].as_f64().unwrap_or(0.0);
            if value("work_ns") > 0.0 {
                *work.entry(path["frames"].to_string()).or_default() += value("work_ns");
            }
        }
        assert!(work.len() > 2, "{work:?}");
        Shares { work }
    }

    fn of_work(&self, path: &str) -> f64 {
        self.work.get(path).unwrap_or(&0.0) / self.work.values().sum::<f64>()
    }
}

/// For two profiles, a script can query whether one got worse.
#[test]
fn a_difference_of_profiles_decides_the_exit_code() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    for name in ["one", "other"] {
        recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", name]);
    }
    let times = ["one", "other"].map(|name| {
        let report = parsed(taskscope().args(["report", "--json"]).arg(here.path().join(name)));
        report["call_paths"]["totals"]["time_ns"].as_f64().unwrap()
    });
    let code = |before: &str, after: &str, percent: f64| {
        let percent = format!("{percent}%");
        let mut command = taskscope();
        command.current_dir(here.path()).args(["diff", "--paths", before, after, "--fail-over", &percent]);
        output(&mut command).status.code()
    };
    let grown = (times[1] / times[0] - 1.0) * 100.0;
    // In one of the two directions it grew, if only by a sample.
    let (before, after, grown) = match grown > 0.0 {
        true => ("one", "other", grown),
        false => ("other", "one", (times[0] / times[1] - 1.0) * 100.0),
    };
    assert_eq!(code(before, after, grown * 2.0 + 1.0), Some(0));
    assert_eq!(code(after, before, 0.0), Some(0));
    assert_eq!(code("one", "one", 0.0), Some(0));
    if grown > 0.1 {
        assert_eq!(code(before, after, grown / 2.0), Some(1));
    }
    assert_eq!(code("one", "absent", 5.0), Some(2));
}

#[test]
fn live_and_final_efficiency_are_from_the_same_sums() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "--live", "0.05", "-o", "profile"]);
    let path = here.path().join("profile");
    let report = parsed(taskscope().args(["report", "--json"]).arg(&path));
    let efficiency = &report["call_paths"]["efficiency"];
    let totals = &report["call_paths"]["run_totals"];
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(number(&efficiency["capacity_ns"]), number(&totals["capacity_ns"]));
    let useful: u64 =
        ["serial", "implicit_task"].iter().map(|name| number(&totals[format!("state.{name}")])).sum();
    assert_eq!(number(&efficiency["useful_ns"]), useful);
    let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let live = files.find(|path| path.extension().is_some_and(|e| e == "jsonl")).expect("live totals");
    let text = std::fs::read_to_string(live).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    // Time spent until then is part of the time at the end, state by state.
    for (name, ns) in last["states"].as_object().unwrap() {
        assert!(number(ns) <= number(&totals[format!("state.{name}")]), "{name}");
    }
    assert!(number(&last["wall_ns"]) <= number(&totals["wall_ns"]));
    let printed = text_of(output(taskscope().arg("report").arg(&path)).stdout);
    assert!(printed.contains("Parallel efficiency"), "{printed}");
    assert!(!printed.contains("incomplete"), "{printed}");
}

fn text_of(bytes: Vec<u8>) -> String {
    text(&bytes)
}

/// A program's activity during a recording pause is not its serial code, in traces as in profiles.
#[test]
fn a_pause_is_unknown_in_traces_as_in_profiles() {
    let source = r#"
#include <omp.h>
#include <stdio.h>
static double spin(double seconds) {
    double begin = omp_get_wtime();
    while (omp_get_wtime() < begin + seconds);
    return omp_get_wtime() - begin;
}
static volatile long calls;
static double in_regions, paused, after_pause;
static void region(void) {
#pragma omp parallel
    {
        double spun = spin(0.02);
#pragma omp masked
        in_regions += spun;
    }
    calls++;
}
int main(void) {
    region();
    omp_control_tool(omp_control_tool_pause, 0, 0);
    double before = in_regions, begin = omp_get_wtime();
    spin(0.1);
    region();
    in_regions = before;
    paused = omp_get_wtime() - begin;
    omp_control_tool(omp_control_tool_start, 0, 0);
    region();
    // Sections open in the pause are not shown after it either.
#pragma omp parallel
    {
#pragma omp barrier
        if (omp_get_thread_num() == 0) {
            omp_control_tool(omp_control_tool_pause, 0, 0);
            omp_control_tool(omp_control_tool_start, 0, 0);
            after_pause = spin(0.1);
        }
        calls++;
    }
    region();
    printf("%.0f %.0f %.0f\n", in_regions * 1e9, paused * 1e9, after_pause * 1e9);
    return 0;
}
"#;
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "paused", source, &["-g"]);
    // The initial thread's nanoseconds in regions, in the pause, and in the region in which it was paused, by the program.
    let measured = |options: &[&str]| -> [u64; 3] {
        let printed = recorded(here.path(), &program, options);
        let numbers: Vec<u64> = printed.split_whitespace().map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    let [in_regions, paused, after_pause] = measured(&["-o", "trace"]);
    let trace = parsed(taskscope().args(["report", "--json"]).arg(here.path().join("trace")));
    let of_trace = |report: &Value, state: &str| -> u64 {
        let causes = report["causes"].as_array().unwrap().iter();
        causes.filter(|row| row["state"] == state).map(|row| row["ns"].as_u64().unwrap()).sum()
    };
    assert!(of_trace(&trace, "unknown") >= paused + after_pause, "{}", trace["causes"]);
    let serial = of_trace(&trace, "serial");
    let elsewhere = in_regions + paused + after_pause;
    assert!(
        serial <= trace["wall_ns"].as_u64().unwrap() - elsewhere,
        "{serial} {elsewhere} {}",
        trace["causes"]
    );

    let [in_regions, paused, after_pause] = measured(&["--mode", "profile", "-o", "profile"]);
    let profile = parsed(taskscope().args(["report", "--json"]).arg(here.path().join("profile")));
    let totals = &profile["call_paths"]["run_totals"];
    let of_profile = |state: &str| totals[format!("state.{state}")].as_u64().unwrap_or(0);
    assert!(of_profile("unknown") >= paused, "{paused} {totals}");
    let elsewhere = in_regions + paused + after_pause;
    assert!(of_profile("serial") <= totals["wall_ns"].as_u64().unwrap() - elsewhere, "{elsewhere} {totals}");
    // A part that begins in the pause knows of it.
    let part = here.path().join("part");
    let cut = output(
        taskscope().args(["slice", "--range", "60ms..", "-o"]).arg(&part).arg(here.path().join("trace")),
    );
    assert!(cut.status.success(), "{}", text(&cut.stderr));
    let sliced = parsed(taskscope().args(["report", "--json"]).arg(&part));
    let kinds = |report: &Value| -> Vec<(Value, Value)> {
        let threads = report["thread_states"].as_array().unwrap().iter();
        threads.map(|thread| (thread["tid"].clone(), thread["kind"].clone())).collect()
    };
    assert_eq!(kinds(&sliced), kinds(&trace));
    // A slice lacks times off the CPU: there its code has them.
    let off_cpu: u64 =
        ["out_of_cpu", "oversubscribed", "blocked"].iter().map(|state| of_trace(&trace, state)).sum();
    assert!(of_trace(&sliced, "serial") <= serial + off_cpu, "{sliced}");
}

/// Regions of a forked child are its own, independent of the parent's.
#[test]
fn a_forked_childs_regions_have_its_own_paths() {
    let source = r#"
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>
static volatile long calls;
static void spin(double seconds) {
    double until = omp_get_wtime() + seconds;
    while (omp_get_wtime() < until);
}
__attribute__((noinline)) void of_parent(void) {
#pragma omp parallel
    {
        spin(0.03);
        calls++;
    }
    calls++;
}
__attribute__((noinline)) void of_child(void) {
#pragma omp parallel
    {
        spin(0.03);
        calls++;
    }
    calls++;
}
int main(void) {
    of_parent();
    if (fork() == 0) {
        of_child();
        return 0;
    }
    of_parent();
    return wait(0) < 0;
}
"#;
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "forks", source, &["-g"]);
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "profile"]);
    let profile = parsed(taskscope().args(["report", "--json"]).arg(here.path().join("profile")));
    let mut bodies = BTreeSet::new();
    for path in profile["call_paths"]["paths"].as_array().unwrap() {
        let frames: Vec<&str> =
            path["frames"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap()).collect();
        if let Some(body) = frames.iter().position(|step| step.contains("[parallel")) {
            let function = frames[body].split(' ').next().unwrap();
            assert_eq!(frames[body - 1], function, "{frames:?}");
            bodies.insert(function.to_string());
        }
    }
    assert_eq!(bodies, BTreeSet::from(["of_child".to_string(), "of_parent".to_string()]));
}

/// For paths of any depth, the lines of a profile's report stay within the requested width.
#[test]
fn deep_paths_fit_the_width() {
    let source = r#"
#include "virtual_time.h"
static volatile double sink;
__attribute__((noinline)) void a_function_with_quite_a_long_name(int depth) {
    if (depth > 0)
        a_function_with_quite_a_long_name(depth - 1);
    else
        VIRTUAL_WORK(100000000);
    sink = depth;
}
int main(void) {
    a_function_with_quite_a_long_name(45);
#pragma omp parallel
    sink = 1;
    return 0;
}
"#;
    let here = tempfile::tempdir().unwrap();
    let flags = virtual_time_flags();
    let mut options = vec!["-g", "-O1", "-fno-optimize-sibling-calls"];
    options.extend(flags.iter().map(String::as_str));
    let program = Compiler::Clang.build(here.path(), "deep", source, &options);
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "profile"]);
    for width in ["40", "60", "100"] {
        let mut command = taskscope();
        command.args(["report", "--width", width, "--top", "60"]).arg(here.path().join("profile"));
        let shown = text(&output(&mut command).stdout);
        assert!(shown.lines().count() > 60, "{shown}");
        let longest = shown.lines().map(|line| line.chars().count()).max();
        assert!(longest <= width.parse().ok(), "{longest:?} of {width}\n{shown}");
    }
}

/// If no process left a profile, the known part of the reason is reported: not that there was no OpenMP.
#[test]
fn a_run_without_a_profile_reports_the_reason() {
    let here = tempfile::tempdir().unwrap();
    let build = |name: &str, body: &str, options: &[&str]| {
        let source = format!(
            "#include <signal.h>\n#include <sys/syscall.h>\n#include <unistd.h>\nint main(void) {{ {body} }}\n"
        );
        Compiler::Clang.build(here.path(), name, &source, options)
    };
    let programs = [
        (build("leaves", "syscall(SYS_exit_group, 3);", &[]), "not by `exec`"),
        (build("killed", "raise(SIGKILL); return 0;", &[]), "signal 9 ended this run after"),
        (build("static", "return 0;", &["-static", "-fno-openmp"]), "static is linked statically"),
    ];
    for (program, reason) in programs {
        let name = program.file_name().unwrap().to_str().unwrap().to_string() + ".profile";
        let mut command = record(here.path());
        let run = output(command.args(["--mode", "profile", "-o", &name, "--"]).arg(&program));
        let said = text(&run.stderr);
        assert!(said.contains("no profile was written") && said.contains(reason), "{said}");
        let report = output(taskscope().arg("report").arg(here.path().join(&name)));
        let said = text(&report.stderr);
        assert_eq!(report.status.code(), Some(2));
        assert!(said.contains("holds no profile") && said.contains(reason), "{said}");
        assert!(!said.contains("OpenMP"), "{said}");
        let advice = if name.starts_with("static") { "link it dynamically" } else { "record --sample" };
        assert!(said.contains(advice), "{said}");
    }
    // Tools that are disabled do not keep a program from being sampled.
    let program = build("disabled", "usleep(20000); return 0;", &[]);
    let mut command = record(here.path());
    command.env("OMP_TOOL", "disabled").args(["--mode", "profile", "-o", "disabled.profile", "--"]);
    assert!(output(command.arg(&program)).status.success());
    assert!(output(taskscope().arg("report").arg(here.path().join("disabled.profile"))).status.success());
}

/// If files may not grow, no profile is written, and the signal for that does not reach the program.
#[test]
fn a_limit_of_file_sizes_ends_the_profile_and_not_the_program() {
    let here = tempfile::tempdir().unwrap();
    let source = "#include <unistd.h>\nint main(void) { usleep(300000); return 3; }\n";
    let program = Compiler::Clang.build(here.path(), "small", source, &[]);
    let script = format!(
        "ulimit -f 1; exec '{}' record --mode profile --live 0.02 -o out -- '{}'",
        env!("CARGO_BIN_EXE_taskscope"),
        program.display()
    );
    let run = output(std::process::Command::new("sh").args(["-c", &script]).current_dir(here.path()));
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(text(&run.stderr).contains("`ulimit -f`"), "{run:?}");
}

/// The last profile that fitted, or that was written before a kill, is reported as incomplete, without an
/// unknown reason.
#[test]
fn a_profile_that_is_not_the_last_is_incomplete() {
    let here = tempfile::tempdir().unwrap();
    let source = "#include <unistd.h>\n#include <signal.h>\n#include <sys/resource.h>\n\
        int main(int count, char **arguments) {\n usleep(900000);\n if (count > 1) kill(getpid(), SIGKILL);\n\
        struct rlimit none = {0, 0}; setrlimit(RLIMIT_FSIZE, &none); return 0; }\n";
    let program = Compiler::Clang.build(here.path(), "small", source, &[]);
    for (name, arguments) in [("full", &[][..]), ("killed", &["kill"])] {
        let mut command = record(here.path());
        command.args(["--mode", "profile", "-o", name, "--"]).arg(&program).args(arguments);
        let run = output(&mut command);
        let incomplete = "incomplete: 1 of 1 process did not write a profile at the end";
        assert!(text(&run.stderr).contains(incomplete), "{run:?}");
        let report = output(taskscope().args(["report", "--width", "400"]).arg(here.path().join(name)));
        assert!(text(&report.stdout).contains(incomplete), "{report:?}");
    }
}

/// A thread that only calls the runtime, or does not know it, is not a worker, and has no idle time: in
/// traces as in profiles.
#[test]
fn workers_are_the_same_in_traces_and_profiles() {
    let source = r#"
#include <omp.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
static void spin(double seconds) {
    double until = omp_get_wtime() + seconds;
    while (omp_get_wtime() < until);
}
static const char *mode;
static int sum;
static void *further(void *unused) {
    if (!strcmp(mode, "sleeps")) usleep(50000);
    if (!strcmp(mode, "calls")) {
#pragma omp critical
        sum++;
    }
    if (!strcmp(mode, "forks") || !strcmp(mode, "alone")) {
#pragma omp parallel
        spin(0.01);
    }
    if (!strcmp(mode, "creates")) {
#pragma omp task
        spin(0.01);
    }
    return unused;
}
int main(int count, char **arguments) {
    pthread_t thread;
    mode = arguments[1];
#pragma omp critical
    sum++;
    if (!strcmp(mode, "nobody")) {
        spin(0.02);
        return 0;
    }
    pthread_create(&thread, NULL, further, NULL);
    if (strcmp(mode, "alone")) {
#pragma omp parallel
        spin(0.02);
    }
    spin(0.02);
    pthread_join(thread, NULL);
    return 0;
}
"#;
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "further", source, &["-pthread"]);
    let modes = [("sleeps", 2), ("calls", 2), ("forks", 4), ("creates", 3), ("alone", 2), ("nobody", 1)];
    for (mode, workers) in modes {
        let of = |kind: &str, options: &[&str]| {
            let path = here.path().join(format!("{mode}.{kind}"));
            let mut command = record(here.path());
            command.args(options).arg("-o").arg(&path).arg("--").arg(&program).arg(mode);
            assert!(output(&mut command).status.success());
            parsed(taskscope().args(["report", "--json"]).arg(&path))
        };
        let trace = of("trace", &["--sample", "200"]);
        assert_eq!(trace["workers"], workers, "{mode}");
        let profile = of("profile", &["--mode", "profile", "--sample", "200"]);
        let totals = &profile["call_paths"]["run_totals"];
        let [capacity, wall] = ["capacity_ns", "wall_ns"].map(|name| totals[name].as_u64().unwrap());
        assert_eq!(capacity, workers * wall, "{mode}: {totals}");
    }
}

/// Clang puts the body of an undeferred task into its creator; its work is the task's, not the runtime's.
#[test]
fn a_task_that_is_a_part_of_its_creator_works_in_its_body() {
    let source = r#"
#include "virtual_time.h"
static volatile double sink;
static void make(void) {
#pragma omp task if(0)
    VIRTUAL_WORK(10000000);
    sink += 1;
}
int main(void) {
#pragma omp parallel
#pragma omp single
    for (int i = 0; i < 10; i++) make();
    return 0;
}
"#;
    let here = tempfile::tempdir().unwrap();
    let flags = virtual_time_flags();
    let options: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = Compiler::Clang.build(here.path(), "undeferred", source, &options);
    for mode in ["trace", "profile"] {
        recorded(here.path(), &program, &["--mode", mode, "--sample", "500", "-o", mode]);
        let report = parsed(taskscope().args(["report", "--json"]).arg(here.path().join(mode)));
        let all = report["call_paths"]["totals"]["work_ns"].as_u64().unwrap();
        let paths = report["call_paths"]["paths"].as_array().unwrap().iter();
        let in_task: u64 = paths
            .filter(|path| {
                let last =
                    path["frames"].as_array().unwrap().last().and_then(Value::as_str).unwrap_or_default();
                last.contains("make [task at")
            })
            .map(|path| path["values"]["work_ns"].as_u64().unwrap_or(0))
            .sum();
        assert!(all.abs_diff(100_000_000) <= 4_000_000, "{mode}: {all}");
        assert!(in_task + 2_000_000 >= all, "{mode}: {in_task} of {all}");
    }
}
