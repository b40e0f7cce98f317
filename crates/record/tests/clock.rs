//! Processes of a node share `CLOCK_MONOTONIC`: a reading after another process's is not earlier by more than
//! the guaranteed error.

mod support;

use std::io::Write;

use support::*;
use taskscope_record::{clock, enter, process};

const READINGS: usize = 3000;

/// The error of a reading against the kernel's around it. A thread that loses its CPU between those is given
/// more, never less.
fn error() -> u64 {
    let before = clock::kernel_ns();
    let ours = enter().unwrap().now();
    let after = clock::kernel_ns();
    before.saturating_sub(ours).max(ours.saturating_sub(after))
}

fn errors() -> Vec<u64> {
    (0..READINGS)
        .map(|i| {
            if i % 100 == 0 {
                // Over several spans of the anchor.
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            error()
        })
        .collect()
}

/// A process's first milliseconds, in which the counter's rate has to be learned.
#[test]
fn a_process_that_has_just_begun_is_right_within_200_ns() {
    const NAME: &str = "a_process_that_has_just_begun_is_right_within_200_ns";
    if let Some(directory) = role() {
        start(&directory);
        assert!(attach());
        let end = clock::kernel_ns() + 30_000_000;
        let mut largest = 0;
        while clock::kernel_ns() < end {
            largest = largest.max(error());
        }
        let path = directory.join(format!("error.{}", std::process::id()));
        std::fs::write(path, largest.to_string()).unwrap();
        process::finish();
        leave(0);
    }
    let directory = temporary("clock_begins");
    for _ in 0..20 {
        let mut process = child(NAME, &directory).spawn().unwrap();
        let path = directory.join(format!("error.{}", process.id()));
        assert!(process.wait().unwrap().success());
        let largest: u64 = std::fs::read_to_string(path).unwrap().parse().unwrap();
        assert!(largest <= 200, "{largest} ns");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn processes_and_threads_agree_within_200_ns() {
    const NAME: &str = "processes_and_threads_agree_within_200_ns";
    if let Some(directory) = role() {
        start(&directory);
        let other = std::thread::spawn(|| {
            assert!(attach());
            errors()
        });
        assert!(attach());
        let mut all = errors();
        all.extend(other.join().unwrap());
        let text: Vec<String> = all.iter().map(u64::to_string).collect();
        // Beside the streams, one file a process.
        let path = directory.join(format!("errors.{}", std::process::id()));
        std::fs::File::create(path).unwrap().write_all(text.join(" ").as_bytes()).unwrap();
        process::finish();
        leave(0);
    }
    let directory = temporary("clock");
    let children: Vec<_> = (0..3).map(|_| child(NAME, &directory).spawn().unwrap()).collect();
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
    let mut all: Vec<u64> = std::fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .flat_map(|path| {
            let text = std::fs::read_to_string(path).unwrap();
            text.split(' ').map(|error| error.parse().unwrap()).collect::<Vec<u64>>()
        })
        .collect();
    assert_eq!(all.len(), 3 * 2 * READINGS);
    all.sort_unstable();
    let largest = all.last().unwrap();
    assert!(*largest <= 200, "{largest} ns");
    std::fs::remove_dir_all(directory).unwrap();
}
