//! Any number of streams merges into one order, without a descriptor held for each.

use std::fs;
use std::path::Path;
use taskscope_event::framing::{file_header, head_word, size_code};
use taskscope_event::models::ovni;
use taskscope_trace::{OpenOptions, Trace};

/// A finished stream with bursts at these clocks.
fn write_stream(root: &Path, tid: usize, clocks: &[u64]) {
    let directory = root.join(format!("loom.node.1/proc.1/thread.{tid}"));
    fs::create_dir_all(&directory).unwrap();
    let mut bytes = file_header().to_vec();
    for clock in clocks {
        bytes.extend(head_word(size_code(0), ovni::BURST).to_le_bytes());
        bytes.extend(clock.to_le_bytes());
    }
    fs::write(directory.join("stream.obs"), bytes).unwrap();
    let metadata = format!(
        r#"{{"version":3,"ovni":{{"part":"thread","tid":{tid},"pid":1,"loom":"node.1","finished":1}}}}"#
    );
    fs::write(directory.join("stream.json"), metadata).unwrap();
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
        let mut of_stream: Vec<Vec<u64>> = vec![Vec::new(); streams];
        merged.iter().for_each(|(stream, clock)| of_stream[*stream].push(*clock));
        for (index, stream) in trace.streams().iter().enumerate() {
            let tid = stream.tid().unwrap() as usize;
            assert_eq!(of_stream[index], clocks[tid - 1], "thread {tid} of {streams}");
        }
    }
}
