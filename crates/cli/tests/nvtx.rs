//! Programs that report ranges through NVTX.

mod common;

use common::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The program with tables of NVTX of its own.
fn program(here: &Path) -> PathBuf {
    let program = here.join("program");
    Compiler::Gcc.build_file(&program_source("nvtx.c"), &program, &["-O1", "-pthread", "-ldl"]);
    program
}

#[test]
fn ranges_and_marks_are_counted_by_domain_message_and_category() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let mut command = record(here.path());
    let run = output(command.args(["-q", "-o", "trace", "--"]).arg(&program));
    assert_eq!((run.status.code(), text(&run.stdout).trim()), (Some(0), "recorded"));
    let mut command = taskscope();
    command.current_dir(here.path()).args(["report", "trace", "--section", "instrumentation", "--json"]);
    let report: Value = serde_json::from_slice(&output(&mut command).stdout).unwrap();
    let rows = report["instrumentation"]["rows"].as_array().unwrap();
    let words = |value: &Value| value.as_str().unwrap().to_owned();
    let found: BTreeMap<_, _> = rows
        .iter()
        .map(|row| ((words(&row["kind"]), words(&row["name"])), row["begins"].as_u64().unwrap()))
        .collect();
    let expected = [
        ("burst", "handed over", 1),
        ("burst", "overlapping", 2),
        ("point", "bytes [category 9] [mark]", 1),
        ("point", "done [mark]", 1),
        ("point", "solver: bytes [category 9] [mark]", 1),
        ("point", "without a message [mark]", 1),
        ("state", "kernel", 5),
        ("state", "solver: matrix [assembly]", 1),
        ("state", "step", 5),
        ("state", "Δt", 1),
    ];
    let expected = expected.map(|(kind, name, begins)| ((kind.to_owned(), name.to_owned()), begins));
    assert_eq!(found, BTreeMap::from(expected));
    let mut check = taskscope();
    assert!(output(check.current_dir(here.path()).args(["check", "trace"])).status.success());
    // Payloads are the values of marks.
    let mut dump = taskscope();
    let dump = text(&output(dump.current_dir(here.path()).args(["dump", "trace"])).stdout);
    assert!(dump.lines().any(|line| line.contains("42")), "{dump}");
}

#[test]
fn a_profile_records_nothing_of_nvtx() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let mut command = record(here.path());
    let run = output(command.args(["-q", "--mode", "profile", "-o", "profile", "--"]).arg(&program));
    assert_eq!((run.status.code(), text(&run.stdout).trim()), (Some(0), "not recorded"));
}

#[test]
fn a_tool_of_the_user_is_kept() {
    let here = tempfile::tempdir().unwrap();
    let mut command = record(here.path());
    command.env("NVTX_INJECTION64_PATH", "/opt/nvtx.so").args(["-o", "trace", "--", "sh", "-c"]);
    let run = output(command.arg("echo $NVTX_INJECTION64_PATH"));
    assert_eq!(text(&run.stdout).trim(), "/opt/nvtx.so");
    assert!(text(&run.stderr).contains("goes to /opt/nvtx.so, which NVTX_INJECTION64_PATH names"));
}
