//! The subcommands that read events, from outside.

#[path = "common/reading.rs"]
mod reading;

use reading::{stderr, stdout, taskscope, written};
use std::fs;
use taskscope_event::models::{self, kernel, nanos6, nosv, openmp, ovni};
use taskscope_testkit::trace_builder::{StreamBuilder, one_task, pair, type_payload};

#[test]
fn check_accepts_and_rejects() {
    let (_root, path) = written(&one_task());
    let output = taskscope(&["check", &path]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));

    let mut broken = one_task();
    broken = broken.point(7_000, nosv::SCHEDULER_SERVING_END);
    let (_root, path) = written(&broken);
    let output = taskscope(&["check", "--json", &path]);
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<serde_json::Value> =
        stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let codes: Vec<&str> = lines.iter().map(|line| line["code"].as_str().unwrap()).collect();
    assert_eq!(codes, ["thread-not-active", "pop-empty"]);
    assert_eq!(lines[0]["schema"], "taskscope-violation/1");
    assert_eq!(lines[0]["time_ns"], 6_000);
    let allowed = ["check", "--allow", "thread-not-active", "--allow", "pop-empty", path.as_str()];
    assert_eq!(taskscope(&allowed).status.code(), Some(0));
    assert_eq!(taskscope(&["emulate", "-l", &path]).status.code(), Some(1));
    assert_eq!(taskscope(&["emulate", &path]).status.code(), Some(0));
}

/// The codes in the output of `check`.
fn codes_of_check(path: &str) -> Vec<String> {
    let output = taskscope(&["check", "--json", path]);
    let code = |line: &str| {
        serde_json::from_str::<serde_json::Value>(line).unwrap()["code"].as_str().unwrap().to_owned()
    };
    stdout(&output).lines().map(code).collect()
}

#[test]
fn impossible_clocks_and_offsets_are_reported() {
    let (_root, path) = written(&one_task().point(1 << 63, ovni::BURST));
    assert!(codes_of_check(&path).contains(&"clock-too-large".to_owned()));

    let (root, path) = written(&one_task());
    let other = StreamBuilder::new(1, 2, 102).loom("other.1").cpus(1).execute(1_000, 0).end(6_000);
    other.write(root.path()).unwrap();
    let table = "rank host median mean std\n0 node 0 0 0\n1 other -9223372036854775000 0 0\n";
    fs::write(root.path().join("clock-offsets.txt"), table).unwrap();
    assert_eq!(codes_of_check(&path), ["clock-offsets", "no-clock-offsets"]);
    assert_eq!(stdout(&taskscope(&["dump", &path])).lines().count(), 8, "no event is lost");
}

#[test]
fn a_parallel_task_without_creation_is_one_violation() {
    let stream = StreamBuilder::new(0, 1, 101)
        .cpus(1)
        .execute(1_000, 0)
        .event(2_000, nosv::TASK_EXECUTE, &pair(1, 2))
        .event(3_000, nosv::TASK_END, &pair(1, 2));
    let (_root, path) = written(&stream.end(4_000));
    assert_eq!(codes_of_check(&path), ["unknown-task"]);
}

/// As programs in Latin-1 have them.
#[test]
fn labels_of_invalid_utf_8_are_distinguished_by_every_verb() {
    let label = |id: u32, text: &[u8]| [&id.to_le_bytes()[..], text, b"\0"].concat();
    let mut stream = StreamBuilder::new(0, 1, 101)
        .require(&["ovni", "nosv"])
        .cpus(1)
        .execute(1_000, 0)
        .jumbo(1_001, nosv::TYPE_CREATE, &label(1, b"t\xe2che"))
        .jumbo(1_001, nosv::TYPE_CREATE, &label(2, b"t\xf4che"));
    for (task, at) in [(1, 2_000), (2, 4_000)] {
        stream = stream
            .event(at, nosv::TASK_CREATE, &pair(task, task))
            .event(at, nosv::TASK_EXECUTE, &pair(task, 0))
            .event(at + 1_000, nosv::TASK_END, &pair(task, 0));
    }
    let (root, path) = written(&stream.end(6_000));
    assert_eq!(codes_of_check(&path), [""; 0]);
    assert!(taskscope(&["emulate", &path]).status.success());
    let views = fs::read_to_string(root.path().join("thread.prv")).unwrap();
    let values: Vec<&str> =
        views.lines().filter_map(|line| line.split_once(":11:").map(|(_, value)| value)).collect();
    assert_eq!(values, ["0", "1221300013", "0", "1112922406", "0"], "ovni's, which are of the bytes");
    let labels = fs::read_to_string(root.path().join("thread.pcf")).unwrap();
    for verb in ["report", "dump"] {
        let text = stdout(&taskscope(&[verb, &path]));
        assert!(text.contains(r"t\xe2che") && text.contains(r"t\xf4che"), "{verb}: {text}");
    }
    assert!(labels.contains(r"1221300013 t\xe2che") && labels.contains(r"1112922406 t\xf4che"), "{labels}");
}

/// Ids of threads that are not threads of the system.
#[test]
fn negative_ids_are_shown_as_they_are() {
    let mut stream = StreamBuilder::new(0, 1, 1).require(&["ovni", "openmp"]).cpus(1).execute(1_000, 0);
    (stream.metadata["ovni"]["pid"], stream.metadata["ovni"]["tid"]) = ((-5).into(), (-7).into());
    stream = stream.point(2_000, openmp::BARRIER_PLAIN_BEGIN).point(4_000, openmp::BARRIER_PLAIN_END);
    let (_root, path) = written(&stream.end(6_000));
    for verb in [&["report", "--section", "all"][..], &["report", "--json"], &["info"], &["info", "--json"]] {
        let output = taskscope(&[verb, &[path.as_str()]].concat());
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let text = stdout(&output);
        assert!(text.contains("-7") && !text.contains("184467440"), "{verb:?}: {text}");
    }
}

#[test]
fn dump_and_top_select_by_filter_and_range() {
    let (_root, path) = written(&one_task());
    let output = taskscope(&["dump", "--where", "taskid = 1 and name ~ TASK_E*", &path]);
    let sentences = stdout(&output);
    let expected = ["executes task 1, body 0", "ends task 1, body 0"];
    assert_eq!(sentences.lines().count(), 2);
    assert!(sentences.lines().zip(expected).all(|(line, end)| line.ends_with(end)), "{sentences}");
    let output = taskscope(&["dump", "--json", "--range", "1us..2us", &path]);
    let event: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!((&event["name"], &event["fields"]["label"]), (&"TYPE_CREATE".into(), &"work".into()));
    let output = taskscope(&["top", "--where", "model = nosv", &path]);
    assert_eq!(stdout(&output).lines().count(), 4);
    assert!(stdout(&output).contains("executes task ?, body ?"), "{}", stdout(&output));
    for (wrong, why) in [
        ("tsakid = 1", "events have no field called `tsakid`"),
        ("taskid = one", "`taskid` is a number, and `one` is none (at character 10)"),
        ("taskid = 5ms", "`taskid` is a number and no time, so `5ms` cannot be meant (at character 10)"),
        ("taskid = 1.5", "`taskid` is a whole number, and `1.5` is none (at character 10)"),
        ("cpu = all", "`cpu` is a number, and `all` is none (at character 7)"),
        ("object = 0x560bg", "`0x560bg` is no hexadecimal number (at character 10)"),
        ("taskid < 0", "events have no `taskid` below 0 (at character 10)"),
        ("event = VTX", "nosv has no event `VTX`; the nearest is `VTx`"),
        ("time < 0", "events have no `time` below 0 (at character 8)"),
        ("time > 1xs", "`xs` in `1xs` is no unit of time; units are: ns, us, ms, s, min (at character 8)"),
        ("model = nosw", "no model is called `nosw`"),
        ("time in 9us..3us", "the range ends before it begins"),
    ] {
        let output = taskscope(&["dump", "--where", wrong, &path]);
        assert_eq!(output.status.code(), Some(2), "{wrong}");
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
    }
}

#[test]
fn a_stream_without_metadata_is_reported() {
    let (root, path) = written(&one_task());
    let further =
        StreamBuilder::new(0, 1, 102).require(&["ovni", "nosv"]).cpus(1).execute(1_000, 0).end(6_000);
    let directory = further.write(root.path()).unwrap();
    fs::remove_file(directory.join("stream.json")).unwrap();
    let output = taskscope(&["check", &path]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("error[missing-metadata]"), "{}", stderr(&output));
    let info: serde_json::Value =
        serde_json::from_str(&stdout(&taskscope(&["info", "--json", &path]))).unwrap();
    assert_eq!(info["complete"], false);
    // ovni's tools know nothing of it.
    assert_eq!(taskscope(&["emulate", "-l", &path]).status.code(), Some(0));
}

#[test]
fn a_thread_without_an_end_makes_a_trace_incomplete() {
    let (root, path) = written(&one_task());
    let further = StreamBuilder::new(0, 1, 102).require(&["ovni", "nosv"]).cpus(1).execute(1_000, -1);
    further.event(2_000, nosv::SCHEDULER_SERVING_BEGIN, &[]).write(root.path()).unwrap();
    let output = taskscope(&["info", "--json", &path]);
    let info: serde_json::Value = serde_json::from_str(&stdout(&output)).unwrap();
    assert_eq!(info["complete"], false);
    let text = stdout(&taskscope(&["info", &path]));
    assert!(text.contains("no: see the notes") && text.contains("has no end"), "{text}");
    assert!(text.contains("where a stream ends before its thread"), "{text}");
    // The same at the end of the stream.
    let alone = StreamBuilder::new(0, 1, 101).require(&["ovni", "nosv"]).cpus(1).execute(1_000, 0);
    let (_root, path) = written(&alone.event(2_000, nosv::SCHEDULER_SERVING_BEGIN, &[]));
    let text = stdout(&taskscope(&["info", &path]));
    assert!(text.contains("no: see the notes") && text.contains("has no end"), "{text}");
}

#[test]
fn metadata_that_is_no_json_is_one_violation() {
    let (root, path) = written(&one_task());
    let further =
        StreamBuilder::new(0, 1, 102).require(&["ovni", "nosv"]).cpus(1).execute(1_000, -1).end(6_000);
    let metadata = further.write(root.path()).unwrap().join("stream.json");
    let half = fs::read(&metadata).unwrap();
    fs::write(&metadata, &half[..half.len() / 2]).unwrap();
    let output = taskscope(&["check", &path]);
    let codes: Vec<String> = stderr(&output)
        .lines()
        .filter_map(|line| Some(line.split_once("error[")?.1.split_once(']')?.0.to_owned()))
        .collect();
    assert_eq!(codes, ["bad-metadata"], "{}", stderr(&output));
}

#[test]
fn a_jumbo_payload_in_place_of_a_plain_one_is_reported() {
    let mut stream = one_task();
    stream = stream.jumbo(7_000, ovni::FLUSH_BEGIN, &[0; 4]).jumbo(8_000, ovni::FLUSH_END, &[0; 4]);
    let (_root, path) = written(&stream);
    let output = taskscope(&["check", "--json", &path]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output).matches("\"jumbo-payload\"").count(), 2, "{}", stdout(&output));
}

/// ovni's lint checks subsystems and functions; we check all open sections.
#[test]
fn kinds_of_threads_and_labels_that_never_end_are_minded_by_check_alone() {
    let stream = |model| StreamBuilder::new(0, 1, 101).require(&["ovni", model]).cpus(1).execute(1_000, 0);
    let open_main = stream("nanos6").point(2_000, nanos6::MAIN_BEGIN).end(3_000);
    let in_subsystem = stream("nanos6").point(2_000, nanos6::SCHEDULER_ADDING_READY_TASKS_BEGIN).end(3_000);
    for (stream, code, lint) in
        [(open_main, "other-stack-not-empty", 0), (in_subsystem, "stack-not-empty", 1)]
    {
        let (root, path) = written(&stream);
        assert_eq!(codes_of_check(&path), [code]);
        let views = root.path().join("views");
        let output = taskscope(&["emulate", "-l", "-o", views.to_str().unwrap(), &path]);
        assert_eq!(output.status.code(), Some(lint), "{code}: {}", stderr(&output));
    }
}

/// Each event of ovni's models with more payload than its declaration has, or less.
#[test]
fn payloads_of_all_events_are_held_against_their_declaration() {
    let specs = || models::MODELS.iter().filter(|model| !model.own).flat_map(|model| model.events);
    let reported = |bytes_of: &dyn Fn(usize) -> Option<usize>| {
        let names: Vec<&str> =
            models::MODELS.iter().filter(|model| !model.own).map(|model| model.name).collect();
        let mut stream = StreamBuilder::new(0, 1, 101).require(&names).cpus(1).execute(1_000, 0);
        let mut emitted = Vec::new();
        for spec in specs().filter(|spec| !spec.jumbo) {
            let declared = spec.fields.iter().filter_map(|field| field.ty.size()).sum();
            if let Some(bytes) = bytes_of(declared) {
                stream = stream.event(2_000, spec.code, &[0; 16][..bytes]);
                emitted.push(spec.code.to_string());
            }
        }
        let (_root, path) = written(&stream.end(3_000));
        let text = stdout(&taskscope(&["check", "--json", "--all", &path]));
        let lines = text.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let payload_lines = lines.filter(|line| line["code"].as_str().unwrap().starts_with("payload-"));
        let word = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
        let reported: Vec<(String, String)> =
            payload_lines.map(|line| (word(&line["event"]), word(&line["code"]))).collect();
        (emitted, reported)
    };
    // One that no runtime is known to write.
    let (emitted, more) = reported(&|declared| (declared + 2 <= 16).then_some(declared + 2));
    assert_eq!(more.iter().map(|(event, _)| event.as_str()).collect::<Vec<_>>(), emitted, "each once");
    // For moves and marks ovniemu, too, accepts only declared ones.
    let refused = ["OAr", "OAs", "OM[", "OM]", "OM="];
    let code = |event: &str| if refused.contains(&event) { "payload-size" } else { "payload-extra" };
    assert!(more.iter().all(|(event, reported)| reported == code(event)), "{more:?}");
    let (emitted, less) = reported(&|declared| (declared > 2).then(|| declared - 2));
    assert_eq!(less.iter().map(|(event, _)| event.as_str()).collect::<Vec<_>>(), emitted, "each once");
    let short: Vec<&str> =
        less.iter().filter(|(_, code)| code == "payload-short").map(|(event, _)| event.as_str()).collect();
    assert_eq!(short, ["OHC", "OHx", "OCn"], "where ovniemu does not look");
}

#[test]
fn payload_that_is_missing_is_null_and_ovni_accepts_it() {
    let stream = StreamBuilder::new(0, 1, 101)
        .cpus(1)
        .event(1_000, ovni::THREAD_EXECUTES, &0_i32.to_le_bytes())
        .event(2_000, ovni::THREAD_CREATES, &[3, 0, 0, 0, 1, 0, 0])
        .end(3_000);
    let (_root, path) = written(&stream);
    assert_eq!(codes_of_check(&path), ["payload-short", "payload-short"]);
    assert!(taskscope(&["emulate", "-l", &path]).status.success());
    let text = stdout(&taskscope(&["dump", "--json", &path]));
    let fields: Vec<serde_json::Value> = text
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["fields"].clone())
        .collect();
    assert_eq!(fields[0], serde_json::json!({"cpu": 0, "tid": null, "tag": null}));
    assert_eq!(fields[1], serde_json::json!({"cpu": 3, "tag": null}));
}

#[test]
fn a_slice_into_its_own_trace_is_refused() {
    let (root, path) = written(&one_task());
    let inside = root.path().join("new/part");
    let output = taskscope(&["slice", "--range", "0..50%", "-o", inside.to_str().unwrap(), &path]);
    assert_ne!(output.status.code(), Some(0));
    assert!(stderr(&output).contains("lies in the trace"), "{}", stderr(&output));
    assert!(!inside.exists());
    assert_eq!(taskscope(&["check", &path]).status.code(), Some(0));
}

/// Control characters are replaced in terminal output; all counters of an event are printed.
#[test]
fn dump_shows_all_of_an_event_and_nothing_that_acts() {
    let counters: Vec<u8> = [7_i64, -8].iter().flat_map(|value| value.to_le_bytes()).collect();
    let stream = StreamBuilder::new(0, 1, 101)
        .require(&["ovni", "nosv"])
        .cpus(1)
        .execute(1_000, 0)
        .jumbo(2_000, nosv::TYPE_CREATE, &type_payload(7, "two\nlines \u{1b}[31m"))
        .jumbo(3_000, nosv::HARDWARE_COUNTERS, &counters)
        .end(6_000);
    let (_root, path) = written(&stream);
    let text = stdout(&taskscope(&["dump", &path]));
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(!text.contains('\u{1b}') && text.contains("counts hardware events 7, -8"), "{text}");
    let json = stdout(&taskscope(&["dump", "--json", "--where", "model = nosv", &path]));
    let last: serde_json::Value = serde_json::from_str(json.lines().last().unwrap()).unwrap();
    assert_eq!(last["fields"]["value"], serde_json::json!([7, -8]));
    // A filter sees all of them.
    let selected = |filter: &str| stdout(&taskscope(&["dump", "--where", filter, &path])).lines().count();
    assert_eq!(["value = 7", "value = -8", "value < 7", "value = 9"].map(selected), [1, 1, 1, 0]);
}

#[test]
fn numbers_with_the_highest_bit_set_are_found() {
    let tag: u64 = 0x8000_5600_0000_000b;
    let payload = [&0_i32.to_le_bytes()[..], &tag.to_le_bytes()].concat();
    let (_root, path) = written(&one_task().event(5_500, ovni::THREAD_CREATES, &payload));
    for (filter, count) in [
        ("tag = 0x800056000000000b".to_owned(), 1),
        (format!("tag = {tag}"), 1),
        (format!("tag > {tag}"), 0),
        ("tag in 9223372036854775808..18446744073709551615".to_owned(), 1),
    ] {
        let output = taskscope(&["dump", "--where", &filter, &path]);
        assert_eq!(stdout(&output).lines().count(), count, "{filter}: {}", stderr(&output));
    }
}

/// The order of ends given in different ways depends on the trace.
#[test]
fn ranges_that_hold_nothing_of_the_trace_are_refused_by_every_verb() {
    let (root, path) = written(&one_task());
    let other = tempfile::tempdir().unwrap();
    let part = other.path().join("part");
    for (range, why) in [
        ("90%..1us", "would begin at"),
        ("200%..300%", "before the range begins"),
        ("..0", "before the trace's first event"),
    ] {
        for verb in ["dump", "top", "check", "emulate", "slice"] {
            let mut arguments = vec![verb, "--range", range, &path];
            if verb == "slice" {
                arguments.extend(["-o", part.to_str().unwrap()]);
            }
            let output = taskscope(&arguments);
            assert_eq!(output.status.code(), Some(2), "{verb} {range}: {}", stderr(&output));
            assert!(stderr(&output).contains(why), "{verb} {range}: {}", stderr(&output));
        }
    }
    assert!(!part.exists() && !root.path().join("thread.prv").exists());
}

#[test]
fn a_slice_of_threads_that_have_ended_is_refused() {
    let (root, path) = written(&one_task());
    let further = StreamBuilder::new(0, 1, 102).require(&["ovni", "nosv"]).cpus(1).execute(7_000, 0);
    further.end(9_000).write(root.path()).unwrap();
    let other = tempfile::tempdir().unwrap();
    let part = other.path().join("part");
    let arguments = ["slice", "--range", "6500ns..", "--threads", "101", "-o", part.to_str().unwrap(), &path];
    let output = taskscope(&arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no thread lives in that part"), "{}", stderr(&output));
}

#[test]
fn sort_writes_the_order_and_reports_it() {
    let unsorted = StreamBuilder::new(0, 1, 101)
        .require(&["ovni"])
        .cpus(1)
        .execute(10, 0)
        .point(20, ovni::BURST)
        .point(30, ovni::UNSORTED_BEGIN)
        .point(15, ovni::BURST)
        .point(40, ovni::UNSORTED_END)
        .end(50);
    let (_root, path) = written(&unsorted);
    let checked = taskscope(&["sort", "--check", &path]);
    assert_eq!(checked.status.code(), Some(1));
    assert!(stderr(&checked).contains("1 file of 1 stream to sort"), "{}", stderr(&checked));
    assert_eq!(taskscope(&["emulate", "-l", &path]).status.code(), Some(1));
    assert_eq!(taskscope(&["check", &path]).status.code(), Some(0));
    assert_eq!(taskscope(&["sort", &path]).status.code(), Some(0));
    let checked = taskscope(&["sort", "--check", &path]);
    assert_eq!(
        (checked.status.code(), stderr(&checked)),
        (Some(0), "1 stream: nothing to sort\n".to_owned())
    );
    assert_eq!(taskscope(&["emulate", "-l", &path]).status.code(), Some(0));
}

#[test]
fn threads_that_never_end_are_marked_though_their_streams_did() {
    let (root, views) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    StreamBuilder::new(0, 1, 1).cpus(1).execute(1000, 0).end(3000).write(root.path()).unwrap();
    StreamBuilder::new(0, 1, 2).execute(1100, -1).point(1200, ovni::BURST).write(root.path()).unwrap();
    let run = taskscope(&["emulate", "-o", views.path().to_str().unwrap(), root.path().to_str().unwrap()]);
    assert!(run.status.success(), "{run:?}");
    let records = std::fs::read_to_string(views.path().join("thread.prv")).unwrap();
    let marks: Vec<&str> = records.lines().filter(|line| line.contains(":60:")).collect();
    assert_eq!(marks, ["2:0:1:1:2:200:60:2"]);
}

#[test]
fn sort_reports_streams_that_it_cannot_read() {
    let root = tempfile::tempdir().unwrap();
    let stream = StreamBuilder::new(0, 1, 1).cpus(1).execute(1000, 0).end(3000).write(root.path()).unwrap();
    let file = stream.join("stream.obs");
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&file, &file).unwrap();
    let path = root.path().to_str().unwrap();
    for arguments in [&["sort", path][..], &["sort", "--check", path]] {
        let run = taskscope(arguments);
        assert_eq!(run.status.code(), Some(1), "{run:?}");
        assert!(String::from_utf8_lossy(&run.stderr).contains("were not checked"), "{run:?}");
    }
}

#[test]
fn recordings_of_clean_runs_pass_without_warnings_and_notes() {
    let execute = 0_i32.to_le_bytes();
    // Nanos6 records the woken thread, nOS-V counts CPUs twice, both flush after a thread's end, and nOS-V
    // records the kernel's events late.
    let stream = StreamBuilder::new(0, 1, 101)
        .cpus(1)
        .require(&["ovni", "nanos6", "kernel"])
        .event(1_000, ovni::THREAD_EXECUTES, &[&execute[..], &[0; 12]].concat())
        .event(1_100, ovni::CPU_COUNT, &[1, 0, 0, 0, 2, 0, 0, 0])
        .event(1_200, nanos6::POINT_WAKES_WORKER, &[101, 0, 0, 0])
        .event(1_300, ovni::UNSORTED_BEGIN, &[])
        .event(1_250, kernel::BACK_ON_CPU, &[])
        .event(1_240, kernel::OUT_OF_CPU, &[])
        .event(1_400, ovni::UNSORTED_END, &[])
        .event(2_000, ovni::THREAD_ENDS, &[])
        .event(2_100, ovni::FLUSH_BEGIN, &[])
        .event(2_200, ovni::FLUSH_END, &[]);
    let (_root, path) = written(&stream);
    assert_eq!(codes_of_check(&path), [""; 0]);
    for verb in ["check", "info", "report", "dump", "top"] {
        let output = taskscope(&[verb, &path]);
        assert!(output.status.success(), "{verb}");
        let text = stdout(&output) + &stderr(&output);
        assert!(!text.contains("warning[") && !text.contains("unsorted-region"), "{verb}: {text}");
        assert!(!text.lines().any(|line| line.trim_start().starts_with("note")), "{verb}: {text}");
    }
}

#[test]
fn counters_may_be_declared_by_one_thread_alone() {
    let stream = |tid: u32, declares: bool| {
        let mut stream = StreamBuilder::new(0, 1, tid).cpus(1);
        if declares {
            stream = stream.attribute("nosv", serde_json::json!({ "hwc": { "0": { "name": "INS" } } }));
        }
        let execute = [&0_i32.to_le_bytes()[..], &[0; 12]].concat();
        let from = if declares { 1_000 } else { 5_000 };
        stream
            .event(from, ovni::THREAD_EXECUTES, &execute)
            .jumbo(from + 100, nosv::HARDWARE_COUNTERS, &7_i64.to_le_bytes())
            .end(from + 1_000)
    };
    for (first, second) in [(true, false), (false, true)] {
        let (root, path) = written(&stream(101, first));
        stream(102, second).write(root.path()).unwrap();
        assert_eq!(codes_of_check(&path), [""; 0]);
        assert!(taskscope(&["emulate", "-l", &path]).status.success());
    }
}
