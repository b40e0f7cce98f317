//! `report --section instrumentation`: times per thread and per task, in each behaviour, of a task that moves with a state
//! within a state, two bursts of one key and a sub-state.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use taskscope_testkit::instrumented::write_walker;

fn taskscope(arguments: &[&str], trace: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskscope"));
    command.args(arguments).arg(trace).env("NO_COLOR", "1").output().unwrap()
}

fn text(arguments: &[&str], trace: &Path) -> String {
    String::from_utf8(taskscope(arguments, trace).stdout).unwrap()
}

/// Nanoseconds, begins and lanes of rows.
fn rows(of: &Value) -> Vec<(String, u64, u64, u64)> {
    let number = |row: &Value, name: &str| row[name].as_u64().unwrap();
    let row = |row: &Value| {
        let name = format!("{} {}", row["kind"].as_str().unwrap(), row["name"].as_str().unwrap());
        (name, number(row, "time_ns"), number(row, "begins"), number(row, "lanes"))
    };
    of["rows"].as_array().unwrap().iter().map(row).collect()
}

fn times_of(trace: &Path, by: &str, behaviour: &str, more: &[&str]) -> Value {
    let arguments = [&["report", "--json", "--shown", by, "--behaviour", behaviour], more].concat();
    let report: Value = serde_json::from_str(&text(&arguments, trace)).unwrap();
    let times = report["instrumentation"].clone();
    assert_eq!((&times["per"], &times["behaviour"]), (&by.into(), &behaviour.into()));
    times
}

fn row(name: &str, ns: u64, begins: u64, lanes: u64) -> (String, u64, u64, u64) {
    (name.to_owned(), ns, begins, lanes)
}

#[test]
fn times_match_the_shown_states_in_every_behaviour() {
    let folder = tempfile::tempdir().unwrap();
    write_walker(folder.path());
    assert!(taskscope(&["check"], folder.path()).status.success());
    // A thread shows the state around the task's only while it is not on it; a task has its own time.
    let own = |nested: u64, begins: [u64; 4], lanes: u64| {
        vec![
            row("task walker", 11_000, 2, lanes),
            row("state RUNNING", nested, begins[0], lanes),
            row("state CACHE", 4000, begins[1], lanes),
            row("sub-state SYNCHRONIZATION", 500, 1, 1),
            row("burst size", 0, begins[2], lanes),
            row("burst size = twenty", 2000, begins[3], lanes),
        ]
    };
    // Unnamed values share a row, and so do their times: 10 is shown throughout, or only outside of 20.
    for (by, behaviour, nested, outer_ns, begins) in [
        // Without a stack, the outer state and the outer burst are shown only while there is no inner one.
        ("thread", "plain", 6000, 6000, [2, 2, 2, 2]),
        ("thread", "stacked-states", 10_000, 6000, [2, 2, 2, 2]),
        ("thread", "stacked-bursts", 6000, 8000, [2, 2, 2, 2]),
        ("thread", "stacked", 10_000, 8000, [2, 2, 2, 2]),
        // On the task nothing begins again at the switch, except after an inner one without a stack.
        ("task", "plain", 6000, 6000, [2, 1, 2, 1]),
        ("task", "stacked-states", 10_000, 6000, [1, 1, 2, 1]),
        ("task", "stacked-bursts", 6000, 8000, [2, 1, 1, 1]),
        ("task", "stacked", 10_000, 8000, [1, 1, 1, 1]),
    ] {
        let times = times_of(folder.path(), by, behaviour, &[]);
        let lanes = if by == "thread" { 2 } else { 1 };
        let mut expected = own(nested, begins, lanes);
        expected[4].1 = outer_ns;
        if by == "thread" {
            expected.insert(1, row("state RUNTIME", 1000 + 85_000, 2, 1));
        }
        assert_eq!(rows(&times), expected, "per {by}, {behaviour}");
        assert_eq!(times["lane_count"], lanes);
    }
}

#[test]
fn lanes_are_threads_or_tasks_with_their_own_time() {
    let folder = tempfile::tempdir().unwrap();
    write_walker(folder.path());
    let task_times = times_of(folder.path(), "task", "stacked", &[]);
    let lane = &task_times["lanes"][0];
    assert_eq!((&lane["task"], &lane["task_kind"], &lane["pid"]), (&1.into(), &"walker".into(), &100.into()));
    assert_eq!(lane["time_ns"], 4000 + 7000, "it stands still while it is on no thread");
    let thread_times = times_of(folder.path(), "thread", "stacked", &[]);
    assert_eq!(thread_times["lanes"][0]["tid"], 100);
    assert_eq!(thread_times["lanes"][0]["time_ns"], 100_000);
    let table = text(&["report", "--section", "instrumentation", "--shown", "task"], folder.path());
    assert!(table.contains("Instrumentation per task, stacked"), "{table}");
    let lines: Vec<&str> = table.lines().filter(|line| line.contains("RUNNING")).collect();
    assert!(lines.iter().all(|line| line.contains("10.0 µs") && line.contains("90.9 %")), "{table}");
}

#[test]
fn a_range_cuts_times_at_its_borders() {
    let folder = tempfile::tempdir().unwrap();
    write_walker(folder.path());
    let range = ["--range", "2us..8us"];
    let times = times_of(folder.path(), "task", "stacked", &range);
    let expected = vec![
        row("task walker", 3000 + 1000, 1, 1),
        row("state RUNNING", 4000, 0, 1),
        row("state CACHE", 3000, 1, 1),
        row("burst size", 4000, 1, 1),
        row("burst size = twenty", 2000, 1, 1),
    ];
    assert_eq!(rows(&times), expected);
    // Parts that follow each other add up to the whole.
    let ns = |times: &Value| rows(times).iter().map(|row| row.1).sum::<u64>();
    let whole = ns(&times_of(folder.path(), "thread", "plain", &[]));
    let parts = ["0us..5us", "5us..8us", "8us..1s"]
        .map(|part| ns(&times_of(folder.path(), "thread", "plain", &["--range", part])));
    assert_eq!(parts.iter().sum::<u64>(), whole, "{parts:?}");
}

#[test]
fn behaviours_without_a_view_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write_walker(folder.path());
    let wrong = taskscope(&["report", "--shown", "thread", "--behaviour", "raw"], folder.path());
    assert_eq!(wrong.status.code(), Some(2));
    let message = String::from_utf8(wrong.stderr).unwrap();
    assert!(message.contains("one of: plain, stacked-states, stacked-bursts, stacked\n"), "{message}");
    // A program without instrumentation.
    let other = tempfile::tempdir().unwrap();
    taskscope_testkit::trace_builder::StreamBuilder::new(1, 7, 7)
        .require(&["ovni"])
        .cpus(1)
        .execute(0, -1)
        .end(10)
        .write(other.path())
        .unwrap();
    let times = text(&["report", "--section", "instrumentation"], other.path());
    assert!(times.contains("none: the program is not instrumented"), "{times}");
    let report: Value = serde_json::from_str(&text(&["report", "--json"], other.path())).unwrap();
    assert_eq!(report["instrumentation"], Value::Null);
}
