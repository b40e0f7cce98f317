//! The CPUs that a run may use, workers that share them, and teams smaller than requested.

mod common;

use common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first CPU that this process may use.
fn first_cpu() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim();
    list.split([',', '-']).next().unwrap().to_owned()
}

fn short_teams(directory: &Path) -> PathBuf {
    Compiler::Clang.build(directory, "short_teams", "short_teams.c", &[])
}

/// Report as text and as JSON of the trace in the directory.
fn reports(directory: &Path) -> (String, Value) {
    let trace = directory.join("trace");
    let printed = output(taskscope().args(["report", "--width", "140"]).arg(&trace));
    let json = output(taskscope().args(["report", "--json"]).arg(&trace));
    (text(&printed.stdout), serde_json::from_slice(&json.stdout).unwrap())
}

fn notices<'a>(report: &'a Value, name: &str) -> Vec<&'a str> {
    let all = report["notices"].as_array().unwrap().iter();
    all.filter(|notice| notice["name"] == name).map(|notice| notice["text"].as_str().unwrap()).collect()
}

#[test]
fn workers_beyond_the_mask_are_warned_about() {
    let here = tempfile::tempdir().unwrap();
    let (program, cpu) = (short_teams(here.path()), first_cpu());
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", &cpu, env!("CARGO_BIN_EXE_taskscope"), "record", "-o", "trace", "--"]).arg(program);
    let run = output(pinned.current_dir(here.path()).args(["4", "1", "3"]));
    assert!(run.status.success());
    let (printed, report) = reports(here.path());
    assert_eq!((&report["cpus"], &report["workers"]), (&1.into(), &4.into()));
    let process = &report["process_cpus"][0];
    assert_eq!((&process["allowed"], &process["allowed_count"]), (&cpu.as_str().into(), &1.into()));
    assert!(report["thread_states"].as_array().unwrap().iter().all(|row| row["cpus"] == cpu.as_str()));
    let warnings = notices(&report, "more-workers-than-cpus");
    assert!(matches!(&warnings[..], [one] if one.starts_with(&format!("4 workers share 1 CPU ({cpu})"))));
    let online = process["online"].as_u64().unwrap();
    let cpus = if online > 1 { format!("1 of {online} CPUs ({cpu})") } else { "1 CPU".to_owned() };
    assert!(printed.contains(&format!("4 threads on {cpus}  0 tasks")), "{printed}");
    // Once, in the header.
    assert_eq!(printed.matches("use 1 worker (OMP_NUM_THREADS)").count(), 1);
    let info = output(taskscope().arg("info").arg(here.path().join("trace")));
    assert!(text(&info.stdout).contains(&format!("CPUs       {cpus}\n")));
}

#[test]
fn a_worker_for_each_cpu_is_no_cause_for_a_warning() {
    let here = tempfile::tempdir().unwrap();
    let program = short_teams(here.path());
    let run = output(record(here.path()).args(["-o", "trace", "--"]).arg(program).args(["1", "1", "3"]));
    assert!(run.status.success());
    let (printed, report) = reports(here.path());
    assert!(report["cpus"].as_u64() >= Some(1));
    assert!(notices(&report, "more-workers-than-cpus").is_empty() && !printed.contains("more workers"));
    assert!(notices(&report, "smaller-team").is_empty());
}

/// The report's lines on smaller teams, for a run with these variables.
fn smaller_teams(arguments: [&str; 3], variables: &[(&str, &str)]) -> Vec<String> {
    let here = tempfile::tempdir().unwrap();
    let program = short_teams(here.path());
    let mut run = record(here.path());
    let run =
        output(run.envs(variables.iter().copied()).args(["-o", "trace", "--"]).arg(program).args(arguments));
    assert!(run.status.success());
    let (_, report) = reports(here.path());
    notices(&report, "smaller-team").into_iter().map(str::to_owned).collect()
}

#[test]
fn smaller_teams_are_reported_with_place_count_and_reason() {
    // Each of two threads forks five times.
    let nested = smaller_teams(["2", "3", "5"], &[("OMP_MAX_ACTIVE_LEVELS", "1")]);
    let [nested] = &nested[..] else { panic!("{nested:?}") };
    assert!(nested.contains("[parallel at short_teams.c:"), "{nested}");
    assert!(
        nested.contains("asked for 3 threads and had 1, 10 times: nested parallelism is off"),
        "{nested}"
    );

    let limited = smaller_teams(["6", "1", "4"], &[("OMP_THREAD_LIMIT", "2")]);
    let [limited] = &limited[..] else { panic!("{limited:?}") };
    assert!(limited.contains("asked for 6 threads and had 2, 4 times"), "{limited}");
    assert!(limited.ends_with("the program may have 2 threads (OMP_THREAD_LIMIT)"), "{limited}");

    // As many as requested, with nesting on; a region that is serial by its `if` clause requests one thread.
    assert!(smaller_teams(["2", "3", "2"], &[("OMP_MAX_ACTIVE_LEVELS", "2")]).is_empty());
}

#[test]
fn dynamic_adjustment_is_reported_as_the_reason() {
    let here = tempfile::tempdir().unwrap();
    let program = short_teams(here.path());
    let mut pinned = Command::new("taskset");
    pinned
        .args(["-c", &first_cpu(), env!("CARGO_BIN_EXE_taskscope"), "record", "-o", "trace", "--"])
        .arg(program);
    // By the number of CPUs, not by their load.
    pinned.envs([("OMP_DYNAMIC", "true"), ("KMP_DYNAMIC_MODE", "thread_limit")]).current_dir(here.path());
    assert!(output(pinned.args(["6", "1", "4"])).status.success());
    let (_, report) = reports(here.path());
    let adjusted = notices(&report, "smaller-team");
    assert!(
        matches!(&adjusted[..], [one] if one.ends_with("the runtime adjusts the sizes of teams (OMP_DYNAMIC is true)"))
    );
}
