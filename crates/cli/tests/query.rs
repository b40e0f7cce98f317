//! `taskscope query` with a stand-in for its engine: arguments, temporary tables, errors. The engine itself is tested by
//! `make test-query`.

mod common;

use common::{output, taskscope, text};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

fn trace(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name)
}

/// A directory with a stand-in for the engine, and one for temporary files.
struct Place(tempfile::TempDir);

impl Place {
    fn with(script: &str) -> Place {
        let place = tempfile::tempdir().unwrap();
        fs::create_dir(place.path().join("tmp")).unwrap();
        let engine = place.path().join("engine");
        fs::write(&engine, format!("#!/bin/sh\nfor last; do :; done\n{script}\n")).unwrap();
        fs::set_permissions(&engine, fs::Permissions::from_mode(0o755)).unwrap();
        Place(place)
    }

    /// `taskscope query` with the stand-in.
    fn query(&self) -> Command {
        let mut command = taskscope();
        command.current_dir(self.0.path()).arg("query");
        command.env("TASKSCOPE_QUERY", self.0.path().join("engine")).env("TMPDIR", self.0.path().join("tmp"));
        command
    }

    fn temporary_files(&self) -> usize {
        fs::read_dir(self.0.path().join("tmp")).unwrap().count()
    }
}

#[test]
fn the_engine_gets_the_query_and_tables_of_a_trace_which_are_removed() {
    let place = Place::with(
        "test -f \"$last/taskscope-tables.json\" && test -d \"$last/state\" && printf '%s\\n' \"$@\"\nexit 7",
    );
    let shown = output(place.query().arg(trace("lock")).args([
        "SELECT 1 -- one\n + 1",
        "--format",
        "csv",
        "-o",
        "x y",
    ]));
    assert_eq!(shown.status.code(), Some(7));
    let text = text(&shown.stdout);
    let expected = "--sql=SELECT 1 -- one\n + 1\n--format=csv\n--rows=1000\n--output=x y\n--\n";
    let (arguments, tables) = text.split_at(expected.len());
    assert_eq!(arguments, expected);
    assert!(!Path::new(tables.trim_end()).exists(), "{tables}");
    assert_eq!(place.temporary_files(), 0);
}

#[test]
fn tables_are_queried_in_place_and_recipes_by_name() {
    let place = Place::with("printf '%s\\n' \"$@\"");
    let tables = place.0.path().join("lock.tables");
    output(taskscope().args(["export", "--to", "parquet", "-o"]).arg(&tables).arg(trace("lock")));
    let shown =
        output(place.query().args(["lock.tables", "--recipe", "trust", "--explain", "--cluster", "host:1"]));
    let lines = text(&shown.stdout);
    assert!(lines.starts_with("--sql=-- How far can each run be trusted"), "{lines}");
    assert!(lines.ends_with("--explain\n--cluster=host:1\n--\nlock.tables\n"), "{lines}");
    let at_store = ["lock.tables", "SELECT 1", "--cluster", "host:1", "--store", "s3://bucket/lock.tables"];
    let shown = output(place.query().args(at_store));
    assert!(
        text(&shown.stdout).contains("--cluster=host:1\n--store=s3://bucket/lock.tables\n--\n"),
        "{shown:?}"
    );
    let shown = output(place.query().args(["lock.tables", "--file", "-", "--rows", "0"]));
    assert_eq!(text(&shown.stdout), "--file=-\n--format=table\n--rows=0\n--\nlock.tables\n");
    // The only argument is the query; the trace is the newest one in the directory.
    let shown = output(place.query().current_dir(trace("lock")).arg("SELECT 1 AS one"));
    assert!(text(&shown.stdout).starts_with("--sql=SELECT 1 AS one\n"), "{shown:?}");
    assert_eq!(place.temporary_files(), 0);
}

#[test]
fn impossible_queries_are_errors_with_a_remedy() {
    let place = Place::with("echo ran");
    let tables = place.0.path().join("lock.tables");
    output(taskscope().args(["export", "--to", "parquet", "-o"]).arg(&tables).arg(trace("lock")));
    let lock = trace("lock");
    let lock = lock.to_str().unwrap();
    let cases: &[(&[&str], &str, &str)] = &[
        (&["none"], "cannot open none", ""),
        (&[lock], "no query is given", "--recipe"),
        (&[lock, "--recipe", "none"], "no stored query is named none", "taskscope query --recipe"),
        (&["--tables", "none"], "no table or view is named none", "taskscope query --tables"),
        (
            &["lock.tables", "SELECT 1", "--range", "0%..1%"],
            "--range and --where are for traces",
            "export --to",
        ),
        (
            &[lock, "SELECT 1", "--cluster", "host:1"],
            "--cluster needs a directory of tables",
            "export --to parquet",
        ),
        (&["lock.tables", "SELECT 1", "--store", "s3://bucket/lock.tables"], "--cluster", ""),
        (&["engine", "SELECT 1"], "error: ", ""),
    ];
    for (arguments, error, remedy) in cases {
        let shown = output(place.query().args(*arguments));
        let message = text(&shown.stderr);
        assert_eq!(shown.status.code(), Some(2), "{arguments:?}");
        assert!(message.contains(error) && message.contains(remedy) && shown.stdout.is_empty(), "{message}");
    }
    assert_eq!(place.temporary_files(), 0);
}

#[test]
fn a_missing_engine_is_reported_with_the_way_to_get_it() {
    let place = Place::with("");
    let shown = output(place.query().env("TASKSCOPE_QUERY", "/none").arg(trace("lock")).arg("SELECT 1"));
    assert!(text(&shown.stderr).contains("TASKSCOPE_QUERY names /none"), "{shown:?}");
    // A command with nothing beside it.
    let own = place.0.path().join("taskscope");
    fs::copy(env!("CARGO_BIN_EXE_taskscope"), &own).unwrap();
    let shown = output(Command::new(&own).args(["query", "x", "SELECT 1"]).env_remove("TASKSCOPE_QUERY"));
    let message = text(&shown.stderr);
    assert!(message.contains("SQL needs taskscope-query, which is not installed"), "{message}");
    assert!(message.contains("try:  make query"), "{message}");
    assert_eq!(shown.status.code(), Some(2));
    // The engine of an installation.
    fs::create_dir_all(place.0.path().join("bin")).unwrap();
    fs::create_dir_all(place.0.path().join("lib/taskscope")).unwrap();
    fs::rename(&own, place.0.path().join("bin/taskscope")).unwrap();
    fs::rename(place.0.path().join("engine"), place.0.path().join("lib/taskscope/taskscope-query")).unwrap();
    let mut installed = Command::new(place.0.path().join("bin/taskscope"));
    assert!(output(installed.arg("query").arg(trace("lock")).arg("SELECT 1")).status.success());
}

#[test]
fn an_engine_that_is_killed_is_an_error() {
    let place = Place::with("kill -9 $$");
    let shown = output(place.query().arg(trace("lock")).arg("SELECT 1"));
    assert!(text(&shown.stderr).contains("taskscope-query was ended by signal 9"), "{shown:?}");
    assert_eq!(place.temporary_files(), 0);
}

#[test]
fn a_signal_ends_the_engine_and_leaves_no_tables() {
    let place = Place::with("echo ready\nexec sleep 600");
    let mut query = place.query();
    let mut child = query.arg(trace("lock")).arg("SELECT 1").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let files = place.temporary_files();
    kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
    let status = child.wait().unwrap();
    assert_eq!((line.as_str(), files), ("ready\n", 1));
    assert_eq!(status.code(), Some(128 + 15), "{status:?}");
    assert_eq!(place.temporary_files(), 0);
}
