//! Reading of damaged streams, on streams built byte by byte.

use std::fs;
use std::path::Path;
use taskscope_event::framing::{file_header, head_word};
use taskscope_event::models::{kernel, ovni};
use taskscope_event::{Code, StreamFile};
use taskscope_trace::{OpenError, OpenOptions, ProblemKind, Trace};

fn event(code: Code, clock: u64) -> Vec<u8> {
    let mut bytes = head_word(0, code).to_le_bytes().to_vec();
    bytes.extend(clock.to_le_bytes());
    bytes
}

fn stream(events: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = file_header().to_vec();
    bytes.extend(events.concat());
    bytes
}

fn write(root: &Path, tid: u32, finished: bool, standard: &[u8]) {
    let directory = root.join(format!("loom.n.1/proc.1/thread.{tid}"));
    fs::create_dir_all(&directory).unwrap();
    let finished = if finished { ",\"finished\":1" } else { "" };
    let json = format!(
        "{{\"version\":3,\"ovni\":{{\"part\":\"thread\",\"tid\":{tid},\"pid\":1,\"loom\":\"n.1\"{finished}}}}}"
    );
    fs::write(directory.join("stream.json"), json).unwrap();
    fs::write(directory.join("stream.obs"), standard).unwrap();
}

fn clocks(trace: &Trace) -> Vec<i64> {
    trace.merge().map(|merged| merged.event.clock_ns).collect()
}

fn kinds(trace: &Trace) -> Vec<ProblemKind> {
    trace.problems().iter().map(|problem| problem.kind).collect()
}

#[test]
fn a_truncated_stream_keeps_its_whole_events() {
    let root = tempfile::tempdir().unwrap();
    let mut bytes = stream(&[event(ovni::BURST, 10), event(ovni::BURST, 20)]);
    bytes.truncate(bytes.len() - 1);
    write(root.path(), 1, true, &bytes);
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [10]);
    assert_eq!(kinds(&trace), [ProblemKind::TruncatedEvent]);
    assert_eq!(trace.problems()[0].offset, Some(20));
}

#[test]
fn an_unfinished_stream_ends_at_the_first_uncommitted_event() {
    let root = tempfile::tempdir().unwrap();
    let mut torn = event(ovni::BURST, 20);
    torn[1] = 0;
    let mut bytes = stream(&[event(ovni::BURST, 10), torn]);
    bytes.extend([0; 100]);
    write(root.path(), 1, false, &bytes);
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [10]);
    assert_eq!(kinds(&trace), [ProblemKind::UnfinishedStream, ProblemKind::TornEvent]);
}

#[test]
fn unsorted_regions_are_sorted_and_overlaps_joined() {
    let root = tempfile::tempdir().unwrap();
    let bytes = stream(&[
        event(ovni::BURST, 1),
        event(ovni::BURST, 100),
        event(ovni::UNSORTED_BEGIN, 200),
        event(kernel::OUT_OF_CPU, 50),
        event(kernel::BACK_ON_CPU, 150),
        event(ovni::UNSORTED_END, 201),
        event(ovni::UNSORTED_BEGIN, 202),
        event(kernel::OUT_OF_CPU, 40),
        event(ovni::UNSORTED_END, 203),
        event(ovni::BURST, 300),
    ]);
    write(root.path(), 1, true, &bytes);
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [1, 40, 50, 100, 150, 200, 201, 202, 203, 300]);
    // Each region at its earliest clock.
    assert_eq!(kinds(&trace), [ProblemKind::UnsortedRegion; 2]);
    let at: Vec<_> = trace.problems().iter().map(|problem| problem.clock_ns).collect();
    assert_eq!(at, [Some(50), Some(40)]);
}

#[test]
fn a_backward_clock_outside_a_region_is_raised_and_counted() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 1, true, &stream(&[event(ovni::BURST, 10), event(ovni::BURST, 5)]));
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [10, 10]);
    assert_eq!(kinds(&trace), [ProblemKind::ClockGoesBack]);
}

/// Each place has its clock and its byte, so that a range finds its own, and memory is bounded: beyond a thousand they
/// are counted without one.
#[test]
fn backward_clocks_are_reported_at_each_place() {
    let root = tempfile::tempdir().unwrap();
    let falls = |count: u64| (1..=count).flat_map(|n| [(n * 10), (n * 10 - 3), (n * 10 - 4)]);
    let bytes_of = |count| stream(&falls(count).map(|clock| event(ovni::BURST, clock)).collect::<Vec<_>>());
    write(root.path(), 1, true, &bytes_of(2));
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    let problems: Vec<_> = trace.problems().iter().map(|p| (p.offset, p.clock_ns, p.count)).collect();
    assert_eq!(problems, [(Some(8 + 12), Some(10), 2), (Some(8 + 4 * 12), Some(20), 2)]);
    assert_eq!(trace.streams()[0].clock_falls_ns(), [(6, 10), (16, 20)]);

    write(root.path(), 1, true, &bytes_of(1500));
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(trace.problems().len(), 1001);
    let last = trace.problems().last().unwrap();
    assert_eq!((last.offset, last.clock_ns, last.count), (Some(8 + 12 * (3 * 1000 + 1)), None, 1000));
    assert_eq!(trace.problems().iter().map(|problem| problem.count).sum::<u64>(), 3000);
    assert_eq!(trace.streams()[0].clock_falls_ns().len(), 1500);
}

#[test]
fn own_events_follow_standard_ones_of_the_same_clock() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 1, true, &stream(&[event(ovni::BURST, 10), event(ovni::BURST, 20)]));
    let own = stream(&[event(ovni::BURST, 5), event(ovni::BURST, 10)]);
    fs::write(root.path().join("loom.n.1/proc.1/thread.1/taskscope.obs"), own).unwrap();
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    let order: Vec<(StreamFile, i64)> = trace.merge().map(|m| (m.file, m.event.clock_ns)).collect();
    assert_eq!(
        order,
        [(StreamFile::Own, 5), (StreamFile::Standard, 10), (StreamFile::Own, 10), (StreamFile::Standard, 20)]
    );
}

#[test]
fn links_that_form_a_loop_end() {
    let root = tempfile::tempdir().unwrap();
    write(root.path(), 1, true, &stream(&[event(ovni::BURST, 10)]));
    std::os::unix::fs::symlink(root.path(), root.path().join("loom.n.1/again")).unwrap();
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(trace.streams().len(), 1);
}

#[test]
fn a_directory_without_streams_is_an_error() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(Trace::open(root.path(), &OpenOptions::default()), Err(OpenError::NoStreams { .. })));
    let missing = root.path().join("absent");
    assert!(matches!(Trace::open(missing, &OpenOptions::default()), Err(OpenError::Unreadable { .. })));
}

#[test]
fn jumbo_sizes_near_four_gigabytes_do_not_overflow() {
    let root = tempfile::tempdir().unwrap();
    for (index, size) in [u32::MAX, u32::MAX - 12, u32::MAX / 2].into_iter().enumerate() {
        let mut jumbo = event(ovni::BURST, 20);
        jumbo[0] = 0x13;
        jumbo.extend(size.to_le_bytes());
        write(root.path(), index as u32 + 1, true, &stream(&[event(ovni::BURST, 10), jumbo]));
    }
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [10, 10, 10]);
    assert_eq!(kinds(&trace), [ProblemKind::TruncatedEvent; 3]);
}

#[test]
fn an_unfinished_stream_of_several_files_is_not_sorted() {
    use taskscope_event::tail;
    let root = tempfile::tempdir().unwrap();
    let bytes = stream(&[
        event(ovni::UNSORTED_BEGIN, 10),
        event(ovni::BURST, 30),
        event(ovni::BURST, 20),
        event(ovni::UNSORTED_END, 40),
    ]);
    write(root.path(), 1, false, &bytes);
    let file = root.path().join("loom.n.1/proc.1/thread.1/stream.obs");
    let sort = || {
        let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
        trace.streams()[0].sort_file(StreamFile::Standard)
    };
    for extension in ["tail", "checkpoint"] {
        let part = file.with_extension(extension);
        fs::write(&part, tail::header(bytes.len() as u64, 1).to_le_bytes()).unwrap();
        assert!(sort().is_err(), "{extension}");
        assert_eq!(fs::read(&file).unwrap(), bytes);
        fs::remove_file(part).unwrap();
    }
    assert!(sort().unwrap());
    assert!(!sort().unwrap());
}

#[test]
fn the_tail_file_continues_an_unfinished_stream() {
    use taskscope_event::tail;
    let root = tempfile::tempdir().unwrap();
    // Data behind the tail's base is a copy of the tail, made just before the program died.
    let kept = stream(&[event(ovni::BURST, 10), event(ovni::BURST, 20)]);
    let newest = [event(ovni::BURST, 30), event(ovni::BURST, 40)].concat();
    write(root.path(), 1, false, &[kept.clone(), newest[..12].to_vec()].concat());
    let region = tail::region(1);
    let mut bytes = vec![0; (region.offset + region.bytes) as usize];
    bytes[..8].copy_from_slice(&tail::header(kept.len() as u64, 1).to_le_bytes());
    bytes[region.offset as usize..][..newest.len()].copy_from_slice(&newest);
    let tail_path = root.path().join("loom.n.1/proc.1/thread.1/stream.tail");
    fs::write(&tail_path, &bytes).unwrap();
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [10, 20, 30, 40]);
    assert_eq!(kinds(&trace), [ProblemKind::UnfinishedStream]);

    // A place in the stream that no stream can have.
    let mut damaged = bytes.clone();
    damaged[tail::SIDE_TARGET_OFFSET as usize..][..8].fill(0xff);
    fs::write(&tail_path, &damaged).unwrap();
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [10, 20, 30, 40]);
    fs::write(&tail_path, &bytes).unwrap();

    // A finished stream has no tail; one that was left behind is not read.
    write(root.path(), 1, true, &[kept.clone(), newest].concat());
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [10, 20, 30, 40]);
    assert_eq!(kinds(&trace), []);

    // After a power failure the file may be shorter than the tail believes.
    write(root.path(), 1, false, &kept[..20]);
    let trace = Trace::open(root.path(), &OpenOptions::default()).unwrap();
    assert_eq!(clocks(&trace), [10]);
    assert!(kinds(&trace).contains(&ProblemKind::TruncatedEvent));
}
