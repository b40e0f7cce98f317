//! Reports of whole traces on disk: golden text, JSON that fits its schema, damaged and killed ones.
//!
//! `TASKSCOPE_UPDATE=1 cargo test -p taskscope-view` rewrites the golden files.

use serde_json::Value;
use std::path::Path;
use taskscope_analysis::analyse;
use taskscope_session::{OpenError, Session};
use taskscope_testkit::script::{PID, Script};
use taskscope_view::{ReportOptions, Section};

/// One of everything: a loop that is uneven, tasks, a lock, serial code.
fn program() -> Script {
    let mut script = Script::new(2, 1_000_000, 11_000_000);
    script.site(0, 1_000_000, 1, 0x100).site(0, 1_000_000, 2, 0x200).site(0, 1_000_000, 3, 0x300);
    script.work_type(0, 1_000_000, 7, 2, 10, "for@prog+0x200").task_type(
        0,
        1_000_000,
        5,
        3,
        "task@prog+0x300",
    );
    script.fork(0, 2_000_000, 1, 1, 2).join_team(1, 2_000_000, 1, 1, 2);
    script.work(0, 2_000_000, 3_000_000, 7).work(1, 2_000_000, 5_000_000, 7);
    script.create(0, 3_100_000, 1, 5).create(0, 3_200_000, 2, 5);
    script
        .taskwait(0, 3_300_000, 5_500_000, 3)
        .run(0, 3_400_000, 3_900_000, 1)
        .run(0, 4_000_000, 4_500_000, 2);
    script.lock(1, 5_000_000, 5_000_000, 0xabc, 1).lock(0, 5_600_000, 7_000_000, 0xabc, 2);
    script.unlock(1, 7_000_100, 0xabc).unlock(0, 7_100_000, 0xabc);
    script.arrive(0, 7_200_000).arrive(1, 8_000_000).join(0, 8_000_000, 1).depart(1, 11_000_000, 1);
    script
}

fn written(script: &Script) -> tempfile::TempDir {
    // Lines break by the length of the path, so that does not depend on TMPDIR.
    let directory = tempfile::tempdir_in("/tmp").unwrap();
    script.write(directory.path()).unwrap();
    directory
}

fn text(session: &Session, sections: &[Section]) -> String {
    let (analysis, problems) = analyse(&session.execution);
    let options = ReportOptions { sections: sections.to_vec(), ..ReportOptions::default() };
    let styled = taskscope_view::report_text(
        &taskscope_view::report_of(session, &analysis, &problems, sections),
        &options,
    );
    let plain = anstream::adapter::strip_str(&styled).to_string();
    plain.replace(&session.root.display().to_string(), "prog.trace")
}

fn json(session: &Session) -> Value {
    let (analysis, problems) = analyse(&session.execution);
    serde_json::json!(taskscope_view::report_json(session, &analysis, &problems))
}

/// Compilers copy constructs: their tasks have one row, independent of their types' numbers.
#[test]
fn tasks_of_one_name_in_a_process_are_one_type() {
    let mut script = program();
    script.site(0, 1_000_000, 4, 0x400).task_type(0, 1_000_000, 6, 4, "task@prog+0x300");
    script.task_type(0, 1_000_000, 8, 4, "task@prog+0x400");
    script.create(0, 9_000_000, 3, 6).create(0, 9_000_000, 4, 8);
    script.run(0, 9_100_000, 9_300_000, 3).run(0, 9_300_000, 9_400_000, 4);
    let session = Session::open(written(&script).path()).unwrap();
    let rows = json(&session)["task_types"].clone();
    let rows: Vec<_> = rows.as_array().unwrap().iter().map(|row| (&row["name"], &row["began"])).collect();
    assert_eq!(rows, [(&"task@prog+0x300".into(), &3.into()), (&"task@prog+0x400".into(), &1.into())]);
}

/// Rows of one name include the process, if they are of several.
#[test]
fn rows_of_several_processes_are_distinguished() {
    let written = written(&program());
    let session = Session::open(written.path()).unwrap();
    let pid = session.execution.processes[0].pid;
    let sections = [Section::Tasks, Section::Constructs, Section::Locks];
    assert!(!text(&session, &sections).contains("process"));
    let (one, other) = (pid.to_string(), (pid + 1000).to_string());
    for directory in std::fs::read_dir(written.path().join(format!("loom.host.{pid}/proc.{pid}"))).unwrap() {
        let from = directory.unwrap().path();
        let to = from.to_str().unwrap().replace(&format!("proc.{one}"), &format!("proc.{other}"));
        std::fs::create_dir_all(&to).unwrap();
        for file in std::fs::read_dir(&from).unwrap() {
            let file = file.unwrap();
            let bytes = std::fs::read(file.path()).unwrap();
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => text.replace(&one, &other).into_bytes(),
                Err(binary) => binary.into_bytes(),
            };
            std::fs::write(Path::new(&to).join(file.file_name()), bytes).unwrap();
        }
    }
    let shown = text(&Session::open(written.path()).unwrap(), &sections);
    for name in ["task@prog+0x300", "[parallel]"] {
        for pid in [&one, &other] {
            assert!(shown.contains(&format!("{name}, process {pid}")), "{shown}");
        }
    }
    assert!(shown.contains(&format!("lock 0xabc, process {other}")), "{shown}");
}

fn check_golden(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("TASKSCOPE_UPDATE").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == golden, "{name} differs; TASKSCOPE_UPDATE=1 rewrites it. Now:\n{shown}");
}

/// Panics if the report does not fit `docs/report.schema.json`, or if its sums are not exact.
fn check_schema_and_sums(report: &Value) {
    thread_local! {
        // Its compilation takes far longer than a check.
        static SCHEMA: (boon::Schemas, boon::SchemaIndex) = {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/report.schema.json");
            let schema: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
            let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
            compiler.add_resource("report.json", schema).unwrap();
            let index = compiler.compile("report.json", &mut schemas).unwrap();
            (schemas, index)
        };
    }
    SCHEMA.with(|(schemas, index)| {
        schemas.validate(report, *index).unwrap_or_else(|error| panic!("{error:#}"));
    });
    let sum = |key: &str| {
        report[key].as_array().unwrap().iter().map(|row| row["ns"].as_u64().unwrap()).sum::<u64>()
    };
    let capacity = report["capacity_ns"].as_u64().unwrap();
    assert_eq!(sum("causes"), capacity);
    assert_eq!(sum("findings"), capacity - report["efficiency"]["useful_ns"].as_u64().unwrap());
}

#[test]
fn the_short_report_is_a_few_calm_lines() {
    let directory = written(&program());
    let session = Session::open(directory.path()).unwrap();
    check_golden("short.txt", &text(&session, &Section::SHORT));
}

#[test]
fn on_a_narrow_terminal_no_line_is_longer_than_it() {
    let directory = written(&program());
    let session = Session::open(directory.path()).unwrap();
    let (analysis, problems) = analyse(&session.execution);
    for width in [40, 60, 80, 100] {
        let options = ReportOptions { sections: Section::ALL.to_vec(), width, ..ReportOptions::default() };
        let shown = taskscope_view::report_text(
            &taskscope_view::report_json(&session, &analysis, &problems),
            &options,
        );
        let shown = anstream::adapter::strip_str(&shown).to_string();
        // Commands are there to be copied, so they stay whole.
        for line in shown.lines().filter(|line| !line.contains("taskscope ")) {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        assert!(shown.contains("task@prog+0x300") || shown.contains("…"), "{shown}");
        assert!(shown.contains("Parallel efficiency") && shown.contains("F1"), "{shown}");
    }
}

#[test]
fn findings_below_the_floor_are_one_line() {
    let directory = written(&program());
    let session = Session::open(directory.path()).unwrap();
    let (analysis, problems) = analyse(&session.execution);
    let lines = |floor: f64| -> Vec<String> {
        let options = ReportOptions {
            sections: vec![Section::Findings],
            top: usize::MAX >> 1,
            floor,
            ..ReportOptions::default()
        };
        let shown = taskscope_view::report_text(
            &taskscope_view::report_json(&session, &analysis, &problems),
            &options,
        );
        anstream::adapter::strip_str(&shown).to_string().lines().map(str::to_owned).collect()
    };
    let named = |lines: &[String]| lines.iter().filter(|line| line.starts_with("  F")).count() - 1;
    let all = lines(0.0);
    let count = named(&all);
    assert!(count > 2 && !all.iter().any(|line| line.contains("together")), "{all:?}");
    // The largest takes 15 % of the time, the second 7 %.
    let some = lines(0.1);
    assert_eq!(named(&some), 1);
    let rest = format!("{} findings below 10 % of the workers' time together", count - 1);
    assert!(some.iter().any(|line| line.contains(&rest)), "{some:?}");
    assert_eq!(named(&lines(1.0)), 0);
}

#[test]
fn findings_have_advice_in_all_forms() {
    let directory = written(&program());
    let session = Session::open(directory.path()).unwrap();
    let report = json(&session);
    let largest = &report["findings"][0];
    assert_eq!(
        largest["try"],
        "Put it into a task or a parallel region; use `nowait` to overlap it with the code after it."
    );
    // Lines are broken between words.
    let shown = text(&session, &Section::SHORT).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(shown.contains(largest["try"].as_str().unwrap()), "{shown}");
    assert!(shown.contains(report["verdict"].as_str().unwrap()), "{shown}");
}

#[test]
fn the_long_report_has_every_table() {
    let directory = written(&program());
    let session = Session::open(directory.path()).unwrap();
    check_golden("all.txt", &text(&session, Section::ALL));
}

#[test]
fn json_fits_its_schema_and_its_sums_are_exact() {
    let directory = written(&program());
    std::fs::write(
        directory.path().join("taskscope-run.json"),
        r#"{ "schema": "taskscope-run/1", "command": ["./prog"], "host": "here", "exit_code": 0,
             "wall_ns": 12000000, "recording_cost_ns_per_event": 15.5,
             "notices": [ { "name": "runtime-replaced", "text": "timings are libomp's" } ] }"#,
    )
    .unwrap();
    let report = json(&Session::open(directory.path()).unwrap());
    check_schema_and_sums(&report);
    assert_eq!(report["complete"], true);
    assert_eq!((&report["wall_ns"], &report["capacity_ns"]), (&10_000_000.into(), &20_000_000.into()));
    assert_eq!((&report["workers"], &report["threads"], &report["tasks"]), (&2.into(), &2.into(), &2.into()));
    assert_eq!(report["notices"][0]["name"], "runtime-replaced");
    assert_eq!(report["thread_states"][1]["tid"], PID + 1);
    let lock = report["findings"].as_array().unwrap().iter().find(|f| f["blamed"] == "holder").unwrap();
    assert_eq!(lock["ns"], 1_400_000);
}

#[test]
fn a_killed_program_is_reported_up_to_its_last_event() {
    let directory = written(&program().killed());
    let session = Session::open(directory.path()).unwrap();
    let report = json(&session);
    check_schema_and_sums(&report);
    assert_eq!(report["complete"], false);
    assert_eq!(report["incomplete_streams"].as_array().unwrap().len(), 2);
    assert_eq!(report["notices"][0]["name"], "unfinished-stream");
    check_golden("killed.txt", &text(&session, &[Section::Summary]));
}

/// However a file is cut or garbled, there is a report with exact sums, or an error that says why.
#[test]
fn damaged_streams_give_a_report_of_the_rest() {
    let whole = written(&program());
    let relative = format!("loom.host.{PID}/proc.{PID}/thread.{PID}");
    for file in ["stream.obs", "taskscope.obs", "stream.json"] {
        let path = whole.path().join(&relative).join(file);
        let bytes = std::fs::read(&path).unwrap();
        let mut seed = 7_u64;
        for round in 0..60 {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let mut damaged = bytes.clone();
            let at = (seed >> 33) as usize % damaged.len();
            match round % 3 {
                0 => damaged.truncate(at),
                1 => damaged[at] ^= 1 << (seed >> 20 & 7),
                _ => damaged.iter_mut().skip(at).take(8).for_each(|byte| *byte = (seed >> 40) as u8),
            }
            std::fs::write(&path, &damaged).unwrap();
            if let Ok(session) = Session::open(whole.path()) {
                check_schema_and_sums(&json(&session));
                text(&session, Section::ALL);
            }
        }
        std::fs::write(&path, &bytes).unwrap();
    }
}

#[test]
fn directories_without_a_stream_are_no_trace() {
    let directory = tempfile::tempdir().unwrap();
    assert!(matches!(Session::open(directory.path()), Err(OpenError::NoStreams { .. })));
    assert!(matches!(Session::open(directory.path().join("no")), Err(OpenError::Unreadable { .. })));
}

/// A trace of ovni's own OpenMP-V runtime has no regions: missing facts are not made up.
#[test]
fn a_trace_without_taskscopes_events_works() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/ovni");
    for name in ["openmp-nested-task", "openmp-mix-task-ws"] {
        let trace = corpus.join(name).join("ovni");
        if !trace.is_dir() {
            taskscope_prerequisite::skip(format_args!("no {}", trace.display()));
            continue;
        }
        let session = Session::open(trace).unwrap();
        let report = json(&session);
        check_schema_and_sums(&report);
        assert!(report["events"].as_u64().unwrap() > 0);
        assert_eq!(report["regions"].as_array().unwrap().len(), 0);
    }
}
