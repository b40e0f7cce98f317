//! `taskscope diff` of traces, of profiles, and of one of each.

mod common;

use common::*;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Records the program with so many threads and these arguments.
fn recorded(here: &Path, program: &Path, (name, threads): (&str, &str), options: &[&str], words: &[&str]) {
    let mut command = record(here);
    command.env("OMP_NUM_THREADS", threads).args(options).args(["-o", name, "--"]).arg(program).args(words);
    let run = output(&mut command);
    assert!(run.status.success(), "{run:?}");
}

fn compared(here: &Path, before: &str, after: &str) -> (Value, String) {
    let run = |options: &[&str]| {
        let mut command = taskscope();
        let run = output(command.current_dir(here).arg("diff").args(options).args([before, after]));
        assert!(run.status.success(), "{}", text(&run.stderr));
        text(&run.stdout)
    };
    (serde_json::from_str(&run(&["--json"])).unwrap(), run(&[]))
}

fn facts(report: &Value) -> BTreeMap<&str, &Value> {
    report["run"].as_array().unwrap().iter().map(|row| (row["name"].as_str().unwrap(), row)).collect()
}

fn names(report: &Value, group: &str) -> Vec<String> {
    let rows = report["rows"].as_array().unwrap().iter().filter(|row| row["group"] == group);
    rows.map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn changes_between_the_runs_are_printed_first() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "program", "uneven.c", &["-g"]);
    recorded(here.path(), &program, ("two", "2"), &[], &[]);
    recorded(here.path(), &program, ("three", "3"), &[], &["2"]);
    recorded(here.path(), &program, ("profile", "2"), &["--mode", "profile"], &[]);
    recorded(here.path(), &program, ("other", "3"), &["--mode", "profile"], &[]);

    let (report, shown) = compared(here.path(), "two", "three");
    let keys: Vec<&String> = report.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["schema", "before", "after", "run", "verdict", "notes", "rows"]);
    let known = facts(&report);
    for (name, changed) in [
        ("command", true),
        ("workers", true),
        ("mode", false),
        ("runtime", false),
        ("host", false),
        ("cpus", false),
        ("part", false),
    ] {
        assert_eq!(known[name]["changed"], changed, "{name}: {report:#}");
    }
    assert_eq!((&known["workers"]["before"], &known["workers"]["after"]), (&"2".into(), &"3".into()));
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows[0]["name"], "wall_ns");
    let mut groups: Vec<&str> = rows.iter().map(|row| row["group"].as_str().unwrap()).collect();
    groups.dedup();
    assert_eq!(groups, ["run", "cause", "efficiency", "finding"]);
    // The causes are those of the report.
    let report_of = |name: &str| -> Value {
        let mut command = taskscope();
        let run = output(command.current_dir(here.path()).args(["report", "--json", name]));
        serde_json::from_slice(&run.stdout).unwrap()
    };
    let sum_of = |report: &Value, cause: &str| -> u64 {
        let causes = report["causes"].as_array().unwrap().iter().filter(|row| row["cause"] == cause);
        causes.map(|row| row["ns"].as_u64().unwrap()).sum()
    };
    let (two, three) = (report_of("two"), report_of("three"));
    for row in rows.iter().filter(|row| row["group"] == "cause") {
        let cause = row["name"].as_str().unwrap();
        let sums = (sum_of(&two, cause) as f64, sum_of(&three, cause) as f64);
        assert_eq!((row["before"].as_f64().unwrap(), row["after"].as_f64().unwrap()), sums, "{cause}");
    }
    let at = |words: &str| shown.find(words).unwrap_or_else(|| panic!("{words}: {shown}"));
    let order = [
        "Changed in the runs themselves",
        "workers",
        "The wall time",
        "The run",
        "Time by cause",
        "Efficiency",
    ];
    assert!(order.map(at).is_sorted(), "{shown}");
    let (same, shown) = compared(here.path(), "two", "two");
    assert!(facts(&same).values().all(|fact| fact["changed"] != true), "{same:#}");
    assert!(shown.contains("Unchanged in the runs themselves: command, mode"), "{shown}");

    // Two profiles: the same numbers.
    let (report, _) = compared(here.path(), "profile", "other");
    assert_eq!(facts(&report)["workers"]["changed"], true);
    assert_eq!(facts(&report)["command"]["changed"], false);
    assert_eq!(report["rows"][0]["name"], "wall_ns");
    assert!(!names(&report, "finding").is_empty() && report["notes"] == serde_json::json!([]));

    // One of each: as far as both know.
    let (report, shown) = compared(here.path(), "two", "profile");
    assert_eq!(facts(&report)["mode"]["changed"], true);
    assert_eq!(facts(&report)["workers"]["changed"], false);
    let causes = names(&report, "cause");
    assert!(causes.iter().any(|name| name == "work") && names(&report, "finding").is_empty());
    // Unless a side has no times off the CPU, both separate blocked time from work.
    let knows = |side: &str| {
        !["none", "unknown"].contains(&facts(&report)["off_cpu"][side].as_str().unwrap_or("none"))
    };
    let joins = knows("before") != knows("after");
    assert_eq!(shown.contains("blocked is compared as a part of work"), joins, "{shown}");
    let work_row = report["rows"].as_array().unwrap().iter().find(|row| row["name"] == "work").unwrap();
    let blocked = if joins { sum_of(&two, "blocked") } else { 0 };
    let work = (sum_of(&two, "work") + blocked) as f64;
    assert_eq!(work_row["before"].as_f64().unwrap(), work);
    let number = |name: &str| {
        let row = report["rows"].as_array().unwrap().iter().find(|row| row["name"] == name).unwrap();
        row["before"].as_f64().unwrap()
    };
    assert_eq!(number("lost_ns") + work, number("capacity_ns"));
}
