//! Slices of damaged traces, and of names that are not text.

use crate::{judged, slice};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use taskscope_event::models::{kernel, nanos6, nosv, openmp, ovni};
use taskscope_model::{Violation, ViolationCode};
use taskscope_testkit::trace_builder::{StreamBuilder, pair};
use taskscope_trace::{OpenOptions, Slice, Trace};

#[test]
fn streams_in_directories_of_invalid_utf8_stay_separate() {
    let root = tempfile::tempdir().unwrap();
    for (tid, name) in [b"a\xfe", b"a\xff"].into_iter().enumerate() {
        let stream = StreamBuilder::new(0, 1, 1 + tid as u32).cpus(2).execute(1000, tid as i32).end(2000);
        let written = stream.write(root.path()).unwrap();
        std::fs::rename(written, root.path().join(OsStr::from_bytes(name))).unwrap();
    }
    let part = tempfile::tempdir().unwrap();
    assert_eq!(slice(root.path(), part.path(), &Slice::default()), 2);
    let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
    assert_eq!((trace.streams().len(), trace.event_count()), (2, 4));
}

/// Damaged events that open a section, with jumbo data of every length: sections open at the borders are written again,
/// and closed by plain events.
#[test]
fn slices_of_openings_that_are_jumbo_by_damage_are_traces() {
    let openings = [
        nosv::TASK_EXECUTE,
        nosv::TASK_PAUSE,
        nanos6::TASK_EXECUTE,
        nanos6::TASK_PAUSE,
        openmp::TASK_EXECUTE,
        openmp::WORKSHARE_EXECUTE,
        ovni::MARK_PUSH,
        ovni::MARK_SET,
        ovni::SET_AFFINITY,
        nosv::SCHEDULER_SERVING_BEGIN,
    ];
    for code in openings {
        for length in 0..=40 {
            let root = tempfile::tempdir().unwrap();
            let stream = StreamBuilder::new(0, 1, 1).cpus(1).execute(1000, 0);
            stream.jumbo(1100, code, &vec![1; length]).end(2000).write(root.path()).unwrap();
            for clocks in [(1000, 1500), (1200, 1500), (1200, 3000)] {
                let part = tempfile::tempdir().unwrap();
                slice(root.path(), part.path(), &Slice { clocks: Some(clocks), ..Slice::default() });
                let whole = judged(part.path()).1;
                let is_cut = |violation: &Violation| violation.code == ViolationCode::TruncatedEvent;
                assert!(!whole.iter().any(is_cut), "{code} {length}: {whole:?}");
            }
        }
    }
}

/// The start of a thread says its CPU in jumbo data, while a move of another thread is kept back.
#[test]
fn a_start_that_is_jumbo_by_damage_is_put_after_moves() {
    let root = tempfile::tempdir().unwrap();
    let write = |stream: StreamBuilder| stream.write(root.path()).unwrap();
    let first = StreamBuilder::new(0, 1, 1).cpus(3).execute(1000, 2);
    write(first.event(1020, ovni::REMOTE_AFFINITY, &pair(1, 2)).end(1400));
    let second = StreamBuilder::new(0, 1, 2).execute(1005, 0).point(1010, kernel::OUT_OF_CPU);
    write(second.point(1200, kernel::BACK_ON_CPU).end(1300));
    write(StreamBuilder::new(0, 1, 3).jumbo(1030, ovni::THREAD_EXECUTES, &[1]).end(1100));
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { threads: vec![2, 3], ..Slice::default() });
    Trace::open(part.path(), &OpenOptions::default()).unwrap();
}
