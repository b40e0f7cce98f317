//! `taskscope.h` in C and C++ programs: the trace holds their inline events.

use std::path::Path;
use std::process::Command;

use taskscope_event::StreamFile;
use taskscope_event::models::{instrument, nosv, ovni};
use taskscope_trace::{OpenOptions, ReadOrder, Trace};

use crate::Programs;
use taskscope_prerequisite::has;

#[test]
fn inline_emissions_are_in_the_trace() {
    for compiler in ["gcc", "clang-19", "g++"].into_iter().filter(|name| has(name)) {
        let programs = Programs::new();
        programs.compile(compiler, &["-g"], "tests/programs/inline.c", "program");
        let trace = programs.path("trace");
        programs.output(Command::new(programs.path("program")).env("TASKSCOPE_TRACE_DIR", &trace));
        check(&trace);
    }
}

#[test]
fn excluded_begins_have_no_ends() {
    for compiler in ["gcc", "g++"].into_iter().filter(|name| has(name)) {
        let programs = Programs::new();
        programs.compile(compiler, &["-g"], "tests/programs/filtered.c", "program");
        for (name, value) in [("TASKSCOPE_FILTER", "-ovni.M,-I"), ("TASKSCOPE_SWITCH", "off")] {
            let root = programs.path(name);
            let mut command = Command::new(programs.path("program"));
            programs.output(command.env("TASKSCOPE_TRACE_DIR", &root).env(name, value));
            let trace = Trace::open(&root, &OpenOptions::default()).unwrap();
            let of = |file| trace.streams().iter().flat_map(move |stream| stream.events_of(file));
            let tasks = of(StreamFile::Standard).filter(|event| event.code == nosv::TASK_EXECUTE).count();
            assert_eq!(tasks, usize::from(name == "TASKSCOPE_FILTER"));
            assert!(of(StreamFile::Standard).all(|event| event.code != ovni::MARK_POP), "{name}");
            assert!(of(StreamFile::Own).all(|event| event.code != instrument::STATE_POP), "{name}");
        }
    }
}

fn check(root: &Path) {
    let trace =
        Trace::open(root, &OpenOptions { order: ReadOrder::Stored, ..OpenOptions::default() }).unwrap();
    let mut counts: Vec<usize> = vec![];
    for stream in trace.streams() {
        assert!(stream.is_finished());
        let marks = &stream.metadata.marks;
        let labels: Vec<_> = marks[0].labels.iter().collect();
        assert_eq!(labels, [("1", Some("sweep")), ("2", Some("inner"))]);
        assert_eq!(marks[1].title.as_deref(), Some("residual"));
        let events: Vec<_> = stream.events_of(StreamFile::Standard).collect();
        assert!(events.is_sorted_by_key(|event| event.clock_ns));
        assert_eq!(events[0].code, ovni::THREAD_EXECUTES);
        assert_eq!(events.last().unwrap().code, ovni::THREAD_ENDS);
        let mut open = vec![];
        for event in &events {
            match event.code {
                ovni::MARK_PUSH | nosv::TASK_EXECUTE => open.push(event.payload),
                ovni::MARK_POP | nosv::TASK_END => assert_eq!(open.pop(), Some(event.payload)),
                _ => {}
            }
        }
        assert!(open.is_empty());
        counts.push(events.len());
        let values: Vec<i64> = events
            .iter()
            .filter(|event| event.code == ovni::MARK_SET)
            .map(|event| i64::from_le_bytes(event.payload[..8].try_into().unwrap()))
            .collect();
        if !values.is_empty() {
            assert!(values.into_iter().eq((1..=1000).map(|i| -i)));
        }
    }
    counts.sort();
    // Child: begin and end. Thread: 9 events a round. Main: the type, the span around the switch, two more.
    assert_eq!(counts, [2 + 2, 9 * 1000 + 2, 9 * 1000 + 1 + 2 + 2 + 2]);
}
