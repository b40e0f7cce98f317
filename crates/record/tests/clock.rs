//! Processes of a node share `CLOCK_MONOTONIC`: what one reads after another is not earlier by more than
//! the promised error.

mod support;

use std::io::Write;

use support::*;
use taskscope_record::{clock, enter, process};

const READINGS: usize = 3000;

/// Reads both clocks alternately; the error of each of ours against the kernel's readings around it.
fn errors() -> Vec<u64> {
    (0..READINGS)
        .map(|i| {
            if i % 100 == 0 {
                // Over several spans of the anchor.
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let before = clock::kernel_ns();
            let ours = enter().unwrap().now();
            let after = clock::kernel_ns();
            before.saturating_sub(ours).max(ours.saturating_sub(after))
        })
        .collect()
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
    // A percentile, since the error of a reading between which the thread lost its CPU is not known.
    let at_99 = all[all.len() * 99 / 100];
    assert!(at_99 <= 200, "99th percentile {at_99} ns");
    std::fs::remove_dir_all(directory).unwrap();
}
