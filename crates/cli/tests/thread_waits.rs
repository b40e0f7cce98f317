//! Ground truth of waits between threads: programs with culprits known by construction.

mod common;

use common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The line of the program that has this comment.
fn line_in(name: &str, comment: &str) -> u64 {
    let text = std::fs::read_to_string(source(name)).unwrap();
    let marked = format!("/* {comment} */");
    let line = text.lines().position(|line| line.contains(&marked)).unwrap_or_else(|| panic!("no {marked}"));
    line as u64 + 1
}

fn line_of(comment: &str) -> u64 {
    line_in("thread_waits.c", comment)
}

struct Ways {
    here: tempfile::TempDir,
    program: PathBuf,
}

impl Ways {
    fn new() -> Ways {
        let here = tempfile::tempdir().unwrap();
        let program = here.path().join("program");
        Compiler::Gcc.build_file(&source("thread_waits.c"), &program, &["-g", "-O1", "-pthread"]);
        Ways { here, program }
    }

    fn of_cpp(optimisation: &str) -> Ways {
        let here = tempfile::tempdir().unwrap();
        let program = here.path().join("program");
        let mut command = std::process::Command::new("g++");
        command.args(["-std=c++20", "-g", optimisation, "-pthread", "-o"]).arg(&program);
        let run = output(command.arg(source("thread_waits.cpp")));
        assert!(run.status.success());
        Ways { here, program }
    }

    fn of_rust() -> Ways {
        let here = tempfile::tempdir().unwrap();
        let program = here.path().join("program");
        let mut command = std::process::Command::new("rustc");
        command.args(["--edition", "2024", "-g", "-O", "-o"]).arg(&program);
        assert!(output(command.arg(source("thread_waits.rs"))).status.success());
        Ways { here, program }
    }

    /// The waits that the report of a run has. The program's result and output are those without a recorder.
    fn waits(&self, way: &str) -> Vec<Value> {
        let mut command = record(self.here.path());
        command.args(["-q", "--threads", "-o", way, "--"]).arg(&self.program).arg(way);
        let run = output(&mut command);
        assert!(run.status.success(), "{way}: {:?} {}", run.status, text(&run.stderr));
        assert_eq!(text(&run.stdout), format!("{way}\n"));
        let report = report(&self.here.path().join(way));
        let waits = report["thread_waits"].as_array().cloned().unwrap_or_default();
        for wait in &waits {
            let parts: u64 = parts(wait).iter().map(|part| ns(&part["ns"])).sum();
            assert_eq!(parts, ns(&wait["waited_ns"]), "{way}: {wait}");
        }
        waits
    }
}

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is not a time"))
}

fn parts(wait: &Value) -> &[Value] {
    wait["parts"].as_array().unwrap()
}

/// The waits of a kind in the call at a line.
fn at<'a>(waits: &'a [Value], kind: &str, comment: &str) -> &'a Value {
    let line = line_of(comment);
    let found = waits.iter().find(|wait| wait["kind"] == kind && wait["line"] == line);
    found.unwrap_or_else(|| panic!("no {kind} at line {line}: {waits:?}"))
}

/// The largest part that is another thread's doing.
fn largest(wait: &Value) -> &Value {
    let found = parts(wait).iter().filter(|part| !part["by"].is_null()).max_by_key(|part| ns(&part["ns"]));
    found.unwrap_or_else(|| panic!("nobody: {wait}"))
}

fn assert_blamed(wait: &Value, role: &str, comment: &str) {
    let part = largest(wait);
    assert_eq!(part["by"]["role"], role, "{wait}");
    assert_eq!(part["by"]["line"], line_of(comment), "{wait}");
    // It sleeps most of that time.
    assert!(part["end"] == "sleep" || part["end"] == "ran", "{wait}");
    assert_eq!(part["chain"], 1, "{wait}");
}

#[test]
fn waits_for_locks_are_charged_to_the_place_that_took_them() {
    let ways = Ways::new();
    let cases = [
        ("mutex", "mutex", "cache_mutex", "waits for the mutex", "holds the mutex"),
        (
            "recursive",
            "mutex",
            "recursive_mutex",
            "waits for the recursive mutex",
            "holds the recursive mutex",
        ),
        ("c11", "mutex", "c11_mutex", "waits for the mutex of C11", "holds the mutex of C11"),
        ("write", "read-write lock", "table_lock", "waits to write", "holds the table to read"),
        ("read", "read-write lock", "table_lock", "waits to read", "holds the table to write"),
        ("spin", "spin lock", "spin_lock", "spins", "holds the spin lock"),
    ];
    for (way, kind, object, waiting, holding) in cases {
        let waits = ways.waits(way);
        let wait = at(&waits, kind, waiting);
        assert_eq!(wait["object"], object, "{wait}");
        assert_blamed(wait, "holds", holding);
    }
}

#[test]
fn a_wait_that_times_out_is_charged_to_the_holder() {
    let waits = Ways::new().waits("timed");
    let wait = waits.iter().find(|wait| wait["kind"] == "mutex").unwrap();
    assert_blamed(wait, "holds", "holds the mutex");
}

#[test]
fn other_waits_are_charged_to_the_thread_that_ended_them() {
    let ways = Ways::new();
    let cases = [
        ("condition", "condition", "waits for the condition", "signals"),
        ("barrier", "barrier", "waits in the barrier", "comes last"),
        ("semaphore", "semaphore", "waits for an item", "posts"),
    ];
    for (way, kind, waiting, waking) in cases {
        assert_blamed(at(&ways.waits(way), kind, waiting), "wakes", waking);
    }
}

#[test]
fn each_wait_in_a_loop_is_charged_to_its_own_signal() {
    let waits = Ways::new().waits("wrong");
    let wait = at(&waits, "condition", "waits for the condition");
    assert_eq!(wait["waits"], 2, "{wait}");
    for comment in ["signals", "signals too early"] {
        let line = line_of(comment);
        let part = parts(wait).iter().find(|part| part["by"]["line"] == line);
        assert!(part.is_some_and(|part| ns(&part["ns"]) > 0), "{comment}: {wait}");
    }
}

#[test]
fn a_join_is_charged_to_the_routine_of_the_joined_thread() {
    let waits = Ways::new().waits("join");
    let wait = at(&waits, "thread", "joins");
    let part = largest(wait);
    assert_eq!(
        (&part["by"]["role"], &part["by"]["function"]),
        (&"joined".into(), &"slow_child".into()),
        "{wait}"
    );
}

/// In headers and libraries of the language, a wait is named after the program's code that calls them. A lock that is taken there
/// is named after its release if the compiler has not inlined the functions.
#[test]
fn waits_in_the_library_of_cpp_are_named_after_their_callers() {
    let line = |comment: &str| line_in("thread_waits.cpp", comment);
    let cases = [
        ("-O0", "mutex", "mutex", "waits for the mutex", "evict", "releases the mutex"),
        ("-O2", "mutex", "mutex", "waits for the mutex", "evict", "holds the mutex"),
        ("-O2", "condition", "condition", "waits for the condition", "produce", "signals"),
        // The place of a thread's routine is that of a call in it.
        ("-O2", "join", "thread", "joins", "slow_child", ""),
        ("-O0", "async", "thread", "waits for the answer", "answer", ""),
    ];
    let (plain, optimised) = (Ways::of_cpp("-O0"), Ways::of_cpp("-O2"));
    for (optimisation, way, kind, waiting, function, blamed) in cases {
        let waits = if optimisation == "-O0" { plain.waits(way) } else { optimised.waits(way) };
        let at_line = |wait: &&Value| wait["kind"] == kind && wait["line"] == line(waiting);
        let wait = waits.iter().find(at_line).unwrap_or_else(|| panic!("{optimisation} {way}: {waits:?}"));
        assert_eq!(wait["function"], "main", "{wait}");
        let by = &largest(wait)["by"];
        let name = by["function"].as_str().and_then(|name| name.split('(').next());
        assert_eq!(name, Some(function), "{optimisation} {way}: {wait}");
        assert!(blamed.is_empty() || by["line"] == line(blamed), "{optimisation} {way}: {wait}");
    }
}

#[test]
fn futex_waits_of_cpp_and_rust_are_charged_to_the_thread_that_wakes() {
    let line = |comment: &str| line_in("thread_waits.cpp", comment);
    let cases = [
        ("latch", "waits for the latch", "arrive_late", "opens the latch"),
        ("atomic", "waits for the flag", "set_flag", "notifies"),
        ("promise", "waits for the promise", "fulfil", "fulfils"),
    ];
    let ways = Ways::of_cpp("-O2");
    for (way, waiting, function, waking) in cases {
        let waits = ways.waits(way);
        let at_line = |wait: &&Value| wait["kind"] == "futex" && wait["line"] == line(waiting);
        let wait = waits.iter().find(at_line).unwrap_or_else(|| panic!("{way}: {waits:?}"));
        let by = &largest(wait)["by"];
        assert_eq!((&by["role"], &by["line"]), (&"wakes".into(), &line(waking).into()), "{way}: {wait}");
        assert!(by["function"].as_str().is_some_and(|name| name.starts_with(function)), "{way}: {wait}");
    }
    let ways = Ways::of_rust();
    let line = |comment: &str| line_in("thread_waits.rs", comment);
    for (way, waiting, waking) in
        [("mutex", "waits for the mutex", "releases the mutex"), ("channel", "receives", "sends")]
    {
        let waits = ways.waits(way);
        let at_line = |wait: &&Value| wait["kind"] == "futex" && wait["line"] == line(waiting);
        let wait = waits.iter().find(at_line).unwrap_or_else(|| panic!("{way}: {waits:?}"));
        assert_eq!(largest(wait)["by"]["line"], line(waking), "{way}: {wait}");
    }
}

#[test]
fn sleep_is_the_doing_of_the_thread_that_sleeps() {
    let waits = Ways::new().waits("mutex");
    let part = largest(at(&waits, "mutex", "waits for the mutex"));
    assert_eq!(
        (&part["end"], &part["blocked"]["line"]),
        (&"sleep".into(), &line_of("sleeps").into()),
        "{part}"
    );
    let sleep = at(&waits, "sleep", "sleeps");
    assert!(parts(sleep).iter().all(|part| part["end"] == "sleep" && part["by"].is_null()), "{sleep}");
}

#[test]
fn chains_are_followed_over_threads_to_their_root() {
    let waits = Ways::new().waits("chain");
    let wait = at(&waits, "mutex", "waits at the end of the chain");
    let part = largest(wait);
    assert_eq!(part["chain"], 2, "{wait}");
    assert_eq!(part["by"]["line"], line_of("holds the second mutex"), "{wait}");
    assert_eq!(part["root"]["line"], line_of("holds the mutex"), "{wait}");
}

#[test]
fn calls_that_do_not_wait_make_no_event() {
    assert_eq!(Ways::new().waits("free"), [Value::Null; 0]);
}

#[test]
fn a_cancelled_wait_ends_and_the_thread_still_unlocks() {
    let waits = Ways::new().waits("cancel");
    assert!(waits.iter().any(|wait| wait["kind"] == "condition" && wait["waits"] == 1), "{waits:?}");
}

#[test]
fn the_text_names_the_lock_and_its_holder() {
    let ways = Ways::new();
    ways.waits("mutex");
    let mut command = taskscope();
    let run = output(command.current_dir(ways.here.path()).args(["report", "--section", "waits", "mutex"]));
    let shown = text(&run.stdout);
    let holder = format!("held by evict [lock at thread_waits.c:{}]", line_of("holds the mutex"));
    assert!(shown.contains("mutex cache_mutex: main [lock at ") && shown.contains(&holder), "{shown}");
}

#[test]
fn parts_of_the_time_sum_to_the_whole() {
    let ways = Ways::new();
    let whole = ways.waits("mutex");
    let of = |range: &str| {
        let mut command = taskscope();
        command.current_dir(ways.here.path()).args(["report", "--json", "--range", range, "mutex"]);
        let run = output(&mut command);
        assert!(run.status.success(), "{}", text(&run.stderr));
        let report: Value = serde_json::from_slice(&run.stdout).unwrap();
        let waits = report["thread_waits"].as_array().cloned().unwrap_or_default();
        waits.iter().map(|wait| ns(&wait["waited_ns"])).sum::<u64>()
    };
    let sum: u64 = whole.iter().map(|wait| ns(&wait["waited_ns"])).sum();
    assert_eq!(of("0ms..40ms") + of("40ms.."), sum);
}

#[test]
fn profiles_have_no_waits_of_threads() {
    let here = tempfile::tempdir().unwrap();
    let mut command = record(here.path());
    let run = output(command.args(["--threads", "--mode", "profile", "--", "true"]));
    assert_eq!(run.status.code(), Some(125));
    assert!(text(&run.stderr).contains("--threads is for traces"), "{}", text(&run.stderr));
}
