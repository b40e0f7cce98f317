//! Every function of the C interface, called from C, and the trace that it makes.

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use support::*;
use taskscope_event::{Code, StreamFile};
use taskscope_trace::Event;

#[test]
fn every_function_is_exported_and_nothing_else() {
    let directory = temporary("exports");
    let library = library_directory(&directory).join("libovni.so.1");
    let output = Command::new("nm").args(["-D", "--defined-only"]).arg(&library).output().unwrap();
    let exported: BTreeSet<String> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_whitespace().last().map(str::to_owned))
        .collect();
    // The prototypes that the test programs are compiled with are the list to hold.
    let header = include_str!("programs/ovni_abi.h");
    let declared: BTreeSet<String> = header
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with(['\t', '_']))
        .filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next().map(str::to_owned))
        .filter(|name| name.starts_with("ovni_"))
        .collect();
    assert_eq!(declared.len(), 35);
    assert_eq!(exported, declared);
    let dynamic = Command::new("readelf").arg("-d").arg(&library).output().unwrap();
    assert!(String::from_utf8(dynamic.stdout).unwrap().contains("soname: [libovni.so.1]"));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_program_that_calls_everything_leaves_the_trace_that_it_should() {
    for compiler in compilers() {
        let directory = temporary(&format!("every-{compiler}"));
        let program = compile(compiler, "every_function", &directory, &[]);
        let trace = directory.join("trace");
        let message = succeeded(command(&program, &directory, &trace).output().unwrap());
        assert_eq!(message, "");
        check_trace(&trace);
        // Again with a temporary directory: the same result, with nothing left behind.
        let (trace, temporary) = (directory.join("trace2"), directory.join("tmp"));
        let mut command = command(&program, &directory, &trace);
        succeeded(command.env("OVNI_TMPDIR", &temporary).output().unwrap());
        check_trace(&trace);
        assert!(!temporary.exists());
        std::fs::remove_dir_all(directory).unwrap();
    }
}

fn check_trace(root: &std::path::Path) {
    let stream_directory = root.join("loom.node7.test/proc.4242/thread.77");
    let mut files: Vec<_> =
        std::fs::read_dir(&stream_directory).unwrap().map(|e| e.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, ["stream.json", "stream.obs"]);

    let trace = open(root);
    let [stream] = trace.streams() else { panic!("one stream") };
    let meta = &stream.metadata;
    assert_eq!((meta.pid, meta.tid, meta.app_id), (Some(4242), Some(77), Some(3)));
    assert_eq!((meta.loom.as_deref(), meta.rank, meta.nranks), (Some("node7.test"), Some(1), Some(2)));
    assert_eq!(meta.library_version.as_deref(), Some("1.14.0"));
    let require = meta.require.as_ref().unwrap();
    assert_eq!(
        *require,
        [
            ("ovni".into(), "1.1.0".into()),
            ("nosv".into(), "2.7.0".into()),
            ("kernel".to_owned(), "1.0.0".to_owned())
        ]
    );
    assert!(stream.is_finished());
    let text = std::fs::read(stream_directory.join("stream.json")).unwrap();
    let raw: serde_json::Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(raw["version"], 3);
    assert_eq!(raw["ovni"]["part"], "thread");
    assert_eq!(
        raw["ovni"]["loom_cpus"],
        serde_json::json!([{ "index": 0, "phyid": 4 }, { "index": 1, "phyid": 6 }])
    );
    assert_eq!(
        raw["test"],
        serde_json::json!({ "double": 123.5, "whole": 7, "flag": true, "deep": { "text": "f\"oo" } })
    );
    assert_eq!(raw["nosv"]["test"]["json"], serde_json::json!({ "foo": [42, null] }));
    assert_eq!(
        raw["ovni"]["mark"],
        serde_json::json!({
            "5": { "title": "Stacked", "chan_type": "stack", "labels": { "1": "one" } },
            "6": { "title": "Single", "chan_type": "single" }
        })
    );
    assert_eq!(raw["taskscope"]["lost_events"], 0);

    let events: Vec<Event<'_>> = stream.events_of(StreamFile::Standard).collect();
    let codes: Vec<String> = events.iter().map(|event| event.code.to_string()).collect();
    let bursts = ["OB."; 15];
    let expected: Vec<&str> = ["OHx", "VYc", "VTc"]
        .into_iter()
        .chain(bursts)
        .chain(["OU[", "KCO", "KCI", "OU]", "OF[", "OF]", "OM[", "OM=", "OM]", "OHe"])
        .collect();
    assert_eq!(codes, expected);
    assert_eq!(events[1].payload, b"\x09\0\0\0a task type\0");
    assert!(events[1].is_jumbo && !events[2].is_jumbo);
    assert_eq!(events[2].payload, [1, 0, 0, 0, 9, 0, 0, 0]);
    let base = events[2].clock_ns;
    for (event, size) in events[3..18].iter().zip(2u8..) {
        assert_eq!(event.clock_ns, base + i64::from(size));
        let bytes: Vec<u8> = (0..size).map(|i| size.wrapping_mul(16).wrapping_add(i)).collect();
        assert_eq!(event.payload, bytes);
    }
    assert_eq!(events[19].clock_ns, base + 50, "the clock goes back, as it was emitted");
    let mark = |value: i64, kind: i32| [&value.to_le_bytes()[..], &kind.to_le_bytes()[..]].concat();
    assert_eq!(events[24].payload, mark(1, 5));
    assert_eq!(events[25].payload, mark(-8, 6));
    // No byte besides header and events.
    let bytes: usize = events.iter().map(|e| 12 + e.payload.len() + if e.is_jumbo { 4 } else { 0 }).sum();
    assert_eq!(std::fs::read(stream_directory.join("stream.obs")).unwrap().len(), 8 + bytes);
}

#[test]
fn misuse_is_reported_and_ends_the_program_only_on_demand() {
    let directory = temporary("misuse");
    let program = compile("gcc", "misuse", &directory, &[]);
    let trace = directory.join("trace");
    let output = command(&program, &directory, &trace).output().unwrap();
    assert_eq!(output.stdout, b"the program runs on\n");
    let message = succeeded(output);
    for line in [
        "ovni_version_check_str: incompatible ovni major version: wants 2.0.0, got 1.14.0",
        "ovni_version_check_str: incompatible ovni minor version: wants 1.15.0, got 1.14.0",
        "ovni_ev_emit: the thread is not initialized",
        "ovni_proc_init: process 10 is already initialized",
        "ovni_payload_add: payload size 1 is too small",
        "further messages about misuse of libovni are omitted",
    ] {
        assert!(message.contains(line), "{line:?} is not in {message}");
    }
    let opened = open(&trace);
    let codes: Vec<Code> = opened.streams()[0].events_of(StreamFile::Standard).map(|e| e.code).collect();
    assert_eq!(codes.len(), 2);
    let aborted = command(&program, &directory, &trace).env("TASKSCOPE_OVNI_ABORT", "1").output().unwrap();
    use std::os::unix::process::ExitStatusExt;
    assert_eq!(aborted.status.signal(), Some(6));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_forked_child_has_a_process_of_its_own() {
    let directory = temporary("fork");
    let program = compile("gcc", "fork", &directory, &[]);
    let trace = directory.join("trace");
    succeeded(command(&program, &directory, &trace).output().unwrap());
    let trace = open(&trace);
    let mut counts: Vec<_> = trace
        .streams()
        .iter()
        .map(|stream| {
            let events: Vec<_> = stream.events_of(StreamFile::Standard).collect();
            assert!(stream.is_finished());
            assert!(events.is_sorted_by_key(|event| event.clock_ns));
            assert_eq!(events[0].code.to_string(), "OHx");
            assert_eq!(stream.metadata.require.as_ref().unwrap().len(), 2);
            assert_eq!(stream.metadata.loom.as_deref(), Some("node.0"));
            events.len()
        })
        .collect();
    counts.sort();
    assert_eq!(counts, [12, 122]);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_process_may_begin_again_and_exit_without_freeing() {
    let directory = temporary("again");
    let program = compile("gcc", "again", &directory, &[]);
    let trace = directory.join("trace");
    succeeded(command(&program, &directory, &trace).output().unwrap());
    let trace = open(&trace);
    assert_eq!(trace.streams().len(), 4);
    let processes: BTreeSet<_> = trace.streams().iter().map(|stream| stream.metadata.pid).collect();
    assert_eq!(processes.len(), 2);
    // As ovni has it, only a thread that frees itself has `ovni.finished`.
    assert_eq!(trace.streams().iter().filter(|stream| stream.metadata.finished).count(), 1);
    for stream in trace.streams() {
        assert!(stream.is_finished(), "{}", stream.relative_path);
        assert_eq!(stream.events_of(StreamFile::Standard).count(), 2);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn process_metadata_set_before_its_threads_is_kept() {
    let directory = temporary("early");
    let program = compile("gcc", "early", &directory, &[]);
    let trace = directory.join("trace");
    assert_eq!(succeeded(command(&program, &directory, &trace).env("EARLY", "1").output().unwrap()), "");
    let trace = open(&trace);
    let metadata = &trace.streams()[0].metadata;
    assert_eq!(metadata.rank, Some(2));
    let cpus: Vec<_> = metadata.loom_cpus.iter().flatten().map(|cpu| (cpu.index, cpu.phyid)).collect();
    assert_eq!(cpus, [(0, 6), (1, 9)]);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_thread_that_runs_on_while_the_program_ends_misuses_nothing() {
    let directory = temporary("runs-on");
    let program = compile("gcc", "early", &directory, &[]);
    for round in 0..10 {
        let trace = directory.join(format!("trace{round}"));
        let output = command(&program, &directory, &trace).env("TASKSCOPE_OVNI_ABORT", "1").output().unwrap();
        assert_eq!(succeeded(output), "");
        assert!(open(&trace).streams()[0].is_finished());
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_thread_that_cannot_be_recorded_misuses_nothing() {
    let directory = temporary("refused");
    let program = compile("gcc", "refused", &directory, &[]);
    let trace = directory.join("trace");
    let output = command(&program, &directory, &trace).env("TASKSCOPE_OVNI_ABORT", "1").output().unwrap();
    assert_eq!(output.stdout, b"done\n");
    let message = succeeded(output);
    assert!(message.contains("is not recorded: its files cannot be created"), "{message}");
    assert_eq!(message.lines().count(), 2, "{message}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn threads_created_while_others_end_are_all_recorded() {
    let directory = temporary("come-and-go");
    let program = compile("gcc", "come_and_go", &directory, &[]);
    let trace = directory.join("trace");
    assert_eq!(succeeded(command(&program, &directory, &trace).output().unwrap()), "");
    let trace = open(&trace);
    assert_eq!(trace.streams().len(), 4 * 100);
    for stream in trace.streams() {
        assert!(stream.is_finished(), "{}", stream.relative_path);
        assert_eq!(stream.events_of(StreamFile::Standard).count(), 2);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn events_of_a_signal_handler_are_recorded_during_every_call() {
    let directory = temporary("signals");
    let program = compile("gcc", "signals", &directory, &[]);
    let trace = directory.join("trace");
    let output = command(&program, &directory, &trace).output().unwrap();
    let counts = String::from_utf8(output.stdout.clone()).unwrap();
    succeeded(output);
    let (emitted, handled) = counts.trim().split_once(' ').unwrap();
    let trace = open(&trace);
    let numbers: Vec<u64> = trace.streams()[0]
        .events_of(StreamFile::Standard)
        .filter(|event| event.code == Code(*b"OB."))
        .map(|event| u64::from_le_bytes(event.payload.try_into().unwrap()))
        .collect();
    let (handler_numbers, thread_numbers): (Vec<u64>, Vec<u64>) =
        numbers.iter().partition(|number| **number >> 63 == 1);
    assert!(thread_numbers.into_iter().eq(0..emitted.parse().unwrap()));
    let handled: u64 = handled.parse().unwrap();
    let missing = (0..handled).filter(|number| !handler_numbers.contains(&(number | 1 << 63))).count();
    let first = (0..).zip(&handler_numbers).find(|(number, found)| number | 1 << 63 != **found);
    assert_eq!((handler_numbers.len() as u64, first), (handled, None), "{missing} of {emitted} + {handled}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn events_that_the_filter_leaves_out_are_not_recorded() {
    let directory = temporary("filter");
    let program = compile("gcc", "nested", &directory, &[]);
    let letters = |filter: &str| -> BTreeSet<u8> {
        let trace = directory.join(format!("trace-{filter}"));
        succeeded(command(&program, &directory, &trace).env("TASKSCOPE_FILTER", filter).output().unwrap());
        open(&trace).streams()[0].events_of(StreamFile::Standard).map(|event| event.code.model()).collect()
    };
    assert_eq!(letters(""), BTreeSet::from(*b"OV"));
    assert_eq!(letters("ovni"), BTreeSet::from(*b"O"));
    assert_eq!(letters("-ovni"), BTreeSet::from(*b"OV"), "threads and CPUs are always recorded");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_library_that_arrives_late_is_recorded_on_threads_that_were_there_before() {
    let directory = temporary("late");
    let plugin = compile("gcc", "plugin", &directory, &["-shared", "-fPIC"]);
    let source = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/late.c");
    let program = directory.join("late");
    let built = Command::new("gcc").args(["-pthread", "-o"]).arg(&program).arg(source).arg("-ldl").status();
    assert!(built.unwrap().success());
    let trace = directory.join("trace");
    succeeded(command(&program, &directory, &trace).arg(plugin).output().unwrap());
    let trace = open(&trace);
    assert_eq!(trace.streams().len(), 2);
    assert!(trace.streams().iter().all(|stream| stream.is_finished()));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn on_a_full_disk_every_begin_that_is_kept_has_its_end() {
    let directory = temporary("full");
    let program = compile("gcc", "nested", &directory, &[]);
    let small = directory.join("small");
    std::fs::create_dir(&small).unwrap();
    for kib in [200, 333, 500, 777] {
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "taskscope-test"])
            .arg(&small)
            .status();
        if !mounted.is_ok_and(|status| status.success()) {
            taskscope_prerequisite::skip("only root can mount a small file system");
            return;
        }
        let output = command(&program, &directory, &small.join("trace")).output().unwrap();
        let trace = open(&small.join("trace"));
        let codes: Vec<String> =
            trace.streams()[0].events_of(StreamFile::Standard).map(|event| event.code.to_string()).collect();
        drop(trace);
        assert!(Command::new("umount").arg(&small).status().unwrap().success());
        assert_eq!(output.stdout, b"done\n");
        let mut open = vec![];
        for code in &codes {
            match code.as_str() {
                "OHx" | "VHw" | "OM[" | "VTx" | "VAs" | "VU[" | "VMa" => open.push(code.as_str()),
                end => {
                    let begin = match end {
                        "VSr" => continue,
                        "OHe" => "OHx",
                        "VHW" => "VHw",
                        "OM]" => "OM[",
                        "VTe" => "VTx",
                        "VAS" => "VAs",
                        "VU]" => "VU[",
                        "VMA" => "VMa",
                        other => panic!("{other}"),
                    };
                    assert_eq!(open.pop(), Some(begin), "{kib} KiB");
                }
            }
        }
        assert_eq!(open, [""; 0], "{kib} KiB, {} events", codes.len());
        assert!(codes.len() > 2000 && codes.len() < 400_000, "{kib} KiB, {} events", codes.len());
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn without_a_place_for_the_trace_the_program_runs_on() {
    let directory = temporary("no-place");
    let program = compile("gcc", "fork", &directory, &[]);
    std::fs::write(directory.join("file"), "in the way").unwrap();
    let output = command(&program, &directory, &directory.join("file/trace")).output().unwrap();
    let message = succeeded(output);
    assert!(message.contains("recording is disabled: cannot create directory"), "{message}");
    assert_eq!(message.matches("taskscope:").count(), 1, "{message}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn metadata_is_on_disk_when_a_signal_ends_the_program() {
    use std::os::unix::process::ExitStatusExt;
    let directory = temporary("sudden");
    let program = compile("gcc", "sudden_end", &directory, &[]);
    // SIGINT, SIGKILL, SIGTERM, abort; metadata of less than a page and of many.
    for (signal, of) in [(2, 2), (9, 2), (15, 2), (0, 2), (9, 700), (2, 40)] {
        let trace = directory.join(format!("trace{signal}-{of}"));
        let mut command = command(&program, &directory, &trace);
        let output = command.args([signal.to_string(), of.to_string()]).output().unwrap();
        assert_eq!(output.status.signal(), Some(if signal == 0 { 6 } else { signal }));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_whole_metadata(&trace, of);
    }
    // A fault, an end without destructors, another program, a limit.
    for (end, signal, code) in [
        ("fault", Some(11), None),
        ("exit", None, Some(4)),
        ("exec", None, Some(0)),
        ("limit", Some(9), None),
    ] {
        let trace = directory.join(format!("trace-{end}"));
        let output = command(&program, &directory, &trace).args(["9", "3", end]).output().unwrap();
        assert_eq!((output.status.signal(), output.status.code()), (signal, code), "{end}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "");
        assert_whole_metadata(&trace, 3);
    }
    std::fs::remove_dir_all(directory).unwrap();
}

/// The values of `sudden_end.c` are in the metadata, with so many CPUs and labels, and its events are there.
fn assert_whole_metadata(trace: &Path, of: usize) {
    let trace = open(trace);
    assert_eq!(trace.streams().len(), 2);
    for stream in trace.streams() {
        let is_first = stream.metadata.tid == stream.metadata.pid;
        let labels = if is_first { of } else { 2 };
        assert!(!stream.is_finished());
        assert_eq!(stream.metadata.app_id, Some(0));
        let text = std::fs::read(stream.directory.join("stream.json")).unwrap();
        let raw: serde_json::Value = serde_json::from_slice(&text).unwrap();
        assert_eq!(raw["ovni"]["require"], serde_json::json!({ "nosv": "2.7.0", "ovni": "1.1.0" }));
        assert_eq!(raw["nosv"], serde_json::json!({ "can_breakdown": false }));
        let solver =
            serde_json::json!({ "name": "multigrid", "levels": [1, { "cells": 8 }], "tolerance": 0.5 });
        assert_eq!(raw["solver"], solver);
        let marks = &raw["ovni"]["mark"];
        assert_eq!(marks["3"]["title"], "phase");
        assert_eq!(marks["3"]["labels"].as_object().unwrap().len(), labels);
        assert_eq!(marks["3"]["labels"][labels.to_string()], format!("solve \"{labels}\""));
        assert_eq!(marks["4"], serde_json::json!({ "title": "depth", "chan_type": "stack" }));
        let cpus = stream.metadata.loom_cpus.iter().flatten();
        assert_eq!(cpus.count(), if is_first { of } else { 0 });
        let rank = is_first.then_some((3, 8));
        assert_eq!(stream.metadata.rank.zip(stream.metadata.nranks), rank);
        let events = stream.events_of(StreamFile::Standard).count();
        assert_eq!(events, if is_first { 2 } else { 1 });
    }
}

#[test]
fn a_flush_that_nothing_follows_leaves_no_events() {
    let directory = temporary("flush");
    let program = compile("gcc", "flush", &directory, &[]);
    let trace = directory.join("trace");
    assert_eq!(succeeded(command(&program, &directory, &trace).output().unwrap()), "");
    let trace = open(&trace);
    let codes = |tid: i64| -> Vec<String> {
        let stream = trace.streams().iter().find(|stream| stream.metadata.tid == Some(tid)).unwrap();
        assert!(stream.is_finished());
        stream.events_of(StreamFile::Standard).map(|event| event.code.to_string()).collect()
    };
    assert_eq!(codes(1), ["OHx", "OHe"]);
    assert_eq!(codes(2), ["OHx", "OF[", "OF]", "OHe"]);
    assert_eq!(codes(3), ["OHx", "OF[", "OF]", "OB.", "OB.", "OB.", "OHe"]);
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_reading_after_a_hand_over_is_never_earlier() {
    let directory = temporary("hand-over");
    let program = compile("gcc", "hand_over", &directory, &[]);
    for arguments in [&[][..], &["without"]] {
        let mut command = command(&program, &directory, &directory.join(format!("trace{}", arguments.len())));
        let output = command.args(arguments).output().unwrap();
        let printed = String::from_utf8_lossy(&output.stdout);
        let turns = printed.strip_prefix("0 of ").and_then(|rest| rest.strip_suffix(" turns back\n"));
        let turns = turns.and_then(|turns| turns.parse().ok());
        assert!(turns.is_some_and(|turns: u32| turns >= 2000), "{arguments:?}: {printed}");
        succeeded(output);
    }
    std::fs::remove_dir_all(directory).unwrap();
}
