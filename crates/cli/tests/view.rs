//! `taskscope view` as its user meets it.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use taskscope_testkit::generator::{Generator, Runtime};

/// The output from the start of the viewer to the line that contains `last`; then the viewer is ended.
fn printed_until(last: &str, path: &std::path::Path) -> String {
    let trace = tempfile::tempdir().unwrap();
    let generator =
        Generator { runtime: Runtime::Openmp, threads: 2, threads_per_loom: 2, events: 1000, seed: 1 };
    generator.write(trace.path()).unwrap();
    let mut child = Command::new(env!("CARGO_BIN_EXE_taskscope"))
        .args(["view", "--open", "--no-cache"])
        .arg(trace.path())
        .env("PATH", path)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut message = String::new();
    for line in BufReader::new(child.stderr.take().unwrap()).lines() {
        message += &(line.unwrap() + "\n");
        if message.contains(last) {
            break;
        }
    }
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let limit = Instant::now() + Duration::from_secs(600);
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > limit {
            child.kill().unwrap();
            panic!("^C did not end it after: {message}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(child.wait().unwrap().success(), "{message}");
    message
}

#[test]
fn an_interrupt_right_after_the_address_is_handled() {
    let programs = tempfile::tempdir().unwrap();
    for _ in 0..5 {
        printed_until("ssh -L", programs.path());
    }
}

#[test]
fn a_browser_that_does_not_start_is_reported() {
    let programs = tempfile::tempdir().unwrap();
    let message = printed_until("cannot open a browser", programs.path());
    assert!(message.contains("open the address above"), "{message}");
    // One that is found and started, and only then fails.
    let opener = programs.path().join("xdg-open");
    std::fs::write(&opener, "#!/bin/sh\nexit 3\n").unwrap();
    std::fs::set_permissions(&opener, std::fs::Permissions::from_mode(0o755)).unwrap();
    let message = printed_until("cannot open a browser", programs.path());
    assert!(message.contains("exit status: 3") && message.contains("http://127.0.0.1:"), "{message}");
}

#[test]
fn invalid_ranges_and_filters_are_refused() {
    let trace = tempfile::tempdir().unwrap();
    let generator =
        Generator { runtime: Runtime::Openmp, threads: 2, threads_per_loom: 2, events: 1000, seed: 1 };
    generator.write(trace.path()).unwrap();
    for (arguments, words) in [
        (["--range", "3600s..7200s"], "after the end of the run"),
        (["--range", "10%..10%"], "is empty"),
        (["--where", "(("], "cannot understand --where"),
        (["--where", "state="], "cannot understand --where"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_taskscope"))
            .args(["view", "--no-cache"])
            .args(arguments)
            .arg(trace.path())
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && message.contains(words), "{arguments:?}: {message}");
    }
}
