//! Processes that a signal stops: cpulimit, Ctrl-Z, a debugger.

mod common;

use common::*;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const STOPS: u32 = 4;

/// The text of a file, as soon as it has a whole line.
fn line_of(path: &Path) -> String {
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(600) {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
            _ => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    panic!("{} was not written", path.display());
}

/// Waits until each thread of a process is stopped.
fn wait_until_stopped(pid: Pid) {
    let begin = Instant::now();
    let is_stopped = || {
        let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).unwrap();
        tasks.flatten().all(|task| {
            let stat = std::fs::read_to_string(task.path().join("stat")).unwrap_or_default();
            stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
        })
    };
    while !is_stopped() {
        assert!(begin.elapsed() < Duration::from_secs(600), "{pid} is not stopped");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The report of a run that is stopped [`STOPS`] times, and the time that all threads were stopped for at most.
fn stopped(os_time: &str, options: &[&str]) -> (Value, u64) {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "stopped", "stopped.c", &["-pthread"]);
    stopped_program(here.path(), &program, os_time, options)
}

/// The same of this program.
fn stopped_program(here: &Path, program: &Path, os_time: &str, options: &[&str]) -> (Value, u64) {
    let mut command = record(here);
    command
        .env("TASKSCOPE_OS_TIME", os_time)
        .args(["-q", "-o", "trace"])
        .args(options)
        .arg("--")
        .arg(program);
    let mut child = command.args(["ready", "end"]).stdin(Stdio::null()).spawn().unwrap();
    let pid = Pid::from_raw(line_of(&here.join("ready")).parse().unwrap());
    let mut most = 0;
    for _ in 0..STOPS {
        let begin = Instant::now();
        kill(pid, Signal::SIGSTOP).unwrap();
        wait_until_stopped(pid);
        std::thread::sleep(Duration::from_millis(150));
        kill(pid, Signal::SIGCONT).unwrap();
        most += begin.elapsed().as_nanos() as u64;
        std::thread::sleep(Duration::from_millis(60));
    }
    std::fs::write(here.join("end"), "").unwrap();
    assert!(child.wait().unwrap().success());
    (report(&here.join("trace")), most)
}

fn check(os_time: &str) {
    let (report, most) = stopped(os_time, &[]);
    let threads = report["thread_states"].as_array().unwrap();
    if threads.iter().any(|thread| thread["off_cpu"] == "unknown") {
        taskscope_prerequisite::skip("no source of times off the CPU here");
        return;
    }
    let number = |value: &Value| value.as_u64().unwrap();
    let process = &report["process_cpus"][0];
    let (stops, ns) = (number(&process["stops"]), number(&process["stopped_ns"]));
    // The recorder's thread may be stopped in its own work, which is not detected.
    assert!((1..=u64::from(STOPS)).contains(&stops), "{process}");
    // Without switches a stop begins at the next check of the recorder's thread.
    let least = if os_time == "schedstat" { 1 } else { stops * 150_000_000 };
    // A stop is over when the thread that watches has a CPU again.
    let most = most.max(number(&report["run_wall_ns"]));
    assert!((least..=most).contains(&ns), "{stops} stops of {ns} ns, at most {most}");
    let no_cpu = &report["no_cpu"];
    assert!(number(&no_cpu["stopped_ns"]) > ns, "both workers are stopped: {no_cpu}");
    let own = number(&no_cpu["own_ns"]) + number(&no_cpu["waiting_ns"]);
    assert_eq!(number(&no_cpu["runnable_ns"]) + number(&no_cpu["stopped_ns"]), own);
    // Stopped time is the system's, of workers and others, and not blocked time.
    for thread in threads.iter().filter(|thread| thread["worker"] == true) {
        assert!(number(&thread["stopped_ns"]) <= number(&thread["runnable_ns"]), "{thread}");
        assert!(
            thread["states"]["blocked"].as_u64().unwrap_or(0) < 150_000_000 * u64::from(STOPS),
            "{thread}"
        );
    }
    let findings = report["findings"].as_array().unwrap();
    let message = |finding: &Value| finding["text"].as_str().unwrap().contains("stopped by signals");
    assert!(findings.iter().any(message), "{findings:?}");
}

#[test]
fn stops_are_time_without_a_cpu_by_context_switches() {
    check("auto");
}

#[test]
fn stops_are_time_without_a_cpu_by_sums() {
    check("schedstat");
}

/// The stops of a profile are known from the end of the nap of its own thread in which they begin, and from there to their end.
#[test]
fn stops_are_time_without_a_cpu_in_profiles() {
    let (report, _) = stopped("auto", &["--mode", "profile"]);
    let run = &report["call_paths"];
    let process = &run["processes"][0];
    if process["no_cpu"] == "none" {
        taskscope_prerequisite::skip("no source of times off the CPU here");
        return;
    }
    let number = |key: &str| process[key].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let (stops, ns) = (number("stops"), number("stopped_ns"));
    assert!(stops >= 1, "{process}");
    let total = |key: &str| run["run_totals"][key].as_u64().unwrap_or(0);
    // Both workers were stopped.
    let stopped_ns = total("stopped_ns");
    assert!(stopped_ns > ns && stopped_ns <= 2 * ns, "{ns}: {}", run["run_totals"]);
    assert!(total("state.out_of_cpu") >= stopped_ns, "{}", run["run_totals"]);
    let texts =
        report["findings"].as_array().unwrap().iter().map(|finding| finding["text"].as_str().unwrap());
    let notes = run["notes"].as_array().unwrap().iter().map(|note| note.as_str().unwrap());
    assert!(texts.chain(notes).any(|text| text.contains("stopped by signals")), "{report}");
}

/// The holder of a mutex did not work while it was stopped.
#[test]
fn stops_are_not_waits_for_the_stopped_thread_in_profiles() {
    let here = tempfile::tempdir().unwrap();
    let program = here.path().join("stopped_threads");
    Compiler::Gcc.build_file(&program_source("stopped_threads.c"), &program, &["-g", "-O1", "-pthread"]);
    let options = ["--threads", "--mode", "profile"];
    let (report, _) = stopped_program(here.path(), &program, "auto", &options);
    let process = &report["call_paths"]["processes"][0];
    if process["no_cpu"] == "none" {
        taskscope_prerequisite::skip("no source of times off the CPU here");
        return;
    }
    let ns = process["stopped_ns"].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
    let waits = report["thread_waits"].as_array().unwrap();
    let mutex = waits.iter().find(|wait| wait["kind"] == "mutex").unwrap_or_else(|| panic!("{waits:?}"));
    let parts = mutex["parts"].as_array().unwrap().iter();
    let no_cpu: u64 =
        parts.filter(|part| part["end"] == "no-cpu").map(|part| part["ns"].as_u64().unwrap()).sum();
    assert!(ns > 0 && no_cpu > 0 && no_cpu <= ns, "{ns}: {mutex}");
    let findings = report["findings"].as_array().unwrap();
    let is_stop = |finding: &&Value| finding["text"].as_str().unwrap().contains("stopped by signals");
    assert!(findings.iter().any(|finding| is_stop(&finding)), "{findings:?}");
}
