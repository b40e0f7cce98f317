//! Programs that report tasks through ITT.

mod common;

use common::annotations::*;
use common::*;
use std::path::{Path, PathBuf};

#[test]
fn everything_reported_is_counted_by_name() {
    let here = tempfile::tempdir().unwrap();
    let program = annotated(here.path(), "itt.c");
    assert_eq!(recorded(here.path(), &program, &[]), "recorded");
    let report = report_of_annotations(here.path());
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
    assert_eq!(begins(&report), rows(expected));
    // The initial thread, and those that took up tasks.
    assert_eq!(report["workers"], 3);
    assert!(names_of_threads(here.path()).contains("worker of many pieces"));
    // One thread is in a task when the process ends, which is no mistake.
    assert_is_free_of_mistakes(here.path());
}

#[test]
fn a_collector_of_the_user_is_kept() {
    assert_tool_of_user_is_kept("INTEL_LIBITTNOTIFY64", "$INTEL_LIBITTNOTIFY64");
}

#[test]
fn a_profile_records_nothing_of_itt() {
    let here = tempfile::tempdir().unwrap();
    let program = annotated(here.path(), "itt.c");
    assert_eq!(recorded(here.path(), &program, &["--mode", "profile"]), "not recorded");
}

/// Builds a program that uses oneTBB; `None` without its headers.
fn build_onetbb(here: &Path, source: &str) -> Option<PathBuf> {
    if !Path::new("/usr/include/tbb/flow_graph.h").exists() {
        taskscope_prerequisite::missing("libtbb-dev is not installed");
        return None;
    }
    let program = here.join("program");
    let mut build = std::process::Command::new("g++");
    build.args(["-g", "-O1", "-DTBB_USE_PROFILING_TOOLS=1", "-o"]).arg(&program).arg(program_source(source));
    assert!(output(build.args(["-ltbb", "-pthread"])).status.success());
    Some(program)
}

/// The events of oneTBB know that a thread is blocked, those of threads by whom.
#[test]
fn a_lock_in_the_body_of_an_algorithm_is_a_finding_of_its_own() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build_onetbb(here.path(), "tbb_lock.cpp") else { return };
    recorded(here.path(), &program, &["--threads"]);
    let report = report(&here.path().join("trace"));
    let findings = report["findings"].as_array().unwrap();
    let ns = |finding: &serde_json::Value| finding["ns"].as_u64().unwrap();
    let lock = findings.iter().find(|finding| finding["cause"] == "lock").unwrap();
    let text = lock["text"].as_str().unwrap();
    assert!(text.contains("wait for mutex cache_mutex, held by evict"), "{text}");
    let blocked: u64 = findings.iter().filter(|finding| finding["cause"] == "blocked").map(ns).sum();
    assert!(blocked < ns(lock), "{findings:?}");
}

#[test]
fn nodes_of_a_flow_graph_are_named_and_threads_of_onetbb_are_workers() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build_onetbb(here.path(), "flow_graph.cpp") else { return };
    recorded(here.path(), &program, &[]);
    let report = report_of_annotations(here.path());
    let begins = begins(&report);
    let of = |kind: &str, name: &str| begins.get(&(kind.to_owned(), name.to_owned())).copied();
    assert_eq!((of("state", "squares"), of("state", "sum")), (Some(100), Some(100)));
    assert!(of("task", "parallel algorithm") > Some(0));
    assert_is_free_of_mistakes(here.path());
}
