//! Findings of recordings of every kind: traces, profiles, samples alone, device queues alone.

mod common;

use common::*;
use serde_json::Value;
use std::path::Path;

fn report_of(recording: &Path) -> Value {
    serde_json::from_slice(&output(taskscope().args(["report", "--json"]).arg(recording)).stdout).unwrap()
}

fn shown(arguments: &[&str], recording: &Path) -> String {
    let run = output(taskscope().args(arguments).arg(recording));
    assert!(run.status.success(), "{}", text(&run.stderr));
    text(&run.stdout)
}

fn sum(rows: &[Value]) -> u64 {
    rows.iter().map(|row| row["ns"].as_u64().unwrap()).sum()
}

/// Each finding is explained under its number, with the sentence and the advice that the report has.
fn assert_explained(recording: &Path, report: &Value) {
    for row in report["findings"].as_array().unwrap() {
        let id = row["id"].as_str().unwrap();
        let explained = shown(&["explain", id], recording);
        let plain = explained.split_whitespace().collect::<Vec<_>>().join(" ");
        for key in ["text", "try"] {
            let words = row[key].as_str().unwrap();
            assert!(!words.is_empty() && plain.contains(words), "{id} {key}: {words}\n{explained}");
        }
        let cause = row["cause"].as_str().unwrap();
        let cause_line = format!("{cause}  (cause of lost time)");
        assert!(explained.lines().any(|line| line == cause_line), "{id}: {cause}\n{explained}");
    }
    let verdict = report["verdict"].as_str().unwrap();
    let summary =
        shown(&["report", "--width", "140"], recording).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(summary.contains(verdict), "{verdict}\n{summary}");
    let absent = output(taskscope().args(["explain", "F999"]).arg(recording));
    assert!(!absent.status.success() && text(&absent.stderr).contains("findings F1 to F"));
}

#[test]
fn findings_of_a_profile_are_those_of_its_states_and_paths() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "profiled", "guarded.c", &["-g"]);
    let options = ["--mode", "profile", "--sample", "200", "-o", "profile", "--"];
    let run = output(record(here.path()).env("OMP_NUM_THREADS", "2").args(options).arg(&program));
    assert!(run.status.success(), "{run:?}");
    let profile = here.path().join("profile");
    let report = report_of(&profile);
    let efficiency = &report["call_paths"]["efficiency"];
    let number = |key: &str| efficiency[key].as_u64().unwrap();
    let rows = report["findings"].as_array().unwrap();
    assert_eq!(report["findings_base_ns"], efficiency["capacity_ns"]);
    assert_eq!(report["findings_of"], "workers");
    assert_eq!(sum(rows), number("capacity_ns") - number("useful_ns"));
    let find = |cause: &str, blamed: &str| {
        rows.iter()
            .find(|row| row["cause"] == cause && row["blamed"] == blamed)
            .unwrap_or_else(|| panic!("{rows:#?}"))
    };
    let holder = find("lock", "holder");
    assert_eq!(holder["victims"], serde_json::json!({ "critical_wait": holder["ns"] }));
    assert!(holder["where"].as_str().unwrap().starts_with("guarded [critical"), "{holder}");
    assert!(find("wait", "serial")["where"].as_str().unwrap().starts_with("serial code"));
    assert_explained(&profile, &report);
    let alone = shown(&["report", "--section", "findings"], &profile);
    assert!(alone.contains("Findings, largest first") && !alone.contains("Call paths"), "{alone}");
}

/// Threads without a runtime: how long they ran, had no CPU and were blocked is known, and that no more is.
#[test]
fn samples_alone_claim_no_loss_that_they_do_not_know() {
    let here = tempfile::tempdir().unwrap();
    let program = here.path().join("threads");
    let mut compiler = std::process::Command::new(Compiler::Clang.command().get_program());
    compiler.args(["-g", "-O1", "-pthread", "-o"]).arg(&program).arg(program_source("busy_threads.c"));
    assert!(output(&mut compiler).status.success());
    for (os_time, name) in [("on", "with"), ("off", "without")] {
        let mut recorder = record(here.path());
        if os_time == "off" {
            recorder.env("TASKSCOPE_OS_TIME", "off");
        }
        let run = output(recorder.args(["--sample", "200", "-o", name, "--"]).arg(&program));
        assert!(run.status.success(), "{run:?}");
        let trace = here.path().join(name);
        let report = report_of(&trace);
        let rows = report["findings"].as_array().unwrap();
        assert_eq!((&report["samples_alone"], &report["findings_of"]), (&true.into(), &"threads".into()));
        assert_eq!(sum(rows), report["findings_base_ns"].as_u64().unwrap());
        let causes: Vec<&str> = rows.iter().map(|row| row["cause"].as_str().unwrap()).collect();
        if causes.contains(&"work") {
            let blocked = rows.iter().find(|row| row["cause"] == "blocked").unwrap();
            assert_eq!(blocked["confidence"], "low", "{blocked}");
            assert!(report["verdict"].as_str().unwrap().contains("samples do not show"), "{report}");
        } else {
            assert_eq!(causes, ["unknown"]);
        }
        if os_time == "off" {
            assert_eq!(causes, ["unknown"], "{rows:#?}");
        }
        for row in rows.iter().filter(|row| row["cause"] != "unknown") {
            assert_eq!(row["victims"].as_object().unwrap().len(), 1, "{row}");
        }
        let verdict = report["verdict"].as_str().unwrap();
        assert!(!verdict.contains("are lost"), "{verdict}");
        if causes.len() > 1 {
            assert_explained(&trace, &report);
        }
    }
}

/// A program that fails before it does anything: the reason comes first, and there is no efficiency of nothing.
#[test]
fn a_program_that_fails_at_once_has_its_exit_code_and_no_efficiency() {
    let here = tempfile::tempdir().unwrap();
    let run = output(record(here.path()).args(["--sample", "100", "-o", "failed", "--", "false"]));
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let trace = here.path().join("failed");
    let report = report_of(&trace);
    assert_eq!((&report["samples_alone"], &report["exit_code"]), (&true.into(), &1.into()), "{report}");
    let notices = report["notices"].as_array().unwrap();
    let failed = notices.iter().find(|notice| notice["name"] == "failed").expect("a notice");
    assert!(failed["text"].as_str().unwrap().contains("exit code 1"), "{failed}");
    let text = shown(&["report"], &trace);
    assert!(!text.contains("Parallel efficiency") && text.contains("exit code 1"), "{text}");
}

/// Threads whose waits are recorded: the used time and the findings sum to the CPUs' time, and a lock is charged to its holder.
#[test]
fn findings_of_waits_sum_to_the_unused_cpus() {
    let here = tempfile::tempdir().unwrap();
    let program = here.path().join("threads");
    Compiler::Gcc.build_file(&program_source("thread_waits.c"), &program, &["-g", "-O1", "-pthread"]);
    for (way, cause, blamed, object, function) in [
        ("mutex", "lock", "holder", "mutex cache_mutex", "evict"),
        ("barrier", "wait.sync", "waker", "barrier", ""),
        // The thread that posts sleeps before, and does nothing else.
        ("semaphore", "blocked.sleep", "code", "sleep", "nap"),
    ] {
        let run =
            output(record(here.path()).args(["-q", "--threads", "-o", way, "--"]).arg(&program).arg(way));
        assert!(run.status.success(), "{run:?}");
        let trace = here.path().join(way);
        let report = report_of(&trace);
        let time = &report["cpu_time"];
        let number = |key: &str| time[key].as_u64().unwrap();
        let rows = report["findings"].as_array().unwrap();
        assert_eq!(
            (&report["findings_of"], &report["findings_base_ns"]),
            (&"cpus".into(), &time["capacity_ns"])
        );
        assert_eq!(sum(rows) + number("used_ns"), number("capacity_ns"), "{way}: {report}");
        let verdict = report["verdict"].as_str().unwrap();
        assert!(verdict.contains(" the program used "), "{verdict}");
        let finding = rows.iter().find(|row| row["cause"] == cause && row["blamed"] == blamed);
        let finding = finding.unwrap_or_else(|| panic!("{way}: {rows:#?}"));
        let text = finding["text"].as_str().unwrap();
        assert!(text.contains(" thread-") && text.contains(object), "{text}");
        assert!(finding["where"].as_str().unwrap().starts_with(function), "{finding}");
        assert_explained(&trace, &report);
        // The states of a thread sum to its life.
        for row in report["thread_splits"].as_array().unwrap() {
            let ns = |key: &str| row[key].as_u64().unwrap();
            let parts = ["running_ns", "no_cpu_ns", "blocked_ns", "unknown_ns"];
            assert_eq!(parts.iter().map(|key| ns(key)).sum::<u64>(), ns("time_ns"), "{row}");
        }
    }
}

/// Queues of a device without threads: each idle part has the reason that its queue's table has.
#[test]
fn idle_queues_have_findings() {
    let here = tempfile::tempdir().unwrap();
    let (file, trace) = (here.path().join("records.csv"), here.path().join("trace"));
    // 100 ns of a kernel; 900 in which nothing is submitted; 100 of a kernel that had waited 300 for its event.
    let rows = "queue,id,append,start,end\nq,1,1000,1000,1100\nq,2,2000,2300,2400\nr,3,5000,5000,9000\n";
    std::fs::write(&file, rows).unwrap();
    let import = ["import", "--from", "device-records"];
    assert!(output(taskscope().args(import).arg(&file).arg("-o").arg(&trace)).status.success());
    let report = report_of(&trace);
    assert_eq!((&report["findings_of"], &report["findings_base_ns"]), (&"queues".into(), &5400.into()));
    let rows = report["findings"].as_array().unwrap();
    let found: Vec<_> =
        rows.iter().map(|row| (row["pattern"].as_str(), row["ns"].as_u64(), row["where"].as_str())).collect();
    assert_eq!(
        found,
        [
            (Some("host-bound"), Some(900), Some("queue q")),
            (Some("dependency-bound"), Some(300), Some("queue q"))
        ]
    );
    assert_explained(&trace, &report);
    let alone = shown(&["report", "--section", "findings"], &trace);
    assert!(
        alone.contains("queue q is idle: the host submits nothing") && alone.contains("queue-µs"),
        "{alone}"
    );

    // Without submissions it is known that queues were idle, not why.
    std::fs::write(&file, "queue,id,start,end\nq,1,1000,1100\nq,2,2300,2400\n").unwrap();
    let trace = here.path().join("other");
    assert!(output(taskscope().args(import).arg(&file).arg("-o").arg(&trace)).status.success());
    let report = report_of(&trace);
    assert_eq!(report["findings"][0]["cause"], "unknown");
    assert!(report["verdict"].as_str().unwrap().contains("not known why"), "{}", report["verdict"]);
}

/// GitHub refuses a document if one result has no location.
#[test]
fn results_of_sarif_have_places_and_other_findings_are_notifications() {
    let trace = format!("{}/tests/shown/howto/ci-gate/after.trace", env!("CARGO_MANIFEST_DIR"));
    let report = report_of(Path::new(&trace));
    let document: Value =
        serde_json::from_str(&shown(&["export", "--to", "sarif"], Path::new(&trace))).unwrap();
    let run = &document["runs"][0];
    let rows = |value: &Value| -> Vec<Value> { value.as_array().unwrap().clone() };
    let (results, notifications) =
        (rows(&run["results"]), rows(&run["invocations"][0]["toolExecutionNotifications"]));
    let has_file =
        |row: &Value| row["locations"][0]["physicalLocation"]["artifactLocation"]["uri"].is_string();
    assert!(!results.is_empty() && results.iter().all(has_file), "{results:?}");
    assert!(!notifications.is_empty() && !notifications.iter().any(has_file), "{notifications:?}");
    let rules: Vec<Value> =
        rows(&run["tool"]["driver"]["rules"]).iter().map(|rule| rule["id"].clone()).collect();
    assert!(notifications.iter().all(|row| rules.contains(&row["associatedRule"]["id"])), "{rules:?}");
    let mut found: Vec<String> = results
        .iter()
        .chain(&notifications)
        .map(|row| row["properties"]["id"].as_str().unwrap().to_owned())
        .collect();
    let base = report["findings_base_ns"].as_f64().unwrap();
    let wanted = report["findings"].as_array().unwrap().iter();
    let wanted = wanted.filter(|row| row["ns"].as_f64().unwrap() / base >= 0.01);
    let mut wanted: Vec<String> = wanted.map(|row| row["id"].as_str().unwrap().to_owned()).collect();
    found.sort();
    wanted.sort();
    assert_eq!(found, wanted);
}
