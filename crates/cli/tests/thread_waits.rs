//! Ground truth of waits between threads: programs with culprits known by construction.

mod common;

use common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};
use taskscope_session::Session;
use taskscope_view::page::Page;

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
        Ways::build_c("thread_waits.c")
    }

    fn build_c(name: &str) -> Ways {
        let here = tempfile::tempdir().unwrap();
        let program = here.path().join("program");
        Compiler::Gcc.build_file(&source(name), &program, &["-g", "-O1", "-pthread"]);
        Ways { here, program }
    }

    fn build_cpp(optimisation: &str) -> Ways {
        let here = tempfile::tempdir().unwrap();
        let program = here.path().join("program");
        let mut command = std::process::Command::new("g++");
        command.args(["-std=c++20", "-g", optimisation, "-pthread", "-o"]).arg(&program);
        let run = output(command.arg(source("thread_waits.cpp")));
        assert!(run.status.success());
        Ways { here, program }
    }

    fn build_rust() -> Ways {
        let here = tempfile::tempdir().unwrap();
        let program = here.path().join("program");
        let mut command = std::process::Command::new("rustc");
        command.args(["--edition", "2024", "-g", "-O", "-o"]).arg(&program);
        assert!(output(command.arg(source("thread_waits.rs"))).status.success());
        Ways { here, program }
    }

    /// The waits that the report of a trace has. The program's result and output are those without a recorder.
    fn waits(&self, way: &str) -> Vec<Value> {
        self.waits_in("trace", way)
    }

    /// The same in a mode of recording.
    fn waits_in(&self, mode: &str, way: &str) -> Vec<Value> {
        let mut command = record(self.here.path());
        command.current_dir(self.here.path());
        let recording = if mode == "trace" { way.to_owned() } else { format!("{way}.{mode}") };
        command.args(["-q", "--threads", "--mode", mode, "-o", &recording, "--"]).arg(&self.program).arg(way);
        let run = output(&mut command);
        assert!(run.status.success(), "{way}: {:?} {}", run.status, text(&run.stderr));
        assert_eq!(text(&run.stdout), format!("{way}\n"));
        let mut command = taskscope();
        command.current_dir(self.here.path()).args(["report", "--json", "--section", "waits", &recording]);
        let report: Value = serde_json::from_slice(&output(&mut command).stdout).unwrap();
        let waits = report["thread_waits"].as_array().cloned().unwrap_or_default();
        for wait in &waits {
            let parts: u64 = parts(wait).iter().map(|part| ns(&part["ns"])).sum();
            assert_eq!(parts, ns(&wait["waited_ns"]), "{way}: {wait}");
        }
        waits
    }
}

/// Both charge the same places.
const MODES: [&str; 2] = ["trace", "profile"];

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

/// No thread is charged, and the wait has this end, until the thread could run.
fn assert_own(wait: &Value, end: &str) {
    assert!(parts(wait).iter().all(|part| part["by"].is_null()), "{wait}");
    assert!(parts(wait).iter().any(|part| part["end"] == end), "{wait}");
    assert!(parts(wait).iter().all(|part| part["end"] == end || part["end"] == "no-cpu"), "{wait}");
}

fn assert_blamed(wait: &Value, role: &str, comment: &str) {
    let part = largest(wait);
    assert_eq!(part["by"]["role"], role, "{wait}");
    assert_eq!(part["by"]["line"], line_of(comment), "{wait}");
    // It sleeps most of that time.
    assert!(["sleep", "ran", "no-cpu"].contains(&part["end"].as_str().unwrap()), "{wait}");
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
        for mode in MODES {
            let waits = ways.waits_in(mode, way);
            let wait = at(&waits, kind, waiting);
            assert_eq!(wait["object"], object, "{wait}");
            assert_blamed(wait, "holds", holding);
        }
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
        // The word changes before; no signal of samples ends the wait then.
        ("futex", "futex", "waits for the word", "wakes the word's thread"),
    ];
    for (way, kind, waiting, waking) in cases {
        for mode in MODES {
            assert_blamed(at(&ways.waits_in(mode, way), kind, waiting), "wakes", waking);
        }
    }
}

#[test]
fn each_wait_in_a_loop_is_charged_to_its_own_signal() {
    let ways = Ways::new();
    for mode in MODES {
        let waits = ways.waits_in(mode, "wrong");
        let wait = at(&waits, "condition", "waits for the condition");
        assert_eq!(wait["waits"], 2, "{wait}");
        for comment in ["signals", "signals too early"] {
            let line = line_of(comment);
            let part = parts(wait).iter().find(|part| part["by"]["line"] == line);
            assert!(part.is_some_and(|part| ns(&part["ns"]) > 0), "{mode} {comment}: {wait}");
        }
    }
}

#[test]
fn a_thread_that_signals_and_keeps_the_mutex_is_charged_until_it_releases_that() {
    let ways = Ways::new();
    for mode in MODES {
        let waits = ways.waits_in(mode, "early");
        let wait = at(&waits, "condition", "waits for the condition");
        let line = line_of("signals and holds on");
        let charged = parts(wait).iter().filter(|part| part["by"]["line"] == line);
        // It sleeps for 60 ms before the signal, and again after it.
        assert!(charged.map(|part| ns(&part["ns"])).sum::<u64>() >= 118_000_000, "{mode}: {wait}");
    }
}

/// One of them has the mutex for 60 ms.
#[test]
fn of_two_threads_that_are_woken_at_once_one_waits_for_the_mutex_that_the_other_one_holds() {
    let ways = Ways::new();
    for mode in MODES {
        let waits = ways.waits_in(mode, "herd");
        let woken = at(&waits, "condition", "waits in the herd");
        assert_eq!(largest(woken)["by"]["line"], line_of("wakes the herd"), "{mode}: {woken}");
        let wait = at(&waits, "mutex", "waits in the herd");
        let (held, sleeps) = (line_of("waits in the herd"), line_of("sleeps"));
        let by_holder: Vec<_> = parts(wait).iter().filter(|part| part["by"]["line"] == held).collect();
        // How much of its sleep it was without a CPU, or ran, is the machine's.
        assert!(by_holder.iter().any(|part| part["blocked"]["line"] == sleeps), "{mode}: {wait}");
        assert!(by_holder.iter().map(|part| ns(&part["ns"])).sum::<u64>() >= 58_000_000, "{mode}: {wait}");
        assert!(
            parts(wait).iter().all(|part| part["by"].is_null() || part["by"]["role"] == "holds"),
            "{wait}"
        );
    }
}

#[test]
fn destructors_of_keys_are_a_part_of_the_joined_thread() {
    let ways = Ways::new();
    for mode in MODES {
        let waits = ways.waits_in(mode, "destructor");
        let wait = at(&waits, "thread", "joins in the destructor");
        let joined = parts(wait).iter().filter(|part| part["by"]["role"] == "joined");
        // It sleeps for 60 ms while the other thread waits.
        assert!(joined.map(|part| ns(&part["ns"])).sum::<u64>() >= 60_000_000, "{mode}: {wait}");
    }
}

/// The C library gives a new thread the memory of the one that has ended, and so its thread pointer.
#[test]
fn a_lock_of_a_thread_that_has_ended_is_not_charged_to_a_thread_at_its_address() {
    let ways = Ways::new();
    for mode in MODES {
        let waits = ways.waits_in(mode, "leak");
        let wait = at(&waits, "mutex", "waits for the leaked mutex");
        let part = largest(wait);
        assert_eq!(part["by"]["line"], line_of("takes the mutex and ends"), "{mode}: {wait}");
        assert_eq!((&part["chain"], &part["blocked"]), (&1.into(), &Value::Null), "{mode}: {wait}");
    }
}

#[test]
fn a_join_is_charged_to_the_routine_of_the_joined_thread() {
    let ways = Ways::new();
    for mode in MODES {
        let waits = ways.waits_in(mode, "join");
        let wait = at(&waits, "thread", "joins");
        let by = &largest(wait)["by"];
        assert_eq!((&by["role"], &by["function"]), (&"joined".into(), &"slow_child".into()), "{wait}");
    }
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
        ("-O2", "tail", "condition", "waits for the last call", "signal_last", ""),
        // The place of a thread's routine is that of a call in it.
        ("-O2", "join", "thread", "joins", "slow_child", ""),
        ("-O0", "async", "thread", "waits for the answer", "answer", ""),
    ];
    let (plain, optimised) = (Ways::build_cpp("-O0"), Ways::build_cpp("-O2"));
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
        ("latch", "waits for the latch", "arrive_late", "opens the latch", "trace"),
        ("atomic", "waits for the flag", "set_flag", "notifies", "trace"),
        ("promise", "waits for the promise", "fulfil", "fulfils", "trace"),
        ("promise", "waits for the promise", "fulfil", "fulfils", "profile"),
    ];
    let ways = Ways::build_cpp("-O2");
    for (way, waiting, function, waking, mode) in cases {
        let waits = ways.waits_in(mode, way);
        let at_line = |wait: &&Value| wait["kind"] == "futex" && wait["line"] == line(waiting);
        let wait = waits.iter().find(at_line).unwrap_or_else(|| panic!("{way}: {waits:?}"));
        let by = &largest(wait)["by"];
        assert_eq!((&by["role"], &by["line"]), (&"wakes".into(), &line(waking).into()), "{way}: {wait}");
        assert!(by["function"].as_str().is_some_and(|name| name.starts_with(function)), "{way}: {wait}");
    }
    // The library's own variable, in which threads wait for all barriers, is not the program's.
    for mode in MODES {
        let waits = ways.waits_in(mode, "barrier");
        let waits: Vec<&Value> =
            waits.iter().filter(|wait| wait["line"] == line("waits in the barrier")).collect();
        let is_named = |wait: &&&Value| wait["object"].as_str().is_some_and(|name| !name.starts_with("0x"));
        assert!(!waits.is_empty() && !waits.iter().any(|wait| is_named(&wait)), "{mode}: {waits:?}");
    }
    let ways = Ways::build_rust();
    let line = |comment: &str| line_in("thread_waits.rs", comment);
    for (way, waiting, waking, mode) in [
        ("mutex", "waits for the mutex", "releases the mutex", "trace"),
        ("channel", "receives", "sends", "trace"),
        ("channel", "receives", "sends", "profile"),
    ] {
        let waits = ways.waits_in(mode, way);
        let at_line = |wait: &&Value| wait["kind"] == "futex" && wait["line"] == line(waiting);
        let wait = waits.iter().find(at_line).unwrap_or_else(|| panic!("{way}: {waits:?}"));
        assert_eq!(largest(wait)["by"]["line"], line(waking), "{way}: {wait}");
    }
}

/// The wait of a kind at a marked line of a program in C.
fn wait_in<'a>(waits: &'a [Value], program: &str, kind: &str, comment: &str) -> &'a Value {
    let line = line_in(program, comment);
    let found = waits.iter().find(|wait| wait["kind"] == kind && wait["line"] == line);
    found.unwrap_or_else(|| panic!("no {kind} at line {line}: {waits:?}"))
}

/// At least 95 % of the time that is charged to other threads is charged to this line.
fn assert_charged(wait: &Value, line: u64) {
    let charged = |part: &&Value| !part["by"].is_null();
    let all: u64 = parts(wait).iter().filter(charged).map(|part| ns(&part["ns"])).sum();
    let at_line = |part: &&Value| part["by"]["line"] == line;
    let known: u64 = parts(wait).iter().filter(at_line).map(|part| ns(&part["ns"])).sum();
    assert!(known > 0 && known * 100 >= all * 95, "{known} of {all} ns at line {line}: {wait}");
}

#[test]
fn waits_for_channels_of_the_process_are_charged_to_the_thread_at_the_other_end() {
    const PROGRAM: &str = "thread_channels.c";
    let cases = [
        ("pipe", "pipe", "reads", "writes"),
        ("copy", "pipe", "reads", "writes to the copy"),
        ("close", "pipe", "reads", "closes"),
        ("full", "full pipe", "waits for room", "makes room"),
        ("event", "eventfd", "reads the counter", "writes"),
        ("pair", "socket pair", "receives", "writes"),
        ("poll", "pipe", "polls", "writes"),
        ("select", "pipe", "selects", "writes"),
        ("epoll", "eventfd", "waits for events", "writes"),
        ("timed", "semaphore", "waits for an item", "posts"),
        ("once", "once", "waits for the routine", "runs the routine"),
        ("signal", "signal", "waits for a signal", "signals"),
        ("handler", "signal", "waits for a handler", "signals"),
        ("message", "message queue", "waits for a message", "sends"),
        ("room", "full message queue", "waits for room in the queue", "takes a message"),
        ("posix", "message queue", "receives a message", "sends to the posix queue"),
        ("set", "semaphore set", "waits for the set", "posts to the set"),
    ];
    let ways = Ways::build_c(PROGRAM);
    for (way, kind, waiting, waking) in cases {
        let has_both = ["pipe", "full", "timed", "once", "signal"].contains(&way);
        for mode in MODES.iter().take(1 + usize::from(has_both)) {
            let waits = ways.waits_in(mode, way);
            assert_charged(wait_in(&waits, PROGRAM, kind, waiting), line_in(PROGRAM, waking));
        }
    }
}

#[test]
fn waits_for_other_processes_are_charged_to_no_thread() {
    const PROGRAM: &str = "thread_channels.c";
    let cases = [
        ("child", "pipe", "reads from a child"),
        ("wait", "other process", "waits for a child"),
        ("system", "other process", "runs a command"),
        ("pclose", "other process", "closes a command"),
        ("flock", "file lock", "locks the file"),
        ("alarm", "signal", "waits for a signal"),
    ];
    let ways = Ways::build_c(PROGRAM);
    for (way, kind, waiting) in cases {
        let waits = ways.waits(way);
        let wait = wait_in(&waits, PROGRAM, kind, waiting);
        assert_own(wait, "outside");
    }
}

#[test]
fn a_pipe_that_holds_data_is_not_waited_for() {
    let waits = Ways::build_c("thread_channels.c").waits("free");
    assert!(waits.iter().all(|wait| wait["kind"] != "pipe"), "{waits:?}");
}

#[test]
fn culprits_by_construction_have_at_least_95_percent_of_the_charged_time() {
    let cases = [
        ("starved_consumer.c", "condition", "starves", "delivers", 3),
        ("lock_convoy.c", "mutex", "takes its turn", "takes its turn", 3),
        ("inversion.c", "mutex", "is urgent", "holds the lock", 1),
    ];
    for (program, kind, waiting, blamed, least_waits) in cases {
        let ways = Ways::build_c(program);
        for mode in MODES {
            let waits = ways.waits_in(mode, "run");
            let wait = wait_in(&waits, program, kind, waiting);
            assert_charged(wait, line_in(program, blamed));
            assert!(wait["waits"].as_u64() >= Some(least_waits), "{mode}: {wait}");
        }
    }
}

#[test]
fn the_root_of_an_inversion_is_the_third_thread() {
    const PROGRAM: &str = "inversion.c";
    let ways = Ways::build_c(PROGRAM);
    for mode in MODES {
        let waits = ways.waits_in(mode, "run");
        let wait = wait_in(&waits, PROGRAM, "mutex", "is urgent");
        let sum = |is: &dyn Fn(&Value) -> bool| -> u64 {
            parts(wait).iter().filter(|part| is(part)).map(|part| ns(&part["ns"])).sum()
        };
        let root = line_in(PROGRAM, "has worked");
        let charged = sum(&|part| !part["by"].is_null());
        let root_ns = sum(&|part| part["root"]["line"] == root);
        let largest = largest(wait);
        assert_eq!((&largest["root"]["line"], &largest["chain"]), (&root.into(), &2.into()), "{wait}");
        // The third thread has worked for 60 ms; what the minor one does before it releases the lock is its own.
        assert!(root_ns >= 60_000_000 && root_ns <= charged, "{mode}: {wait}");
    }
}

#[test]
fn each_reader_is_charged_from_the_end_of_the_one_before() {
    const PROGRAM: &str = "several_readers.c";
    let ways = Ways::build_c(PROGRAM);
    for mode in MODES {
        let waits = ways.waits_in(mode, "run");
        let wait = wait_in(&waits, PROGRAM, "read-write lock", "writes");
        let at = |comment| {
            let line = line_in(PROGRAM, comment);
            let line_parts = parts(wait).iter().filter(|part| part["by"]["line"] == line);
            line_parts.map(|part| ns(&part["ns"])).sum::<u64>()
        };
        let readers = ["reads first", "reads second", "reads third"].map(at);
        let charged = parts(wait).iter().filter(|part| !part["by"].is_null());
        assert_eq!(readers.iter().sum::<u64>(), charged.map(|part| ns(&part["ns"])).sum::<u64>(), "{wait}");
        // Each has worked for 60 ms while the writer waited.
        assert!(readers.iter().all(|ns| *ns >= 50_000_000), "{mode} {readers:?}: {wait}");
    }
}

#[test]
fn waits_for_the_disk_are_outside_and_as_long_as_the_program_measures() {
    const PROGRAM: &str = "disk_wait.c";
    let ways = Ways::build_c(PROGRAM);
    let mut command = record(ways.here.path());
    let run = output(command.args(["-q", "--threads", "-o", "run", "--"]).arg(&ways.program));
    let printed = text(&run.stdout);
    let mut numbers = printed.split_whitespace().map(|number| number.parse::<u64>().unwrap());
    let (waited, all) = (numbers.next().unwrap(), numbers.next().unwrap());
    let report = report(&ways.here.path().join("run"));
    let line = line_in(PROGRAM, "writes through");
    let waits = report["thread_waits"].as_array().cloned().unwrap_or_default();
    let found = waits.iter().find(|wait| wait["kind"] == "file" && wait["line"] == line);
    let Some(wait) = found else { return assert_eq!(waited, 0, "{waits:?}") };
    assert_own(wait, "outside");
    assert!(ns(&wait["waited_ns"]) <= all, "{all} ns: {wait}");
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
    assert_own(sleep, "sleep");
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

/// The housekeeping thread stores the newest times off the CPU before the process ends.
#[test]
fn scheduling_is_complete_after_an_immediate_end() {
    let ways = Ways::new();
    // Waiting for that thread is not the program's.
    assert_eq!(ways.waits("leave"), [Value::Null; 0]);
    let find = output(
        std::process::Command::new("find")
            .arg(ways.here.path().join("leave"))
            .args(["-path", "*/os-time/*.json"]),
    );
    let found = text(&find.stdout);
    let [path] = found.lines().collect::<Vec<_>>()[..] else {
        // The system has no such times.
        return assert_eq!(found, "");
    };
    let metadata = std::fs::read_to_string(path).unwrap();
    assert!(metadata.contains("\"finished\""), "{metadata}");
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
    // The viewer has the same names: short ones in bars, and with their lines in the panel.
    let page = Page::analysed(Session::open(ways.here.path().join("mutex")).unwrap());
    let list = page.nested_list();
    let (value, _) = list.values.iter().find(|(_, name)| name == "mutex cache_mutex, held by evict").unwrap();
    let found = list.rows.iter().find_map(|row| {
        let after = |at| page.nested_at(row.track as u32, at, Some(true));
        std::iter::successors(after(0), |last| after(last.start)).find(|interval| interval.value == *value)
    });
    let wait = found.expect("the wait has a row").thread_wait.unwrap();
    assert_eq!(wait.object, "mutex cache_mutex");
    assert_eq!(format!("held by {}", wait.holders[0].call), holder);
    // A report in one file has the same rows and names.
    let data = page_data(&taskscope_view::html::report(&Page::reported(
        Session::open(ways.here.path().join("mutex")).unwrap(),
    )));
    assert_eq!(data["nested"]["list"], serde_json::json!(list.rows));
    assert_eq!(data["nested"]["values"], serde_json::json!(list.values));
}

/// The overview in a report.
fn page_data(html: &str) -> serde_json::Value {
    let start = html.split_once("id=\"overview\">").unwrap().1;
    serde_json::from_str(start.split_once("</script>").unwrap().0).unwrap()
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
fn findings_of_a_profile_name_the_lock_and_sum_to_the_capacity() {
    let ways = Ways::new();
    ways.waits_in("profile", "chain");
    let profile = ways.here.path().join("chain.profile");
    let report = report(&profile);
    let findings = report["findings"].as_array().unwrap();
    let sum: u64 = findings.iter().map(|finding| ns(&finding["ns"])).sum();
    let base = ns(&report["findings_base_ns"]);
    match report["findings_of"].as_str() {
        Some("cpus") => {
            assert_eq!(sum + ns(&report["cpu_time"]["used_ns"]), base);
            // The report calls the rest no work: it is what the recorder has found to be that.
            let no_work_findings = findings.iter().filter(|finding| finding["pattern"] == "no-work");
            let no_work: u64 = no_work_findings.map(|finding| ns(&finding["ns"])).sum();
            let recorded = ns(&report["call_paths"]["run_totals"]["cpus.idle_ns"]);
            assert!(no_work.abs_diff(recorded) < 1_000_000, "{no_work} {recorded}");
        }
        // The system does not sum up times without a CPU.
        of => assert_eq!((of, sum), (Some("threads"), base)),
    }
    let lock =
        findings.iter().find(|finding| finding["text"].as_str().unwrap().contains("mutex second_mutex"));
    let lock = lock.unwrap_or_else(|| panic!("{findings:?}"));
    assert_eq!(lock["cause"], "lock", "{lock}");
    let root = format!("held by evict [lock at thread_waits.c:{}]", line_of("holds the mutex"));
    assert!(lock["text"].as_str().unwrap().contains(&root), "{lock}");
    let id = lock["id"].as_str().unwrap();
    let explained = output(taskscope().args(["explain", id]).arg(&profile));
    let shown = text(&explained.stdout);
    assert!(explained.status.success() && shown.contains("second_mutex"), "{shown}");
    let shown = text(&output(taskscope().args(["report", "--section", "waits"]).arg(&profile)).stdout);
    assert!(shown.contains("mutex cache_mutex: between [lock at "), "{shown}");
}

/// Its time begins at the fork, and is what it has used. One that runs another program at once is no process of its own.
#[test]
fn children_that_only_compute_have_their_time() {
    let ways = Ways::build_c("silent_children.c");
    let mut command = record(ways.here.path());
    let run = output(command.args(["-q", "--threads", "-o", "run", "--"]).arg(&ways.program));
    assert!(run.status.success(), "{:?} {}", run.status, text(&run.stderr));
    let printed = text(&run.stdout);
    let used: u64 = printed.lines().map(|line| line.parse::<u64>().unwrap()).sum();
    let report = report(&ways.here.path().join("run"));
    // The program, two children, and `true`.
    assert_eq!((&report["processes"], &report["problems"]), (&4.into(), &serde_json::json!([])), "{report}");
    let cpu_time = &report["cpu_time"];
    // The system does not sum up the times of threads.
    if !cpu_time.is_null() {
        assert!(ns(&cpu_time["used_ns"]) >= used / 10 * 9, "{used} {cpu_time}");
    }
}

#[test]
fn lists_that_are_not_there_are_refused_as_alone() {
    let here = tempfile::tempdir().unwrap();
    let program = here.path().join("program");
    Compiler::Gcc.build_file(&source("bad_lists.c"), &program, &["-O1", "-w"]);
    let alone = output(&mut std::process::Command::new(&program));
    let mut command = record(here.path());
    let recorded = output(command.args(["-q", "--threads", "-o", "trace", "--"]).arg(&program));
    assert_eq!(recorded.status.code(), Some(0));
    assert_eq!(text(&recorded.stdout), text(&alone.stdout));
    assert!(text(&alone.stdout).contains(&format!("poll nowhere -1 {}", nix::libc::EFAULT)));
}
