//! Any number of streams merges into one order, without a descriptor per stream; with partial order, each stream has
//! its turns.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use taskscope_event::Code;
use taskscope_event::framing::{file_header, head_word, size_code};
use taskscope_event::models::ovni;
use taskscope_trace::{OpenOptions, Trace};

/// A finished stream with bursts at these clocks.
fn write_stream(root: &Path, tid: usize, clocks: &[u64]) {
    write_events(root, tid, clocks.iter().map(|clock| (ovni::BURST, *clock)));
}

/// A finished stream with these events.
fn write_events(root: &Path, tid: usize, events: impl Iterator<Item = (Code, u64)>) {
    let directory = root.join(format!("loom.node.1/proc.1/thread.{tid}"));
    fs::create_dir_all(&directory).unwrap();
    write_file(&directory.join("stream.obs"), events);
    let metadata = format!(
        r#"{{"version":3,"ovni":{{"part":"thread","tid":{tid},"pid":1,"loom":"node.1","finished":1}}}}"#
    );
    fs::write(directory.join("stream.json"), metadata).unwrap();
}

fn write_file(path: &Path, events: impl Iterator<Item = (Code, u64)>) {
    let mut bytes = file_header().to_vec();
    for (code, clock) in events {
        bytes.extend(head_word(size_code(0), code).to_le_bytes());
        bytes.extend(clock.to_le_bytes());
    }
    fs::write(path, bytes).unwrap();
}

#[test]
fn one_and_sixty_four_and_four_thousand_streams_merge_in_order() {
    let open_files = || fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    for streams in [1, 64, 4096] {
        let root = tempfile::tempdir().unwrap();
        let mut clocks: Vec<Vec<u64>> = Vec::new();
        for stream in 0..streams {
            // Each stream with a rhythm of its own, and clocks that many streams share.
            let step = 1 + stream as u64 * 7 % 13;
            clocks.push((0..20).map(|event| 1_000 + event * step).collect());
            write_stream(root.path(), stream + 1, &clocks[stream]);
        }
        let before = open_files();
        let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
        assert!(trace.problems().is_empty(), "{:?}", trace.problems());
        // A limit of descriptors, 1024 mostly, must not limit the streams.
        assert!(open_files() < before + 16, "{} descriptors for {streams} streams", open_files() - before);
        let merged: Vec<(usize, u64)> =
            trace.merge().map(|merged| (merged.stream, merged.event.clock_ns as u64)).collect();
        assert_eq!(merged.len(), 20 * streams);
        assert!(merged.is_sorted_by_key(|(_, clock)| *clock));
        // Nothing is lost, and each stream keeps its own order.
        let mut stream_clocks: Vec<Vec<u64>> = vec![Vec::new(); streams];
        merged.iter().for_each(|(stream, clock)| stream_clocks[*stream].push(*clock));
        for (index, stream) in trace.streams().iter().enumerate() {
            let tid = stream.tid().unwrap() as usize;
            assert_eq!(stream_clocks[index], clocks[tid - 1], "thread {tid} of {streams}");
        }
    }
}

#[test]
fn turns_are_in_time_order_and_each_stream_is_complete() {
    let all = |stream: usize| stream == 2;
    let mut random = 7_u64;
    let mut dice = move |sides: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % sides
    };
    // One stream has as many turns as all others together, one has none but its first, one no events, in one a clock
    // falls, some have two files.
    for streams in [1, 3, 64, 300] {
        let root = tempfile::tempdir().unwrap();
        let mut expected: Vec<Vec<u64>> = Vec::new();
        for stream in 0..streams {
            let (count, step) = match stream {
                0 => (100 * streams as u64, 3),
                1 => (50, 1000),
                3 => (0, 1),
                _ => (100, 1 + dice(600)),
            };
            let has_own_file = stream % 5 > 2;
            let mut clock = 1_000;
            let mut events = Vec::new();
            for _ in 0..count {
                clock += dice(step);
                let code = if stream == 1 || dice(2) == 0 { ovni::BURST } else { ovni::THREAD_PAUSES };
                events.push((has_own_file && dice(3) == 0, code, clock));
            }
            if stream == 5 {
                events[50].2 = 7;
            }
            let tid = 10_000 + stream;
            let events_in =
                |own| events.iter().filter(move |event| event.0 == own).map(|event| (event.1, event.2));
            write_events(root.path(), tid, events_in(false));
            if has_own_file {
                let directory = root.path().join(format!("loom.node.1/proc.1/thread.{tid}"));
                write_file(&directory.join("taskscope.obs"), events_in(true));
            }
            if stream == 5 {
                events[50].2 = events[49].2;
            }
            events.sort_by_key(|(own, _, clock)| (*clock, *own));
            let has_turn = |code| all(stream) || code == ovni::THREAD_PAUSES;
            let due = events.iter().enumerate().filter(|(row, (_, code, _))| *row == 0 || has_turn(*code));
            expected.push(due.map(|(_, (_, _, clock))| *clock).collect());
        }
        // Known since the trace was opened, or found by passing over events.
        for turns in [true, false] {
            let options = OpenOptions { turns, ..OpenOptions::default() };
            let trace = Trace::open(root.path(), &options).unwrap();
            let mut left: Vec<_> = expected.iter().map(|clocks| clocks.iter().copied()).collect();
            let clocks: Vec<u64> = trace
                .turns(all)
                .map(|stream| {
                    left[stream as usize].next().expect("no more turns than events that need the order")
                })
                .collect();
            assert!(clocks.is_sorted(), "{streams} streams");
            assert_eq!(clocks.len(), expected.iter().map(Vec::len).sum::<usize>(), "{streams} streams");
        }
    }
}

/// Each stream of a program declares all its marks, which may have hundreds of thousands of labels.
#[test]
fn labels_that_streams_share_are_there_once() {
    let root = tempfile::tempdir().unwrap();
    for (tid, label) in [(1, "one"), (2, "one"), (3, "uno")] {
        write_stream(root.path(), tid, &[1_000]);
        let marks =
            format!(r#"{{"5":{{"title":"m","chan_type":"stack","labels":{{"1":"{label}","2":3}}}}}}"#);
        let metadata = format!(
            r#"{{"version":3,"ovni":{{"part":"thread","tid":{tid},"pid":1,"loom":"node.1","finished":1,"mark":{marks}}}}}"#
        );
        fs::write(root.path().join(format!("loom.node.1/proc.1/thread.{tid}/stream.json")), metadata)
            .unwrap();
    }
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    let labels: Vec<_> = trace.streams().iter().map(|stream| &stream.metadata.marks[0].labels).collect();
    assert!(Arc::ptr_eq(labels[0], labels[1]));
    assert_eq!(labels[0].iter().collect::<Vec<_>>(), [("1", Some("one")), ("2", None)]);
    assert_eq!(labels[2].iter().collect::<Vec<_>>(), [("1", Some("uno")), ("2", None)]);
}
