//! Waits that are not over when the program ends: each thread's time is that wait, however the program ends.

mod common;

use common::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The waits by construction: kind, comment at the call's line, and how they end.
const WAITS: [(&str, &str, &str); 6] = [
    ("socket", "accepts", "outside"),
    ("descriptors", "polls", "outside"),
    ("condition", "waits", "open"),
    ("pipe", "reads", "open"),
    ("sleep", "sleeps", "open"),
    ("thread", "joins", "open"),
];

/// The program makes every thread wait as long.
const LEAST_NS: u64 = 60_000_000;

fn build(here: &Path) -> PathBuf {
    let program = here.join("program");
    Compiler::Gcc.build_file(&program_source("open_waits.c"), &program, &["-g", "-O1", "-pthread"]);
    program
}

fn line_of(comment: &str) -> u64 {
    let source = std::fs::read_to_string(program_source("open_waits.c")).unwrap();
    let marked = format!("/* {comment} */");
    source.lines().position(|line| line.contains(&marked)).unwrap() as u64 + 1
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a time"))
}

/// The waits of a recording; the parts of each sum to it.
fn waits(recording: &Path) -> Vec<Value> {
    let report = report(recording);
    let waits = report["thread_waits"].as_array().cloned().unwrap_or_default();
    for wait in &waits {
        let parts: u64 = wait["parts"].as_array().unwrap().iter().map(|part| ns(&part["ns"])).sum();
        assert_eq!(parts, ns(&wait["waited_ns"]), "{wait}");
    }
    waits
}

fn assert_whole(wait: &Value, end: &str) {
    assert_eq!(wait["waits"], 1, "{wait}");
    assert!(ns(&wait["waited_ns"]) >= LEAST_NS, "{wait}");
    let ends: BTreeSet<&str> =
        wait["parts"].as_array().unwrap().iter().map(|part| part["end"].as_str().unwrap()).collect();
    assert!(ends.contains(end) && ends.is_subset(&BTreeSet::from([end, "no-cpu"])), "{wait}");
}

#[test]
fn waits_that_are_open_at_the_end_have_their_places() {
    let here = tempfile::tempdir().unwrap();
    let program = build(here.path());
    for (way, mode) in [("exit", "trace"), ("exit", "profile"), ("return", "trace"), ("other", "trace")] {
        let recording = format!("{way}.{mode}");
        let mut command = record(here.path());
        command.args(["-q", "--threads", "--mode", mode, "-o", &recording, "--"]).arg(&program).arg(way);
        let run = output(&mut command);
        assert!(run.status.success(), "{way}: {:?} {}", run.status, text(&run.stderr));
        assert_eq!(text(&run.stdout), format!("{way}\n"));
        let waits = waits(&here.path().join(&recording));
        for (kind, comment, end) in WAITS {
            let line = line_of(comment);
            let found = waits.iter().find(|wait| wait["kind"] == kind && wait["line"] == line);
            assert_whole(found.unwrap_or_else(|| panic!("{way}: no {kind} at line {line}: {waits:?}")), end);
        }
        let line = line_of("pauses");
        let pauses = waits.iter().filter(|wait| wait["line"] == line).count();
        assert_eq!(pauses, usize::from(way == "other"), "{way}: {waits:?}");
    }
}

/// Kinds of the waits that are whole, with those that have no event before their end.
fn kinds(waits: &[Value]) -> BTreeSet<String> {
    let whole = waits.iter().filter(|wait| ns(&wait["waited_ns"]) >= LEAST_NS);
    whole.map(|wait| wait["kind"].as_str().unwrap().to_owned()).collect()
}

/// The process cannot record its end then, but has stored what its threads were in shortly before. Samples by wall time would wake
/// threads from their calls, which may be as one looks.
#[test]
fn waits_of_processes_that_leave_at_once_are_known() {
    let here = tempfile::tempdir().unwrap();
    let program = build(here.path());
    let mut command = record(here.path());
    let run = output(
        command.args(["-q", "--threads", "--clock", "cpu", "-o", "leave", "--"]).arg(&program).arg("leave"),
    );
    assert!(run.status.success(), "{:?} {}", run.status, text(&run.stderr));
    let waits = waits(&here.path().join("leave"));
    let kinds = kinds(&waits);
    assert!(WAITS.iter().all(|(kind, ..)| kinds.contains(*kind)), "{waits:?}");
}

#[test]
fn waits_of_killed_processes_are_known() {
    let here = tempfile::tempdir().unwrap();
    let (program, trace) = (build(here.path()), here.path().join("killed"));
    let mut command = record(here.path());
    command
        .args(["-q", "--threads", "--clock", "cpu", "-o", "killed", "--"])
        .arg(&program)
        .arg("killed")
        .process_group(0);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // Those of the living process are known, too, once it has stored them.
    let all: BTreeSet<String> = WAITS.iter().map(|(kind, ..)| (*kind).to_owned()).collect();
    let begin = Instant::now();
    let are_known = || {
        let report = trace.exists().then(|| report_so_far(&trace)).flatten();
        let waits = report.and_then(|report| report["thread_waits"].as_array().cloned()).unwrap_or_default();
        kinds(&waits).is_superset(&all)
    };
    while !are_known() && begin.elapsed() < Duration::from_secs(300) {
        std::thread::sleep(Duration::from_millis(100));
    }
    // It is passed on to the program.
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(nix::libc::SIGTERM));
    let waits = waits(&trace);
    assert!(kinds(&waits).is_superset(&all), "{waits:?}");
    // One of each in a call, and that of the first thread: no wait counts twice.
    let open = waits.iter().filter(|wait| ns(&wait["waited_ns"]) >= LEAST_NS);
    assert!(open.clone().all(|wait| wait["waits"] == 1), "{waits:?}");
}
