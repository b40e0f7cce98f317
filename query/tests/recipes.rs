//! The queries of docs/sql have the stored results; forms, errors and refusals of the engine.

mod common;

use common::{engine, repository, tables, text};
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

#[test]
fn queries_have_the_expected_results() {
    let place = tempfile::tempdir().unwrap();
    let tables = tables(place.path());
    let mut names: Vec<_> =
        fs::read_dir(repository("docs/sql")).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    assert!(names.len() >= 20);
    for path in names {
        let output = engine(&tables).arg("--file").arg(&path).args(["--format", "csv"]).output().unwrap();
        let (found, errors) = text(&output);
        assert!(output.status.success() && errors.is_empty(), "{path:?}: {errors}");
        let stored = repository("query/tests/expected").join(path.file_stem().unwrap()).with_extension("csv");
        if std::env::var_os("UPDATE_EXPECTED").is_some() {
            fs::write(&stored, &found).unwrap();
        }
        let expected = fs::read_to_string(&stored).unwrap_or_default();
        assert_eq!(found, expected, "{path:?}; UPDATE_EXPECTED=1 make test-query writes it anew");
        assert!(found.lines().count() > 1, "{path:?} has no rows");
    }
    for view in views() {
        let sql = format!("SELECT COUNT(*) AS n FROM {view}");
        let output = engine(&tables).args(["--sql", &sql, "--format", "csv"]).output().unwrap();
        let (found, errors) = text(&output);
        let rows: u64 = found.lines().nth(1).unwrap_or_default().parse().unwrap_or(0);
        assert!(rows > 0, "{view}: {found}{errors}");
    }
}

fn views() -> Vec<String> {
    let text = fs::read_to_string(repository("crates/table/views.sql")).unwrap();
    let all = text.split("CREATE OR REPLACE VIEW ").skip(1).filter(|view| !view.contains("read_parquet("));
    all.map(|view| view.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn forms_hold_the_same_rows() {
    let place = tempfile::tempdir().unwrap();
    let tables = tables(place.path());
    let sql = "SELECT run, complete, part, CAST(workers AS DOUBLE) / 2 AS half FROM run ORDER BY run";
    let run = |form: &str, more: &[&str]| {
        let output = engine(&tables).args(["--sql", sql, "--format", form]).args(more).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        text(&output).0
    };
    let csv = run("csv", &[]);
    assert!(csv.starts_with("run,complete,part,half\n0,true,,"), "{csv}");
    let json: serde_json::Value = serde_json::from_str(&run("json", &[])).unwrap();
    assert_eq!(json.as_array().unwrap().len(), csv.lines().count() - 1);
    assert!(json[0]["part"].is_null() && json[0]["complete"] == true, "{json}");
    let table = run("table", &[]);
    assert!(table.starts_with("run  complete  part  half\n"), "{table}");
    assert!(table.lines().nth(1).unwrap().contains("NULL"), "{table}");
    // A file of Parquet is a table of the next query: the values are those of the first.
    let copy = place.path().join("copy");
    fs::create_dir_all(copy.join("run")).unwrap();
    let file = copy.join("run/run.parquet");
    run("parquet", &["--output", file.to_str().unwrap()]);
    let manifest = r#"{"schema":"taskscope-tables/1","version":"1.0","tables":{"run":{}}}"#;
    fs::write(copy.join("taskscope-tables.json"), manifest).unwrap();
    let again =
        engine(&copy).args(["--sql", "SELECT * FROM run ORDER BY run", "--format", "csv"]).output().unwrap();
    assert_eq!(text(&again).0, csv);
    assert!(text(&again).1.contains("note: view "), "views of missing tables are noted");
    // No rows: a header, an empty array.
    let none = |form| {
        let sql = "SELECT run FROM run WHERE run < 0";
        text(&engine(&tables).args(["--sql", sql, "--format", form]).output().unwrap()).0
    };
    assert_eq!((none("csv"), none("json"), none("table")), ("run\n".into(), "[]\n".into(), "run\n".into()));
    let limited =
        engine(&tables).args(["--sql", "SELECT location FROM location", "--rows", "2"]).output().unwrap();
    assert_eq!(text(&limited).0.lines().count(), 3);
    assert!(text(&limited).1.starts_with("note: 2 of "), "{limited:?}");
    let plan = text(&engine(&tables).args(["--sql", sql, "--explain"]).output().unwrap()).0;
    assert!(plan.contains("logical_plan:\n") && plan.contains("physical_plan:\n"), "{plan}");
}

/// Rows of a table, in one order.
fn rows(tables: &Path, table: &str) -> Vec<String> {
    let sql = format!("SELECT * FROM {table}");
    let output = engine(tables).args(["--sql", &sql, "--format", "csv"]).output().unwrap();
    assert!(output.status.success(), "{table}: {output:?}");
    let mut lines: Vec<String> = text(&output).0.lines().map(str::to_owned).collect();
    lines[1..].sort_unstable();
    lines
}

#[test]
fn columns_of_the_manifest_are_those_of_the_files() {
    let place = tempfile::tempdir().unwrap();
    let tables = tables(place.path());
    let path = tables.join("taskscope-tables.json");
    let mut manifest: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let names: Vec<String> = manifest["tables"].as_object().unwrap().keys().cloned().collect();
    let listed: Vec<_> = names.iter().map(|name| rows(&tables, name)).collect();
    for name in &names {
        assert!(manifest["tables"][name].as_object_mut().unwrap().remove("columns").is_some());
    }
    fs::write(&path, manifest.to_string()).unwrap();
    for (name, listed) in names.iter().zip(listed) {
        assert!(listed == rows(&tables, name), "{name}");
    }
}

/// The query, further options, the message.
const ERRORS: &[(&str, &[&str], &[&str])] = &[
    ("SELECT\n  foo FROM state", &[], &["foo", "line 2, column 3:", "try:  taskscope query --tables"]),
    ("SELECT * FROM stat", &[], &["stat", "try:"]),
    ("SELEC 1", &[], &["Expected: an SQL statement, found: SELEC", "line 1, column 1: SELEC 1", "try:"]),
    ("SELECT 1; SELECT 2", &[], &["there are several queries", "try:  one query at a time"]),
    ("  \n", &[], &["the query is empty"]),
    ("CREATE TABLE x AS SELECT 1 AS one", &[], &["refused: it does more than read"]),
    ("COPY run TO '/tmp/taskscope-query-was-here.csv'", &[], &["refused: it does more than read"]),
    ("SET datafusion.execution.batch_size = 1", &[], &["refused: it does more than read"]),
    ("DROP VIEW pop", &[], &["refused: it does more than read"]),
    ("SELECT * FROM '/etc/passwd'", &[], &["table '/etc/passwd' not found"]),
    (
        "SELECT a.run, b.run FROM run a, run b",
        &["--format", "json"],
        &["two columns of the result are named run"],
    ),
    ("SELECT 1", &["--format", "parquet"], &["needs a file", "-o FILE"]),
    ("SELECT 1", &["--output", "/none/x"], &["cannot write /none/x"]),
    ("SELECT 1", &["--cluster", "host"], &["'host' is not the address of a scheduler"]),
    (
        "SELECT 1",
        &["--cluster", "127.0.0.1:1", "--store", "http://host/x"],
        &["'http://host/x' is not a place that executors read", "--store s3://"],
    ),
    ("SELECT 1", &["--store", "s3://bucket/x"], &["--cluster"]),
    ("SELECT 1", &["--cluster", "127.0.0.1:1"], &["cannot reach a scheduler at 127.0.0.1:1"]),
    ("SELECT 1 / (run - run) FROM run", &[], &["ivide by zero"]),
];

#[test]
fn errors_have_a_place_and_a_remedy() {
    let place = tempfile::tempdir().unwrap();
    let tables = tables(place.path());
    for (sql, options, parts) in ERRORS {
        let output = engine(&tables).args(["--sql", sql]).args(*options).output().unwrap();
        let (out, message) = text(&output);
        println!("{message}");
        assert_eq!(output.status.code(), Some(2), "{sql}: {out}{message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{sql}: {message}");
        assert!(message.lines().all(|line| line.len() < 1000) && out.is_empty(), "{sql}: {out}{message}");
    }
    assert!(!Path::new("/tmp/taskscope-query-was-here.csv").exists());
    let nested = format!("SELECT {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    fs::write(place.path().join("nested.sql"), nested).unwrap();
    let output = engine(&tables).arg("--file").arg(place.path().join("nested.sql")).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    for bad in [&b"\xff"[..], &vec![b' '; (1 << 20) + 1]] {
        fs::write(place.path().join("bad.sql"), bad).unwrap();
        let output = engine(&tables).arg("--file").arg(place.path().join("bad.sql")).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{output:?}");
    }
}

#[test]
fn a_closed_pipe_is_success() {
    let place = tempfile::tempdir().unwrap();
    let tables = tables(place.path());
    for form in ["csv", "json"] {
        let sql = "SELECT a.* FROM state a CROSS JOIN state b";
        let mut query = engine(&tables);
        query.args(["--sql", sql, "--format", form]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = query.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{form}: {output:?}");
    }
}
