//! Slices by threads: what other threads recorded for them.

use crate::{judged, slice};
use serde_json::json;
use std::path::Path;
use taskscope_event::models::{kernel, nanos6, nosv, ovni};
use taskscope_testkit::bytes;
use taskscope_testkit::corpus::{on_all_cpus, reference_traces};
use taskscope_testkit::trace_builder::{StreamBuilder, pair, type_payload};
use taskscope_trace::{OpenOptions, Slice, Trace};

/// Slices a trace by each of its threads, and by every second one: a judge that accepts the trace accepts all
/// slices. Of very many threads, every fifth stands for all. How many slices there were.
fn slice_by_threads(root: &Path) -> usize {
    let (whole, _) = judged(root);
    if whole == [false, false] {
        return 0;
    }
    let trace = Trace::open(root, &OpenOptions::default()).unwrap();
    let mut tids: Vec<i64> = trace.streams().iter().filter_map(|stream| stream.tid()).collect();
    tids.sort_unstable();
    tids.dedup();
    let step = if tids.len() > 60 { 5 } else { 1 };
    let mut choices: Vec<Vec<i64>> = tids.iter().step_by(step).map(|tid| vec![*tid]).collect();
    choices.push(tids.iter().copied().step_by(2).collect());
    for threads in &choices {
        let part = tempfile::tempdir().unwrap();
        slice(root, part.path(), &Slice { threads: threads.clone(), ..Slice::default() });
        let (accepted, violations) = judged(part.path());
        for (whole, part) in whole.into_iter().zip(accepted) {
            assert!(part || !whole, "{} --threads {threads:?}: {violations:#?}", root.display());
        }
    }
    choices.len()
}

#[test]
fn slices_of_some_threads_of_reference_traces_are_valid() {
    let traces = reference_traces();
    let slices: usize = on_all_cpus(&traces, |_, trace| slice_by_threads(trace)).iter().sum();
    assert!(traces.is_empty() || slices > 400, "only {slices} slices");
}

/// A process of three threads that need each other: for moves, CPUs, marks, its rank, and tasks.
fn write_threads_that_need_each_other(root: &Path) {
    let mark = |value: i64| bytes![value, 5_u32];
    let mut last = StreamBuilder::new(0, 1, 3).rank(0, 1);
    last.metadata["ovni"]["loom_cpus"] = json!([{"index": 1, "phyid": 1}, {"index": 2, "phyid": 2}]);
    last.metadata["ovni"]["mark"] =
        json!({"5": {"title": "phase", "chan_type": "stack", "labels": {"1": "read", "2": "write"}}});
    last.execute(1000, 2)
        .jumbo(1001, nosv::TYPE_CREATE, &type_payload(7, "work"))
        .event(1002, nosv::TASK_CREATE, &pair(1, 7))
        .event(1300, ovni::REMOTE_AFFINITY, &pair(1, 1))
        .event(1400, ovni::REMOTE_AFFINITY, &pair(1, 2))
        .end(3000)
        .write(root)
        .unwrap();
    let mut first = StreamBuilder::new(0, 1, 1);
    first.metadata["ovni"]["loom_cpus"] = json!([{"index": 0, "phyid": 0}]);
    first
        .execute(1100, 0)
        .event(1110, ovni::MARK_PUSH, &mark(2))
        .event(1120, ovni::MARK_POP, &mark(2))
        .point(1130, ovni::THREAD_PAUSES)
        .point(1320, ovni::THREAD_RESUMES)
        .event(1330, nosv::TASK_EXECUTE, &pair(1, 0))
        .event(1340, nosv::TASK_END, &pair(1, 0))
        .event(1350, ovni::REMOTE_AFFINITY, &pair(0, 3))
        .event(1360, ovni::REMOTE_AFFINITY, &pair(2, 3))
        .end(1370)
        .write(root)
        .unwrap();
    // The kernel has taken it off its CPU when it is moved.
    let mut second = StreamBuilder::new(0, 1, 2);
    second.metadata["ovni"]["mark"] = json!({"5": {"title": "phase", "chan_type": "stack"}});
    second
        .execute(1371, 0)
        .point(1380, kernel::OUT_OF_CPU)
        .point(1500, kernel::BACK_ON_CPU)
        .point(1510, ovni::BURST)
        .end(1600)
        .write(root)
        .unwrap();
}

#[test]
fn slices_of_threads_that_need_each_other_are_valid() {
    let root = tempfile::tempdir().unwrap();
    write_threads_that_need_each_other(root.path());
    assert_eq!(judged(root.path()), ([true, true], vec![]));
    slice_by_threads(root.path());
    // Events of the other threads about the first thread are all in its part.
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { threads: vec![1], ..Slice::default() });
    let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
    let moves: Vec<_> = trace.merge().filter(|merged| merged.event.code == ovni::REMOTE_AFFINITY).collect();
    assert_eq!(moves.len(), 1);
    assert_eq!((moves[0].event.clock_ns, moves[0].event.payload), (1300, &pair(1, 1)[..]));
    let metadata = &trace.streams()[0].metadata;
    assert_eq!((metadata.rank, metadata.loom_cpus.as_ref().unwrap().len()), (Some(0), 3));
    assert_eq!(metadata.marks[0].labels.iter().count(), 2);
}

#[test]
fn objects_created_before_the_range_are_known_to_threads_that_start_in_it() {
    let root = tempfile::tempdir().unwrap();
    StreamBuilder::new(0, 1, 1)
        .cpus(1)
        .execute(1000, 0)
        .jumbo(1010, nosv::TYPE_CREATE, &type_payload(7, "work"))
        .event(1020, nosv::TASK_CREATE, &pair(1, 7))
        .end(1100)
        .write(root.path())
        .unwrap();
    StreamBuilder::new(0, 1, 2)
        .execute(1300, 0)
        .event(1310, nosv::TASK_EXECUTE, &pair(1, 0))
        .event(1320, nosv::TASK_END, &pair(1, 0))
        .end(1330)
        .write(root.path())
        .unwrap();
    let part = tempfile::tempdir().unwrap();
    slice(root.path(), part.path(), &Slice { clocks: Some((1200, 1400)), ..Slice::default() });
    assert_eq!(judged(part.path()), ([true, true], vec![]));
}

/// A type that a thread which is left out creates in the range, while one that is kept does not run.
#[test]
fn borrowed_types_are_there_before_their_first_use() {
    let require = ["ovni", "nanos6", "kernel"];
    let borrows = |thread: &dyn Fn(StreamBuilder) -> StreamBuilder| {
        let (root, part) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        StreamBuilder::new(0, 1, 1)
            .require(&require)
            .cpus(2)
            .execute(1000, 0)
            .jumbo(1050, nanos6::TYPE_CREATE, &type_payload(7, "work"))
            .end(1100)
            .write(root.path())
            .unwrap();
        let kept = StreamBuilder::new(0, 1, 2).require(&require).execute(1001, 1);
        thread(kept).end(1090).write(root.path()).unwrap();
        assert_eq!(judged(root.path()), ([true, true], vec![]));
        slice(root.path(), part.path(), &Slice { threads: vec![2], ..Slice::default() });
        assert_eq!(judged(part.path()), ([true, true], vec![]));
    };
    let creates = |thread: StreamBuilder, at| thread.event(at, nanos6::TASK_CREATE, &pair(1, 7));
    borrows(&|thread| {
        let warming = thread.point(1010, ovni::THREAD_PAUSES).point(1060, ovni::THREAD_WARMS);
        creates(warming, 1070).point(1080, ovni::THREAD_RESUMES)
    });
    borrows(&|thread| creates(thread.point(1060, ovni::THREAD_COOLS), 1070));
    borrows(&|thread| creates(thread.point(1040, kernel::OUT_OF_CPU), 1070).point(1080, kernel::BACK_ON_CPU));
}

#[test]
fn threads_that_are_moved_off_their_cpus_are_moved_in_time() {
    let no_cpu = -1;
    [0, no_cpu].into_iter().for_each(moved_in_time);
}

/// The first thread moves the second while the kernel keeps that from its CPU, on which the third starts, or on none.
fn moved_in_time(cpu_of_third: i32) {
    let root = tempfile::tempdir().unwrap();
    let write = |stream: StreamBuilder| stream.write(root.path()).unwrap();
    write(
        StreamBuilder::new(0, 1, 1)
            .cpus(3)
            .execute(1000, 2)
            .event(1020, ovni::REMOTE_AFFINITY, &pair(1, 2))
            .end(1400),
    );
    let second = StreamBuilder::new(0, 1, 2).execute(1005, 0).point(1010, kernel::OUT_OF_CPU);
    write(second.point(1200, kernel::BACK_ON_CPU).end(1300));
    write(StreamBuilder::new(0, 1, 3).execute(1030, cpu_of_third).end(1100));
    assert_eq!(judged(root.path()), ([true, true], vec![]));
    let moves = |threads: &[i64]| {
        let part = tempfile::tempdir().unwrap();
        slice(root.path(), part.path(), &Slice { threads: threads.to_vec(), ..Slice::default() });
        assert_eq!(judged(part.path()), ([true, true], vec![]), "{threads:?}");
        let trace = Trace::open(part.path(), &OpenOptions::default()).unwrap();
        let moves = trace.merge().filter(|merged| merged.event.code == ovni::REMOTE_AFFINITY);
        moves.map(|merged| merged.event.clock_ns).collect::<Vec<_>>()
    };
    assert_eq!(moves(&[2, 3]), [1030], "as soon as another thread of the process can tell");
    assert_eq!(moves(&[2]), [1200], "when it is back");
}
