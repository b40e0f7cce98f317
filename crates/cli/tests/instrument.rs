//! Traces of programs with their own instrumentation: results of `report`, `check`, `dump --shown` and
//! `emulate --nanos`.

use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output};
use taskscope_event::models::instrument as i;
use taskscope_testkit::bytes;
use taskscope_testkit::instrumented::InstrumentedThread as Thread;

fn taskscope(arguments: &[&str], trace: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskscope"));
    command.args(arguments).arg(trace).env("NO_COLOR", "1").output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Two workers. A short task is able to run from 10 µs on, but both workers are taken by long ones until
/// 90 µs; a third one moves from one worker to the other, with a state and a burst open.
fn write_program(root: &Path) {
    let message = |id: u64| bytes![16_u32, u32::MAX, id, 0_u32, 0_u64];
    let first = Thread::new(100, 100)
        .name(0, i::TASK_KIND, &bytes![1_u32, 7_u32], &[b"long", b"src/a.rs"])
        .name(0, i::TASK_KIND, &bytes![2_u32, 9_u32], &[b"short", b"src/a.rs"])
        .name(0, i::KEY, &bytes![1_u32, 2_u32, 0_u32], &[b"cache-malloc", b"allocation", b"bytes"])
        .name(0, i::KEY, &bytes![2_u32, 2_u32, 0_u32], &[b"own \xff key", b"", b""])
        .name(0, i::STATE, &bytes![32_u32, 5_u32], &[b"waiting for the disk", b""])
        .name(0, i::DOMAIN, &bytes![16_u32], &[b"mail", b""])
        .event(0, i::TASK_CREATE, &bytes![1_u64, 1_u32])
        .event(0, i::TASK_CREATE, &bytes![2_u64, 1_u32])
        .event(1, i::TASK_ENTER, &bytes![1_u64])
        .event(2, i::STATE_PUSH, &bytes![12_u32])
        .event(2, i::BURST_OPEN, &bytes![1_u32, 4096_u64])
        .event(10_000, i::TASK_CREATE, &bytes![3_u64, 2_u32])
        .data(10_000, i::SEND, &message(5))
        .event(40_000, i::TASK_LEAVE, &bytes![1_u64])
        .event(40_000, i::STATE_PUSH, &bytes![32_u32])
        .event(50_000, i::STATE_POP, &bytes![32_u32])
        .event(90_000, i::TASK_ENTER, &bytes![3_u64])
        .event(95_000, i::TASK_END, &bytes![3_u64]);
    let second = Thread::new(100, 101)
        .event(5, i::TASK_ENTER, &bytes![2_u64])
        .event(60_000, i::TASK_END, &bytes![2_u64])
        .event(60_000, i::TASK_ENTER, &bytes![1_u64])
        .event(70_000, i::BURST_CLOSE, &bytes![1_u32, 4096_u64])
        .event(70_000, i::STATE_POP, &bytes![12_u32])
        .data(70_000, i::RECEIVE, &message(5))
        .event(90_000, i::TASK_END, &bytes![1_u64]);
    first.write(root);
    second.write(root);
}

#[test]
fn a_report_names_the_task_that_starved_the_others() {
    let folder = tempfile::tempdir().unwrap();
    write_program(folder.path());
    let report = text(&taskscope(&["report"], folder.path()));
    assert!(
        report.contains("long [task at a.rs:7] starved the others most: tasks (3 times) waited"),
        "{report}"
    );
    let json: Value = serde_json::from_str(&text(&taskscope(&["report", "--json"], folder.path()))).unwrap();
    assert_eq!(json["workers"], 2);
    assert_eq!(json["tasks"], 3);
    let starvation = &json["starvation"];
    // Task 3 from 10 to 90 µs; task 2 and task 1 some nanoseconds at the start.
    assert_eq!(starvation["waited_ns"], 80_000 + 5 + 1);
    assert_eq!(starvation["by"][0]["where"], "long [task at a.rs:7]");
    assert_eq!(starvation["by"][0]["longest_ns"], 60_000 - 5);
    assert!(starvation["by"][0]["waited_ns"].as_u64().unwrap() >= 79_999, "{starvation}");
    let causes = json["causes"].as_array().unwrap();
    let cause = |state: &str, place: &str| {
        let row = causes.iter().find(|row| row["state"] == state && row["where"] == place);
        row.unwrap_or_else(|| panic!("{state} {place}: {causes:?}"))["ns"].as_u64().unwrap()
    };
    assert_eq!(cause("lock_wait", "waiting for the disk"), 10_000);
    // The state moved with the task, and its time with it.
    assert_eq!(cause("runtime", "CACHE"), 40_000 - 2 + 10_000);
    let sum: u64 = causes.iter().map(|row| row["ns"].as_u64().unwrap()).sum();
    assert_eq!(sum, json["capacity_ns"].as_u64().unwrap());
}

#[test]
fn sequences_of_threads_and_tasks_have_names() {
    let folder = tempfile::tempdir().unwrap();
    write_program(folder.path());
    assert!(taskscope(&["check"], folder.path()).status.success());
    let task_dump = text(&taskscope(&["dump", "--shown", "task"], folder.path()));
    let first_task_lines: Vec<&str> = task_dump
        .lines()
        .filter(|l| l.contains("  task 1  "))
        .map(|l| l.split("task 1  ").nth(1).unwrap())
        .collect();
    assert_eq!(
        first_task_lines,
        [
            "task 1 (long) is created",
            "task 1 is taken up on thread 100",
            "state CACHE begins",
            "burst cache-malloc = 4096 bytes begins",
            "sends WD_DOMAIN 3",
            "sends mail 5",
            "task 1 is put down",
            "task 1 is taken up on thread 101",
            "burst cache-malloc = 4096 bytes ends",
            "state CACHE ends",
            "receives mail 5",
            "task 1 has ended",
        ]
    );
    let thread_dump = text(&taskscope(&["dump", "--shown", "thread", "--behaviour", "plain"], folder.path()));
    assert!(
        thread_dump.contains("thread.101  state CACHE begins"),
        "shown again on the other thread: {thread_dump}"
    );
    let wrong = taskscope(&["dump", "--shown", "thread", "--behaviour", "flat"], folder.path());
    assert_eq!(wrong.status.code(), Some(2));
    let lines = text(&taskscope(&["dump", "--shown", "task", "--json"], folder.path()));
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
}

#[test]
fn a_trace_given_as_a_behaviour_gets_a_usage_hint() {
    let folder = tempfile::tempdir().unwrap();
    write_program(folder.path());
    let output = taskscope(&["emulate", "--nanos"], folder.path());
    assert_eq!(output.status.code(), Some(2));
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    let command = format!("taskscope emulate {} --nanos", folder.path().display());
    assert!(errors.contains(&command) && errors.contains("stacked-bursts"), "{errors}");
    // The command does its job.
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    let run = Command::new(env!("CARGO_BIN_EXE_taskscope")).args(words).output().unwrap();
    assert!(run.status.success() && folder.path().join("nanos.prv").exists());
}

#[test]
fn paraver_traces_have_the_numbers_of_nanos() {
    let folder = tempfile::tempdir().unwrap();
    write_program(folder.path());
    let to = folder.path().join("out");
    let output = taskscope(&["emulate", "--nanos", "plain", "-o", to.to_str().unwrap()], folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let prv = std::fs::read_to_string(to.join("nanos.prv")).unwrap();
    let records: Vec<&str> = prv.lines().skip(1).collect();
    let has = |record: &str| assert!(records.contains(&record), "{record}\n{prv}");
    has("2:1:1:1:1:2:9000000:12");
    has("2:1:1:1:1:2:9200006:4096");
    has("2:1:1:1:1:1:9200011:1:9200021:1:9200002:1");
    has("2:2:1:1:2:60000:9000000:12");
    has("2:2:1:1:2:70000:9200006:0");
    has("3:1:1:1:1:10000:10000:2:1:1:2:70000:70000:5:16");
    has("3:1:1:1:1:40000:40000:2:1:1:2:60000:60000:1:0");
    has("1:1:1:1:1:40000:50000:5");
    let pcf = std::fs::read_to_string(to.join("nanos.pcf")).unwrap();
    assert!(pcf.contains("0 9200006    cache-malloc: allocation [bytes]"), "{pcf}");
    assert!(pcf.contains("0 9201000    own \\xff key"), "names of any bytes: {pcf}");
    // For a program from PyPI, by others.
    if let Some(ptd) = taskscope_testkit::ptd::install(Path::new(env!("CARGO_TARGET_TMPDIR"))) {
        let output = Command::new(ptd).args(["comprovar", "-e"]).arg(to.join("nanos.prv")).output().unwrap();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
    let times: Vec<u64> =
        records.iter().map(|record| record.split(':').nth(5).unwrap().parse().unwrap()).collect();
    assert!(times.is_sorted());
}

/// A value over time as Paraver's kernel computes it: from each event of a type to the next its value, or, as
/// the configurations for nested types request (`Stacked Val`), the remainder when each 0 ends the newest.
fn semantic(prv: &str, ty: u64, is_stacked: bool) -> Vec<(u64, u64, u64)> {
    let mut stacks: std::collections::BTreeMap<u64, Vec<u64>> = Default::default();
    let mut values = Vec::new();
    for line in prv.lines().filter(|line| line.starts_with("2:")) {
        let fields: Vec<u64> = line.split(':').map(|field| field.parse().unwrap()).collect();
        let stack = stacks.entry(fields[4]).or_default();
        for pair in fields[6..].chunks_exact(2).filter(|pair| pair[0] == ty) {
            match (is_stacked, pair[1]) {
                (true, 0) => drop(stack.pop()),
                (true, value) => stack.push(value),
                (false, value) => *stack = vec![value],
            }
            values.push((fields[5], fields[4], stack.last().copied().unwrap_or(0)));
        }
    }
    // The value that holds until the next event of that time.
    (0..values.len())
        .filter(|row| {
            !values[row + 1..].iter().any(|later| later.0 == values[*row].0 && later.1 == values[*row].1)
        })
        .map(|row| values[row])
        .collect()
}

/// The types and functions of configurations that are published with Nanos++, by their names there.
#[test]
fn published_configurations_show_the_tasks() {
    let folder = tempfile::tempdir().unwrap();
    write_program(folder.path());
    let to = folder.path().join("out");
    let output = taskscope(&["emulate", "-o", to.to_str().unwrap(), "--nanos", "--"], folder.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let prv = std::fs::read_to_string(to.join("nanos.prv")).unwrap();
    let task_names = [
        (1, 1, 1),
        (5, 2, 1),
        (40_000, 1, 0),
        (60_000, 2, 1),
        (90_000, 1, 2),
        (90_000, 2, 0),
        (95_000, 1, 0),
    ];
    let mut shown = semantic(&prv, 9_200_011, true);
    shown.sort_unstable();
    assert_eq!(shown, task_names, "tasks/2dp_tasks, 3dh_duration_task, nb_active_tasks: {prv}");
    let places = semantic(&prv, 9_200_021, true);
    assert_eq!(places.len(), task_names.len(), "tasks/task_name_and_location: {prv}");
    let mut numbers = semantic(&prv, 9_200_002, false);
    numbers.sort_unstable();
    let ids: Vec<u64> = numbers.iter().map(|(.., task)| *task).collect();
    assert_eq!(ids, [1, 2, 0, 1, 3, 0, 0], "tasks/task_number: {prv}");
    assert_eq!(
        semantic(&prv, 9_000_000, true),
        [(2, 1, 12), (40_000, 1, 32), (50_000, 1, 0), (60_000, 2, 12), (70_000, 2, 0)],
        "runtime/thread_state: {prv}"
    );
    let counts =
        |ty| semantic(&prv, ty, false).iter().map(|(at, _, count)| (*at, *count)).collect::<Vec<_>>();
    assert_eq!(
        counts(9_200_022),
        [(0, 2), (1, 1), (5, 0), (10_000, 1), (90_000, 0)],
        "graph_and_scheduling/nb_ready_tasks: {prv}"
    );
    assert_eq!(
        counts(9_200_023),
        [(0, 2), (10_000, 3), (60_000, 2), (90_000, 1), (95_000, 0)],
        "graph_and_scheduling/nb_tasks_in_graph: {prv}"
    );
}

/// Two processes that know a domain and a key by different numbers; one line for each message.
#[test]
fn messages_between_processes_are_lines() {
    let folder = tempfile::tempdir().unwrap();
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/instrument/mail.c");
    let capi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record-capi/include");
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libtaskscope.so");
    let library = folder.path().join("libtaskscope.so.1");
    std::os::unix::fs::symlink(built, &library).unwrap();
    let program = folder.path().join("mail");
    let mut compiler = Command::new("gcc");
    compiler.args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"]).arg(&program).arg(example);
    if !compiler.arg("-I").arg(capi).arg(&library).status().is_ok_and(|status| status.success()) {
        panic!("gcc, which scripts/install-packages installs, cannot build the example");
    }
    let trace = folder.path().join("trace");
    let run = Command::new(program)
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .env("LD_LIBRARY_PATH", folder.path())
        .status();
    assert!(run.unwrap().success());
    let check = taskscope(&["check"], &trace);
    assert!(check.status.success(), "{}{}", text(&check), String::from_utf8_lossy(&check.stderr));

    let to = folder.path().join("out");
    let output = taskscope(&["emulate", "--nanos", "plain", "-o", to.to_str().unwrap()], &trace);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let prv = std::fs::read_to_string(to.join("nanos.prv")).unwrap();
    let lines: Vec<Vec<u64>> = (prv.lines().filter(|line| line.starts_with("3:")))
        .map(|line| line.split(':').map(|field| field.parse().unwrap()).collect())
        .collect();
    assert_eq!(lines.len(), 5, "{prv}");
    for (count, line) in lines.iter().enumerate() {
        let (from, to) = (line[3], line[9]);
        assert!(from != to && from + to == 3, "from one process to the other: {line:?}");
        assert_eq!((line[3], line[13]), (lines[count % 2][3], 1000 + count as u64), "{line:?}");
        assert!(line[5] < line[11], "it is sent before it is received: {line:?}");
        assert_eq!(line[14], lines[0][14], "one domain");
    }
    let shown = text(&taskscope(&["dump", "--shown", "thread"], &trace));
    assert_eq!(shown.matches("sends mail").count(), 5, "{shown}");
    assert_eq!(shown.matches("letter-size = 1003 bytes").count(), 2, "{shown}");

    // The same five are messages of the execution, from process to process.
    let session = taskscope_session::Session::open(&trace).unwrap();
    let execution = &session.execution;
    let communication = &execution.communication;
    assert_eq!(
        (communication.messages.len(), communication.unmatched_sends, communication.unmatched_receives),
        (5, 0, 0)
    );
    for message in &communication.messages {
        let process = |thread: taskscope_execution::ThreadIndex| execution.threads[thread.index()].process;
        assert!(message.sent < message.received && process(message.sender) != process(message.receiver));
    }
}

#[test]
fn check_lists_every_mistake_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let one = Thread::new(100, 100)
        .name(0, i::KEY, &bytes![1_u32, 2_u32, 0_u32], &[b"size", b"of a block", b""])
        .name(0, i::TASK_KIND, &bytes![1_u32, 0_u32], &[b"t", b""])
        .event(1, i::BURST_CLOSE, &bytes![1_u32, 3_u64])
        .event(2, i::POINT, &bytes![99_u32, 3_u64])
        .event(3, i::TASK_CREATE, &bytes![1_u64, 1_u32])
        .event(4, i::TASK_ENTER, &bytes![1_u64])
        .event(5, i::TASK_CREATE, &bytes![1_u64, 1_u32])
        .data(6, i::SEND, &bytes![3_u32, u32::MAX, 7_u64, 0_u32, 0_u64])
        .data(7, i::PROBLEM, &[&bytes![2_u32, 1_u64][..], b"x\0"].concat())
        .data(7, i::PROBLEM, &[&bytes![2_u32, 2_u64][..], b"x\0"].concat())
        .data(8, i::PROBLEM, &[&bytes![2_u32, 3_u64][..], b"x\0"].concat())
        .event(10, i::STATE_PUSH, &bytes![7_u32]);
    let two = Thread::new(100, 101)
        .event(8, i::TASK_ENTER, &bytes![1_u64])
        .event(9, i::TASK_LEAVE, &bytes![1_u64])
        .event(9, i::TASK_LEAVE, &bytes![55_u64]);
    let mut other = Thread::new(200, 200)
        .name(0, i::KEY, &bytes![1_u32, 2_u32, 0_u32], &[b"size", b"of the sea", b""])
        .event(1, i::STATES_SHOW, &[]);
    other.stream.metadata["taskscope"]["late_events"] = 3.into();
    other.stream.metadata["taskscope"]["late_first"] = "IPp 101 2500    ".into();
    one.write(folder.path());
    two.write(folder.path());
    other.write(folder.path());
    let output = taskscope(&["check", "--json"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    let rows: Vec<Value> = text(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let all = format!("{rows:#?}");
    for expected in [
        "burst-close-without-open",
        "key 99 is used and has no name",
        "task-created-twice",
        "task-runs-elsewhere",
        "task-not-on-thread",
        "task-at-thread-end",
        "states-shown-twice",
        "has another meaning in another process",
        "a name was registered again with another meaning: x (3 times)",
        "message 7 of domain \\\"XFER_DATA\\\" is sent 1 times more than received",
        "at least 3 events after it had ended the recording; the first: `IPp` (POINT) on thread 101, 2500 ns after",
    ] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    assert!(rows.iter().filter(|row| row["time_ns"].is_number()).count() >= 8, "{all}");
    assert_eq!(all.matches("with another meaning: x").count(), 1, "a mistake is one, however often: {all}");
    // A report is written despite any error.
    let report = taskscope(&["report"], folder.path());
    assert!(report.status.success());
    assert!(text(&report).contains("mistakes of the program's own instrumentation"), "{}", text(&report));
}

#[test]
fn a_slice_of_a_thread_has_the_names_of_others() {
    let folder = tempfile::tempdir().unwrap();
    Thread::new(100, 100)
        .name(0, i::TASK_KIND, &bytes![1_u32, 7_u32], &[b"long", b"src/a.rs"])
        .name(0, i::KEY, &bytes![1_u32, 2_u32, 0_u32], &[b"size", b"of a block", b""])
        .name(0, i::STATE, &bytes![32_u32, 5_u32], &[b"waiting for the disk", b""])
        .event(0, i::TASK_CREATE, &bytes![2_u64, 1_u32])
        .write(folder.path());
    Thread::new(100, 101)
        .event(5, i::TASK_ENTER, &bytes![2_u64])
        .event(6, i::BURST_OPEN, &bytes![1_u32, 4096_u64])
        .event(6, i::STATE_PUSH, &bytes![32_u32])
        .event(7, i::STATE_POP, &bytes![32_u32])
        .event(8, i::BURST_CLOSE, &bytes![1_u32, 4096_u64])
        .event(9, i::TASK_END, &bytes![2_u64])
        .write(folder.path());
    for part in [["--where", "thread = 101"], ["--threads", "101"]] {
        let cut = tempfile::tempdir().unwrap();
        let sliced =
            taskscope(&["slice", part[0], part[1], "-o", cut.path().to_str().unwrap()], folder.path());
        assert!(sliced.status.success(), "{part:?} {sliced:?}");
        let checked = taskscope(&["check"], cut.path());
        assert!(checked.status.success(), "{part:?} {}", text(&checked));
        let report = text(&taskscope(&["report", "--json"], cut.path()));
        assert!(report.contains("waiting for the disk") && report.contains("long"), "{part:?} {report}");
    }
}

#[test]
fn mismatches_after_a_loss_are_reported_as_one() {
    let folder = tempfile::tempdir().unwrap();
    Thread::new(100, 100)
        .name(0, i::KEY, &bytes![1_u32, 2_u32, 0_u32], &[b"size", b"of a block", b""])
        .event(1, taskscope_event::models::recorder::LOST, &bytes![7_u64, 1_u32])
        .event(2, i::BURST_CLOSE, &bytes![1_u32, 3_u64])
        .event(3, i::TASK_LEAVE, &bytes![9_u64])
        .write(folder.path());
    let output = taskscope(&["check"], folder.path());
    assert!(output.status.success(), "a loss is no mistake");
    let printed = text(&output) + &String::from_utf8_lossy(&output.stderr);
    assert!(printed.contains("2 later events of this process do not fit"), "{printed}");
    assert!(!printed.contains("burst-close-without-open"), "{printed}");
}
