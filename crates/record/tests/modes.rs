//! Ring, size cap, switch, filter, and tails in another directory.

mod support;

use support::*;
use taskscope_event::StreamFile;
use taskscope_event::models::{nosv, ovni, recorder};
use taskscope_record::{enter, enter_for, event_filter, process, thread};
use taskscope_trace::{OpenOptions, ReadOrder, Trace};

const EVENTS: u64 = 400_000;

fn open(directory: &std::path::Path) -> Trace {
    Trace::open(directory, &OpenOptions { order: ReadOrder::Stored, ..OpenOptions::default() }).unwrap()
}

/// A type, a task that never ends, and states that stay open; then numbered events.
fn emit_after_what_stays_open() {
    let mut r = enter().unwrap();
    let at = r.now();
    r.jumbo(at, nosv::TYPE_CREATE, &[&1u32.to_le_bytes(), b"long\0"]);
    r.point(at, nosv::TASK_CREATE, [1, 0, 0, 0, 1, 0, 0, 0]);
    r.point(at, nosv::TASK_EXECUTE, [1, 0, 0, 0, 0, 0, 0, 0]);
    r.begin(at, nosv::SCHEDULER_SERVING_BEGIN, [], 0);
    drop(r);
    emit(1..=EVENTS);
}

fn check_ring(directory: &std::path::Path, finished: bool) {
    let trace = open(directory);
    let stream = &trace.streams()[0];
    assert_eq!(stream.is_finished(), finished);
    let codes: Vec<_> = stream.events_of(StreamFile::Standard).map(|event| event.code).collect();
    let open = [nosv::TYPE_CREATE, nosv::TASK_CREATE, nosv::TASK_EXECUTE, nosv::SCHEDULER_SERVING_BEGIN];
    assert_eq!(codes[..4], open);
    let numbers: Vec<u64> = stream
        .events_of(StreamFile::Standard)
        .filter(|event| event.code == ovni::THREAD_CREATES)
        .map(|event| u64::from_le_bytes(event.payload[4..12].try_into().unwrap()))
        .collect();
    // A MiB is 43 690 events of 24 bytes; a single append is a quarter of it.
    assert!((43_000..80_000).contains(&numbers.len()), "{} events", numbers.len());
    assert!(numbers.iter().copied().eq(EVENTS - numbers.len() as u64 + 1..=EVENTS));
    assert!(stream.events_of(StreamFile::Standard).is_sorted_by_key(|event| event.clock_ns));
}

#[test]
fn a_ring_keeps_the_newest_events_and_their_prerequisites() {
    const NAME: &str = "a_ring_keeps_the_newest_events_and_their_prerequisites";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit_after_what_stays_open();
        if std::env::var_os("CRASH").is_some() {
            leave(0);
        }
        thread::detach();
        process::finish();
        leave(0);
    }
    let directory = temporary("ring");
    assert!(child(NAME, &directory).env("TASKSCOPE_RING", "1M").status().unwrap().success());
    check_ring(&directory, true);
    let stream = streams(&directory).pop().unwrap();
    assert!(std::fs::metadata(stream.join("stream.obs")).unwrap().len() < 2 << 20);
    assert!(!stream.join("stream.checkpoint").exists());
    std::fs::remove_dir_all(&directory).unwrap();
    // After a crash, the ring is on disk.
    let crashed = child(NAME, &directory).env("TASKSCOPE_RING", "1M").env("CRASH", "1").status().unwrap();
    assert!(crashed.success());
    check_ring(&directory, false);
    use std::os::unix::fs::MetadataExt;
    let stream = streams(&directory).pop().unwrap();
    let on_disk = std::fs::metadata(stream.join("stream.obs")).unwrap().blocks() * 512;
    assert!(on_disk < 3 << 20, "{on_disk} bytes");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn the_size_cap_stops_all_threads_and_is_reported() {
    const NAME: &str = "the_size_cap_stops_all_threads_and_is_reported";
    if let Some(directory) = role() {
        start(&directory);
        // A thread that starts after the cap is reached is not recorded at all.
        let all_attached = std::sync::Barrier::new(3);
        let body = || {
            assert!(attach());
            all_attached.wait();
            emit(1..=EVENTS);
        };
        // A scope does not wait for thread-local destructors, and `leave` would cut them off.
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(body)).collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
        process::finish();
        leave(0);
    }
    let directory = temporary("cap");
    assert!(child(NAME, &directory).env("TASKSCOPE_MAX_SIZE", "4M").status().unwrap().success());
    let (mut bytes, mut kept, mut lost) = (0, 0, 0);
    for stream in streams(&directory) {
        assert!(is_finished(&stream));
        bytes += std::fs::metadata(stream.join("stream.obs")).unwrap().len();
        let numbers = numbers(&stream);
        assert!(numbers.iter().copied().eq(1..=numbers.len() as u64));
        kept += numbers.len() as u64;
        let (own, _) = decode(&stream.join("taskscope.obs"));
        assert_eq!(own[0].0, recorder::LOST);
        assert_eq!(own[0].2[8..12], recorder::loss::SIZE_CAP.to_le_bytes());
        lost += u64::from_le_bytes(own[0].2[..8].try_into().unwrap());
    }
    assert!(bytes <= 4 << 20 && bytes > 1 << 20, "{bytes} bytes");
    assert!((kept + lost).abs_diff(3 * EVENTS) <= 3);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn switch_and_filter_are_respected_by_callers_that_query_them() {
    const NAME: &str = "switch_and_filter_are_respected_by_callers_that_query_them";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        let emit_both = || {
            for code in [nosv::SCHEDULER_HUNGRY_BEGIN, nosv::MEMORY_ALLOCATING_BEGIN] {
                if let Some(mut r) = enter_for(code) {
                    let at = r.now();
                    r.point(at, code, []);
                }
            }
        };
        assert!(!event_filter::is_on());
        emit_both();
        event_filter::switch_on();
        emit_both();
        std::thread::spawn(|| assert!(attach() && event_filter::is_on())).join().unwrap();
        event_filter::switch_off();
        emit_both();
        process::finish();
        leave(0);
    }
    let directory = temporary("switch");
    let mut command = child(NAME, &directory);
    command.env("TASKSCOPE_SWITCH", "off").env("TASKSCOPE_FILTER", "-nosv.S");
    assert!(command.status().unwrap().success());
    let trace = open(&directory);
    let codes: Vec<_> = trace
        .streams()
        .iter()
        .flat_map(|s| s.events_of(StreamFile::Standard))
        .map(|event| event.code)
        .collect();
    let allocating = codes.iter().filter(|code| **code == nosv::MEMORY_ALLOCATING_BEGIN).count();
    assert_eq!(allocating, 1, "{codes:?}");
    assert!(!codes.contains(&nosv::SCHEDULER_HUNGRY_BEGIN));
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_tail_in_another_place_survives_a_crash_and_is_removed_at_the_end() {
    const NAME: &str = "a_tail_in_another_place_survives_a_crash_and_is_removed_at_the_end";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=10_000);
        if std::env::var_os("CRASH").is_some() {
            leave(0);
        }
        thread::detach();
        process::finish();
        leave(0);
    }
    let directory = temporary("tail");
    let place = directory.join("tails");
    std::fs::create_dir_all(&place).unwrap();
    let run = |crash: bool| {
        let mut command = child(NAME, &directory.join("trace"));
        command.env("TASKSCOPE_TAIL_DIR", &place);
        if crash {
            command.env("CRASH", "1");
        }
        assert!(command.status().unwrap().success());
    };
    run(true);
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 2);
    let trace = open(&directory.join("trace"));
    assert_eq!(trace.streams()[0].events_of(StreamFile::Standard).count(), 10_000);
    std::fs::remove_dir_all(&directory).unwrap();
    std::fs::create_dir_all(&place).unwrap();
    run(false);
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_thread_without_room_for_all_its_files_leaves_no_tail_elsewhere() {
    const NAME: &str = "a_thread_without_room_for_all_its_files_leaves_no_tail_elsewhere";
    if let Some(directory) = role() {
        start(&directory);
        assert!(!attach());
        process::finish();
        leave(0);
    }
    let directory = temporary("tail-room");
    let place = directory.join("tails");
    std::fs::create_dir_all(&place).unwrap();
    let mut command = child(NAME, &directory.join("trace"));
    // Room for the smallest tail of one file, not of two.
    command.env("TASKSCOPE_TAIL_DIR", &place).env("TASKSCOPE_MAX_SIZE", "12K");
    assert!(command.status().unwrap().success());
    assert_eq!(std::fs::read_dir(&place).unwrap().count(), 0);
    std::fs::remove_dir_all(&directory).unwrap();
}
