//! Programs that end badly, fork, or meet a limit. Each test runs its program in a child process: this test
//! binary again.

mod support;

use support::*;
use taskscope_event::models::{ovni, recorder};
use taskscope_record::{enter, process, thread};

#[test]
fn a_killed_program_loses_no_completed_event() {
    const NAME: &str = "a_killed_program_loses_no_completed_event";
    if let Some(directory) = role() {
        start(&directory);
        // Each thread publishes the last sequence number that it has completed in a shared file.
        let threads: Vec<_> = (0..2)
            .map(|i| {
                let published = directory.join(format!("published.{i}"));
                std::thread::spawn(move || {
                    use std::os::unix::fs::FileExt;
                    assert!(attach());
                    let tid = enter().unwrap().os_tid();
                    let file = std::fs::File::create(published).unwrap();
                    for sequence in 1u64.. {
                        let mut r = enter().unwrap();
                        let at = r.now();
                        r.point(at, ovni::THREAD_CREATES, numbered(sequence));
                        drop(r);
                        if sequence.is_multiple_of(64) {
                            let mut record = [0; 12];
                            record[..8].copy_from_slice(&sequence.to_le_bytes());
                            record[8..].copy_from_slice(&tid.to_le_bytes());
                            file.write_all_at(&record, 0).unwrap();
                        }
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|t| t.join().unwrap());
    }
    for round in 0..12 {
        let directory = temporary("kill");
        let mut running = child(NAME, &directory).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(15 + 7 * round));
        running.kill().unwrap();
        running.wait().unwrap();
        if !directory.exists() {
            continue;
        }
        for i in 0..2 {
            let Ok(record) = std::fs::read(directory.join(format!("published.{i}"))) else { continue };
            if record.len() < 12 {
                continue;
            }
            let completed = u64::from_le_bytes(record[..8].try_into().unwrap());
            let tid = i32::from_le_bytes(record[8..].try_into().unwrap());
            let stream = streams(&directory)
                .into_iter()
                .find(|s| s.ends_with(format!("thread.{tid}")))
                .expect("the thread's stream");
            let (events, _) = decode(&stream.join("stream.obs"));
            let numbers = sequence_numbers(&events);
            assert!(numbers.len() as u64 >= completed, "{} of {completed} events", numbers.len());
            assert!(numbers.iter().zip(1..).all(|(a, b)| *a == b));
        }
        std::fs::remove_dir_all(&directory).unwrap();
    }
}

#[test]
fn a_forked_child_writes_streams_of_its_own() {
    const NAME: &str = "a_forked_child_writes_streams_of_its_own";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        for sequence in 1..=100 {
            let mut r = enter().unwrap();
            let at = r.now();
            r.point(at, ovni::THREAD_CREATES, numbered(sequence));
        }
        // SAFETY: the child only records and leaves.
        let pid = unsafe { libc::fork() };
        if pid == 0 {
            assert!(enter().is_none());
            assert!(attach());
        }
        for sequence in if pid == 0 { 1001..=1010 } else { 101..=200 } {
            let mut r = enter().unwrap();
            let at = r.now();
            r.point(at, ovni::THREAD_CREATES, numbered(sequence));
        }
        thread::detach();
        process::finish();
        if pid != 0 {
            // SAFETY: waits for our own child.
            unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) };
        }
        // SAFETY: ends this helper process immediately, as the test harness must not run in the child.
        unsafe { libc::_exit(0) };
    }
    let directory = temporary("fork");
    assert!(child(NAME, &directory).status().unwrap().success());
    let mut counts: Vec<_> = streams(&directory)
        .iter()
        .map(|s| sequence_numbers(&decode(&s.join("stream.obs")).0))
        .map(|numbers| (numbers.len(), numbers[0], *numbers.last().unwrap()))
        .collect();
    counts.sort();
    assert_eq!(counts, [(10, 1001, 1010), (200, 1, 200)]);
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn at_the_file_size_limit_ends_are_kept_and_losses_are_counted() {
    const NAME: &str = "at_the_file_size_limit_ends_are_kept_and_losses_are_counted";
    const BEGINS: u64 = 100_000;
    if let Some(directory) = role() {
        let limit = libc::rlimit { rlim_cur: 256 << 10, rlim_max: 256 << 10 };
        // SAFETY: limits this helper process only.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
        start(&directory);
        assert!(attach());
        for sequence in 0..BEGINS {
            let mut r = enter().unwrap();
            let at = r.now();
            r.begin(at, ovni::FLUSH_BEGIN, [], 0);
            r.begin(at, ovni::UNSORTED_BEGIN, [], 0);
            r.point(at, ovni::THREAD_CREATES, numbered(sequence));
            r.end(at, ovni::UNSORTED_END, []);
            r.end(at, ovni::FLUSH_END, []);
        }
        thread::detach();
        process::finish();
        return;
    }
    let directory = temporary("limit");
    assert!(child(NAME, &directory).status().unwrap().success());
    let stream = &streams(&directory)[0];
    let (events, torn) = decode(&stream.join("stream.obs"));
    assert!(!torn && events.len() > 10_000);
    let mut open = vec![];
    for (code, ..) in &events {
        match *code {
            ovni::FLUSH_END => assert_eq!(open.pop(), Some(ovni::FLUSH_BEGIN)),
            ovni::UNSORTED_END => assert_eq!(open.pop(), Some(ovni::UNSORTED_BEGIN)),
            ovni::FLUSH_BEGIN | ovni::UNSORTED_BEGIN => open.push(*code),
            _ => {}
        }
    }
    assert!(open.is_empty());
    let (own, _) = decode(&stream.join("taskscope.obs"));
    assert_eq!(own.len(), 1);
    assert_eq!(own[0].0, recorder::LOST);
    let lost = u64::from_le_bytes(own[0].2[..8].try_into().unwrap());
    // The closer's own end has no begin here, so it is a plain event that may or may not fit.
    let kept = events.len() as u64 - u64::from(events.last().unwrap().0 == ovni::THREAD_ENDS);
    assert!((lost + kept).abs_diff(5 * BEGINS) <= 1, "{lost} lost, {kept} kept");
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn finishing_closes_the_streams_of_threads_that_still_write() {
    const NAME: &str = "finishing_closes_the_streams_of_threads_that_still_write";
    if let Some(directory) = role() {
        start(&directory);
        let (sender, written) = std::sync::mpsc::channel();
        for _ in 0..3 {
            let sender = sender.clone();
            std::thread::spawn(move || {
                assert!(attach());
                for number in 0_u64.. {
                    if let Some(mut r) = enter() {
                        let at = r.now();
                        r.point(at, ovni::BURST, []);
                    }
                    if number == 100 {
                        sender.send(()).unwrap();
                    }
                }
            });
        }
        assert_eq!(written.iter().take(3).count(), 3);
        assert_eq!(process::finish(), 0);
        std::process::exit(0);
    }
    let directory = temporary("finish");
    assert!(child(NAME, &directory).status().unwrap().success());
    let streams = streams(&directory);
    assert_eq!(streams.len(), 3);
    for stream in streams {
        let (events, torn) = decode(&stream.join("stream.obs"));
        assert!(!torn);
        assert_eq!(events.last().unwrap().0, ovni::THREAD_ENDS);
        assert_eq!(events.iter().filter(|e| e.0 == ovni::THREAD_ENDS).count(), 1);
        assert!(events.is_sorted_by_key(|e| e.1));
        let json = std::fs::read_to_string(stream.join("stream.json")).unwrap();
        assert!(json.contains("\"finished\":1"), "{json}");
    }
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn a_thread_that_just_ends_is_finished_all_the_same() {
    let Some(directory) = role() else {
        let directory = temporary("thread-end");
        let name = "a_thread_that_just_ends_is_finished_all_the_same";
        assert!(child(name, &directory).status().unwrap().success());
        let streams = streams(&directory);
        assert_eq!(streams.len(), 2);
        for stream in streams {
            assert!(std::fs::read_to_string(stream.join("stream.json")).unwrap().contains("\"finished\":1"));
            assert_eq!(decode(&stream.join("stream.obs")).0.len(), 2);
        }
        std::fs::remove_dir_all(&directory).unwrap();
        return;
    };
    start(&directory);
    for _ in 0..2 {
        std::thread::spawn(|| {
            assert!(attach());
            let mut r = enter().unwrap();
            let at = r.now();
            r.point(at, ovni::BURST, []);
        })
        .join()
        .unwrap();
    }
}

#[test]
fn ends_of_begun_sections_have_reserved_room() {
    const NAME: &str = "ends_of_begun_sections_have_reserved_room";
    if let Some(directory) = role() {
        let limit = libc::rlimit { rlim_cur: 64 << 10, rlim_max: 64 << 10 };
        // SAFETY: limits this helper process only.
        unsafe { libc::setrlimit(libc::RLIMIT_FSIZE, &limit) };
        start(&directory);
        assert!(attach());
        let mut r = enter().unwrap();
        let at = r.now();
        r.begin(at, ovni::FLUSH_BEGIN, [], 0);
        // As small as an event can be, so that no room for the end is left by chance.
        while r.point(at, ovni::BURST, []) {}
        r.end(at, ovni::FLUSH_END, []);
        drop(r);
        thread::detach();
        process::finish();
        return;
    }
    let directory = temporary("end-room");
    assert!(child(NAME, &directory).status().unwrap().success());
    let (events, _) = decode(&streams(&directory)[0].join("stream.obs"));
    let codes: Vec<_> = events.iter().map(|(code, ..)| *code).collect();
    assert!(codes.len() > 1000);
    assert!(codes.starts_with(&[ovni::FLUSH_BEGIN]) && codes.ends_with(&[ovni::BURST, ovni::FLUSH_END]));
    std::fs::remove_dir_all(&directory).unwrap();
}
