//! Programs that never end: the trace reaches the process's end, and the report names the waits and their
//! needs.

mod common;

use common::*;
use serde_json::Value;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

fn program(directory: &Path) -> PathBuf {
    Compiler::Clang.build(directory, "hang", "hang.c", &[])
}

/// The hang of a report, if it has one: always its first finding.
fn hang(report: &Value) -> Option<&Value> {
    let findings = report["findings"].as_array().unwrap();
    let is_hung = |finding: &Value| finding["pattern"] == "hung";
    assert!(findings.iter().skip(1).all(|finding| !is_hung(finding)), "{findings:?}");
    findings.first().filter(|first| is_hung(first)).map(|first| &first["hang"])
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().unwrap()
}

#[test]
fn a_hang_has_its_waits_until_the_end_and_their_needs() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    // Mode; whether it is a deadlock, waits in the cycle, all waits, state of the first, kind of its need.
    let hangs: [(&str, bool, u64, usize, &str, &str); 9] = [
        ("circle", true, 3, 3, "lock_wait", "holder"),
        ("nested", true, 2, 2, "lock_wait", "holder"),
        ("own-lock", true, 1, 2, "lock_wait", "holder"),
        ("own-critical", true, 1, 2, "critical_wait", "holder"),
        ("barrier-in-lock", true, 2, 2, "", "holder"),
        ("exited", true, 0, 1, "lock_wait", "holder"),
        ("mismatch", true, 2, 2, "", "member"),
        ("member", false, 0, 2, "barrier", "member"),
        ("event", false, 0, 2, "", "task"),
    ];
    for (mode, deadlock, circle, waits, state, needs) in hangs {
        let lived = end_when_it_hangs(here.path(), &program, mode, waits);
        let report = report(&here.path().join(mode));
        let wall = report["wall_ns"].as_u64().unwrap();
        assert!(wall >= lived, "{mode}: {wall} {lived}");
        assert_eq!(report["uncertain"]["count"], 0, "{mode}");
        let hang = hang(&report).unwrap_or_else(|| panic!("{mode} did not hang"));
        assert_eq!(
            (&hang["deadlock"], &hang["circle"]),
            (&deadlock.into(), &circle.into()),
            "{mode}: {hang}"
        );
        let all = list(hang, "waits");
        assert_eq!(all.len(), waits, "{mode}: {hang}");
        assert!(state.is_empty() || all[0]["state"] == state, "{mode}: {hang}");
        let kinds: Vec<&Value> =
            all.iter().flat_map(|wait| list(wait, "needs")).map(|n| &n["kind"]).collect();
        assert!(kinds.iter().any(|kind| **kind == needs), "{mode}: {hang}");
        assert_eq!(hang["end_ns"], wall, "{mode}");
        // In a circle each wait needs the thread of the next one.
        for row in 0..circle as usize {
            let next = &all[(row + 1) % circle as usize]["tid"];
            assert!(list(&all[row], "needs").iter().any(|needed| needed["tid"] == *next), "{mode}: {hang}");
        }
        let waited = |wait: &Value| wall - wait["start_ns"].as_u64().unwrap();
        let total: u64 = all.iter().map(waited).sum();
        assert!(report["findings"][0]["ns"].as_u64().unwrap() <= total, "{mode}");
        let text = report["findings"][0]["text"].as_str().unwrap();
        assert!(text.starts_with("hung: "), "{text}");
        // The waits of a deadlock have no second cause.
        let again = [["lock", "holder"], ["wait", "nobody"], ["lock", "runtime"]];
        let second = list(&report, "findings").iter().filter(|finding| {
            let is_large = finding["ns"].as_u64().unwrap() > total / 2;
            is_large
                && finding["pattern"] != "hung"
                && again
                    .iter()
                    .any(|[cause, blamed]| finding["cause"] == *cause && finding["blamed"] == *blamed)
        });
        assert!(!deadlock || second.count() == 0, "{mode}: {}", report["findings"]);
        for wait in all.iter().take(3) {
            assert!(text.contains(&format!("{}", wait["tid"])), "{mode}: {text}");
        }
        let asleep = list(hang, "needed").iter().filter(|seen| !seen["asleep_since_ns"].is_null()).count();
        let gone = list(hang, "needed").iter().filter(|seen| seen["ended"] == true).count();
        let expected = (usize::from(mode == "member"), usize::from(mode == "exited"));
        assert_eq!((asleep, gone), expected, "{mode}: {hang}");
        let explained = text_of(taskscope().arg("explain").arg("F1").arg(here.path().join(mode)));
        assert!(explained.contains("waits     thread "), "{explained}");
    }
}

/// Two threads without a runtime each hold a mutex, and wait for the other's.
#[test]
fn mutexes_of_threads_in_a_circle_are_a_deadlock() {
    let here = tempfile::tempdir().unwrap();
    let source = program_source("thread_hang.c");
    let program = here.path().join("thread_hang");
    Compiler::Gcc.build_file(&source, &program, &["-g", "-O1", "-fno-inline", "-pthread"]);
    let line_of = |comment: &str| {
        let text = std::fs::read_to_string(&source).unwrap();
        text.lines().position(|line| line.contains(&format!("/* {comment} */"))).unwrap() + 1
    };
    let mut command = record(here.path());
    command.args(["--threads", "-o", "out", "--"]).arg(&program);
    end_when_hung(command, &here.path().join("out"), 2);
    let report = report(&here.path().join("out"));
    let hang = hang(&report).unwrap_or_else(|| panic!("no hang: {}", report["findings"]));
    assert_eq!((&hang["deadlock"], &hang["circle"]), (&true.into(), &2.into()), "{hang}");
    let waits = list(hang, "waits");
    assert_eq!(waits.len(), 2, "{hang}");
    for (row, wait) in waits.iter().enumerate() {
        let [held, awaited] = match wait["object"].as_str().unwrap() {
            "mutex journal" => ["holds journal", "waits for journal"],
            "mutex accounts" => ["holds accounts", "waits for accounts"],
            other => panic!("{other}: {hang}"),
        }
        .map(|comment| format!("thread_hang.c:{}]", line_of(comment)));
        let needed = &list(wait, "needs")[0];
        assert!(wait["where"].as_str().unwrap().ends_with(&awaited), "{awaited}: {hang}");
        assert!(needed["where"].as_str().unwrap().ends_with(&held), "{held}: {hang}");
        assert_eq!(needed["tid"], waits[1 - row]["tid"], "{hang}");
    }
    let finding = &report["findings"][0];
    assert_eq!(finding["confidence"], "high", "{finding}");
    assert!(finding["try"].as_str().unwrap().starts_with("Take these locks in one order"), "{finding}");
    let again = |finding: &&Value| finding["text"].as_str().unwrap().contains("wait for a mutex");
    assert_eq!(list(&report, "findings").iter().filter(again).count(), 0, "{}", report["findings"]);
}

/// Records a program of this mode, and ends it as soon as its trace has a hang; returns the length of the trace then.
fn end_when_it_hangs(here: &Path, program: &Path, mode: &str, waits: usize) -> u64 {
    let mut command = record(here);
    command.args(["-o", mode, "--"]).arg(program).args([mode, "600000"]);
    end_when_hung(command, &here.join(mode), waits)
}

/// Runs a recording, and ends it as soon as its trace has a hang of so many waits.
fn end_when_hung(mut command: std::process::Command, trace: &Path, waits: usize) -> u64 {
    let mut child = command.process_group(0).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lived = length_of_hang(trace, waits);
    // It is passed on to the program.
    nix::sys::signal::kill(process(&child), nix::sys::signal::Signal::SIGTERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!(status.signal(), Some(nix::libc::SIGTERM), "{}", trace.display());
    lived
}

fn process(child: &std::process::Child) -> nix::unistd::Pid {
    nix::unistd::Pid::from_raw(child.id() as i32)
}

/// Reads the trace of a program that lives until it has a hang of so many waits; nanoseconds of the trace.
fn length_of_hang(trace: &Path, waits: usize) -> u64 {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(600) {
        std::thread::sleep(Duration::from_millis(200));
        let Ok(true) = trace.try_exists() else { continue };
        if streams(trace).len() >= 2 {
            let Some(report) = report_so_far(trace) else { continue };
            if hang(&report).is_some_and(|hang| list(hang, "waits").len() >= waits) {
                return report["wall_ns"].as_u64().unwrap();
            }
        }
    }
    0
}

fn text_of(command: &mut std::process::Command) -> String {
    text(&output(command).stdout)
}

#[test]
fn work_that_is_ended_in_its_midst_is_no_hang() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    for mode in ["works", "computes"] {
        let mut command = record(here.path());
        command.args(["-o", mode, "--"]).arg(&program).args([mode, "900"]);
        assert_eq!(output(&mut command).status.signal(), Some(nix::libc::SIGALRM), "{mode}");
        let report = report(&here.path().join(mode));
        // The runtime's first event is before the timer starts.
        assert!(report["wall_ns"].as_u64().unwrap() >= 900_000_000, "{mode}");
        assert_eq!(hang(&report), None, "{mode}");
    }
}

/// Only the process itself knows its end then.
#[test]
fn a_hang_below_a_launcher_reaches_its_last_sign_of_life() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let mut command = record(here.path());
    command.args(["-o", "out", "--", "sh", "-c"]).arg(format!("{} circle 2000; exit 5", program.display()));
    assert_eq!(output(&mut command).status.code(), Some(5));
    let report = report(&here.path().join("out"));
    assert!(report["wall_ns"].as_u64().unwrap() >= 1_000_000_000);
    assert_eq!(hang(&report).unwrap()["circle"], 3);
}

/// A trace can be read while its program hangs, and after the program and `record` were killed at once.
#[test]
fn a_hang_is_in_the_trace_while_the_program_lives_and_when_all_are_killed() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let mut command = record(here.path());
    command.args(["-o", "out", "--"]).arg(&program).args(["member", "600000"]).process_group(0);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let trace = here.path().join("out");
    let lived = length_of_hang(&trace, 1);
    let group = nix::unistd::Pid::from_raw(-process(&child).as_raw());
    nix::sys::signal::kill(group, nix::sys::signal::Signal::SIGKILL).unwrap();
    child.wait().unwrap();
    assert!(lived > 0, "the hang is not seen while the program lives");
    let report = report(&trace);
    assert!(report["wall_ns"].as_u64().unwrap() >= lived);
    assert_eq!(list(hang(&report).unwrap(), "needed").len(), 1);
}
