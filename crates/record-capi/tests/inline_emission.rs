//! `taskscope.h` in C and C++ programs: the trace holds their inline events.

use std::path::{Path, PathBuf};
use std::process::Command;

use taskscope_event::StreamFile;
use taskscope_event::models::{nosv, ovni};
use taskscope_trace::{OpenOptions, ReadOrder, Trace};

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

fn temporary(name: &str) -> PathBuf {
    let directory = std::env::temp_dir().join(format!("taskscope-capi-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(directory.join("lib")).unwrap();
    // Cargo builds the library beside this test.
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libtaskscope.so");
    for name in ["libtaskscope.so", "libtaskscope.so.1"] {
        std::os::unix::fs::symlink(&built, directory.join("lib").join(name)).unwrap();
    }
    directory
}

fn compile(compiler: &str, source: &str, within: &Path) -> PathBuf {
    let program = within.join("program");
    let standard = if source.ends_with("cpp") { "-std=c++17" } else { "-std=c11" };
    let output = Command::new(compiler)
        .args([standard, "-D_GNU_SOURCE", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(format!("{CRATE}/tests/programs/{source}"))
        .arg(format!("-I{CRATE}/include"))
        .arg("-L")
        .arg(within.join("lib"))
        .arg("-ltaskscope")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn inline_emissions_are_in_the_trace() {
    let exists = |name: &str| Command::new(name).arg("--version").output().is_ok();
    let compilers = [("gcc", "inline.c"), ("clang-19", "inline.c"), ("g++", "inline_cxx.cpp")];
    for (compiler, source) in compilers.into_iter().filter(|(name, _)| *name == "gcc" || exists(name)) {
        let directory = temporary(compiler);
        let program = compile(compiler, source, &directory);
        let status = Command::new(program)
            .env("LD_LIBRARY_PATH", directory.join("lib"))
            .env("TASKSCOPE_TRACE_DIR", directory.join("trace"))
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{compiler}");
        check(&directory.join("trace"));
        std::fs::remove_dir_all(directory).unwrap();
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
