//! Threads that sleep or wait in the kernel are blocked, not useful; samples alone split each thread's time.

mod common;

use common::*;
use serde_json::Value;

fn ns(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn useful_ns(thread: &Value) -> u64 {
    ["task", "worksharing", "masked", "implicit_task", "serial"]
        .iter()
        .map(|state| ns(&thread["states"][state]))
        .sum()
}

/// The report of a run of `sleeping.c`; `None` if the kernel has no source of off-CPU times.
fn sleeping(mode: &str) -> Option<Value> {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "sleeping", "sleeping.c", &[]);
    let mut command = record(here.path());
    command.env("TASKSCOPE_OS_TIME", mode).args(["-q", "--sample", "100", "-o", "trace", "--"]);
    assert!(output(command.arg(program)).status.success());
    let report = report(&here.path().join("trace"));
    let threads = report["thread_states"].as_array().unwrap();
    if threads.iter().any(|thread| thread["off_cpu"] == "unknown") {
        taskscope_prerequisite::skip("no source of times off the CPU here");
        return None;
    }
    Some(report)
}

fn check_sleeping(report: &Value) {
    const SLEPT_NS: u64 = 150_000_000;
    let threads = report["thread_states"].as_array().unwrap();
    let of = |wanted: &dyn Fn(&Value) -> bool| threads.iter().filter(|t| wanted(t)).collect::<Vec<_>>();
    let initial = of(&|thread| thread["kind"] == "initial")[0];
    // Each thread sleeps, some of it before it is watched: on a busy machine for longer.
    assert!(ns(&initial["states"]["blocked"]) > 0, "{initial}");
    let blocked: u64 = threads.iter().map(|thread| ns(&thread["blocked_ns"])).sum();
    assert!(blocked > SLEPT_NS, "{threads:?}");
    let others = of(&|thread| thread["worker"] == false);
    assert_eq!(others.len(), 2);
    // One of them only waits; the other works 100 ms and sleeps 300 ms.
    let least = others.iter().min_by_key(|thread| ns(&thread["on_cpu_ns"])).unwrap();
    assert!(ns(&least["states"]["blocked"]) > useful_ns(least), "{least}");
    // Every nanosecond has one state.
    let causes = report["causes"].as_array().unwrap();
    assert_eq!(causes.iter().map(|cause| ns(&cause["ns"])).sum::<u64>(), ns(&report["capacity_ns"]));
    let causes_ns = causes.iter().filter(|cause| cause["cause"] == "blocked").map(|cause| ns(&cause["ns"]));
    let efficiency = &report["efficiency"];
    assert_eq!(causes_ns.sum::<u64>(), ns(&efficiency["blocked_loss_ns"]));
    let factor = |name: &str| efficiency[name].as_f64().unwrap();
    let factors = [
        "cpu_availability",
        "serialization",
        "load_balance",
        "device_offload",
        "blocked",
        "runtime_overhead",
        "known",
    ];
    let product: f64 = factors.iter().map(|name| factor(name)).product();
    assert!((product - factor("parallel")).abs() < 1e-9, "{efficiency}");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|finding| finding["cause"] == "blocked"), "{findings:?}");
}

#[test]
fn sleep_is_blocked_by_context_switches() {
    if let Some(report) = sleeping("auto") {
        check_sleeping(&report);
        // Samples in blocked calls, at the functions that called them.
        let mut rows = report["call_paths"]["paths"].as_array().unwrap().iter();
        let is_call = |row: &Value| {
            ns(&row["values"]["blocked_ns"]) > 0
                && row["frames"]
                    .as_array()
                    .unwrap()
                    .iter()
                    .any(|frame| frame == "worker" || frame["function"] == "worker")
        };
        assert!(rows.any(is_call));
    }
}

#[test]
fn sleep_is_blocked_by_schedstat() {
    if let Some(report) = sleeping("schedstat") {
        check_sleeping(&report);
    }
}

/// In a trace and in a profile, sleep of the initial thread is neither serial work nor time without a CPU.
#[test]
fn sleep_between_regions_is_blocked_in_traces_and_profiles() {
    const REQUESTED_NS: u64 = 10 * 50_000_000;
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "sleeping_master", "sleeping_master.c", &[]);
    for mode in ["trace", "profile"] {
        let mut command = record(here.path());
        command.args(["-q", "--mode", mode, "-o", mode, "--"]).arg(&program);
        let slept: u64 = text(&output(&mut command).stdout).trim().parse().unwrap();
        let report = report(&here.path().join(mode));
        let totals = &report["call_paths"]["run_totals"];
        let threads = report["thread_states"].as_array();
        if totals["runnable_ns"].is_null()
            && threads.is_none_or(|rows| rows.iter().any(|row| row["off_cpu"] == "unknown"))
        {
            taskscope_prerequisite::skip("no source of times off the CPU here");
            continue;
        }
        let causes_ns = |state: &str| -> u64 {
            let causes = report["causes"].as_array().into_iter().flatten();
            causes.filter(|row| row["state"] == state).map(|row| ns(&row["ns"])).sum()
        };
        let of = |state: &str| ns(&totals[format!("state.{state}")]) + causes_ns(state);
        let wall = if mode == "trace" { ns(&report["wall_ns"]) } else { ns(&totals["wall_ns"]) };
        // Waking up is not sleep. Below 20 µs, readings of a profile do not tell sleep from their own time.
        assert!(of("blocked") > REQUESTED_NS * 9 / 10, "{mode}: {report}");
        assert!(of("serial") <= wall - slept + REQUESTED_NS / 10, "{mode}: {slept} {report}");
    }
}

#[test]
fn a_thread_that_outlives_main_voids_no_report() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "outlived", "outlived.c", &["-lpthread"]);
    for arguments in [&[][..], &["joined"]] {
        let trace = here.path().join(format!("trace-{}", arguments.len()));
        let mut command = record(here.path());
        command.args(["-q", "--sample", "100", "-o"]).arg(&trace).arg("--").arg(&program).args(arguments);
        assert!(output(&mut command).status.success());
        let report = report(&trace);
        assert_eq!(report["samples_alone"], true, "{arguments:?}");
        let functions = report["call_paths"]["functions"].as_array().unwrap();
        for name in ["in_thread", "in_main"] {
            assert!(functions.iter().any(|function| function["function"] == name), "{name}: {functions:?}");
        }
        let printed = text(&output(taskscope().arg("report").arg(&trace)).stdout);
        assert!(!printed.contains("efficiency") && printed.contains("Call paths"), "{printed}");
        let is_known = report["thread_states"][0]["off_cpu"] != "unknown";
        assert_eq!(printed.contains("running"), is_known, "{printed}");
        // Unknown sections of states and waiting are omitted, not filled.
        let all = text(&output(taskscope().args(["report", "--section", "all"]).arg(&trace)).stdout);
        for absent in
            ["efficiency", "does not record what", "not a worker", "no worker", "<nobody>", "waiting"]
        {
            assert!(!all.contains(absent), "{absent}: {all}");
        }
        assert_eq!(all.contains("running"), is_known, "{all}");
        assert!(all.contains("bottom-up"), "{all}");
    }
}
