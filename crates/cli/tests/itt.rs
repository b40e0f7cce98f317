//! Programs that report tasks through ITT.

mod common;

use common::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const COLLECTOR: &str = "INTEL_LIBITTNOTIFY64";

/// The program with a static part of its own.
fn program(here: &Path) -> PathBuf {
    let program = here.join("program");
    Compiler::Gcc.build_file(&program_source("itt.c"), &program, &["-O1", "-pthread", "-ldl"]);
    program
}

fn report(here: &Path, trace: &str) -> Value {
    let mut command = taskscope();
    command.current_dir(here).args(["report", trace, "--section", "summary,instrumentation", "--json"]);
    serde_json::from_slice(&output(&mut command).stdout).unwrap()
}

/// Begins of each kind and name.
fn begins(report: &Value) -> BTreeMap<(String, String), u64> {
    let rows = report["instrumentation"]["rows"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| ((text(&row["kind"]), text(&row["name"])), row["begins"].as_u64().unwrap()))
        .collect()
}

#[test]
fn everything_reported_is_counted_by_name() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let mut command = record(here.path());
    let run = output(command.args(["-q", "-o", "trace", "--"]).arg(&program));
    assert_eq!((run.status.code(), text(&run.stdout).trim()), (Some(0), "recorded"));
    let report = report(here.path(), "trace");
    let expected = [
        ("burst", "frame example", 3),
        ("burst", "phase", 1),
        ("burst", "transfer", 2),
        ("point", "answer", 1),
        ("point", "example: messages", 3),
        ("point", "load", 1),
        ("point", "network: bytes", 2),
        ("state", "filter", 1),
        ("state", "inner", 5),
        ("state", "outer", 5),
        ("state", "piece", 3),
        ("state", "source_node", 1),
        ("state", "wait for cache lock", 1),
        ("task", "parallel algorithm", 2),
    ];
    let expected = expected.map(|(kind, name, begins)| ((kind.to_owned(), name.to_owned()), begins));
    assert_eq!(begins(&report), BTreeMap::from(expected));
    // The initial thread, and those that took up tasks.
    assert_eq!(report["workers"], 3);
    // One thread is in a task when the process ends, which is no mistake.
    let mut check = taskscope();
    assert!(output(check.current_dir(here.path()).args(["check", "trace"])).status.success());
}

#[test]
fn a_collector_of_the_user_is_kept() {
    let here = tempfile::tempdir().unwrap();
    let mut command = record(here.path());
    command.env(COLLECTOR, "/opt/collector.so").args(["-o", "trace", "--", "sh", "-c"]);
    let run = output(command.arg("echo $INTEL_LIBITTNOTIFY64"));
    assert_eq!(text(&run.stdout).trim(), "/opt/collector.so");
    assert!(text(&run.stderr).contains("goes to /opt/collector.so"));
}

#[test]
fn a_profile_records_nothing_of_itt() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let mut command = record(here.path());
    command.args(["-q", "--mode", "profile", "-o", "profile", "--"]);
    let run = output(command.arg(&program));
    assert_eq!((run.status.code(), text(&run.stdout).trim()), (Some(0), "not recorded"));
}

#[test]
fn nodes_of_a_flow_graph_are_named_and_threads_of_onetbb_are_workers() {
    if !Path::new("/usr/include/tbb/flow_graph.h").exists() {
        println!("skipped: libtbb-dev is not installed");
        return;
    }
    let here = tempfile::tempdir().unwrap();
    let program = here.path().join("graph");
    let mut build = std::process::Command::new("g++");
    build
        .args(["-O1", "-DTBB_USE_PROFILING_TOOLS=1", "-o"])
        .arg(&program)
        .arg(program_source("flow_graph.cpp"));
    assert!(output(build.args(["-ltbb", "-pthread"])).status.success());
    let mut command = record(here.path());
    let run = output(command.args(["-q", "-o", "trace", "--"]).arg(&program));
    assert!(run.status.success());
    let report = report(here.path(), "trace");
    let begins = begins(&report);
    let of = |kind: &str, name: &str| begins.get(&(kind.to_owned(), name.to_owned())).copied();
    assert_eq!((of("state", "squares"), of("state", "sum")), (Some(100), Some(100)));
    assert!(of("task", "parallel algorithm") > Some(0));
    let mut check = taskscope();
    assert!(output(check.current_dir(here.path()).args(["check", "trace"])).status.success());
}
