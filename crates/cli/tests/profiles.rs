//! Profiles beside traces of the same program, and as they are reported.

mod common;

use common::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A program whose workers wait for known reasons for about as long as they work.
fn program(here: &Path) -> PathBuf {
    let source = r#"
#include <omp.h>
#include <stdio.h>
static volatile double sink;
__attribute__((noinline)) void work(double seconds) {
    double until = omp_get_wtime() + seconds, sum = 0;
    while (omp_get_wtime() < until)
        for (int i = 1; i < 1000; i++) sum += 1.0 / i;
    sink = sum;
}
int main(void) {
    for (int round = 0; round < 5; round++) {
#pragma omp parallel
        {
            work(0.02 * (1 + omp_get_thread_num() % 2));
#pragma omp barrier
        }
        work(0.02);
    }
    return 0;
}
"#;
    Compiler::Clang.build(here, "beside", source, &["-g", "-Wl,-z,now"])
}

fn parsed(command: &mut std::process::Command) -> Value {
    serde_json::from_slice(&output(command).stdout).unwrap()
}

fn recorded(here: &Path, program: &Path, options: &[&str]) {
    let run = output(
        record(here)
            .env("OMP_NUM_THREADS", "2")
            // A trace sets apart when the machine had no CPU for a thread; a profile does not know.
            .env("TASKSCOPE_OS_TIME", "off")
            .args(options)
            .arg("--")
            .arg(program),
    );
    assert!(run.status.success(), "{run:?}");
}

/// Times by construction, each as the trace and as the profile have it. They are of two runs: on a quiet machine
/// they agree to a few per cent, here a third is allowed, and a few tries, since other work changes
/// what waits for what.
#[test]
fn a_profile_and_a_trace_of_one_program_agree() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let agree = (0..5).any(|_| {
        let _ = std::fs::remove_dir_all(here.path().join("trace"));
        let _ = std::fs::remove_dir_all(here.path().join("profile"));
        recorded(here.path(), &program, &["--sample", "500", "-o", "trace"]);
        recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "profile"]);
        let trace = parsed(taskscope().args(["report", "--json"]).arg(here.path().join("trace")));
        let profile = parsed(taskscope().args(["report", "--json"]).arg(here.path().join("profile")));
        let of_profile = |metric: &str| profile["call_paths"]["totals"][metric].as_u64().unwrap_or(0) as f64;
        let of_trace = |metric: &str| trace["call_paths"]["totals"][metric].as_u64().unwrap_or(0) as f64;
        ["work_ns", "taken_barrier_ns", "given_barrier_ns", "taken_idle_ns"].iter().all(|metric| {
            let (one, other) = (of_trace(metric), of_profile(metric));
            let fits = one > 0.0 && (one / other).max(other / one) < 1.33;
            if !fits {
                eprintln!("{metric}: {one} in the trace, {other} in the profile");
            }
            fits
        })
    });
    assert!(agree);
}

#[test]
fn efficiency_is_told_while_it_runs_and_at_the_end_from_the_same_sums() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "--live", "0.05", "-o", "profile"]);
    let path = here.path().join("profile");
    let report = parsed(taskscope().args(["report", "--json"]).arg(&path));
    let efficiency = &report["call_paths"]["efficiency"];
    let totals = &report["call_paths"]["run_totals"];
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(number(&efficiency["capacity_ns"]), number(&totals["capacity_ns"]));
    let useful: u64 =
        ["serial", "implicit_task"].iter().map(|name| number(&totals[format!("state.{name}")])).sum();
    assert_eq!(number(&efficiency["useful_ns"]), useful);
    let mut files = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
    let live = files.find(|path| path.extension().is_some_and(|e| e == "jsonl")).expect("live totals");
    let text = std::fs::read_to_string(live).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    // What had been spent then is part of what was spent at the end, state by state.
    for (name, ns) in last["states"].as_object().unwrap() {
        assert!(number(ns) <= number(&totals[format!("state.{name}")]), "{name}");
    }
    assert!(number(&last["wall_ns"]) <= number(&totals["wall_ns"]));
    let printed = text_of(output(taskscope().arg("report").arg(&path)).stdout);
    assert!(printed.contains("Parallel efficiency"), "{printed}");
    assert!(!printed.contains("incomplete"), "{printed}");
}

fn text_of(bytes: Vec<u8>) -> String {
    text(&bytes)
}
