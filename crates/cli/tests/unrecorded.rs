//! Waits for threads in calls that are not recorded, waits behind wrappers, and waits for asynchronous operations.

mod common;

use common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use taskscope_event::models::samples::flag;
use taskscope_execution::samples::Sample;
use taskscope_session::Session;

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

fn line_of(comment: &str) -> u64 {
    let text = std::fs::read_to_string(source("unrecorded.c")).unwrap();
    let marked = format!("/* {comment} */");
    let line = text.lines().position(|line| line.contains(&marked)).unwrap_or_else(|| panic!("no {marked}"));
    line as u64 + 1
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

/// The report of a trace of the program; `None` if the kernel shows no context switches.
fn recorded(way: &str) -> Option<Value> {
    run(way, tempfile::tempdir().unwrap().path())
}

/// The same of a trace in a directory.
fn run(way: &str, here: &Path) -> Option<Value> {
    let (program, ring) = (here.join("program"), here.join("libring.so"));
    Compiler::Gcc.build_file(
        &source("unrecorded_ring.c"),
        &ring,
        &["-g", "-shared", "-fPIC", "-Wl,-soname,libring.so"],
    );
    let directory = format!("-L{}", here.display());
    let path = format!("-Wl,-rpath,{}", here.display());
    let flags = ["-g", "-O1", "-fno-inline", "-pthread", "-Wl,--no-as-needed", &directory, "-lring", &path];
    Compiler::Gcc.build_file(&source("unrecorded.c"), &program, &flags);
    let mut command = record(here);
    command.args(["-q", "--threads", "-o", "run", "--"]).arg(&program).arg(way);
    let run = output(&mut command);
    assert!(run.status.success(), "{way}: {:?} {}", run.status, text(&run.stderr));
    assert_eq!(text(&run.stdout), format!("{way}\n"));
    let report = report(&here.join("run"));
    let splits = report["thread_splits"].as_array().unwrap();
    if splits.is_empty() || splits.iter().any(|split| split["estimated"] == true) {
        taskscope_prerequisite::skip("the kernel shows no context switches here");
        return None;
    }
    Some(report)
}

fn waits(report: &Value) -> &[Value] {
    report["thread_waits"].as_array().map_or(&[], Vec::as_slice)
}

/// The waits of a kind in the call at a line.
fn at<'a>(report: &'a Value, kind: &str, comment: &str) -> &'a Value {
    let line = line_of(comment);
    let found = waits(report).iter().find(|wait| wait["kind"] == kind && wait["line"] == line);
    found.unwrap_or_else(|| panic!("no {kind} at line {line}: {:?}", waits(report)))
}

fn largest(wait: &Value) -> &Value {
    wait["parts"].as_array().unwrap().iter().max_by_key(|part| ns(&part["ns"])).unwrap()
}

#[test]
fn a_waker_asleep_in_a_call_of_its_own_is_not_known() {
    let Some(report) = recorded("waker") else { return };
    // The wrapper's caller waits, and the wrapper's caller wakes.
    let wait = at(&report, "condition", "waits for the log");
    let part = largest(wait);
    assert_eq!(
        (&part["end"], &part["by"]["line"]),
        (&"unrecorded".into(), &line_of("wakes").into()),
        "{wait}"
    );
    assert!(part["thread"].as_str().unwrap().starts_with("log_writer"), "{wait}");
    let findings = report["findings"].as_array().unwrap();
    let is_unrecorded = |finding: &&Value| finding["pattern"] == "unrecorded";
    let found = findings.iter().find(is_unrecorded).unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!((&found["cause"], &found["confidence"]), (&"blocked".into(), &"low".into()), "{found}");
    let sentence = found["text"].as_str().unwrap();
    assert!(
        sentence.contains("log_writer") && sentence.contains("in a call that is not recorded"),
        "{sentence}"
    );
}

#[test]
fn a_holder_asleep_in_a_call_of_its_own_is_the_holder() {
    let Some(report) = recorded("holder") else { return };
    let wait = at(&report, "mutex", "waits for the mutex");
    let part = largest(wait);
    assert_eq!((&part["end"], &part["by"]["role"]), (&"unrecorded".into(), &"holds".into()), "{wait}");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["cause"] == "lock"), "{findings:?}");
}

#[test]
fn a_wait_for_completions_is_a_wait_for_asynchronous_operations() {
    let Some(report) = recorded("ring") else { return };
    let wait = at(&report, "asynchronous I/O", "waits for the ring");
    assert_eq!((&wait["waits"], &largest(wait)["end"]), (&1.into(), &"outside".into()), "{wait}");
    let line = line_of("submits");
    assert!(waits(&report).iter().all(|wait| wait["line"] != line), "{:?}", waits(&report));
}

/// Signals of samples wake the thread, which sleeps again.
#[test]
fn samples_of_a_thread_asleep_in_a_call_of_its_own_are_marked() {
    let here = tempfile::tempdir().unwrap();
    if run("unseen", here.path()).is_none() {
        return;
    }
    let session = Session::open(here.path().join("run")).unwrap();
    let execution = &session.execution;
    let sleeps_unseen = |thread| {
        execution.thread_waits.waits_of(thread, 0, u64::MAX).is_empty()
            && !execution.blocked_of(thread).is_empty()
    };
    let is_marked =
        |sample: &Sample| sample.flags & flag::IN_SYSTEM_CALL != 0 && sleeps_unseen(sample.thread);
    assert!(execution.samples.rows.iter().any(is_marked), "no sample in a system call of its own");
}
