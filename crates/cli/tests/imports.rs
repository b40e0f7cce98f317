//! Files of other tools, imported, in all subcommands.

mod common;

use common::{check_document, output, taskscope};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use taskscope_execution::{Group, State};
use taskscope_testkit::generator::{Generator, Runtime};

/// Two threads of Kineto's form: an operator with a call and a kernel, and the thread that waits for it.
const EVENTS: &str = r#"{"baseTimeNanoseconds": 1700000000000000000, "traceEvents": [
{"ph":"M","pid":7,"name":"process_name","args":{"name":"train"}},
{"ph":"X","cat":"cpu_op","pid":7,"tid":7,"ts":100.5,"dur":900,"name":"step"},
{"ph":"X","cat":"cpu_op","pid":7,"tid":7,"ts":200,"dur":300,"name":"aten::add"},
{"ph":"X","cat":"cuda_runtime","pid":7,"tid":7,"ts":210,"dur":20,"name":"cudaLaunchKernel","args":{"correlation":5}},
{"ph":"X","cat":"kernel","pid":0,"tid":3,"ts":250,"dur":400,"name":"add_kernel","args":{"stream":3,"correlation":5}},
{"ph":"X","cat":"cpu_op","pid":7,"tid":9,"ts":1200,"dur":100,"name":"backward"},
{"ph":"s","cat":"fwdbwd","pid":7,"tid":7,"ts":210,"id":1,"name":"fwdbwd"},
{"ph":"f","cat":"fwdbwd","pid":7,"tid":9,"ts":1200,"id":1,"name":"fwdbwd","bp":"e"},
{"ph":"C","pid":7,"ts":300,"name":"memory","args":{"bytes":12}}
]}"#;

fn import(file: &Path, trace: &Path) -> (bool, String) {
    let imported = output(taskscope().arg("import").arg(file).arg("-o").arg(trace));
    (imported.status.success(), String::from_utf8(imported.stderr).unwrap())
}

fn run(arguments: &[&str]) -> String {
    let done = output(taskscope().args(arguments));
    assert!(done.status.success(), "{arguments:?}");
    // Perfetto's form is binary.
    String::from_utf8_lossy(&done.stdout).into_owned()
}

#[test]
fn all_subcommands_read_an_imported_file() {
    let here = tempfile::tempdir().unwrap();
    let (file, trace) = (here.path().join("run.json.gz"), here.path().join("run.trace"));
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(EVENTS.as_bytes()).unwrap();
    std::fs::write(&file, packed.finish().unwrap()).unwrap();
    let (done, notes) = import(&file, &trace);
    assert!(done);
    assert!(
        notes.contains("3 sections, 2 threads, 1 process, 1 dependence, 1 device operation, 1 device call")
    );
    assert!(notes.contains("note: not imported: 1 values of counters"), "{notes}");
    assert!(notes.contains("first: line 10, traceEvents[8])"), "{notes}");

    let trace = trace.to_str().unwrap();
    let document: Value = serde_json::from_str(&run(&["report", "--json", trace])).unwrap();
    check_document(&document);
    assert_eq!(document["start_unix_ns"], 1_700_000_000_000_100_500_u64);
    assert_eq!(document["devices"]["queues"][0]["operations"], 1, "{}", document["devices"]);
    assert_eq!(run(&["check", trace]), "");
    assert!(run(&["info", trace]).contains("3 tasks"));
    assert!(run(&["explain", "F1", trace]).contains("lost"));
    assert!(run(&["report", "--range", "10%..50%", trace]).contains("part of the trace"));
    assert!(run(&["diff", trace, trace]).contains("about the same"));
    for format in ["perfetto", "chrome", "paje"] {
        assert!(!run(&["export", "--to", format, trace]).is_empty(), "{format}");
    }
    for format in ["otf2", "parquet"] {
        let target = here.path().join(format);
        run(&["export", "--to", format, "-o", target.to_str().unwrap(), trace]);
        assert!(target.is_dir());
    }
    let page = here.path().join("page.html");
    run(&["report", "--html", page.to_str().unwrap(), trace]);
    assert!(std::fs::read_to_string(page).unwrap().contains("aten::add"));
}

/// The rows of an export as CSV, by their kinds.
fn csv_kinds(trace: &str) -> BTreeMap<String, usize> {
    let mut kinds = BTreeMap::new();
    for row in run(&["export", "--to", "csv", trace]).lines() {
        *kinds.entry(row.split(',').next().unwrap_or_default().to_owned()).or_default() += 1;
    }
    kinds
}

#[test]
fn rows_beside_threads_are_exported_and_come_back_without_workers() {
    let here = tempfile::tempdir().unwrap();
    let stored = |name: &str| format!("{}/tests/{name}", env!("CARGO_MANIFEST_DIR"));
    let (waits, collectives) = (stored("shown/howto/threads/orders.trace"), stored("traces/pic"));
    let (wait_kinds, collective_kinds) = (csv_kinds(&waits), csv_kinds(&collectives));
    // No thread wakes those that sleep.
    assert_eq!((wait_kinds["wait"], wait_kinds["wake"]), (109, 98));
    assert_eq!(collective_kinds["collective"], 8);
    let collective = run(&["export", "--to", "csv", &collectives]);
    let collective: Vec<&str> =
        collective.lines().find(|row| row.starts_with("collective,")).unwrap().split(',').collect();
    assert!(collective[5].starts_with("MPI_") && !collective[17].is_empty() && !collective[18].is_empty());
    for trace in [&waits, &collectives] {
        come_back_with_their_workers(trace, here.path());
    }
    let archive = here.path().join("otf2");
    run(&["export", "--to", "otf2", "-o", archive.to_str().unwrap(), &collectives]);
    let (done, notes) = import(&archive, &here.path().join("otf2.trace"));
    assert!(done && notes.contains("not imported: 6 communicators, roots and sizes"), "{notes}");
}

/// The report of a trace.
fn report(trace: &str) -> Value {
    serde_json::from_str(&run(&["report", "--json", trace])).unwrap()
}

/// The time of workers in the program's code, nanoseconds.
fn useful_ns(report: &Value) -> u64 {
    let useful = State::ALL.into_iter().filter(|state| state.group() == Group::Useful);
    useful.map(|state| report["states"][state.name()].as_u64().unwrap_or(0)).sum()
}

/// Exports a trace in each format that `import` reads as a run over time, and compares workers and their useful time.
fn come_back_with_their_workers(trace: &str, place: &Path) {
    let before = report(trace);
    let (file, back) = (place.join("exported"), place.join("back.trace"));
    for format in ["perfetto", "chrome", "otf2", "paraver"] {
        run(&["export", "--to", format, "-o", file.to_str().unwrap(), trace]);
        let (done, notes) = import(&file, &back);
        assert!(done, "{format}: {notes}");
        let after = report(back.to_str().unwrap());
        assert_eq!(after["workers"], before["workers"], "{format} of {trace}");
        assert_eq!(useful_ns(&after), useful_ns(&before), "{format} of {trace}");
        // Names have each suffix once.
        let again = run(&["export", "--to", "csv", back.to_str().unwrap()]);
        assert!(!again.contains(", not a worker, not a worker"), "{format} of {trace}");
        std::fs::remove_dir_all(&back).unwrap();
        if file.is_dir() { std::fs::remove_dir_all(&file) } else { std::fs::remove_file(&file) }.unwrap();
    }
}

/// The workers of nOS-V and Nanos6 are CPUs, whose rows show the sections of threads again.
#[test]
fn runs_with_cpus_as_workers_are_imported_with_their_cpus() {
    for runtime in [Runtime::Nosv, Runtime::Nanos6] {
        let here = tempfile::tempdir().unwrap();
        let trace = here.path().join("run.trace");
        let generator = Generator { runtime, threads: 4, threads_per_loom: 2, events: 2000, seed: 1 };
        generator.write(&trace).unwrap();
        let trace = trace.to_str().unwrap();
        assert!(csv_kinds(trace)["section of a CPU"] > 0);
        assert_eq!(report(trace)["workers"], 4);
        come_back_with_their_workers(trace, here.path());
    }
}

#[test]
fn samples_are_exported_with_their_call_stacks() {
    let trace = format!("{}/tests/shown/howto/threads/orders.trace", env!("CARGO_MANIFEST_DIR"));
    let document: Value = serde_json::from_str(&run(&["export", "--to", "chrome", &trace])).unwrap();
    let (samples, frames) =
        (document["samples"].as_array().unwrap(), document["stackFrames"].as_object().unwrap());
    assert_eq!(samples.len(), 102);
    let mut deepest = 0;
    for sample in samples {
        let (mut frame, mut depth) = (&sample["sf"], 0);
        while let Some(number) = frame.as_str() {
            assert!(!frames[number]["name"].as_str().unwrap().is_empty());
            (frame, depth) = (&frames[number]["parent"], depth + 1);
        }
        deepest = deepest.max(depth);
    }
    assert!(deepest > 2, "{deepest}");
    let preview = run(&["export", "--to", "otf2", "--dry-run", &trace]);
    assert!(preview.contains("102 samples                         samples of calling contexts"), "{preview}");
}

#[test]
fn nothing_is_written_for_a_malformed_file() {
    let here = tempfile::tempdir().unwrap();
    let file = here.path().join("run.json");
    let trace = here.path().join("run.trace");
    for (from, to, expected) in [
        ("\"ts\":200", "\"ts\":1e30", "line 4: traceEvents[2].ts: 1e30 µs are beyond the clock of 2^63 ns"),
        ("\"name\":\"step\"}", "", "line 3: key must be a string, after a whole event"),
    ] {
        std::fs::write(&file, EVENTS.replacen(from, to, 1)).unwrap();
        let (done, message) = import(&file, &trace);
        assert!(!done && message.contains(expected), "{message}");
        assert_eq!(std::fs::read_dir(here.path()).unwrap().count(), 1);
    }
    std::fs::write(&file, b"{\"traceEvents\":[{\"name\":\"\xff\"}]}").unwrap();
    assert!(import(&file, &trace).1.contains("line 1: invalid UTF-8"));
    std::fs::write(&file, b"\x1f\x8b\x08cut").unwrap();
    assert!(!import(&file, &trace).0);
    let empty = tempfile::tempdir().unwrap();
    assert!(import(empty.path(), &trace).1.contains("unknown format"));
}
