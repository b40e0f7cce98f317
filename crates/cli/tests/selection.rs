//! `--where` and `--range` mean the same in every subcommand; problems are in every header; damage marks the
//! timeline.

use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use taskscope_event::framing::file_header;
use taskscope_event::models::{nosv, ovni, wait};
use taskscope_testkit::bytes;
use taskscope_testkit::trace_builder::{StreamBuilder, pair, push_event, type_payload};

fn taskscope(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_taskscope")).args(arguments).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A worker that runs three tasks of 10 µs each, 10 µs apart, in sections of the scheduler between them.
fn worker(tid: u32, cpu: i32) -> StreamBuilder {
    let mut stream = StreamBuilder::new(0, 1, tid).require(&["ovni", "nosv"]).cpus(2).execute(0, cpu).jumbo(
        1,
        nosv::TYPE_CREATE,
        &type_payload(tid, "work"),
    );
    for number in 0..3u32 {
        let (task, at) = (10 * tid + number, 10_000 + 20_000 * u64::from(number));
        stream = stream
            .event(at - 5, nosv::TASK_CREATE, &pair(task, tid))
            .event(at, nosv::TASK_EXECUTE, &pair(task, 0))
            .event(at + 10_000, nosv::TASK_END, &pair(task, 0))
            .point(at + 11_000, nosv::SCHEDULER_SERVING_BEGIN)
            .point(at + 19_000, nosv::SCHEDULER_SERVING_END);
    }
    stream.end(70_000)
}

fn two_workers() -> (tempfile::TempDir, String) {
    let root = tempfile::tempdir().unwrap();
    worker(101, 0).write(root.path()).unwrap();
    worker(102, 1).write(root.path()).unwrap();
    let path = root.path().to_str().unwrap().to_owned();
    (root, path)
}

fn json(arguments: &[&str]) -> Value {
    let output = taskscope(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", stderr(&output));
    serde_json::from_str(&stdout(&output)).unwrap_or_else(|error| panic!("{arguments:?}: {error}"))
}

/// Codes and counts of the events that `dump` prints: the naive filter is in the caller's hands.
fn dumped(path: &str, keep: impl Fn(&Value) -> bool) -> Vec<Value> {
    let output = taskscope(&["dump", "--json", path]);
    let events =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
    events.into_iter().filter(keep).collect()
}

#[test]
fn one_filter_selects_the_same_events_in_every_verb() {
    let (root, path) = two_workers();
    let (range, filter) = ("20us..45us", "thread = 101 and model = nosv and not name ~ *_CREATE");
    let selected = dumped(&path, |event| {
        let time = event["time_ns"].as_i64().unwrap();
        let name = event["name"].as_str().unwrap();
        event["thread"] == 101
            && (20_000..45_000).contains(&time)
            && !name.ends_with("_CREATE")
            && event["event"].as_str().unwrap().starts_with('V')
    });
    assert!(selected.len() > 3);
    let options = ["--range", range, "--where", filter, &path];
    let with = |verb: &[&'static str]| -> Vec<&str> { verb.iter().copied().chain(options).collect() };

    let output = taskscope(&with(&["dump", "--json"]));
    let printed: Vec<Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(printed, selected);
    let counted = json(&with(&["top", "--json"]));
    let counts = counted["events"].as_array().unwrap().iter().map(|row| row["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), selected.len() as u64);
    for verb in ["report", "info"] {
        assert_eq!(json(&with(&[verb, "--json"]))["events"], selected.len(), "{verb}");
    }
    // Blame depends on events that the filter may have left out.
    let notes = |options: &[&str]| stdout(&taskscope(options)).contains("note filtered: --where");
    assert!(notes(&with(&["report"])));
    assert!(!notes(&["report", "--range", range, &path]));
    let left_out = |options: &[&str]| stdout(&taskscope(options)).contains("--where leaves events out");
    let sections =
        ["ledger", "blame", "diagnosis", "idle", "path", "whatif", "call-paths", "findings", "locks"];
    let others: [&[&str]; 3] =
        [&["report", "--timeline"], &["report", "--section", "blame", "--json"], &["explain", "F1"]];
    let each = sections.iter().map(|section| vec!["report", "--section", section]);
    for verb in each.chain(others.iter().map(|verb| verb.to_vec())) {
        let filtered = [&verb[..], &["--where", "thread = 101", &path]].concat();
        assert!(left_out(&filtered), "{filtered:?}");
        let whole = [&verb[..], &[path.as_str()]].concat();
        assert!(!left_out(&whole), "{whole:?}");
    }
    let paths = json(&["report", "--section", "call-paths", "--json", "--where", "thread = 101", &path]);
    let paths = paths["call_paths"]["notes"].as_array().unwrap();
    assert!(
        paths.iter().any(|note| note.as_str().unwrap().starts_with("--where leaves events out")),
        "{paths:?}"
    );
    // The slice has the selected events, and those that they depend on.
    let sliced = root.path().parent().unwrap().join(format!("{}-slice", root.path().display()));
    let output = taskscope(&["slice", "-o", sliced.to_str().unwrap(), "--where", filter, &path]);
    assert!(output.status.success(), "{}", stderr(&output));
    let kept = dumped(sliced.to_str().unwrap(), |event| !event["event"].as_str().unwrap().starts_with("OH"));
    let whole = dumped(&path, |event| {
        let name = event["name"].as_str().unwrap();
        name.ends_with("_CREATE")
            || (event["thread"] == 101 && !event["event"].as_str().unwrap().starts_with("OH"))
    });
    let codes = |events: &[Value]| -> Vec<(Value, Value)> {
        events.iter().map(|event| (event["time_ns"].clone(), event["event"].clone())).collect()
    };
    assert_eq!(codes(&kept), codes(&whole));
    fs::remove_dir_all(sliced).unwrap();
}

#[test]
fn views_show_the_selected_events() {
    let (root, path) = two_workers();
    let output = taskscope(&["emulate", "--where", "thread = 101 or not model = nosv", &path]);
    assert!(output.status.success() && stderr(&output).is_empty(), "{}", stderr(&output));
    let records = fs::read_to_string(root.path().join("thread.prv")).unwrap();
    let count_records = |row: u32, view_type: u32| {
        let (row, view_type) = (format!("2:0:1:1:{row}:"), format!(":{view_type}:"));
        records.lines().filter(|line| line.starts_with(&row) && line.contains(&view_type)).count()
    };
    // Tasks of one thread, the states of both.
    assert!(count_records(1, 10) > 5);
    assert_eq!(count_records(2, 10), 1);
    assert_eq!(count_records(1, 4), count_records(2, 4));
    assert_eq!(taskscope(&["emulate", "-l", "--where", "thread = 101", &path]).status.code(), Some(2));
}

#[test]
fn a_report_of_a_range_has_the_time_of_that_range() {
    let (_root, path) = two_workers();
    let useful = |range: &str| {
        let report = json(&["report", "--json", "--range", range, &path]);
        let part = report["part"].as_str().unwrap().to_owned();
        assert!(part.contains(range), "{part}");
        (report["wall_ns"].as_u64().unwrap(), report["efficiency"]["useful_ns"].as_u64().unwrap())
    };
    // Two CPUs, each in a task from 10 to 20, 30 to 40 and 50 to 60 µs.
    assert_eq!(useful("15us..35us"), (20_000, 20_000));
    assert_eq!(useful("21us..29us"), (8_000, 0));
    assert_eq!(useful("..70us").1, 60_000);
    // From 13 to 17 µs both tasks just continue.
    assert_eq!(useful("13us..17us"), (4_000, 8_000));
    let quiet = stdout(&taskscope(&["report", "--range", "13us..17us", &path]));
    assert!(quiet.contains("2 CPUs × 4.00 µs"), "{quiet}");
    // A section of which there is nothing says so.
    let none = stdout(&taskscope(&["report", "--section", "devices", &path]));
    assert!(none.contains("nothing to report for devices in this trace"), "{none}");
    let text = stdout(&taskscope(&["report", "--range", "15us..35us", &path]));
    assert!(text.contains("part of the trace: --range '15us..35us'"), "{text}");
    let output = taskscope(&["report", "--range", "5s..", &path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no events match --range"), "{}", stderr(&output));
}

/// Between two events that pass a filter, states last: parts of a filtered report add up, for any field.
#[test]
fn ranges_of_filtered_reports_add_up() {
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/traces/lock");
    let borders = ["0%", "0.1%", "30%", "30.1%", "99.9%", ""];
    for filter in
        ["thread = 15226", "process = 15226", "event ~ PI*", "model = openmp", "time < 5ms", "region > 0"]
    {
        let sums = |range: &str| {
            let report = json(&["report", "--json", "--range", range, "--where", filter, lock]);
            let causes = report["causes"].as_array().unwrap().iter().map(|row| row["ns"].as_u64().unwrap());
            let capacity = report["capacity_ns"].as_u64().unwrap();
            assert_eq!(capacity, causes.sum::<u64>(), "{filter} {range}");
            capacity
        };
        let parts = borders.windows(2).map(|pair| sums(&format!("{}..{}", pair[0], pair[1])));
        assert_eq!(sums("0%.."), parts.sum::<u64>(), "{filter}");
    }
    let nowhere = taskscope(&["report", "--range", "0..50%", "--where", "event ~ XXX*", lock]);
    assert!(
        !nowhere.status.success() && stderr(&nowhere).contains("no events match"),
        "{}",
        stderr(&nowhere)
    );
}

#[test]
fn check_lists_the_violations_of_the_selection() {
    let root = tempfile::tempdir().unwrap();
    worker(101, 0).point(71_000, nosv::SCHEDULER_SERVING_END).write(root.path()).unwrap();
    worker(102, 1).point(72_000, nosv::SCHEDULER_SERVING_END).write(root.path()).unwrap();
    let path = root.path().to_str().unwrap();
    let lines = |arguments: &[&str]| stdout(&taskscope(arguments)).lines().count();
    assert_eq!(lines(&["check", "--json", path]), 4);
    assert_eq!(lines(&["check", "--json", "--where", "thread = 102", path]), 2);
    assert_eq!(lines(&["check", "--json", "--range", "71us..72us", path]), 2);
    assert_eq!(taskscope(&["check", "--where", "thread = 7", path]).status.code(), Some(0));
}

#[test]
fn emulate_reports_that_a_part_has_no_violation_check() {
    let root = tempfile::tempdir().unwrap();
    worker(101, 0).point(71_000, nosv::SCHEDULER_SERVING_END).write(root.path()).unwrap();
    worker(102, 1).write(root.path()).unwrap();
    let path = root.path().to_str().unwrap();
    let message_of = |filter: &str| stderr(&taskscope(&["emulate", "--where", filter, path]));
    assert!(
        message_of("thread = 101").contains("taskscope check --where FILTER TRACE"),
        "{}",
        message_of("thread = 101")
    );
    assert_eq!(message_of("thread = 102"), "");
}

fn truncated() -> (tempfile::TempDir, String) {
    let (root, path) = two_workers();
    let stream = root.path().join("loom.node.0/proc.1/thread.102/stream.obs");
    let stream = if stream.exists() { stream } else { find(root.path(), "thread.102").join("stream.obs") };
    let bytes = fs::read(&stream).unwrap();
    fs::write(&stream, &bytes[..bytes.len() - 50]).unwrap();
    (root, path)
}

fn find(root: &Path, name: &str) -> std::path::PathBuf {
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_name() == name {
                return entry.path();
            }
            if entry.path().is_dir() {
                pending.push(entry.path());
            }
        }
    }
    panic!("no {name}");
}

/// A filter by time drops sections begun before, which a range does not: the slice is not a valid trace.
#[test]
fn slice_warns_that_a_filter_may_break_the_rules() {
    let stream = StreamBuilder::new(0, 1, 101)
        .require(&["ovni", "nosv"])
        .cpus(1)
        .execute(1000, 0)
        .point(2000, nosv::SCHEDULER_SERVING_BEGIN)
        .point(3000, nosv::SCHEDULER_SERVING_END)
        .end(4000);
    let (root, slices) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    stream.write(root.path()).unwrap();
    for (number, option, words, note, valid) in [
        (0, "--where", "time >= 1500", true, false),
        (1, "--range", "1500..", false, true),
        (2, "--where", "thread = 101", false, true),
    ] {
        let slice = slices.path().join(number.to_string());
        let slice = slice.to_str().unwrap();
        let talk = stderr(&taskscope(&["slice", option, words, "-o", slice, root.path().to_str().unwrap()]));
        // Before the range its thread is started, and its section begun.
        let counts =
            ["3 events of 1 thread in", "2 events of 1 thread, and 2 more", "4 events of 1 thread in"];
        assert!(talk.contains(counts[number]), "{words}: {talk}");
        assert_eq!(talk.contains("the filter left out"), note, "{words}: {talk}");
        assert_eq!(taskscope(&["check", slice]).status.success(), valid, "{words}");
    }
}

#[test]
fn problems_are_in_the_header_of_every_output() {
    let (root, path) = truncated();
    let elsewhere = tempfile::tempdir().unwrap();
    let slice = elsewhere.path().join("slice");
    let verbs: [&[&str]; 6] = [
        &["dump"],
        &["top"],
        &["sort"],
        &["slice", "-o", slice.to_str().unwrap()],
        &["emulate", "-o", root.path().to_str().unwrap()],
        &["check"],
    ];
    for verb in verbs {
        let arguments: Vec<&str> = verb.iter().copied().chain([path.as_str()]).collect();
        let talk = stderr(&taskscope(&arguments));
        assert!(talk.contains("truncated-event"), "{verb:?}: {talk}");
    }
    for verb in ["report", "info"] {
        let text = stdout(&taskscope(&[verb, &path]));
        assert!(text.contains("truncated-event"), "{verb}: {text}");
    }
    let first: Value =
        serde_json::from_str(stdout(&taskscope(&["dump", "--json", &path])).lines().next().unwrap()).unwrap();
    assert_eq!(
        (&first["schema"], &first["kind"]),
        (&"taskscope-problem/1".into(), &"truncated-event".into())
    );
    assert_eq!(json(&["top", "--json", &path])["problems"][0]["kind"], "truncated-event");
}

/// One file of a stream is cut and the other continues: states from there on depend on half of the events.
#[test]
fn a_file_that_ends_before_the_other_leaves_the_rest_uncertain() {
    let mut own = file_header().to_vec();
    for at in [10_000, 50_000, 65_000] {
        push_event(&mut own, wait::ACQUIRED, at, &bytes![7_u64, 1_u32]);
        push_event(&mut own, wait::RELEASED, at + 1_000, &bytes![7_u64, 1_u32]);
    }
    let event = 12 + 12;
    // The missing part of each of the two files, and the begin of the thread's uncertainty. The last three
    // events of `stream.obs` are at 61, 69 and 70 µs, of 12 bytes each.
    for (standard, own_cut, from) in
        [(30, 0, 60_000), (24, 0, 61_000), (0, 5, 65_000), (0, 3 * event - 1, 50_000)]
    {
        let root = tempfile::tempdir().unwrap();
        worker(101, 0).write(root.path()).unwrap();
        let mut stream = worker(102, 1);
        stream.standard.truncate(stream.standard.len() - standard);
        stream.own = Some(own[..own.len() - own_cut].to_vec());
        stream.write(root.path()).unwrap();
        let report = json(&["report", "--json", root.path().to_str().unwrap()]);
        let uncertain = &report["uncertain"]["longest"][0];
        assert_eq!(uncertain["thread"], 102, "{standard} {own_cut}: {report:#}");
        assert_eq!((&uncertain["start_ns"], &uncertain["end_ns"]), (&from.into(), &70_000.into()));
    }
}

#[test]
fn the_timeline_is_marked_where_it_is_uncertain() {
    let (_root, path) = truncated();
    let report = json(&["report", "--json", &path]);
    let uncertain = &report["uncertain"]["longest"][0];
    assert_eq!((&uncertain["thread"], &uncertain["why"]), (&102.into(), &"stream-ends".into()));
    assert_eq!(uncertain["end_ns"], 70_000);
    let picture = stdout(&taskscope(&["report", "--timeline", &path]));
    let row = picture.lines().find(|line| line.contains("102")).unwrap();
    assert!(row.contains('?') && picture.contains("not known"), "{picture}");

    // An end without its begin, and an end that is not the innermost one's.
    let root = tempfile::tempdir().unwrap();
    worker(101, 0).write(root.path()).unwrap();
    StreamBuilder::new(0, 1, 102)
        .require(&["ovni", "nosv"])
        .cpus(2)
        .execute(0, 1)
        .point(30_000, nosv::SCHEDULER_SERVING_END)
        .point(60_000, ovni::THREAD_ENDS)
        .write(root.path())
        .unwrap();
    let report = json(&["report", "--json", root.path().to_str().unwrap()]);
    let doubts = report["uncertain"]["longest"].as_array().unwrap();
    let thread_doubt = doubts.iter().find(|part| part["thread"] == 102).unwrap();
    assert_eq!(thread_doubt["why"], "does-not-fit");
    assert_eq!((&thread_doubt["start_ns"], &thread_doubt["end_ns"]), (&0.into(), &30_000.into()));
    // Views have a type for it only if there is something to mark.
    let marks = |path: &str| {
        assert!(taskscope(&["emulate", path]).status.success());
        let records = fs::read_to_string(Path::new(path).join("thread.prv")).unwrap();
        let marks: Vec<String> =
            records.lines().filter(|line| line.contains(":60:")).map(str::to_owned).collect();
        let labels = fs::read_to_string(Path::new(path).join("thread.pcf")).unwrap();
        assert_eq!(labels.contains("Thread: uncertain (taskscope)"), !marks.is_empty());
        marks
    };
    assert_eq!(marks(root.path().to_str().unwrap()), ["2:0:1:1:2:30000:60:1", "2:0:1:1:2:60000:60:0"]);
    let (_cut, cut) = truncated();
    let cut_marks = marks(&cut);
    assert!(cut_marks.len() == 1 && cut_marks[0].ends_with(":60:2"), "{cut_marks:?}");
    let (_whole, whole) = two_workers();
    assert!(marks(&whole).is_empty());
    let complete = json(&["report", "--json", &whole]);
    assert_eq!(complete["uncertain"]["count"], 0);
}

/// A thread's activity while its clock went back has no place in time, and only one of several threads on a
/// CPU can run there: both are marked, in every view, including that of the CPU.
#[test]
fn clocks_that_go_back_and_cpus_with_two_threads_are_uncertain() {
    let root = tempfile::tempdir().unwrap();
    let thread = |tid| StreamBuilder::new(0, 1, tid).require(&["ovni", "nosv"]).cpus(2);
    let back = thread(101).execute(0, 0).point(50_000, ovni::BURST).point(30_000, ovni::BURST);
    back.end(70_000).write(root.path()).unwrap();
    thread(102).execute(0, 1).end(60_000).write(root.path()).unwrap();
    thread(103).execute(10_000, 1).end(40_000).write(root.path()).unwrap();
    // A hand-over within a nanosecond shares nothing.
    thread(104).execute(60_000, 1).end(70_000).write(root.path()).unwrap();
    let path = root.path().to_str().unwrap();

    let report = json(&["report", "--json", path]);
    let marks = report["uncertain"]["longest"].as_array().unwrap().iter().map(|part| {
        format!(
            "{} {} {}..{} {}",
            part["kind"], part["thread"], part["start_ns"], part["end_ns"], part["why"]
        )
    });
    let mut marks: Vec<String> = marks.map(|mark| mark.replace('"', "")).collect();
    marks.sort();
    assert_eq!(
        marks,
        [
            "cpu 0 30000..50000 clock-goes-back",
            "cpu 1 10000..40000 cpu-shared",
            "unknown 101 30000..50000 clock-goes-back"
        ]
    );
    let info = stdout(&taskscope(&["info", path]));
    assert!(
        info.contains(
            "20.0 µs of threads' time and 50.0 µs of CPUs' time are marked as uncertain: 1 where a clock goes \
             back, 1 where several threads run on one CPU"
        ),
        "{info}"
    );
    assert!(info.contains("yes: every stream ended properly") && !info.contains("damaged"), "{info}");
    assert!(!stdout(&taskscope(&["report", path])).contains("incomplete"));
    let picture = stdout(&taskscope(&["report", "--timeline", path]));
    assert!(picture.contains('?'), "{picture}");

    assert!(taskscope(&["emulate", path]).status.success());
    let marks = |view: &str| -> Vec<String> {
        let records = fs::read_to_string(root.path().join(view)).unwrap();
        let marks = records.lines().filter(|line| line.contains(":60:")).map(|line| line.rsplitn(5, ':'));
        marks
            .map(|mut line| (line.next(), line.nth(1), line.next()))
            .map(|fields| format!("{fields:?}"))
            .collect()
    };
    let at = |value: &str, time: &str, row: &str| format!("{:?}", (Some(value), Some(time), Some(row)));
    assert_eq!(marks("thread.prv"), [at("3", "30000", "1"), at("0", "50000", "1")]);
    let cpu_marks =
        [at("4", "10000", "2"), at("3", "30000", "1"), at("0", "40000", "2"), at("0", "50000", "1")];
    assert_eq!(marks("cpu.prv"), cpu_marks);
    let labels = fs::read_to_string(root.path().join("cpu.pcf")).unwrap();
    assert!(
        labels.contains("CPU: uncertain (taskscope)") && labels.contains("Several threads run on the CPU")
    );
}

/// The clock of a host without an offset is used unchanged: all subcommands report that, and none rejects it.
#[test]
fn hosts_without_clock_offsets_are_named() {
    let root = tempfile::tempdir().unwrap();
    for (loom, name) in ["east.0", "west.0", "north.0"].into_iter().enumerate() {
        let stream = StreamBuilder::new(loom as u32, 1, 1).loom(name).require(&["ovni"]).cpus(1);
        stream.execute(1000, 0).end(3000).write(root.path()).unwrap();
    }
    let path = root.path().to_str().unwrap();
    let table = |lines: &str| {
        fs::write(root.path().join("clock-offsets.txt"), format!("rank host median mean std\n{lines}"))
            .unwrap();
    };
    table("0 east 500 500 0\n");
    let (out, verdict) = (tempfile::tempdir().unwrap(), "0 violations, 1 warning");
    for verb in [&["check"][..], &["emulate", "-l", "-o", out.path().to_str().unwrap()], &["dump"]] {
        let output = taskscope(&[verb, &[path]].concat());
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(0), "{verb:?}: {message}");
        assert!(
            message.contains("no-clock-offsets") && message.contains("north, west"),
            "{verb:?}: {message}"
        );
        assert!(verb[0] == "dump" || message.contains(verdict), "{verb:?}: {message}");
    }
    assert!(stdout(&taskscope(&["info", path])).contains("3 hosts, not all corrected"));
    // All verbs do so for a slice; even if its clocks would be below 0 without being shifted.
    for (number, offset) in [500, -5000].into_iter().enumerate() {
        table(&format!("0 east {offset} {offset} 0\n"));
        let slice = out.path().join(number.to_string());
        let slice = slice.to_str().unwrap();
        assert!(taskscope(&["slice", "-o", slice, path]).status.success());
        let message = stderr(&taskscope(&["check", slice]));
        assert!(message.contains("1 of 3 hosts: those of north, west"), "{offset}: {message}");
        let times =
            |trace| dumped(trace, |_| true).iter().map(|event| event["time_ns"].clone()).collect::<Vec<_>>();
        assert_eq!(times(slice), times(path), "{offset}");
    }
    table("0 east 500 500 0\n1 west 0 0 0\n2 north 0 0 0\n");
    assert!(!stderr(&taskscope(&["check", path])).contains("no-clock-offsets"));
    assert!(stdout(&taskscope(&["info", path])).contains("3 hosts, corrected"));
    table("0 east 0 0 0\n1 west 0 0 0\n2 north 0 0 0\n");
    assert!(stdout(&taskscope(&["info", path])).contains("3 hosts, corrected"), "offsets of 0 are offsets");
}

#[test]
fn violations_are_counted_as_often_as_they_occur_and_all_are_listed_where_asked_for() {
    let root = tempfile::tempdir().unwrap();
    let mut stream = StreamBuilder::new(0, 1, 1).require(&["ovni", "nosv"]).cpus(1).execute(1000, 0);
    for clock in 0..30 {
        stream = stream.point(2000 + clock, nosv::SCHEDULER_SERVING_END);
    }
    // Three clocks that go back.
    for clock in [1990, 1980, 1970] {
        stream = stream.point(clock, ovni::BURST);
    }
    stream.end(3000).write(root.path()).unwrap();
    let out = tempfile::tempdir().unwrap();
    let path = root.path().to_str().unwrap();
    let strict = ["emulate", "-l", "-o", out.path().to_str().unwrap(), path];
    for verb in [&["check", path][..], &strict] {
        for (all, listed, more) in [(None, 20, true), (Some("--all"), 30, false)] {
            let output = taskscope(&verb.iter().copied().chain(all).collect::<Vec<_>>());
            let message = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{message}");
            assert_eq!(
                message.matches("error[pop-empty]: ").count(),
                listed + usize::from(more),
                "{message}"
            );
            assert_eq!(message.contains("error[pop-empty]: 10 more"), more, "{message}");
            assert!(message.contains("33 violations, 0 warnings"), "{message}");
        }
    }
    let lines = stdout(&taskscope(&["check", "--json", path]));
    let back = lines.lines().find(|line| line.contains("clock-goes-back")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(back).unwrap()["count"], 3);
}

/// Each event with a backward clock is at the place shown by `dump`, for `check` and its ranges, too.
#[test]
fn backward_clocks_are_reported_beside_their_events() {
    let root = tempfile::tempdir().unwrap();
    let stream = StreamBuilder::new(0, 1, 1).require(&["ovni"]).cpus(1).execute(1000, 0);
    let stream = stream.point(9000, ovni::BURST).point(5000, ovni::BURST);
    let stream = stream.point(20_000, ovni::BURST).point(15_000, ovni::BURST).end(30_000);
    stream.write(root.path()).unwrap();
    let path = root.path().to_str().unwrap();
    assert_eq!(dumped(path, |event| event["time_ns"] == 8000).len(), 2);
    let both = ["byte 48, at 0.000008000 s", "byte 72, at 0.000019000 s"];
    for (range, expected) in
        [("7us..9us", &both[..1]), ("18us..20us", &both[1..]), ("..25us", &both), ("3us..5us", &[])]
    {
        let output = taskscope(&["check", "--range", range, path]);
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(i32::from(!expected.is_empty())), "{range}: {message}");
        for place in both {
            assert_eq!(message.contains(place), expected.contains(&place), "{range}: {message}");
        }
    }
}

/// In a trace that is one stream, without a path below itself, problems have a place too.
#[test]
fn a_stream_that_is_given_by_itself_has_a_name() {
    let root = tempfile::tempdir().unwrap();
    let stream = StreamBuilder::new(0, 1, 7).require(&["ovni"]).cpus(1).execute(1000, 0);
    let stream = stream.point(9000, ovni::BURST).point(5000, ovni::BURST).end(10_000);
    let directory = stream.write(root.path()).unwrap();
    let path = directory.to_str().unwrap();
    let message = stderr(&taskscope(&["check", path]));
    assert!(message.contains("in:   thread.7, byte 48"), "{message}");
    let message = stderr(&taskscope(&["top", path]));
    assert!(message.contains("clock-goes-back: thread.7/stream.obs: "), "{message}");
    assert_eq!(dumped(path, |line| line["stream"] == "thread.7").len(), 1 + 4, "a problem and four events");
    // One below it that would have the same name.
    fs::create_dir(directory.join("thread.7")).unwrap();
    for name in ["stream.json", "stream.obs"] {
        fs::copy(directory.join(name), directory.join("thread.7").join(name)).unwrap();
    }
    let message = stderr(&taskscope(&["check", path]));
    assert!(message.contains("in:   ., byte 48") && message.contains("in:   thread.7, byte 48"), "{message}");
}

/// Threads share a CPU from the arrival of the second until one leaves, even if an event of ours has the same
/// clock as the leave, and is replayed before it.
#[test]
fn an_event_of_ours_makes_no_hand_over_of_two_threads_on_a_cpu() {
    let root = tempfile::tempdir().unwrap();
    let thread = |tid| StreamBuilder::new(0, 1, tid).require(&["ovni"]).cpus(1);
    let mut own = file_header().to_vec();
    push_event(&mut own, wait::ACQUIRED, 3000, &bytes![7_u64, 1_u32]);
    let mut first = thread(103).execute(1000, 0).end(9000);
    first.own = Some(own);
    first.write(root.path()).unwrap();
    thread(102).execute(2000, 0).end(3000).write(root.path()).unwrap();
    let message = stderr(&taskscope(&["check", root.path().to_str().unwrap()]));
    assert!(message.contains("error[two-threads-on-cpu]"), "{message}");
}

/// A clock that cannot be true makes a trace of centuries. Its parts are no longer than the whole is taken to be.
#[test]
fn parts_of_traces_with_clocks_that_cannot_be_true_are_not_longer_than_the_whole() {
    let root = tempfile::tempdir().unwrap();
    for tid in 0..8 {
        let stream = StreamBuilder::new(0, 1, 101 + tid).require(&["ovni", "nosv"]).cpus(8);
        let stream = stream.execute(0, tid as i32).point(1000, nosv::SCHEDULER_SERVING_BEGIN);
        let stream = stream.point(i64::MAX as u64, nosv::SCHEDULER_SERVING_END);
        stream.end(i64::MAX as u64).write(root.path()).unwrap();
    }
    let path = root.path().to_str().unwrap();
    let whole = json(&["report", "--json", path]);
    for range in ["..60%", "500..70%"] {
        let part = json(&["report", "--json", "--range", range, path]);
        assert!(part["wall_ns"].as_u64() <= whole["wall_ns"].as_u64(), "{range}: {}", part["wall_ns"]);
        let causes = part["causes"].as_array().unwrap().iter().map(|cause| cause["ns"].as_u64().unwrap());
        assert_eq!(causes.sum::<u64>(), part["capacity_ns"], "{range}");
    }
}

/// Unrecorded time is one finding, and time outside of a runtime another one, with other words.
#[test]
fn findings_have_sentences_of_their_own() {
    let root = tempfile::tempdir().unwrap();
    let thread = |tid, models: &[&str]| StreamBuilder::new(0, 1, tid).require(models).cpus(2);
    thread(101, &["ovni", "nosv"]).execute(0, 0).end(70_000).write(root.path()).unwrap();
    thread(102, &["ovni"]).execute(0, 1).end(70_000).write(root.path()).unwrap();
    let report = json(&["report", "--json", root.path().to_str().unwrap()]);
    let findings = report["findings"].as_array().unwrap();
    let mut texts: Vec<&str> = findings.iter().map(|finding| finding["text"].as_str().unwrap()).collect();
    texts.sort();
    assert_eq!(
        texts,
        [
            "the trace does not record what ran",
            "the trace does not record what ran: threads run outside of all parts of their runtime"
        ]
    );
}

/// Options without a meaning are rejected, and advice fits the given ones.
#[test]
fn options_that_would_be_ignored_are_refused_and_advice_fits() {
    let (_root, path) = two_workers();
    let output = taskscope(&["dump", "--hex", "--json", &path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("cannot be used with"), "{}", stderr(&output));
    let output = taskscope(&["emulate", "-c", "/nonexistent/offsets.txt", &path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(!stderr(&output).contains("sync") && stderr(&output).contains("a line per host"));
}

/// An empty output would pass for one that was not made.
#[test]
fn empty_results_are_reported() {
    let (root, path) = two_workers();
    for verb in
        [&["dump"][..], &["dump", "--json"], &["dump", "-x"], &["top"], &["top", "--json"], &["emulate"]]
    {
        let none = taskscope(&[verb, &["--where", "thread = 7", &path]].concat());
        assert!(none.status.success(), "{verb:?}: {}", stderr(&none));
        assert!(
            stderr(&none).contains("no events match --where 'thread = 7'"),
            "{verb:?}: {}",
            stderr(&none)
        );
        let some = taskscope(&[verb, &["--where", "thread = 101", &path]].concat());
        assert!(!stderr(&some).contains("no events match"), "{verb:?}: {}", stderr(&some));
    }
    let empty = root.path().join("empty");
    StreamBuilder::new(0, 1, 101).require(&["ovni"]).write(&empty).unwrap();
    for verb in ["dump", "top", "emulate"] {
        let none = taskscope(&[verb, empty.to_str().unwrap()]);
        assert!(stderr(&none).contains("the trace has no events"), "{verb}: {}", stderr(&none));
    }
    let idle = root.path().join("idle");
    StreamBuilder::new(0, 1, 101).require(&["ovni"]).execute(0, -1).end(10).write(&idle).unwrap();
    let paths = taskscope(&["export", "--to", "flamegraph", idle.to_str().unwrap()]);
    assert_eq!((stdout(&paths).as_str(), paths.status.code()), ("", Some(0)));
    assert!(stderr(&paths).contains("no call path has time"), "{}", stderr(&paths));
}
