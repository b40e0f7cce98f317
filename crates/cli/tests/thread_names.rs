//! Names that programs give their threads.

mod common;

use common::call_paths::{program, rows};
use common::{Compiler, output, record, taskscope, text};
use serde_json::Value;
use std::collections::BTreeSet;

#[test]
fn thread_names_are_recorded_and_shown_without_effect_on_terminals() {
    let here = tempfile::tempdir().unwrap();
    let built = Compiler::Clang.build_file(&program("named_threads"), &here.path().join("program"), &[]);
    assert!(output(record(here.path()).args(["-o", "trace", "--"]).arg(built)).status.success());
    let trace = here.path().join("trace");
    let print = |arguments: &[&str]| {
        let printed = output(taskscope().args(arguments).arg(&trace));
        assert!(printed.status.success());
        text(&printed.stdout)
    };
    let names_in = |table: &[Value]| -> BTreeSet<String> {
        table.iter().map(|row| row["name"].as_str().unwrap().to_string()).collect()
    };
    let report: Value = serde_json::from_str(&print(&["report", "--json"])).unwrap();
    let names = names_in(rows(&report, "thread_states"));
    for name in ["steering", "outer-solver", "a\u{1b}[31m<b>"] {
        assert!(names.contains(name), "{name:?} is not among {names:?}");
    }
    let info: Value = serde_json::from_str(&print(&["info", "--json"])).unwrap();
    assert!(names_in(rows(&info, "threads")).is_superset(&names));
    for shown in [
        print(&["report", "--section", "threads", "--top", "9"]),
        print(&["info"]),
        print(&["report", "--timeline"]),
    ] {
        assert!(shown.contains("outer-solver") && shown.contains("steering"), "{shown}");
        assert!(shown.contains("a\u{fffd}[31m<b>") && !shown.contains('\u{1b}'), "{shown}");
    }
    let events = print(&["dump", "--json", "--where", "thread_name = 'outer-solver'"]);
    assert!(
        events.lines().count() > 1 && events.lines().all(|line| line.contains("outer-solver")),
        "{events}"
    );
}

#[test]
fn late_names_survive_a_kill() {
    let here = tempfile::tempdir().unwrap();
    let built = Compiler::Clang.build_file(&program("named_late"), &here.path().join("program"), &[]);
    let _ = output(record(here.path()).args(["-o", "trace", "--"]).arg(built));
    let printed = output(taskscope().args(["report", "--json"]).arg(here.path().join("trace")));
    let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let names: Vec<&Value> = rows(&report, "thread_states").iter().map(|row| &row["name"]).collect();
    assert!(names.iter().any(|name| *name == "late-name"), "{names:?}");
}
