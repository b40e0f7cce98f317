//! Shared parts of the sources' tests: building programs, and checks for every queue.
#![allow(dead_code, reason = "each test uses its part")]

use std::path::{Path, PathBuf};
use std::process::Command;
use taskscope_execution::devices::Queue;

/// The library that the test's own build made.
pub fn layer() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    let directory = own.parent().unwrap();
    let places = [directory.join("libtaskscope_device.so"), directory.join("../libtaskscope_device.so")];
    places.into_iter().find(|path| path.is_file()).expect("the library was built").canonicalize().unwrap()
}

/// Compiles C programs of `tests/programs`; `None` without a compiler.
pub fn build(flags: &[&str], sources: &[&str], output: &Path, libraries: &[&str]) -> Option<()> {
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let built = Command::new("gcc")
        .args(["-O1", "-g", "-Wall", "-Wextra", "-Werror"])
        .args(flags)
        .args(sources.iter().map(|source| programs.join(source)))
        .arg("-o")
        .arg(output)
        .args(libraries)
        .output();
    let Ok(built) = built else {
        taskscope_prerequisite::missing("gcc is not installed");
        return None;
    };
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    Some(())
}

pub fn adds_up(queue: &Queue) {
    let count = |name| queue.count(name);
    assert_eq!(
        count("appended"),
        count("delivered") + count("cancelled") + count("lost"),
        "{:?}",
        queue.account
    );
    assert_eq!(count("delivered"), queue.operations.len() as u64);
}

/// Each lane's begins and ends never go back, and records come by sequence or by start.
pub fn in_order(queue: &Queue) {
    let mut lanes = std::collections::HashMap::new();
    let mut last = 0;
    for operation in queue.operations.iter().filter(|operation| operation.lane.is_some()) {
        let end = lanes.entry(operation.lane).or_insert(0);
        assert!(*end <= operation.start && operation.start <= operation.end);
        *end = operation.end;
        assert!(last <= operation.start, "{} starts before its predecessor", operation.seq);
        last = operation.start;
        assert!(operation.append <= operation.start, "starts before it was submitted");
    }
}
