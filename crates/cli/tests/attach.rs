//! `taskscope attach`: a running process is recorded, and continues undisturbed.

mod common;

use common::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A running program that ends with its input.
struct Running {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

impl Running {
    fn start(here: &Path) -> Running {
        let program = here.join("program");
        Compiler::Gcc.build_file(&program_source("attached.c"), &program, &["-g", "-O2", "-pthread"]);
        let mut command = Command::new(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Running { child, output }
    }

    fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// Ends the program; the rest of its output.
    fn end(mut self) -> String {
        drop(self.child.stdin.take());
        let mut rest = String::new();
        self.output.read_to_string(&mut rest).unwrap();
        assert!(self.child.wait().unwrap().success());
        rest
    }
}

/// Records until each of the process's four threads has samples.
fn attach_until_sampled(here: &Path, program: &Running) -> Child {
    let mut command = taskscope();
    command.current_dir(here).args(["attach", &program.pid(), "--for", "1000", "-o", "trace"]);
    let attached = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let sampled = || {
        let mut count = 0;
        let mut below = vec![here.join("trace")];
        while let Some(directory) = below.pop() {
            for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
                let path = entry.path();
                let is_sampled =
                    path.ends_with("samples.obs") && entry.metadata().is_ok_and(|file| file.len() > 4000);
                count += usize::from(is_sampled);
                below.extend(path.is_dir().then_some(path));
            }
        }
        count
    };
    while sampled() < 4 {
        std::thread::sleep(Duration::from_millis(20));
    }
    attached
}

/// The sum of a value over the call paths that contain a function.
fn sum_in(report: &Value, function: &str, value: &str) -> u64 {
    let paths = report["call_paths"]["paths"].as_array().unwrap().iter();
    let is_in = |path: &&Value| {
        path["frames"].as_array().unwrap().iter().any(|frame| frame.as_str().unwrap().starts_with(function))
    };
    paths.filter(is_in).map(|path| path["values"][value].as_u64().unwrap_or(0)).sum()
}

#[test]
fn a_running_process_is_recorded_and_not_disturbed() {
    let here = tempfile::tempdir().unwrap();
    let program = Running::start(here.path());
    let attached = attach_until_sampled(here.path(), &program);
    kill(Pid::from_raw(attached.id().cast_signed()), Signal::SIGINT).unwrap();
    let attached = attached.wait_with_output().unwrap();
    let summary = text(&attached.stderr);
    assert!(attached.status.success(), "{summary}");
    assert_eq!(program.end(), "0 interrupted\n");

    let trace = here.path().join("trace");
    let report = report(&trace);
    assert_eq!(report["threads"], 4, "{summary}");
    for (function, value) in [("polls", "blocked_ns"), ("waits", "blocked_ns"), ("computes", "work_ns")] {
        assert!(sum_in(&report, function, value) > 0, "{function}: {}", report["call_paths"]);
    }
    assert_eq!(sum_in(&report, "waits", "work_ns"), 0, "{}", report["call_paths"]);
    let names: Vec<&str> = report["thread_splits"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|row| row["label"].as_str())
        .collect();
    for name in ["worker", "server", "idle"] {
        assert!(names.iter().any(|shown| shown.contains(name)), "{name}: {names:?}");
    }
    let check = output(taskscope().arg("check").arg(&trace));
    assert!(check.status.success(), "{}", text(&check.stdout));
    let run = std::fs::read_to_string(trace.join("taskscope-run.json")).unwrap();
    let run: Value = serde_json::from_str(&run).unwrap();
    assert!(run["program"].as_str().unwrap().ends_with("/program"), "{run}");
}

#[test]
fn a_recording_ends_with_its_process() {
    let here = tempfile::tempdir().unwrap();
    let program = Running::start(here.path());
    let attached = attach_until_sampled(here.path(), &program);
    assert_eq!(program.end(), "0 interrupted\n");
    let attached = attached.wait_with_output().unwrap();
    assert!(attached.status.success(), "{}", text(&attached.stderr));
    assert!(sum_in(&report(&here.path().join("trace")), "computes", "work_ns") > 0);
}

#[test]
fn a_process_that_is_not_there_leaves_nothing() {
    let here = tempfile::tempdir().unwrap();
    let run = output(taskscope().current_dir(here.path()).args(["attach", "2147483647", "-o", "trace"]));
    assert_eq!(run.status.code(), Some(2), "{}", text(&run.stderr));
    assert_eq!(text(&run.stderr), "error: process 2147483647 does not exist\n");
    assert!(!here.path().join("trace").exists());
    for arguments in [["0", "--for", "1"], ["1", "--for", "0"], ["1", "--sample", "0"], ["x", "--for", "1"]] {
        let run = output(taskscope().current_dir(here.path()).arg("attach").args(arguments));
        assert_eq!(run.status.code(), Some(2), "{arguments:?}: {}", text(&run.stderr));
    }
}
