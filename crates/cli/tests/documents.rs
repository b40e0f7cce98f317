//! Every JSON document names its form and fits the schema of that name in `docs/`.

mod common;

use common::{check_document, output, taskscope, text};
use serde_json::Value;
use std::path::Path;
use taskscope_event::models::nosv;
use taskscope_testkit::trace_builder::one_task;

/// The documents that a command prints, each checked: one, or one a line.
fn documents(arguments: &[&str]) -> Vec<Value> {
    let printed = output(taskscope().args(arguments));
    let text = String::from_utf8(printed.stdout).unwrap();
    let documents: Vec<Value> = match serde_json::from_str(&text) {
        Ok(one) => vec![one],
        Err(_) => text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(),
    };
    documents.iter().for_each(check_document);
    documents
}

/// The forms of the documents that a command prints.
fn forms(arguments: &[&str]) -> Vec<String> {
    let mut forms: Vec<String> =
        documents(arguments).iter().map(|document| document["schema"].as_str().unwrap().to_owned()).collect();
    forms.dedup();
    forms
}

#[test]
fn documents_of_a_trace_fit_their_schemas() {
    let root = tempfile::tempdir().unwrap();
    one_task().write(root.path()).unwrap();
    let path = root.path().to_str().unwrap();
    assert_eq!(forms(&["info", "--json", path]), ["taskscope-info/1"]);
    assert_eq!(forms(&["report", "--json", path]), ["taskscope-report/1"]);
    assert_eq!(forms(&["report", "--json", "--section", "call-paths", path]), ["taskscope-report/1"]);
    assert_eq!(forms(&["top", "--json", "--per-thread", path]), ["taskscope-top/1"]);
    assert_eq!(forms(&["dump", "--json", path]), ["taskscope-event/1"]);
    assert_eq!(forms(&["explain", "--json"]), ["taskscope-names/1"]);
    assert_eq!(forms(&["explain", "--json", "lock"]), ["taskscope-explain/1"]);
    assert_eq!(forms(&["explain", "--json", "Sponge mode", path]), ["taskscope-explain/1"]);
    assert_eq!(forms(&["explain", "--json", "F1", path]), ["taskscope-explain/1"]);
    assert_eq!(forms(&["diff", "--json", path, path]), ["taskscope-diff/1"]);
    assert_eq!(forms(&["diff", "--json", "--paths", path, path]), ["taskscope-paths-diff/1"]);
}

/// Run files of slices, also of traces without one, and of slices of slices.
#[test]
fn run_files_of_slices_fit_their_schema() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole");
    one_task().write(&whole).unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    for (from, to, range) in [(&whole, &first, "0..50%"), (&first, &second, "0..40%")] {
        let sliced = output(taskscope().args(["slice", "--range", range, "-o"]).args([to, from]));
        assert!(sliced.status.success(), "{}", text(&sliced.stderr));
        let run = std::fs::read(to.join("taskscope-run.json")).unwrap();
        let run: Value = serde_json::from_slice(&run).unwrap();
        check_document(&run);
        assert!(run["part"]["end_ns"].is_i64(), "{run}");
    }
}

#[test]
fn violations_and_problems_fit_their_schemas() {
    let root = tempfile::tempdir().unwrap();
    one_task().point(7_000, nosv::SCHEDULER_SERVING_END).write(root.path()).unwrap();
    let path = root.path().to_str().unwrap();
    assert_eq!(forms(&["check", "--json", path]), ["taskscope-violation/1"]);
    let file = walk(root.path(), "stream.obs");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..bytes.len() - 3]).unwrap();
    assert_eq!(forms(&["dump", "--json", path]), ["taskscope-problem/1", "taskscope-event/1"]);
    let top = documents(&["top", "--json", path]);
    assert_eq!(top[0]["problems"][0]["schema"], "taskscope-problem/1");
}

fn walk(root: &Path, name: &str) -> std::path::PathBuf {
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap().flatten() {
            match entry.path() {
                path if path.is_dir() => directories.push(path),
                path if path.ends_with(name) => return path,
                _ => {}
            }
        }
    }
    panic!("there is no {name}")
}

#[test]
fn documents_of_device_queues_fit_their_schemas() {
    let root = tempfile::tempdir().unwrap();
    let records = root.path().join("records.csv");
    std::fs::write(&records, "queue,seq,id,start,end,schema\nq,0,1,10,20,x\nq,1,2,15,30,y\nq,2,3,40,50,-7\n")
        .unwrap();
    let trace = root.path().join("t");
    let (records, trace) = (records.to_str().unwrap(), trace.to_str().unwrap());
    let import = ["import", "--json", "--from", "device-records", "--in-order", "q", records, "-o", trace];
    assert_eq!(forms(&import), ["taskscope-import-device-records/1"]);
    assert_eq!(forms(&["info", "--json", trace]), ["taskscope-info/1"]);
    assert_eq!(forms(&["report", "--json", trace]), ["taskscope-report/1"]);
    let lines = documents(&["dump", "--json", "--queue", "q", trace]);
    let columns: Vec<&Value> = lines.iter().map(|line| &line["column_schema"]).collect();
    assert_eq!(columns, [&Value::from("x"), &"y".into(), &(-7).into()]);
    assert!(lines.iter().all(|line| line["schema"] == "taskscope-queue-record/1"));
}

#[test]
fn doctor_fits_its_schema() {
    assert_eq!(forms(&["doctor", "--json"]), ["taskscope-doctor/1"]);
}

#[test]
fn tables_have_a_manifest_and_refuse_to_mix_with_other_files() {
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("trace");
    one_task().write(&trace).unwrap();
    let (trace, tables) = (trace.to_str().unwrap(), root.path().join("run.tables"));
    let export = ["export", "--to", "parquet", "-o", tables.to_str().unwrap(), trace, trace];
    output(taskscope().args(export));
    let manifest = std::fs::read(tables.join("taskscope-tables.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    check_document(&manifest);
    assert_eq!(manifest["runs"].as_array().unwrap().len(), 2);
    let again = taskscope().args(export).output().unwrap();
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is not empty"));
    let unwritten = root.path().join("unwritten");
    let dry = ["export", "--to", "parquet", "--dry-run", "-o", unwritten.to_str().unwrap(), trace];
    let printed = String::from_utf8(output(taskscope().args(dry)).stdout).unwrap();
    assert!(printed.contains("would be written") && !unwritten.exists(), "{printed}");
}
