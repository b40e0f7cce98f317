//! Programs that report tasks through ITT.

mod common;

use common::annotations::*;
use common::*;
use std::path::Path;

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

#[test]
fn nodes_of_a_flow_graph_are_named_and_threads_of_onetbb_are_workers() {
    if !Path::new("/usr/include/tbb/flow_graph.h").exists() {
        taskscope_prerequisite::missing("libtbb-dev is not installed");
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
    recorded(here.path(), &program, &[]);
    let report = report_of_annotations(here.path());
    let begins = begins(&report);
    let of = |kind: &str, name: &str| begins.get(&(kind.to_owned(), name.to_owned())).copied();
    assert_eq!((of("state", "squares"), of("state", "sum")), (Some(100), Some(100)));
    assert!(of("task", "parallel algorithm") > Some(0));
    assert_is_free_of_mistakes(here.path());
}
