//! Functions of Python in call paths.

mod common;

use common::call_paths::{frames, rows};
use common::{output, record, taskscope};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// The system's interpreter, if it is one whose frames are known.
fn python() -> Option<&'static str> {
    const INTERPRETER: &str = "/usr/bin/python3";
    let version =
        Command::new(INTERPRETER).args(["-c", "import sys; print(sys.version_info[1])"]).output().ok()?;
    let minor: u32 = String::from_utf8(version.stdout).ok()?.trim().parse().ok()?;
    let is_known = (9..=13).contains(&minor);
    if !is_known {
        taskscope_prerequisite::skip(format_args!("frames of Python 3.{minor} are not known"));
    }
    is_known.then_some(INTERPRETER)
}

/// A program whose functions call each other directly, and through the interpreter's C code.
const PROGRAM: &str = "\
class Work:
    def inner(self, n):
        total = 0
        for i in range(n):
            total += i * i % 7
        return total

    def outer(self, n):
        return sorted([n, 1], key=lambda x: self.inner(n))

def main(rounds):
    for _ in range(rounds):
        Work().outer(20000)

main(20)
print('done')
";

/// The report in both forms.
fn report(here: &Path, interpreter: &str, options: &[&str]) -> (Value, String) {
    let mut command = record(here);
    command.args(["-o", "trace", "--sample", "1000"]).args(options);
    let printed = output(command.args(["--", interpreter, "work.py"]));
    assert_eq!(String::from_utf8(printed.stdout).unwrap(), "done\n");
    let [json, text] = [&["--json"][..], &["--section", "call-paths", "--width", "120"]]
        .map(|options| output(taskscope().arg("report").args(options).arg(here.join("trace"))).stdout);
    std::fs::remove_dir_all(here.join("trace")).unwrap();
    (serde_json::from_slice(&json).unwrap(), String::from_utf8(text).unwrap())
}

#[test]
fn call_paths_have_functions_of_python() {
    let Some(interpreter) = python() else { return };
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("work.py"), PROGRAM).unwrap();
    // Qualified since 3.11; with the line of the call.
    let expected = [
        ("<module>", ""),
        ("main", "work.py:15"),
        ("outer", "work.py:13"),
        ("<lambda>", "work.py:9"),
        ("inner", "work.py:9"),
    ];
    for options in [&[][..], &["--mode", "profile"]] {
        let (report, text) = report(here.path(), interpreter, options);
        let mut count = 0;
        for path in rows(&report["call_paths"], "paths") {
            let steps = frames(path);
            let Some(inner) = steps.iter().position(|step| step.contains("inner")) else { continue };
            // Nothing of the interpreter is between its functions, or before the first one.
            assert_eq!(inner + 1, expected.len(), "{options:?}: {steps:?}");
            for (step, (function, _)) in steps.iter().zip(expected) {
                assert!(step.contains(function), "{options:?}: {steps:?}");
            }
            count += 1;
        }
        assert!(count > 0, "{options:?}: {}", report["call_paths"]);
        for (function, line) in expected {
            let has_both = |row: &str| row.contains(function) && row.contains(line);
            assert!(text.lines().any(has_both), "{options:?}, {function} {line}: {text}");
        }
    }
}

/// Two threads that take turns: each waits for the interpreter's lock while the other one runs.
const TURNS: &str = "\
import threading

def first(n):
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

def second(n):
    total = 0
    for i in range(n):
        total += i * i % 5
    return total

threads = [threading.Thread(target=routine, args=(1500000,)) for routine in (first, second)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print('done')
";

#[test]
fn the_interpreters_lock_is_held_by_a_function() {
    let Some(interpreter) = python() else { return };
    let here = tempfile::tempdir().unwrap();
    std::fs::write(here.path().join("turns.py"), TURNS).unwrap();
    for mode in ["trace", "profile"] {
        let mut command = record(here.path());
        command.args(["-q", "--threads", "--mode", mode, "-o", mode, "--", interpreter, "turns.py"]);
        assert_eq!(String::from_utf8(output(&mut command).stdout).unwrap(), "done\n");
        let printed = output(taskscope().args(["report", "--json"]).arg(here.path().join(mode)));
        let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
        let waits = report["thread_waits"].as_array().unwrap();
        for (waiting, holding) in [("first", "second"), ("second", "first")] {
            let of = |wait: &&Value| wait["object"] == "GIL" && wait["function"] == waiting;
            let wait = waits.iter().find(of).unwrap_or_else(|| panic!("{mode} {waiting}: {waits:?}"));
            assert_eq!(wait["kind"], "interpreter lock", "{wait}");
            let parts = wait["parts"].as_array().unwrap();
            let ns = |part: &Value| part["ns"].as_u64().unwrap();
            assert_eq!(parts.iter().map(ns).sum::<u64>(), wait["waited_ns"].as_u64().unwrap(), "{wait}");
            let charged = parts.iter().filter(|part| !part["by"].is_null());
            let by = &charged.max_by_key(|part| ns(part)).unwrap()["by"];
            assert_eq!((&by["role"], &by["function"]), (&"holds".into(), &holding.into()), "{mode}: {wait}");
        }
    }
}
