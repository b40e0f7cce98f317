//! Instructions an event, as callgrind counts them: a measure of the event path that does not depend on
//! the machine's load, and the gate against making it slower unnoticed.
//!
//! Skipped without valgrind, and in builds without optimization (`cargo test --release`).

use std::process::Command;

/// Instructions from start to end of the example `instructions`.
fn instructions(kind: &str, count: u64) -> Option<u64> {
    let own = std::env::current_exe().unwrap();
    let example = own.parent()?.parent()?.join("examples/instructions");
    let directory = tempfile::tempdir().unwrap();
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(example)
        .arg(directory.path().join("trace"))
        .args([kind, &count.to_string()])
        .output()
        .ok()?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    let collected = message.lines().find_map(|line| line.split("Collected :").nth(1))?;
    collected.trim().parse().ok()
}

#[test]
fn an_event_takes_few_instructions() {
    if cfg!(debug_assertions) {
        return;
    }
    // Measured, rounded up; a region's turn (appending, clearing) is part of it.
    for (kind, most) in [("empty", 60.0), ("sixteen", 88.0), ("span", 205.0), ("off", 25.0)] {
        let (few, many) = (20_000, 220_000);
        let (Some(less), Some(more)) = (instructions(kind, few), instructions(kind, many)) else {
            taskscope_prerequisite::missing("valgrind is not installed");
            return;
        };
        let each = more.saturating_sub(less) as f64 / (many - few) as f64;
        println!("{kind}: {each:.1} instructions");
        assert!(each <= most, "{kind}: {each:.1} instructions, more than {most}");
    }
}
