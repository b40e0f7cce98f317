//! Program ends of all kinds: the streams hold every completed event, and the metadata states whether the
//! stream was finished.

mod support;

use std::os::unix::process::{CommandExt, ExitStatusExt};

use support::*;
use taskscope_record::process;

const EVENTS: u64 = 30_000;

/// Runs `end` in a child after [`EVENTS`] events on two threads, one of which stays in the middle of its
/// life; checks the streams; returns how the child ended.
fn after_events(name: &str, finished: bool, end: impl FnOnce()) -> std::process::ExitStatus {
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        let (ready, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            assert!(attach());
            emit(1..=EVENTS);
            ready.send(()).unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
        });
        emit(1..=EVENTS);
        wait.recv().unwrap();
        end();
        leave(99);
    }
    let directory = temporary(name);
    let status = child(name, &directory).status().unwrap();
    let streams = streams(&directory);
    assert_eq!(streams.len(), 2);
    for stream in streams {
        assert!(numbers(&stream).into_iter().eq(1..=EVENTS));
        assert_eq!(is_finished(&stream), finished);
        assert_eq!(stream.join("stream.tail").exists(), !finished);
    }
    std::fs::remove_dir_all(directory).unwrap();
    status
}

extern "C" fn finish() {
    process::finish();
}

#[test]
fn exit_finishes_every_stream() {
    let status = after_events("exit_finishes_every_stream", true, || {
        // The libraries do it by a destructor.
        // SAFETY: the function lives as long as the program.
        unsafe { libc::atexit(finish) };
        std::process::exit(7);
    });
    assert_eq!(status.code(), Some(7));
}

#[test]
fn after_exit_without_finishing_nothing_is_lost() {
    let status = after_events("after_exit_without_finishing_nothing_is_lost", false, || leave(3));
    assert_eq!(status.code(), Some(3));
}

#[test]
fn abort_loses_nothing() {
    let status = after_events("abort_loses_nothing", false, || std::process::abort());
    assert_eq!(status.signal(), Some(libc::SIGABRT));
}

#[test]
fn a_segmentation_fault_loses_nothing() {
    let status = after_events("a_segmentation_fault_loses_nothing", false, || {
        // SAFETY: none: the program is to die of it.
        unsafe { std::ptr::without_provenance_mut::<u64>(8).write_volatile(1) };
    });
    assert_eq!(status.signal(), Some(libc::SIGSEGV));
}

#[test]
fn kill_loses_nothing() {
    let status = after_events("kill_loses_nothing", false, || {
        // SAFETY: kills this process alone.
        unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
    });
    assert_eq!(status.signal(), Some(libc::SIGKILL));
}

#[test]
fn exec_loses_nothing_and_the_new_program_has_streams_of_its_own() {
    const NAME: &str = "exec_loses_nothing_and_the_new_program_has_streams_of_its_own";
    const SECOND: &str = "RECORD_TEST_SECOND";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        if std::env::var_os(SECOND).is_some() {
            emit(1001..=1010);
            process::finish();
            leave(0);
        }
        emit(1..=EVENTS);
        let why = child(NAME, &directory).env(SECOND, "1").stdout(std::process::Stdio::null()).exec();
        panic!("{why}");
    }
    let directory = temporary("exec");
    assert!(child(NAME, &directory).status().unwrap().success());
    let mut found: Vec<_> = streams(&directory).iter().map(|s| (is_finished(s), numbers(s))).collect();
    found.sort();
    assert_eq!(found[0], (false, (1..=EVENTS).collect()));
    assert_eq!(found[1], (true, (1001..=1010).collect()));
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_program_that_closes_all_descriptors_keeps_its_files_and_ours() {
    const NAME: &str = "a_program_that_closes_all_descriptors_keeps_its_files_and_ours";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        emit(1..=EVENTS / 2);
        // As daemons and launchers do.
        for fd in 3..256 {
            // SAFETY: closes descriptors that may be open; this code uses none of them.
            unsafe { libc::close(fd) };
        }
        let own: Vec<_> = (0..16).map(|i| directory.join(format!("own.{i}"))).collect();
        let files: Vec<_> = own.iter().map(|path| std::fs::File::create(path).unwrap()).collect();
        emit(EVENTS / 2 + 1..=EVENTS);
        process::finish();
        let untouched = own.iter().all(|path| std::fs::read(path).unwrap().is_empty());
        drop(files);
        leave(i32::from(!untouched));
    }
    let directory = temporary("descriptors");
    assert!(child(NAME, &directory).status().unwrap().success());
    assert!(numbers(&streams(&directory)[0]).into_iter().eq(1..=EVENTS));
    std::fs::remove_dir_all(directory).unwrap();
}
