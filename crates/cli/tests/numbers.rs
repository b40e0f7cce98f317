//! One set of numbers: repeated numbers of a report are equal, in all tables and in JSON, text and HTML
//! (docs/ledger.md).

mod common;

use common::{Compiler, output, record, taskscope};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

fn parsed(command: &mut Command) -> Value {
    serde_json::from_slice(&output(command).stdout).unwrap()
}

/// Sums by name.
type Sums = BTreeMap<String, u64>;

fn rows<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

fn sums_by(rows: &[Value], key: &str) -> Sums {
    let mut sums = Sums::new();
    for row in rows {
        *sums.entry(row[key].as_str().unwrap_or_default().to_string()).or_default() += number(row, "ns");
    }
    sums
}

/// Fails unless tables of a report are sums of one ledger.
fn assert_one_ledger(report: &Value) {
    let states = sums_by(rows(report, "causes"), "state");
    let of = |names: &[&str]| names.iter().filter_map(|name| states.get(*name)).sum::<u64>();
    assert_eq!(states.values().sum::<u64>(), number(report, "capacity_ns"), "causes");
    let mut by_thread = Sums::new();
    for row in rows(report, "thread_states").iter().filter(|row| row["worker"] == true) {
        for (state, ns) in row["states"].as_object().unwrap() {
            *by_thread.entry(state.clone()).or_default() += ns.as_u64().unwrap();
        }
    }
    by_thread.retain(|_, ns| *ns > 0);
    assert_eq!(by_thread, states, "threads and causes");

    let parts = report["efficiency"].as_object().unwrap();
    let parts = parts.iter().filter(|(name, _)| name.ends_with("_ns"));
    assert_eq!(
        parts.map(|(_, ns)| ns.as_u64().unwrap()).sum::<u64>(),
        number(report, "capacity_ns"),
        "efficiency"
    );
    for (state, ns) in sums_by(rows(report, "blame"), "state") {
        assert_eq!(Some(&ns), states.get(&state), "blame of {state}");
    }
    let shown = report["states"].as_object().unwrap();
    let shown: Sums = shown.iter().map(|(state, ns)| (state.clone(), ns.as_u64().unwrap())).collect();
    assert_eq!(shown, states, "states");
    // A hang has the waits of other findings.
    let losses = rows(report, "findings").iter().filter(|finding| finding["pattern"] != "hung");
    let lost: u64 = losses.clone().map(|finding| number(finding, "ns")).sum();
    assert_eq!(lost + number(&report["efficiency"], "useful_ns"), number(report, "capacity_ns"), "findings");
    for finding in losses {
        let victims = finding["victims"].as_object().unwrap().values();
        assert_eq!(victims.map(|ns| ns.as_u64().unwrap()).sum::<u64>(), number(finding, "ns"), "{finding}");
    }
    for waits in rows(report, "thread_waits") {
        let parts = rows(waits, "parts").iter().map(|part| number(part, "ns"));
        assert_eq!(parts.sum::<u64>(), number(waits, "waited_ns"), "{waits}");
    }
    let locks = rows(report, "locks");
    assert_eq!(
        locks.iter().map(|lock| number(lock, "waited_ns")).sum::<u64>(),
        of(&["critical_wait", "lock_wait", "ordered_wait", "atomic_wait"]),
        "locks"
    );
    for lock in locks {
        let holders = rows(lock, "holders").iter().map(|holder| number(holder, "ns")).sum::<u64>();
        assert_eq!(holders + number(lock, "unheld_ns"), number(lock, "waited_ns"), "{lock}");
    }
    if number(report, "other_threads") == 0 {
        let bodies = rows(report, "task_types").iter().map(|row| number(row, "body_ns")).sum::<u64>();
        assert_eq!(bodies, of(&["task"]), "task types");
    }
    if report["call_paths"].is_object() {
        assert_paths_divide_the_ledger(report, &states);
    }
}

fn assert_paths_divide_the_ledger(report: &Value, states: &Sums) {
    let of = |names: &[&str]| names.iter().filter_map(|name| states.get(*name)).sum::<u64>();
    let paths = &report["call_paths"];
    let total = |name: &str| number(&paths["totals"], name);
    assert_eq!(paths["is_time_sampled"], false);
    assert_eq!(total("time_ns"), number(report, "capacity_ns") + number(paths, "other_threads_ns"));
    for (metric, names) in [
        ("taken_barrier_ns", &["barrier"][..]),
        ("taken_join_barrier_ns", &["join_barrier"]),
        ("taken_taskwait_ns", &["taskwait", "taskyield"]),
        ("taken_taskgroup_ns", &["taskgroup"]),
        ("taken_critical_wait_ns", &["critical_wait"]),
        ("taken_idle_ns", &["idle", "paused", "not_started", "ended"]),
    ] {
        assert_eq!(total(metric), of(names), "{metric}");
    }
    if number(paths, "other_threads_ns") == 0 {
        assert_eq!(total("out_of_cpu_ns"), of(&["out_of_cpu", "oversubscribed"]));
        assert_eq!(total("blocked_ns"), of(&["blocked"]));
        let bodies = rows(report, "task_types").iter().map(|row| number(row, "body_ns"));
        assert_eq!(total("task_time_ns"), bodies.sum::<u64>());
    }
    for view in ["top_down", "bottom_up"] {
        let outermost = || rows(paths, view).iter().filter(|row| row["depth"] == 0);
        for column in ["time_ns", "blocked_ns", "out_of_cpu_ns", "waiting_ns", "blame_ns", "idleness_ns"] {
            let sum = outermost().map(|row| number(row, column)).sum::<u64>();
            assert_eq!(sum, total(column), "{view}: {column}");
        }
    }
    for view in ["functions", "lines"] {
        let own = rows(paths, view).iter().map(|row| number(row, "own"));
        assert_eq!(own.sum::<u64>(), total("time_ns"), "{view}");
    }
    // A state has the same time wherever it is a row.
    let states_of = |view: &str, column: &str| -> Sums {
        let rows = rows(paths, view).iter().filter(|row| row["state"].is_string());
        let mut sums = Sums::new();
        for row in rows.filter(|row| view != "bottom_up" || row["depth"] == 0) {
            *sums.entry(row["state"].as_str().unwrap().to_string()).or_default() += number(row, column);
        }
        sums.retain(|_, ns| *ns > 0);
        sums
    };
    assert_eq!(states_of("functions", "own"), states_of("bottom_up", "time_ns"));
}

/// Fails if a repeated number of the page, for one row under one title, has two values. Returns the count of
/// repeated numbers.
fn assert_equal_on_the_page(html: &Path) -> Option<usize> {
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/browser");
    if !taskscope_prerequisite::has_browser(&scripts) {
        return None;
    }
    let printed = output(Command::new("node").arg(scripts.join("numbers.js")).arg(html));
    let numbers: Vec<Value> = serde_json::from_slice(&printed.stdout).unwrap();
    assert!(numbers.len() > 40, "{}", numbers.len());
    let mut twice = assert_waits_are_one(&numbers);
    let mut known: BTreeMap<(String, String), Vec<(String, u64)>> = BTreeMap::new();
    for entry in &numbers {
        let text = |key: &str| entry[key].as_str().unwrap().to_string();
        let subject = (entry["row"].to_string(), text("title"));
        known.entry(subject).or_default().push((text("table"), number(entry, "value")));
    }
    // Within one table rows of one name are several things (loops of one line, `the rest`).
    for (subject, values) in known {
        let mut by_table: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
        values.iter().for_each(|(table, value)| by_table.entry(table).or_default().push(*value));
        let mut tables = by_table.values().filter(|values| values.len() == 1);
        if let Some(first) = tables.next() {
            for other in tables {
                println!("twice: {subject:?} {values:?}");
                twice += 1;
                assert_eq!(first, other, "{subject:?} {values:?}");
            }
        }
    }
    Some(twice)
}

/// Fails unless the time of a waiting state is the same by place, and as charged; returns the number of
/// states.
fn assert_waits_are_one(numbers: &[Value]) -> usize {
    let of = |table: &'static str| {
        numbers
            .iter()
            .filter(move |entry| entry["table"].as_str().is_some_and(|name| name.starts_with(table)))
    };
    let states = of("Waits by cause");
    let mut count = 0;
    for (state, ns) in states.map(|entry| (&entry["row"][0], number(entry, "value"))) {
        let by_place = of("Where the time of the workers went").filter(|entry| entry["row"][0] == *state);
        let charged: Vec<&Value> =
            of("Who made whom wait").filter(|entry| entry["title"] == *state).collect();
        let sum = |entries: &mut dyn Iterator<Item = &Value>| -> u64 {
            entries.map(|entry| number(entry, "value")).sum()
        };
        assert_eq!(sum(&mut by_place.into_iter()), ns, "{state} by place");
        if !charged.is_empty() {
            assert_eq!(sum(&mut charged.into_iter()), ns, "{state} charged");
        }
        count += 1;
    }
    count
}

/// The numbers of the text that have a name on their line: efficiency, times of states.
fn assert_text_has(text: &str, name: &str, ns: u64, capacity: u64) {
    let shown = match capacity {
        0..1_000_000 => ns as f64 / 1e3,
        1_000_000..1_000_000_000 => ns as f64 / 1e6,
        _ => ns as f64 / 1e9,
    };
    let line = text.lines().find(|line| line.contains(name)).unwrap_or_else(|| panic!("no {name}: {text}"));
    let found = line.split_whitespace().filter_map(|word| word.replace(' ', "").parse::<f64>().ok());
    // As exact as its last digit.
    let near = |value: f64| (value - shown).abs() <= 0.0005_f64.max(shown * 0.006);
    assert!(found.into_iter().any(near) || line.contains("<0.00"), "{name}: {shown} in {line}");
}

#[test]
fn numbers_of_a_run_with_samples_are_equal_wherever_they_occur() {
    let here = tempfile::tempdir().unwrap();
    for (name, arguments) in [("cholesky", &["512", "32"][..]), ("imbalance", &["1000", "5"])] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/openmp/{name}.c"));
        let built = Compiler::Clang.build_file(&source, &here.path().join(name), &[]);
        let trace = here.path().join(format!("{name}.trace"));
        let mut command = record(here.path());
        command.args(["--sample", "1000", "-o"]).arg(&trace).arg("--").arg(&built).args(arguments);
        assert!(output(&mut command).status.success());
        let report = parsed(taskscope().args(["report", "--json"]).arg(&trace));
        assert!(number(&report["call_paths"]["totals"], "time_ns") > 0, "no samples");
        assert_one_ledger(&report);

        let text = output(taskscope().args(["report", "--section", "all"]).arg(&trace));
        let text = common::text(&text.stdout);
        let efficiency = &report["efficiency"];
        for (label, key) in [
            ("Load balance", "load_balance_loss_ns"),
            ("Serialization", "serialization_loss_ns"),
            ("Runtime overhead", "runtime_overhead_loss_ns"),
        ] {
            let ns = number(efficiency, key);
            if ns > 0 {
                assert_text_has(&text, label, ns, number(&report, "capacity_ns"));
            }
        }

        assert_page_is_one(&trace, here.path());
        assert_parts_are_one(&trace, here.path(), number(&report, "wall_ns"));
    }
}

/// Fails if a range of a trace, or a slice, has two values for one number.
fn assert_parts_are_one(trace: &Path, directory: &Path, wall_ns: u64) {
    let border = wall_ns / 3;
    for (name, (begin, end)) in [("first", (0, border)), ("second", (border, wall_ns + 1))] {
        let range = format!("{begin}ns..{end}ns");
        assert_one_ledger(&parsed(taskscope().args(["report", "--json", "--range", &range]).arg(trace)));
        let slice = directory.join(format!("{name}.trace"));
        let sliced = output(taskscope().args(["slice", "--range", &range, "-o"]).arg(&slice).arg(trace));
        assert!(sliced.status.success(), "{}", common::text(&sliced.stderr));
        assert_one_ledger(&parsed(taskscope().args(["report", "--json"]).arg(&slice)));
        assert_page_is_one(&slice, directory);
        std::fs::remove_dir_all(&slice).unwrap();
    }
}

/// Fails unless text names the kind of its times by path as pages do.
fn assert_times_are_of(text: &str, kind: &str) {
    let heads: Vec<&str> = text.lines().filter(|line| line.contains(" share ")).collect();
    assert!(!heads.is_empty() && heads.iter().all(|line| line.ends_with(kind)), "{kind}: {text}");
}

/// Fails if a repeated number on a page of a trace has two values, or if no number is repeated.
fn assert_page_is_one(trace: &Path, directory: &Path) {
    let html = directory.join("page.html");
    assert!(output(taskscope().args(["report", "--html"]).arg(&html).arg(trace)).status.success());
    if let Some(twice) = assert_equal_on_the_page(&html) {
        assert!(twice > 0, "no number occurs twice");
    }
}

/// Ranks with two workers each and samples; CPUs as workers, with threads and tasks that move.
#[test]
fn numbers_on_pages_of_other_runtimes_are_equal_wherever_they_occur() {
    let here = tempfile::tempdir().unwrap();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ranks = tests.join("tests/traces/pic");
    let report = parsed(taskscope().args(["report", "--json"]).arg(&ranks));
    assert_eq!((rows(&report, "ranks").len(), number(&report, "workers")), (2, 4));
    assert_one_ledger(&report);
    // The verdict's one share is of the time of efficiencies; shares of findings are of the whole capacity.
    let verdict = report["verdict"].as_str().unwrap();
    let shares: Vec<f64> =
        verdict.split(['(', ')']).filter_map(|words| words.strip_suffix(" %")?.parse().ok()).collect();
    assert!(matches!(shares[..], [lost] if lost < 100.0), "{verdict}");
    assert_page_is_one(&ranks, here.path());
    let shown = output(taskscope().args(["report", "--section", "call-paths", "--width", "140"]).arg(&ranks));
    assert_times_are_of(&common::text(&shown.stdout), "(all threads)");
    let corpus = tests.join("../../../shared/corpus/runtimes");
    for name in ["nanos6-heat-l2", "nosv-heat-marks-l2", "nodes-multi3-l3"] {
        let trace = corpus.join(name).join("trace");
        if trace.is_dir() {
            assert_page_is_one(&trace, here.path());
        } else {
            taskscope_prerequisite::skip(format_args!("no {}", trace.display()));
        }
    }
}

#[test]
fn waiting_of_a_profile_is_that_of_its_states() {
    let here = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/openmp/imbalance.c");
    let built = Compiler::Clang.build_file(&source, &here.path().join("imbalance"), &[]);
    let mut command = record(here.path());
    command.args(["--mode", "profile", "-o", "profile", "--"]).arg(&built).args(["1000", "5"]);
    assert!(output(&mut command).status.success());
    let report = parsed(taskscope().current_dir(here.path()).args(["report", "--json", "profile"]));
    let paths = &report["call_paths"];
    let sums = &paths["run_totals"];
    let states = sums.as_object().unwrap().iter().filter(|(name, _)| name.starts_with("state."));
    assert_eq!(states.map(|(_, ns)| ns.as_u64().unwrap()).sum::<u64>(), number(sums, "capacity_ns"));
    for (metric, states) in [
        ("taken_join_barrier_ns", &["join_barrier"][..]),
        ("taken_idle_ns", &["idle", "not_started", "ended"]),
    ] {
        let of =
            |state: &&str| number(sums, &format!("state.{state}")) + number(sums, &format!("no_cpu.{state}"));
        assert_eq!(number(&paths["totals"], metric), states.iter().map(of).sum::<u64>(), "{metric}");
    }
    assert_eq!(paths["is_time_sampled"], true);
    let shown =
        output(taskscope().current_dir(here.path()).args(["report", "--section", "call-paths", "profile"]));
    assert_times_are_of(&common::text(&shown.stdout), "(samples)");
}

#[test]
fn numbers_of_stored_traces_are_equal_wherever_they_occur() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let in_directory = |name: &str, trace: &str| -> Vec<PathBuf> {
        let entries = std::fs::read_dir(corpus.join(name)).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path().join(trace))).collect()
    };
    let mut traces = in_directory("runtimes", "trace");
    traces.extend(
        ["openmp-nested-task", "openmp-mix-task-ws"].map(|name| corpus.join("ovni").join(name).join("ovni")),
    );
    // One has streams without an event.
    traces.retain(|trace| trace.is_dir() && !trace.ends_with("nosv-aborted-marks/trace"));
    if traces.is_empty() {
        taskscope_prerequisite::skip(format_args!("no corpus at {}", corpus.display()));
    }
    for trace in traces {
        let report = parsed(taskscope().args(["report", "--json"]).arg(&trace));
        assert_one_ledger(&report);
    }
}
