//! The path from a foreign file over a trace directory to a report, by the command itself.

mod common;

use common::check_document;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn taskscope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taskscope")).args(arguments).output().unwrap()
}

fn json_of(arguments: &[&str]) -> Value {
    let output = taskscope(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn own_case() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../analysis/tests/cases/chain-of-idle-workers.json")
}

#[test]
fn an_imported_case_is_reported_in_three_modes() {
    let directory = tempfile::tempdir().unwrap();
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/slo/cases");
    let mut files = vec![own_case()];
    files.extend(std::fs::read_dir(beside).into_iter().flatten().map(|entry| entry.unwrap().path()));
    files.retain(|path| !path.ends_with("manifest.json"));
    for (number, file) in files.iter().enumerate() {
        let trace = directory.path().join(number.to_string());
        let trace = trace.to_str().unwrap();
        let imported = taskscope(&["import", file.to_str().unwrap(), "-o", trace]);
        assert!(imported.status.success(), "{}", String::from_utf8_lossy(&imported.stderr));
        let case: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let blame = json_of(&["report", "--section", "blame", "--json", trace]);
        for row in blame["blame"].as_array().unwrap() {
            assert!(row["cause"].is_string() && row["ns"].is_u64(), "{row}");
            for person in ["who", "symptom"] {
                let keys = ["file", "function", "line", "object", "task_type"];
                assert!(keys.iter().all(|key| row[person].get(key).is_some()), "{row}");
            }
        }
        for mode in ["direct", "chained", "root"] {
            let report =
                json_of(&["report", "--section", "idle", "--mode", mode, "--intervals", "--json", trace]);
            check_document(&report);
            let (ours, expected) = (&report["idle"], &case["expected"][mode]);
            let near = |ours: &Value, theirs: &Value| {
                let (ours, theirs) = (ours.as_f64().unwrap(), theirs.as_f64().unwrap());
                assert!((ours - theirs).abs() <= 1e-3, "{} {mode}: {ours} {theirs}", file.display());
            };
            for letter in ["starvation", "latency", "overhead", "tail"] {
                near(&ours[format!("{letter}_ns")], &expected["totals"][letter]);
            }
            let intervals = expected["intervals"].as_array().unwrap();
            assert_eq!(ours["intervals"].as_array().unwrap().len(), intervals.len());
            for (ours, theirs) in ours["intervals"].as_array().unwrap().iter().zip(intervals) {
                assert_eq!(ours["task"], theirs["task"]);
                near(&ours["starvation_ns"], &theirs["starvation"]);
            }
            for letter in ["starvation", "latency", "overhead"] {
                let theirs = expected["blame"][letter].as_object().unwrap();
                assert_eq!(ours["blame"][letter].as_object().unwrap().len(), theirs.len());
                for (who, ns) in theirs {
                    near(&ours["blame"][letter][who], ns);
                }
            }
        }
    }
}

#[test]
fn windows_are_partial_sums() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t");
    let trace = trace.to_str().unwrap();
    taskscope(&["import", own_case().to_str().unwrap(), "-o", trace]);
    let report = json_of(&[
        "report",
        "--section",
        "idle",
        "--json",
        "--window",
        "0:100",
        "--window",
        "100:340",
        trace,
    ]);
    check_document(&report);
    let windows = &report["idle"]["windows"];
    assert_eq!((&windows[0]["starvation_ns"], &windows[0]["overhead_ns"]), (&140.into(), &60.into()));
    let sum = windows[0]["latency_ns"].as_i64().unwrap() + windows[1]["latency_ns"].as_i64().unwrap();
    assert_eq!(sum, report["idle"]["latency_ns"].as_i64().unwrap());
}

#[test]
fn windows_and_changes_select_their_sections() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces/hydro");
    let trace = trace.to_str().unwrap();
    let windows = ["--window", "0%..50%", "--window", "50%..100%"];
    let report = json_of(&[&["report", "--json"][..], &windows, &[trace]].concat());
    for letter in ["starvation_ns", "latency_ns", "overhead_ns", "tail_ns"] {
        let rows = report["idle"]["windows"].as_array().unwrap();
        let sum: u64 = rows.iter().map(|row| row[letter].as_u64().unwrap()).sum();
        assert_eq!(report["idle"][letter], sum, "{letter}");
    }
    let text = taskscope(&[&["report"][..], &windows, &[trace]].concat());
    assert!(String::from_utf8(text.stdout).unwrap().contains("windows of the run"));
    let report = json_of(&["report", "--json", "--what-if", "runtime=0", trace]);
    assert!(report["whatif"].is_object() && report["idle"].is_null(), "{report}");
}

#[test]
fn a_bad_file_is_explained_and_nothing_is_written() {
    let directory = tempfile::tempdir().unwrap();
    let text =
        std::fs::read_to_string(own_case()).unwrap().replacen("\"arrived\": 150", "\"arrived\": -1", 1);
    let file = directory.path().join("bad.json");
    std::fs::write(&file, text).unwrap();
    let trace = directory.path().join("t");
    let output = taskscope(&["import", file.to_str().unwrap(), "-o", trace.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("why:  line ") && message.contains("data[0].copies"), "{message}");
    assert!(!trace.exists());
}

#[test]
fn every_section_of_an_import_is_printed_and_sums_are_exact() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t");
    let trace = trace.to_str().unwrap();
    taskscope(&["import", own_case().to_str().unwrap(), "-o", trace]);
    let report = json_of(&["report", "--json", trace]);
    check_document(&report);
    let sum = |rows: &Value| rows.as_object().unwrap().values().map(|ns| ns.as_u64().unwrap()).sum::<u64>();
    let ledger = &report["ledger"];
    assert_eq!((sum(&ledger["causes"]), sum(&ledger["slow"])), (940, 940));
    for row in report["blame"].as_array().unwrap() {
        for key in ["function", "file", "line", "task_type", "object"] {
            assert!(row["who"].as_object().unwrap().contains_key(key), "{row}");
        }
    }
    let lost: u64 = report["blame"].as_array().unwrap().iter().map(|row| row["ns"].as_u64().unwrap()).sum();
    assert_eq!(lost + ledger["causes"]["work"].as_u64().unwrap(), 940);
    let path: u64 =
        report["path"]["by_cause"].as_array().unwrap().iter().map(|r| r["ns"].as_u64().unwrap()).sum();
    assert_eq!(path, report["wall_ns"].as_u64().unwrap());
    assert_eq!(report["whatif"]["replay_error"], 0.0);
    let text = taskscope(&["report", trace]);
    assert!(String::from_utf8(text.stdout).unwrap().contains("Critical path"));
    let other = taskscope(&["info", trace]);
    let message = String::from_utf8(other.stderr).unwrap();
    assert!(other.status.success() || message.contains("taskscope report"), "{message}");
}

#[test]
fn two_sets_of_runs_are_compared() {
    let directory = tempfile::tempdir().unwrap();
    let case: Value = serde_json::from_slice(&std::fs::read(own_case()).unwrap()).unwrap();
    let imported = |set: &str, number: u64, later_ns: u64| {
        let mut case = case.clone();
        for worker in case["trace"]["workers"].as_array_mut().unwrap() {
            worker["end"] = (worker["end"].as_u64().unwrap() + later_ns).into();
        }
        let file = directory.path().join("case.json");
        std::fs::write(&file, case.to_string()).unwrap();
        let trace = directory.path().join(set).join(format!("{number}.trace"));
        std::fs::create_dir_all(directory.path().join(set)).unwrap();
        let import = taskscope(&["import", file.to_str().unwrap(), "-o", trace.to_str().unwrap()]);
        assert!(import.status.success(), "{}", String::from_utf8_lossy(&import.stderr));
        trace.display().to_string()
    };
    let sets = ["before", "after"].map(|set| directory.path().join(set).display().to_string());
    let one = imported("before", 1, 0);
    let other = imported("after", 1, 100);
    for (number, late) in [(2, 1), (3, 2)] {
        imported("before", number, late);
        imported("after", number, 100 + late);
    }
    let code = |arguments: &[&str]| taskscope(arguments).status.code();
    assert_eq!(code(&["diff", &one, &one, "--fail-over", "0%"]), Some(0));
    assert_eq!(code(&["diff", &one, &other, "--fail-over", "5%"]), Some(1));
    assert_eq!(code(&["diff", &other, &one, "--fail-over", "5%"]), Some(0));
    assert_eq!(code(&["diff", &sets[0], &sets[1], "--fail-over", "5%"]), Some(1));
    assert_eq!(code(&["diff", &sets[0], &sets[1], "--fail-over", "90"]), Some(0));
    assert_eq!(code(&["diff", &one, directory.path().to_str().unwrap()]), Some(2));
    assert_eq!(code(&["diff", &one, "absent"]), Some(2));
    let report = json_of(&["diff", "--json", &sets[0], &sets[1]]);
    assert_eq!((&report["before"]["runs"], &report["after"]["runs"]), (&3.into(), &3.into()));
    let wall = report["rows"].as_array().unwrap().iter().find(|row| row["name"] == "wall_ns").unwrap();
    assert_eq!((wall["group"].as_str(), wall["difference"].as_f64()), (Some("run"), Some(100.0)));
    // Welch: variances of 1, three runs a side: ±2.776 √(2/3).
    let low = wall["interval_95"][0].as_f64().unwrap();
    assert!(
        (low - (100.0 - 2.776 * (2.0_f64 / 3.0).sqrt())).abs() < 1e-9 && wall["certain"] == true,
        "{wall}"
    );
    let list = taskscope(&["diff", &format!("{one},{one}"), &other]);
    // Long paths break lines.
    let words = String::from_utf8_lossy(&list.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("(2 runs)"), "{words}");
}

/// Every section with all options fits the schema; keys unknown to the schema are rejected.
#[test]
fn the_json_of_all_sections_fits_its_schema() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("t");
    let trace = trace.to_str().unwrap();
    taskscope(&["import", own_case().to_str().unwrap(), "-o", trace]);
    let sections = "ledger,blame,data,queues,diagnosis,idle,path,pop,whatif";
    let report = json_of(&[
        "report",
        "--section",
        sections,
        "--intervals",
        "--window",
        "0:100",
        "--what-if",
        "runtime=0",
        "--json",
        trace,
    ]);
    check_document(&report);
    for section in sections.split(',') {
        assert!(!report[section].is_null(), "{section}");
    }
    assert!(!report["path"]["steps"].as_array().unwrap().is_empty());
    // A prediction for a type that there is not would be one for no change.
    let asked = taskscope(&["report", "--section", "whatif", "--what-if", "nosuch=0.5", trace]);
    let message = String::from_utf8(asked.stderr).unwrap();
    assert!(asked.status.code() == Some(2) && message.contains("no task type is called nosuch"), "{message}");
    let refuses = |change: &dyn Fn(&mut Value)| {
        let mut changed = report.clone();
        change(&mut changed);
        std::panic::catch_unwind(|| check_document(&changed)).is_err()
    };
    assert!(refuses(&|report| report["ledger"]["causes"]["nap"] = 1.into()));
    assert!(refuses(&|report| report["blame"][0]["cause"] = "nap".into()));
    assert!(refuses(&|report| drop(report["path"].as_object_mut().unwrap().remove("span_ns"))));
    assert!(refuses(&|report| report["wall_ns"] = (-1).into()));
}

#[test]
fn a_page_of_a_task_graph_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let trace = directory.path().join("trace");
    let (trace, page) = (trace.to_str().unwrap(), directory.path().join("report.html"));
    taskscope(&["import", own_case().to_str().unwrap(), "-o", trace]);
    let page_words = ["--html", page.to_str().unwrap()];
    for (words, why) in [
        (&page_words[..], "no threads with events"),
        (&["--timeline"], "no threads with events"),
        (&["--html", page.to_str().unwrap(), "--section", "ledger"], "as text"),
    ] {
        let output = taskscope(&[&["report"], words, &[trace]].concat());
        let message = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(message.contains(why) && message.contains("try:"), "{message}");
        assert!(output.stdout.is_empty() && !page.exists());
    }
}

#[test]
fn a_thread_of_the_runtime_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let (case, trace) = (directory.path().join("case.json"), directory.path().join("t"));
    let workers =
        r#"{"id": 3, "node": 0, "begin": 0, "end": 100}, {"id": 4, "node": 0, "begin": 0, "end": 900}"#;
    let tasks = r#"{"id": 1, "type": "a", "node": 0, "worker": 3, "start": 0, "end": 30},
                   {"id": 2, "type": "b", "node": 0, "worker": 3, "start": 50, "end": 100}"#;
    let runtime = r#"{"worker": 4, "start": 20, "end": 60, "kind": "progress"}"#;
    let text =
        format!(r#"{{"trace": {{"workers": [{workers}], "tasks": [{tasks}], "runtime": [{runtime}]}}}}"#);
    std::fs::write(&case, text).unwrap();
    let (case, trace) = (case.to_str().unwrap(), trace.to_str().unwrap());
    let imported = taskscope(&["import", case, "-o", trace]);
    let message = String::from_utf8(imported.stderr).unwrap();
    assert!(
        imported.status.success()
            && message.contains("1 worker on 1 node")
            && message.contains("not count as capacity: 4")
    );
    let report = json_of(&["report", "--section", "ledger,path,pop,idle", "--json", trace]);
    assert_eq!((&report["workers"], &report["runtime_threads"]), (&1.into(), &serde_json::json!([4])));
    assert_eq!((&report["capacity_ns"], &report["wall_ns"]), (&100.into(), &100.into()));
    let slow = &report["ledger"]["slow"];
    assert_eq!(
        (&slow["work_ns"], &slow["overhead_ns"], &slow["starvation_ns"]),
        (&80.into(), &20.into(), &0.into())
    );
    assert_eq!(report["path"]["lower_bound_ns"], 80);
    assert_eq!(report["pop"]["load_balance"], 1.0);
}
