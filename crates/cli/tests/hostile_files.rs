//! Untrusted traces: they cannot make the reader overwrite its files, block, or grow.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use taskscope_event::models::{nosv, ovni};
use taskscope_testkit::generator::{Generator, Runtime};
use taskscope_testkit::trace_builder::StreamBuilder;

const TASKSCOPE: &str = env!("CARGO_BIN_EXE_taskscope");

/// Runs for at most a minute, in 1.5 GB of address space.
fn taskscope(arguments: &[&str]) -> Output {
    Command::new("timeout")
        .args(["600", "sh", "-c", "ulimit -v 1500000; exec \"$0\" \"$@\"", TASKSCOPE])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn stream(tid: u32) -> StreamBuilder {
    StreamBuilder::new(0, 1, tid)
        .require(&["ovni"])
        .cpus(2)
        .execute(10, 0)
        .point(20, ovni::BURST)
        .point(30, ovni::UNSORTED_BEGIN)
        .point(15, ovni::BURST)
        .point(40, ovni::UNSORTED_END)
        .end(50)
}

/// The subcommand, the obstacle, whether that is an error. `{}` is replaced by the place of the links.
#[test]
fn nothing_is_written_through_links() {
    let cases: &[(&[&str], &str, bool)] = &[
        (&["emulate", "TRACE"], "cpu.prv", true),
        (&["emulate", "TRACE"], "thread.pcf", true),
        (&["emulate", "TRACE"], "cpu.row", true),
        (&["emulate", "--gzip", "TRACE"], "thread.prv.gz", true),
        (&["emulate", "--nanos", "stacked", "TRACE"], "nanos.prv", true),
        (&["emulate", "--nanos", "stacked", "TRACE"], "nanos.row", true),
        (&["emulate", "TRACE"], "cfg/thread/1-thread-tid.cfg", false),
        (&["sync", "-c", "OFFSETS", "TRACE"], "clock-offsets.txt", true),
        (&["report", "--html", "TRACE/page.html", "TRACE"], "page.html", true),
        (&["sort", "TRACE"], "LOOM/stream.obs.new", false),
        (&["sort", "TRACE"], "LOOM/stream.obs.part", false),
    ];
    for (arguments, place, is_error) in cases {
        for kind in ["symbolic", "hard", "broken"] {
            let root = tempfile::tempdir().unwrap();
            let trace = root.path().join("trace");
            let thread = stream(1).write(&trace).unwrap();
            let offsets = root.path().join("offsets");
            fs::write(&offsets, "rank hostname offset_median offset_mean offset_std\n0 node 1 1 0\n")
                .unwrap();
            let victim = root.path().join("victim");
            if kind != "broken" {
                fs::write(&victim, "precious").unwrap();
            }
            let place = match place.strip_prefix("LOOM/") {
                Some(name) => thread.join(name),
                None => trace.join(place),
            };
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            match kind {
                "hard" => fs::hard_link(&victim, &place).unwrap(),
                _ => symlink(&victim, &place).unwrap(),
            }
            let arguments: Vec<String> = (arguments.iter())
                .map(|part| part.replace("TRACE", text(&trace)).replace("OFFSETS", text(&offsets)))
                .collect();
            let output = taskscope(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
            let what = format!("{arguments:?}, {} is a {kind} link: {}", place.display(), stderr(&output));
            match kind {
                "broken" => assert!(!victim.exists(), "{what}"),
                _ => assert_eq!(fs::read_to_string(&victim).unwrap(), "precious", "{what}"),
            }
            if *is_error && kind != "hard" {
                assert_eq!(output.status.code(), Some(2), "{what}");
                assert!(stderr(&output).contains("symbolic link"), "{what}");
            }
        }
    }
}

/// Directories of outputs within the trace may be links, too.
#[test]
fn nothing_is_removed_or_written_in_directories_behind_links() {
    for place in ["cfg", "cfg/cpu"] {
        let root = tempfile::tempdir().unwrap();
        let (trace, victim) = (root.path().join("trace"), root.path().join("victim"));
        stream(1).write(&trace).unwrap();
        fs::create_dir_all(&victim).unwrap();
        fs::write(victim.join("1-own.cfg"), "precious").unwrap();
        fs::create_dir_all(trace.join(place).parent().unwrap()).unwrap();
        symlink(&victim, trace.join(place)).unwrap();
        let output = taskscope(&["emulate", text(&trace)]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        let left: Vec<_> = fs::read_dir(&victim).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["1-own.cfg"], "{place}");
    }
}

/// The cache of a trace is beside it.
#[test]
fn a_link_in_the_place_of_a_cache_is_not_followed() {
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("trace");
    let generator =
        Generator { runtime: Runtime::Nosv, threads: 2, threads_per_loom: 2, events: 1_100_000, seed: 3 };
    generator.write(&trace).unwrap();
    let victim = root.path().join("victim");
    fs::write(&victim, "precious").unwrap();
    symlink(&victim, root.path().join("trace.cache")).unwrap();
    let mut viewer = Command::new(TASKSCOPE)
        .args(["view", text(&trace)])
        .env("XDG_CACHE_HOME", root.path().join("caches"))
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // The cache goes to its second place.
    let caches = root.path().join("caches/taskscope");
    let is_there = || {
        let names = fs::read_dir(&caches).into_iter().flatten().flatten().map(|entry| entry.file_name());
        names.into_iter().any(|name| name.to_string_lossy().ends_with(".cache"))
    };
    while !is_there() && viewer.try_wait().unwrap().is_none() {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    viewer.kill().unwrap();
    viewer.wait().unwrap();
    assert!(is_there());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
}

/// Pipes, devices and giants in the place of every file that is read beside streams.
#[test]
fn special_files_and_giants_are_refused_at_once() {
    let places: &[(&str, &[&str])] = &[
        ("x.tsprof", &["report", "ROOT"]),
        ("x.tsprof", &["export", "--to", "flamegraph", "ROOT"]),
        ("tasks.rec", &["import", "PLACE", "-o", "ROOT/out"]),
        ("trace.json", &["import", "PLACE", "-o", "ROOT/out"]),
        ("dump.tsv", &["import", "--from", "device-records", "PLACE", "-o", "ROOT/out"]),
        ("offsets", &["sync", "-c", "PLACE", "TRACE"]),
    ];
    for (name, arguments) in places {
        for kind in ["pipe", "zero", "giant", "directory"] {
            let root = tempfile::tempdir().unwrap();
            let trace = root.path().join("trace");
            if arguments.contains(&"TRACE") {
                stream(1).write(&trace).unwrap();
            }
            let place = root.path().join(name);
            make_special(&place, kind);
            let arguments: Vec<String> = (arguments.iter())
                .map(|part| {
                    let part = part.replace("ROOT", text(root.path()));
                    part.replace("PLACE", text(&place)).replace("TRACE", text(&trace))
                })
                .collect();
            let output = taskscope(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
            let what = format!("{arguments:?}, {kind}: {}", stderr(&output));
            assert_eq!(output.status.code(), Some(2), "{what}");
            assert!(stderr(&output).contains("error:") && !stderr(&output).contains("panicked"), "{what}");
        }
    }
}

fn make_special(place: &Path, kind: &str) {
    match kind {
        "pipe" => assert!(Command::new("mkfifo").arg(place).status().unwrap().success()),
        "zero" => symlink("/dev/zero", place).unwrap(),
        "directory" => fs::create_dir(place).unwrap(),
        _ => File::create(place).unwrap().set_len(3 << 30).unwrap(),
    }
}

/// An unfinished stream, and files beside it: the existing events are read.
#[test]
fn unfinished_streams_are_read_beside_any_other_file() {
    for name in ["stream.tail", "stream.checkpoint", "taskscope.tail", "taskscope.obs", "stream.obs"] {
        for kind in ["pipe", "zero", "giant", "directory"] {
            let root = tempfile::tempdir().unwrap();
            stream(2).write(root.path()).unwrap();
            let thread = stream(1).write(root.path()).unwrap();
            let metadata = thread.join("stream.json");
            let unfinished = fs::read_to_string(&metadata).unwrap().replace("\"finished\"", "\"f\"");
            fs::write(&metadata, unfinished).unwrap();
            let place = thread.join(name);
            if name == "taskscope.tail" {
                fs::write(thread.join("taskscope.obs"), taskscope_event::framing::file_header()).unwrap();
            }
            match (name, kind) {
                ("stream.obs", "giant") => {
                    File::options().write(true).open(&place).unwrap().set_len(1 << 40).unwrap();
                }
                _ => {
                    let _ = fs::remove_file(&place);
                    make_special(&place, kind);
                }
            }
            let output = taskscope(&["info", text(root.path())]);
            let what = format!("{name} is {kind}: {}", stderr(&output));
            assert_eq!(output.status.code(), Some(0), "{what}");
            if name.ends_with("tail") {
                let message = String::from_utf8_lossy(&output.stdout).into_owned() + &what;
                assert!(message.contains("cannot be read"), "{message}");
            }
        }
    }
}

#[test]
fn the_command_line_is_readable_by_its_owner_alone_unless_it_is_shared() {
    for (umask, share, mode) in [("022", false, 0o600), ("0", false, 0o600), ("022", true, 0o644)] {
        let root = tempfile::tempdir().unwrap();
        let trace = root.path().join("t");
        let script = format!("umask {umask}; exec \"$0\" \"$@\"");
        let mut arguments = vec!["-c", &script, TASKSCOPE, "record", "-q", "-o", text(&trace)];
        arguments.extend(share.then_some("--share"));
        arguments.extend(["--", "true"]);
        assert!(Command::new("sh").args(arguments).status().unwrap().success());
        let metadata = trace.join("taskscope-run.json").metadata().unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode);
    }
}

/// The output of a subcommand on a terminal, stdout and stderr.
fn on_terminal(program: &str, arguments: &[&str]) -> String {
    let quoted = arguments.iter().map(|part| format!("'{part}'")).collect::<Vec<_>>().join(" ");
    let output = Command::new("timeout")
        .args(["600", "script", "-qec", &format!("{program} {quoted}"), "/dev/null"])
        .env_remove("NO_COLOR")
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A title, a colour, hidden text, a cleared screen with an 8-bit introducer, a name that is shown backwards, DEL, and a
/// line of its own.
const EVIL: &str =
    "\u{1b}]0;PWN\u{7}\u{1b}[31mRED\u{1b}[8mHID\u{9b}2JC1\u{202e}BIDI\u{2066}\u{7f}\nerror: FAKE";

fn assert_harmless(arguments: &[&str]) {
    assert_harmless_as(TASKSCOPE, arguments);
}

fn assert_harmless_as(program: &str, arguments: &[&str]) {
    let text = on_terminal(program, arguments);
    assert!(!text.is_empty(), "{arguments:?} prints nothing");
    assert_no_sequence(arguments, &text);
}

/// The same, but empty output is allowed.
fn assert_harmless_or_silent(arguments: &[&str]) {
    assert_no_sequence(arguments, &on_terminal(TASKSCOPE, arguments));
}

fn assert_no_sequence(arguments: &[&str], text: &str) {
    for sequence in [
        "\u{1b}]",
        "\u{1b}[31mRED",
        "\u{1b}[8m",
        "\u{7f}",
        "\nerror: FAKE",
        "\u{9b}",
        "\u{202e}",
        "\u{2066}",
        "\u{7}",
    ] {
        assert!(!text.contains(sequence), "{arguments:?} prints {sequence:?}: {text:?}");
    }
}

#[test]
fn names_do_not_act_on_a_terminal() {
    let root = tempfile::tempdir().unwrap();
    let tasks = root.path().join("tasks.rec");
    fs::write(&tasks, format!("JobId: 1{EVIL}\nName: a\nWorkerId: 0\n")).unwrap();
    assert_harmless(&["import", text(&tasks), "-o", text(&root.path().join("out"))]);
    let odd = root.path().join(format!("x{EVIL}"));
    for verb in ["report", "info", "dump", "check", "top", "emulate", "sort", "view"] {
        assert_harmless(&[verb, text(&odd)]);
    }
    assert_harmless(&["explain", EVIL]);
    assert_harmless(&["report", "--where", &format!("name={EVIL}"), text(root.path())]);

    let trace = root.path().join("trace");
    let thread = stream(1).write(&trace).unwrap();
    let metadata = thread.join("stream.json");
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&metadata).unwrap()).unwrap();
    document["ovni"]["loom"] = format!("{EVIL}.1").into();
    document["ovni"]["require"][EVIL] = "1.0.0".into();
    fs::write(&metadata, document.to_string()).unwrap();
    assert_harmless(&["sync", text(&trace)]);
    assert_harmless(&["check", text(&trace)]);
    let renamed = trace.join(format!("loom.{EVIL}"));
    let loom = thread.strip_prefix(&trace).unwrap().components().next().unwrap();
    fs::rename(trace.join(loom), renamed).unwrap();
    for verb in [&["dump"][..], &["dump", "--json"], &["info"], &["info", "--json"], &["check"]] {
        assert_harmless(&[verb, &[text(&trace)]].concat());
    }
    let run = format!(
        r#"{{"command":[{0}],"program":{0},"host":{0},"notices":[{{"name":{0},"text":{0}}}]}}"#,
        serde_json::to_string(EVIL).unwrap()
    );
    fs::write(trace.join("taskscope-run.json"), run).unwrap();
    for verb in [&["report"][..], &["report", "--json"], &["info"]] {
        assert_harmless(&[verb, &[text(&trace)]].concat());
    }
    assert_harmless(&["report", text(&trace), text(&odd)]);
    for name in ["ovniemu", "ovnidump", "ovnitop", "ovnisort"] {
        let tool = root.path().join(name);
        symlink(TASKSCOPE, &tool).unwrap();
        assert_harmless_as(text(&tool), &[text(&trace)]);
    }
}

/// Labels, marks and names of counters, in events and in metadata.
#[test]
fn labels_do_not_act_on_a_terminal() {
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("trace");
    let label = [&7_u32.to_le_bytes()[..], EVIL.as_bytes(), b"\0"].concat();
    let thread = StreamBuilder::new(0, 1, 1)
        .require(&["ovni", "nosv"])
        .cpus(1)
        .execute(10, 0)
        .jumbo(20, nosv::TYPE_CREATE, &label)
        .end(50)
        .write(&trace)
        .unwrap();
    let metadata = thread.join("stream.json");
    let mut document: serde_json::Value = serde_json::from_slice(&fs::read(&metadata).unwrap()).unwrap();
    document["ovni"]["mark"] =
        serde_json::json!({ "3": { "title": EVIL, "chan_type": EVIL, "labels": { "1": EVIL } } });
    document["ovni"]["lib"] = serde_json::json!({ "version": EVIL, "commit": EVIL });
    document["ovni"]["part"] = "thread".into();
    document["nosv"]["hwc"]["0"] = serde_json::json!({ "name": EVIL });
    document["taskscope"]["thread_name"] = EVIL.into();
    fs::write(&metadata, document.to_string()).unwrap();
    let views = root.path().join("views");
    for verb in [
        &["dump"][..],
        &["info"],
        &["check"],
        &["top"],
        &["report", "--section", "all"],
        &["report", "--timeline"],
        &["emulate", "-o", text(&views)],
    ] {
        assert_harmless(&[verb, &[text(&trace)]].concat());
    }
    for name in ["ovniemu", "ovnidump", "ovnitop", "ovnisort"] {
        let tool = root.path().join(name);
        symlink(TASKSCOPE, &tool).unwrap();
        assert_harmless_as(text(&tool), &[text(&trace)]);
    }
}

/// A field of a CSV table.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', "\"\""))
}

/// Runs the subcommands that print the contents of an imported trace, on a terminal.
fn assert_trace_is_harmless(trace: &Path) {
    let views = trace.with_extension("views");
    for verb in [
        &["report"][..],
        &["report", "--section", "all"],
        &["report", "--section", "path,ledger,blame", "--intervals"],
        &["report", "--timeline"],
        &["report", "--json"],
        &["info"],
        &["info", "--json"],
        &["dump", "--json"],
        &["check"],
        &["check", "--json"],
        &["top"],
        &["emulate", "-o", text(&views)],
        &["export", "--to", "flamegraph"],
        &["export", "--to", "speedscope"],
        &["sort"],
        &["explain", "F1"],
    ] {
        assert_harmless_or_silent(&[verb, &[text(trace)]].concat());
    }
    for verb in [&["diff"][..], &["diff", "--json"], &["diff", "--paths"]] {
        assert_harmless(&[verb, &[text(trace), text(trace)]].concat());
    }
}

/// Types, functions, files, data, activities and unknown keys of the neutral form.
#[test]
fn names_in_neutral_traces_do_not_act_on_a_terminal() {
    let root = tempfile::tempdir().unwrap();
    let [file, tables, trace] = ["case.json", "tables", "trace"].map(|name| root.path().join(name));
    let worker = |id: u32| serde_json::json!({"id": id, "node": id, "begin": 0, "end": 400, EVIL: 1});
    let case = serde_json::json!({"schema": "slo-case/1", "name": EVIL, "trace": {
        "time_unit": "ns", EVIL: [], "workers": [worker(0), worker(1)],
        "tasks": [
            {"id": 1, "type": EVIL, "node": 0, "worker": 0, "start": 0, "end": 100, "function": EVIL, "file": EVIL, "line": 3},
            {"id": 2, "type": format!("b{EVIL}"), "node": 1, "worker": 1, "start": 150, "end": 300, "inputs": [7]}],
        "data": [{"id": 7, "producer": 1, "produced": 100, "home": 0, "bytes": 8, "name": EVIL,
                  "copies": [{"node": 1, "sent": 105, "arrived": 140}]}],
        "runtime": [{"worker": 1, "start": 140, "end": 150, "kind": EVIL}]}});
    fs::write(&file, case.to_string()).unwrap();
    assert_harmless(&["import", text(&file), "-o", text(&trace)]);
    assert_trace_is_harmless(&trace);
    // Values of the wrong kind are part of errors.
    for place in [
        "/schema",
        "/trace/time_unit",
        "/trace/tasks/0/start",
        "/trace/tasks/1/inputs",
        "/trace/workers/0/kind",
    ] {
        let mut broken = case.clone();
        match broken.pointer_mut(place) {
            Some(value) => *value = EVIL.into(),
            None => broken["trace"]["workers"][0]["kind"] = EVIL.into(),
        }
        fs::write(&file, broken.to_string()).unwrap();
        assert_harmless(&["import", text(&file), "-o", text(&root.path().join("broken"))]);
    }
    let evil = quoted(EVIL);
    let rows = [
        ("workers.csv", format!("id,node,begin,end,{evil}\n0,0,0,400,1\n")),
        ("tasks.csv", format!("id,type,node,worker,start,end,function\n1,{evil},0,0,0,100,{evil}\n")),
        ("runtime.csv", format!("worker,start,end,kind\n0,140,150,{evil}\n")),
    ];
    fs::create_dir(&tables).unwrap();
    rows.iter().for_each(|(name, rows)| fs::write(tables.join(name), rows).unwrap());
    let tables_trace = root.path().join("of-tables");
    assert_harmless(&["import", text(&tables), "-o", text(&tables_trace)]);
    assert_trace_is_harmless(&tables_trace);
    for rows in
        [format!("id,type,node,worker,start,end\n1,a,0,0,{evil},9\n"), format!("id,type,{evil}\n1,a,0\n")]
    {
        fs::write(tables.join("tasks.csv"), rows).unwrap();
        assert_harmless(&["import", text(&tables), "-o", text(&root.path().join("broken"))]);
    }
}

/// Queues, operations and columns of device records.
#[test]
fn names_in_device_records_do_not_act_on_a_terminal() {
    let root = tempfile::tempdir().unwrap();
    let [file, trace] = ["records.csv", "trace"].map(|name| root.path().join(name));
    let (evil, queue) = (quoted(EVIL), quoted(&format!("q{EVIL}")));
    let rows = format!(
        "queue,id,append,start,end,name,thread,{evil}\n{queue},1,5,10,20,{evil},7,{evil}\n\
         {queue},2,6,15,30,{evil},7,\n{queue},2,6,15,30,x,7,\n"
    );
    fs::write(&file, rows).unwrap();
    let import = ["import", "--from", "device-records", text(&file), "-o"];
    assert_harmless(&[&import[..], &[text(&trace)]].concat());
    assert_trace_is_harmless(&trace);
    for name in ["devices/queue.0", "none"] {
        assert_harmless(&["dump", "--queue", name, text(&trace)]);
        assert_harmless_or_silent(&["dump", "--queue", name, "--json", text(&trace)]);
    }
    for rows in [format!("queue,id,append,start,end\nq,1,{evil},10,20\n"), format!("queue,{evil}\nq,1\n")] {
        fs::write(&file, rows).unwrap();
        assert_harmless(&[&import[..], &[text(&root.path().join("broken"))]].concat());
    }
}

/// Hosts, commands, modules and functions of profiles, and the names of their directories.
#[test]
fn names_in_profiles_do_not_act_on_a_terminal() {
    use taskscope_profile::{Frame, FrameKind, Metric, Module, Process, Profile, ROOT, Tree};
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join(format!("profile{}", EVIL.replace('/', "_")));
    fs::create_dir(&trace).unwrap();
    let keys = ["host", "pid", "command", "wall_ns", "threads", "workers", "finished", "task_context", EVIL];
    let process: Process = keys.iter().map(|key| ((*key).to_owned(), EVIL.to_owned())).collect();
    let mut tree = Tree::default();
    let body = tree.child(ROOT, Frame::body(FrameKind::Task));
    let step = tree.child(body, Frame::user(0, 0x1234));
    for (metric, value) in [(Metric::TIME, 5_000_000), (Metric::WORK, 5_000_000), (Metric::SAMPLES, 5)] {
        tree.add(step, metric, value);
    }
    let modules = vec![Module { build_id: EVIL.to_owned(), path: format!("/{EVIL}") }];
    let totals = [("wall_ns", 5_000_000), ("capacity_ns", 5_000_000), (EVIL, 7), ("state.task", 5_000_000)];
    let totals = totals.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
    let profile = Profile { processes: vec![process], modules, tree, totals, ..Profile::default() };
    let mut file = File::create(trace.join("host.1.tsprof")).unwrap();
    profile.write(&mut file).unwrap();
    assert_trace_is_harmless(&trace);
    for view in ["top-down", "bottom-up", "functions", "loops"] {
        assert_harmless(&["report", "--view", view, text(&trace)]);
    }
    assert_harmless(&["record", "-o", text(&root.path().join(format!("o{EVIL}"))), "--", "true"]);
}

/// Stacks larger than the address space simulate a limit of threads.
#[test]
fn the_calling_thread_does_the_work_where_no_thread_can_be_made() {
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("trace");
    let generator =
        Generator { runtime: Runtime::Nosv, threads: 4, threads_per_loom: 4, events: 200_000, seed: 7 };
    generator.write(&trace).unwrap();
    let views = root.path().join("views");
    for arguments in [
        &["report", "--section", "all"][..],
        &["report", "--json"],
        &["info"],
        &["check"],
        &["top"],
        &["emulate", "-o", text(&views)],
        &["report", "--html", text(&root.path().join("page.html"))],
    ] {
        let run = |stack: &str| {
            let arguments = [arguments, &[text(&trace)]].concat();
            let output = Command::new("timeout")
                .args(["600", TASKSCOPE])
                .args(&arguments)
                .env("RUST_MIN_STACK", stack)
                .output()
                .unwrap();
            assert!(!stderr(&output).contains("panicked"), "{arguments:?}: {}", stderr(&output));
            (output.status.code(), output.stdout)
        };
        let (code, printed) = run(&(1_u64 << 47).to_string());
        assert!((code, printed) == run("2097152"), "{arguments:?}");
    }
}

/// The viewer answers on the thread that waits for a signal.
#[test]
fn the_viewer_answers_where_no_thread_can_be_made() {
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("trace");
    stream(1).write(&trace).unwrap();
    let mut viewer = Command::new(TASKSCOPE)
        .args(["view", "--port", "0", text(&trace)])
        .env("RUST_MIN_STACK", (1_u64 << 47).to_string())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut message = BufReader::new(viewer.stderr.take().unwrap());
    let mut line = String::new();
    while !line.contains("http://127.0.0.1:") {
        line.clear();
        assert!(message.read_line(&mut line).unwrap() > 0, "{:?}", viewer.wait());
    }
    let (place, token) = line.trim().trim_start_matches("http://").split_once("/?token=").unwrap();
    for path in ["/", "/api/overview", "/api/type_names"] {
        let mut connection = TcpStream::connect(place).unwrap();
        let request = format!(
            "GET {path}?token={token} HTTP/1.1\r\nHost: {place}\r\nx-taskscope-token: {token}\r\nConnection: close\r\n\r\n"
        );
        connection.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 200 "), "{path}: {}", String::from_utf8_lossy(&answer));
    }
    assert!(Command::new("kill").arg(viewer.id().to_string()).status().unwrap().success());
    assert_eq!(viewer.wait().unwrap().code(), Some(0));
}

/// A browser is given a private page that leads to the viewer; each signal ends the viewer and remove the page.
#[test]
fn the_token_is_in_no_command_line() {
    for (signal, path) in [("-INT", "one"), ("-TERM", "two"), ("-HUP", "three")] {
        let root = tempfile::tempdir().unwrap();
        let trace = root.path().join("trace");
        stream(1).write(&trace).unwrap();
        let opener = root.path().join("xdg-open");
        fs::write(&opener, "#!/bin/sh\necho \"$1\" > $HEARD.new; stat -c %a \"$1\" >> $HEARD.new; cat \"$1\" >> $HEARD.new\nmv $HEARD.new $HEARD\n")
            .unwrap();
        fs::set_permissions(&opener, fs::Permissions::from_mode(0o755)).unwrap();
        let heard = root.path().join(path);
        let searched = format!("{}:{}", text(root.path()), std::env::var("PATH").unwrap());
        let mut viewer = Command::new(TASKSCOPE)
            .args(["view", "--open", text(&trace)])
            .env("PATH", searched)
            .env("HEARD", &heard)
            .env("XDG_RUNTIME_DIR", root.path())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !heard.exists() && viewer.try_wait().unwrap().is_none() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        let message = fs::read_to_string(&heard).unwrap();
        let lines: Vec<&str> = message.lines().collect();
        assert!(!lines[0].contains("token") && lines[0].ends_with(".html"), "{message}");
        assert_eq!(lines[1], "600");
        assert!(message.contains("http://127.0.0.1:") && message.contains("?token="), "{message}");
        let sent = Command::new("kill").args([signal, &viewer.id().to_string()]).status().unwrap();
        assert!(sent.success());
        assert_eq!(viewer.wait().unwrap().code(), Some(0));
        assert!(!Path::new(lines[0]).exists());
    }
}
