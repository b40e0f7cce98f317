//! Full disks, limits, missing and vanishing directories: recording stops, the program does not, and the
//! loss is counted.

mod support;

use std::path::Path;
use std::process::{Command, ExitStatus};

use support::*;
use taskscope_event::models::{ovni, recorder};
use taskscope_record::{enter, process, thread};

const EVENTS: u64 = 300_000;

/// Emits events and ends normally, for any state of the recording.
fn program(directory: &Path) -> ! {
    let started = process::start(process::Config {
        trace_directory: directory.to_owned(),
        app_id: 1,
        require: vec![("ovni", ovni::VERSION)],
        own_require: vec![],
        attributes: vec![],
    });
    let attached = attach();
    assert!(started.is_ok() || !attached);
    emit(1..=EVENTS);
    thread::detach();
    process::finish();
    leave(42);
}

/// Losses recorded in the own stream, or the metadata.
fn lost_events(stream: &Path) -> u64 {
    let (own, _) = decode(&stream.join("taskscope.obs"));
    let lost = own.iter().find(|(code, ..)| *code == recorder::LOST);
    lost.map_or(0, |(.., payload)| u64::from_le_bytes(payload[..8].try_into().unwrap()))
}

fn assert_ran_on(status: ExitStatus) {
    assert_eq!(status.code(), Some(42), "{status}");
}

#[test]
fn a_full_disk_stops_recording_only() {
    const NAME: &str = "a_full_disk_stops_recording_only";
    if let Some(directory) = role() {
        program(&directory);
    }
    // Sizes at which the room ends in a stream, and in a tail, which is mapped.
    for kib in [300, 600, 900, 1200] {
        let directory = temporary("full");
        std::fs::create_dir_all(&directory).unwrap();
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &format!("size={kib}k"), "taskscope-test"])
            .arg(&directory)
            .status()
            .is_ok_and(|status| status.success());
        if !mounted {
            taskscope_prerequisite::skip("only root can mount a small file system");
            return;
        }
        let status = child(NAME, &directory.join("trace")).status().unwrap();
        let streams = streams(&directory.join("trace"));
        let kept = numbers(&streams[0]);
        let lost = lost_events(&streams[0]);
        let metadata = std::fs::read_to_string(streams[0].join("stream.json")).unwrap();
        let unmounted = Command::new("umount").arg(&directory).status().unwrap();
        assert!(unmounted.success());
        assert_ran_on(status);
        // An event of this test has 20 bytes; up to half of the room goes to the tails.
        assert!(kept.len() * 20 > kib * 1024 / 4, "{} of {kib} KiB", kept.len());
        assert!(metadata.contains("\"finished\":1"), "what is in the tail can still be appended");
        assert!(!streams[0].join("stream.tail").exists());
        assert!(kept.iter().copied().eq(1..=kept.len() as u64), "{}", kept.len());
        // The closing event is one more.
        assert!((kept.len() as u64 + lost).abs_diff(EVENTS) <= 1, "{} kept, {lost} lost", kept.len());
        std::fs::remove_dir(directory).unwrap();
    }
}

#[test]
fn the_room_of_every_event_that_is_taken_exists_on_disk() {
    const NAME: &str = "the_room_of_every_event_that_is_taken_exists_on_disk";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=30_000);
        leave(42);
    }
    let directory = temporary("reserved");
    assert_ran_on(child(NAME, &directory).status().unwrap());
    use std::os::unix::fs::MetadataExt;
    let stream = &streams(&directory)[0];
    let tail = std::fs::metadata(stream.join("stream.tail")).unwrap();
    assert!(tail.blocks() * 512 >= tail.len(), "no holes in what is mapped");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_disk_that_is_full_from_the_start_stops_recording_only() {
    const NAME: &str = "a_disk_that_is_full_from_the_start_stops_recording_only";
    if let Some(directory) = role() {
        program(&directory);
    }
    let directory = temporary("full-first");
    std::fs::create_dir_all(&directory).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=16k", "taskscope-test"])
        .arg(&directory)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        taskscope_prerequisite::skip("only root can mount a small file system");
        return;
    }
    let status = child(NAME, &directory.join("trace")).status().unwrap();
    let left = Command::new("find").arg(&directory).args(["-name", "stream.*"]).output().unwrap().stdout;
    assert!(Command::new("umount").arg(&directory).status().unwrap().success());
    assert_ran_on(status);
    assert_eq!(String::from_utf8_lossy(&left), "", "no empty streams are left behind");
    std::fs::remove_dir(directory).unwrap();
}

#[test]
fn no_file_size_limit_sends_a_signal() {
    const NAME: &str = "no_file_size_limit_sends_a_signal";
    const LIMIT: &str = "RECORD_TEST_LIMIT";
    if let Some(directory) = role() {
        let bytes: u64 = std::env::var(LIMIT).unwrap().parse().unwrap();
        let limit = libc::rlimit { rlim_cur: bytes, rlim_max: bytes };
        // SAFETY: limits this helper process only.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
        program(&directory);
    }
    // From no room at all, over half the metadata, to a part of the stream.
    for bytes in [0, 100, 5000, 40_000, 100_000, 1_000_000] {
        let directory = temporary("fsize");
        std::fs::create_dir_all(&directory).unwrap();
        assert_ran_on(child(NAME, &directory).env(LIMIT, bytes.to_string()).status().unwrap());
        if bytes > 60_000 {
            let kept = numbers(&streams(&directory)[0]);
            assert!(!kept.is_empty() && kept.iter().copied().eq(1..=kept.len() as u64));
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn little_address_space_stops_recording_only() {
    const NAME: &str = "little_address_space_stops_recording_only";
    const LIMIT: &str = "RECORD_TEST_LIMIT";
    if let Some(directory) = role() {
        // The program's present use, and a little more, as `ulimit -v` sets it.
        let more: u64 = std::env::var(LIMIT).unwrap().parse().unwrap();
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let now: u64 = pages.split(' ').next().unwrap().parse::<u64>().unwrap() * 4096;
        let limit = libc::rlimit { rlim_cur: now + more, rlim_max: now + more };
        // SAFETY: limits this helper process only.
        unsafe { libc::setrlimit(libc::RLIMIT_AS, &limit) };
        program(&directory);
    }
    for more in [8 << 10, 40 << 10, 200 << 10, 600 << 10] {
        let directory = temporary("address-space");
        assert_ran_on(child(NAME, &directory).env(LIMIT, more.to_string()).status().unwrap());
        let _ = std::fs::remove_dir_all(directory);
    }
}

#[test]
fn too_few_descriptors_lose_events_but_no_stream() {
    const NAME: &str = "too_few_descriptors_lose_events_but_no_stream";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=100);
        // The program takes every descriptor, for a while.
        let limit = libc::rlimit { rlim_cur: 64, rlim_max: 64 };
        // SAFETY: limits this helper process only.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
        let mut all = vec![];
        while let Ok(file) = std::fs::File::open("/dev/null") {
            all.push(file);
        }
        emit(101..=5000);
        assert!(!std::thread::spawn(attach).join().unwrap());
        drop(all);
        emit(5001..=6000);
        let lost = enter().unwrap().lost_events();
        assert!(lost > 0 && lost < 4900, "{lost}");
        thread::detach();
        process::finish();
        leave(42);
    }
    let directory = temporary("nofile");
    assert_ran_on(child(NAME, &directory).status().unwrap());
    let [stream] = &streams(&directory)[..] else { panic!("one stream") };
    let kept = numbers(stream);
    assert!(kept.is_sorted() && *kept.last().unwrap() == 6000);
    assert_eq!(kept.len() as u64 + lost_events(stream), 6000);
    let metadata = std::fs::read_to_string(stream.join("stream.json")).unwrap();
    assert!(metadata.contains("\"unrecorded_threads\":1"), "{metadata}");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_place_that_cannot_be_written_stops_recording_only() {
    const NAME: &str = "a_place_that_cannot_be_written_stops_recording_only";
    if let Some(directory) = role() {
        program(&directory);
    }
    let directory = temporary("unwritable");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join("file"), "in the way").unwrap();
    assert_ran_on(child(NAME, &directory.join("file/trace")).status().unwrap());
    assert_ran_on(child(NAME, Path::new("/proc/no/trace")).status().unwrap());
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_directory_that_is_removed_stops_recording_only() {
    const NAME: &str = "a_directory_that_is_removed_stops_recording_only";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=1000);
        std::fs::remove_dir_all(&directory).unwrap();
        emit(1001..=EVENTS);
        let lost = enter().unwrap().lost_events();
        assert!(!std::thread::spawn(attach).join().unwrap());
        thread::detach();
        process::finish();
        leave(if lost > EVENTS / 2 { 42 } else { 1 });
    }
    let directory = temporary("removed");
    assert_ran_on(child(NAME, &directory).status().unwrap());
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_stream_that_was_replaced_is_not_written() {
    const NAME: &str = "a_stream_that_was_replaced_is_not_written";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=100);
        let file = streams(&directory)[0].join("stream.obs");
        std::fs::remove_file(&file).unwrap();
        std::fs::write(&file, "the user's own").unwrap();
        emit(101..=EVENTS);
        thread::detach();
        process::finish();
        leave(42);
    }
    let directory = temporary("replaced");
    assert_ran_on(child(NAME, &directory).status().unwrap());
    let file = streams(&directory)[0].join("stream.obs");
    assert!(std::fs::read(file).unwrap() == b"the user's own");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn thousands_of_threads_at_once_are_recorded_with_few_descriptors() {
    const NAME: &str = "thousands_of_threads_at_once_are_recorded_with_few_descriptors";
    const THREADS: u64 = 1500;
    if let Some(directory) = role() {
        let limit = libc::rlimit { rlim_cur: 128, rlim_max: 128 };
        // SAFETY: limits this helper process only.
        unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) };
        start(&directory);
        let together = std::sync::Arc::new(std::sync::Barrier::new(THREADS as usize));
        let threads: Vec<_> = (0..THREADS)
            .map(|i| {
                let together = together.clone();
                let body = move || {
                    let attached = attach();
                    emit(i..=i);
                    together.wait();
                    assert!(attached);
                };
                std::thread::Builder::new().stack_size(64 << 10).spawn(body).unwrap()
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        process::finish();
        leave(42);
    }
    let directory = temporary("thousands");
    assert_ran_on(child(NAME, &directory).status().unwrap());
    let streams = streams(&directory);
    assert_eq!(streams.len() as u64, THREADS);
    let mut all: Vec<u64> = streams.iter().flat_map(|stream| numbers(stream)).collect();
    all.sort();
    assert!(all.into_iter().eq(0..THREADS));
    std::fs::remove_dir_all(directory).unwrap();
}
