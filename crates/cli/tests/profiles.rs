//! Profiles beside traces of the same program, and as they are reported.

mod common;

use common::call_paths::{VIRTUAL_TIME, virtual_time_flags};
use common::*;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A program with workers that wait for known reasons for about as long as they work.
fn program(here: &Path) -> PathBuf {
    let flags = virtual_time_flags();
    let mut options: Vec<&str> = flags.iter().map(String::as_str).collect();
    options.push("-Wl,-z,now");
    Compiler::Clang.build(here, "beside", "beside.c", &options)
}

fn parsed(command: &mut std::process::Command) -> Value {
    serde_json::from_slice(&output(command).stdout).unwrap()
}

/// Records a program in virtual time. Returns its output.
fn recorded(here: &Path, program: &Path, options: &[&str]) -> String {
    let run = output(
        record(here)
            .env("OMP_NUM_THREADS", "2")
            // A trace sets apart when the machine had no CPU for a thread; a profile does not know.
            .env("TASKSCOPE_OS_TIME", "off")
            .envs(VIRTUAL_TIME)
            .args(options)
            .arg("--")
            .arg(program),
    );
    assert!(run.status.success(), "{run:?}");
    text_of(run.stdout)
}

/// Times by construction, each as the trace and as the profile have it.
#[test]
fn a_profile_and_a_trace_of_one_program_agree() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--sample", "500", "-o", "trace"]);
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "profile"]);
    let [trace, profile] = ["trace", "profile"]
        .map(|name| parsed(taskscope().args(["report", "--json"]).arg(here.path().join(name))));
    // In milliseconds: one waits 20 ms in each of five rounds, and idles for as long.
    for (metric, owed) in [
        ("work_ns", 400.0),
        ("taken_barrier_ns", 100.0),
        ("given_barrier_ns", 100.0),
        ("taken_idle_ns", 100.0),
    ] {
        for report in [&trace, &profile] {
            let found = report["call_paths"]["totals"][metric].as_f64().unwrap_or(0.0) / 1e6;
            // Samples are 2 ms apart.
            assert!((found - owed).abs() <= 4.0, "{metric}: {found} ms of {owed}");
        }
    }
    let [one, other] = [&trace, &profile].map(Shares::of);
    let paths: BTreeSet<&String> = one.work.keys().chain(other.work.keys()).collect();
    for path in paths {
        let (first, second) = (one.work_share(path), other.work_share(path));
        assert!((first - second).abs() < 0.02, "{path}: {first:.3} of the trace, {second:.3} of the profile");
    }
}

/// The states of a report: time by state, and the paths that others' waits for known events are charged to.
fn states_and_charges(report: &Value) -> (BTreeMap<String, u64>, BTreeMap<String, u64>) {
    let mut states: BTreeMap<String, u64> = BTreeMap::new();
    for row in report["causes"].as_array().into_iter().flatten() {
        *states.entry(row["state"].as_str().unwrap().to_owned()).or_default() += row["ns"].as_u64().unwrap();
    }
    for (name, ns) in report["call_paths"]["run_totals"].as_object().into_iter().flatten() {
        if let Some(state) = name.strip_prefix("state.") {
            states.insert(state.to_owned(), ns.as_u64().unwrap());
        }
    }
    let mut charges: BTreeMap<String, u64> = BTreeMap::new();
    for path in report["call_paths"]["paths"].as_array().unwrap() {
        for (metric, ns) in path["values"].as_object().unwrap() {
            if metric.starts_with("given_") {
                *charges.entry(format!("{metric} {}", path["frames"])).or_default() += ns.as_u64().unwrap();
            }
        }
    }
    (states, charges)
}

/// One sequence of callbacks in both modes: in virtual time, threads do the same things at the same times.
#[test]
fn a_profile_has_each_cause_and_charge_of_a_trace() {
    /// Each reading of the clock takes a nanosecond, and the modes read it in different numbers; the program looks every 10 µs
    /// whether its task has begun, and the number of looks depends on the readings. A hundredth of the shortest wait.
    const READINGS_NS: u64 = 100_000;
    let here = tempfile::tempdir().unwrap();
    let program = here.path().join("blamed");
    let mut options = vec!["-g", "-lm", "-pthread", "-Wl,-z,now"];
    options.extend(virtual_time_flags().iter().map(String::as_str));
    Compiler::Clang.build_file(&recorder_programs().join("blamed.c"), &program, &options);
    for (kind, waited, policy, keeps_ms) in [
        ("barrier", "barrier", "passive", "0"),
        ("lock", "lock_wait", "passive", "0"),
        // Sleeping threads may not be woken for a task.
        ("group", "taskgroup", "active", "infinite"),
    ] {
        let [trace, profile] = [&[][..], &["--mode", "profile"]].map(|mode| {
            let mut command = record(here.path());
            command.envs(VIRTUAL_TIME).env("OMP_WAIT_POLICY", policy).env("KMP_BLOCKTIME", keeps_ms);
            command.env("OMP_NUM_THREADS", "2").env("TASKSCOPE_OS_TIME", "off");
            command.args(["-q", "--sample", "500", "-o", "run"]).args(mode).arg("--").arg(&program);
            assert!(output(command.args([kind, "20"])).status.success(), "{kind}");
            let run = here.path().join("run");
            let report = parsed(taskscope().args(["report", "--json"]).arg(&run));
            std::fs::remove_dir_all(&run).unwrap();
            states_and_charges(&report)
        });
        assert!(trace.0[waited] > 9_000_000, "{kind}: {trace:?}");
        for (what, one, other) in [("state", trace.0, profile.0), ("charge", trace.1, profile.1)] {
            let names: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for name in names {
                let [first, second] = [&one, &other].map(|times| times.get(name).copied().unwrap_or(0));
                assert!(
                    first.abs_diff(second) <= READINGS_NS,
                    "{kind}, {what} {name}: {first} ns in the trace, {second} in the profile"
                );
            }
        }
    }
}

/// A difference of times has its unit, even without a table below.
#[test]
fn a_difference_has_a_unit() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "one"]);
    let first_line = |column: &str| -> String {
        let mut command = taskscope();
        command.current_dir(here.path()).args(["diff", "--sort", column, "one", "one"]);
        let shown = text(&output(&mut command).stdout);
        shown.lines().next().unwrap().to_string()
    };
    let waiting = first_line("waiting");
    assert!(waiting.ends_with(" ms") || waiting.ends_with(" s"), "{waiting}");
    assert_eq!(waiting.matches("s   ").count(), 2, "{waiting}");
    assert!(first_line("samples").ends_with("+0"));
}

#[test]
fn info_lists_the_processes_of_a_profile() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "-o", "profile"]);
    let info = parsed(taskscope().args(["info", "--json"]).arg(here.path().join("profile")));
    let processes = info["processes"].as_array().unwrap();
    assert_eq!(processes.len(), 1);
    assert!(processes[0]["command"].as_str().unwrap().contains("beside"), "{info}");
    assert!(info["paths"].as_u64().unwrap() > 1);
    let printed = text_of(output(taskscope().arg("info").arg(here.path().join("profile"))).stdout);
    assert!(printed.contains("profile of 1 process") && printed.contains("wall_ns"), "{printed}");
}

#[test]
fn profiles_have_tables_side_by_side() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "profile"]);
    let rows = |profiles: &[&str]| -> BTreeMap<String, u64> {
        let tables = here.path().join(format!("{}.tables", profiles.len()));
        let mut export = taskscope();
        export.current_dir(here.path()).args(["export", "--to", "parquet", "-o"]).arg(&tables).args(profiles);
        assert!(output(&mut export).status.success());
        let manifest = std::fs::read(tables.join("taskscope-tables.json")).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        let tables = manifest["tables"].as_object().unwrap().iter();
        tables
            .map(|(name, table)| (name.clone(), table["rows"].as_u64().unwrap()))
            .filter(|(_, rows)| *rows > 0)
            .collect()
    };
    let (one, two) = (rows(&["profile"]), rows(&["profile", "profile"]));
    let names: Vec<&str> = one.keys().map(String::as_str).collect();
    assert_eq!(names, ["call_path", "call_path_value", "counter", "ledger", "process", "run"]);
    // Main, the region, its code and states.
    assert!(one["call_path"] > 4 && one["call_path_value"] > 4 && one["ledger"] > 1, "{one:?}");
    assert!(one.iter().all(|(name, rows)| two[name] == 2 * rows), "{one:?} {two:?}");
}

/// A request for trace-only data of a profile is rejected, without a substitute.
#[test]
fn a_profile_has_no_timeline() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    recorded(here.path(), &program, &["--mode", "profile", "-o", "one"]);
    for words in [
        &["view", "one"][..],
        &["report", "--timeline", "one"],
        &["report", "--range", "10%..20%", "one"],
        &["report", "--where", "thread = 1", "one"],
        &["report", "--section", "call-paths,locks", "one"],
        &["report", "--task-context", "execution", "one"],
        &["export", "--to", "pprof", "--task-context", "execution", "one"],
        &["export", "--to", "parquet", "--range", "10%..20%", "-o", "one.tables", "one"],
    ] {
        let run = output(taskscope().current_dir(here.path()).args(words));
        let message = text(&run.stderr);
        assert_eq!((run.status.code(), run.stdout.len()), (Some(2), 0), "{words:?}: {message}");
        assert!(
            message.contains("one is a profile") && message.contains("taskscope report one"),
            "{words:?}: {message}"
        );
    }
    for verb in ["report", "export"] {
        let help = output(taskscope().args([verb, "--help"]));
        assert!(text(&help.stdout).contains("by its creation or, in traces, by its execution"), "{verb}");
    }
}

/// Time of samples at work, by call path.
struct Shares {
    work: BTreeMap<String, f64>,
}

impl Shares {
    fn of(report: &Value) -> Shares {
        let mut work = BTreeMap::new();
        for path in report["call_paths"]["paths"].as_array().unwrap() {
            let value = |name: &str| path["values"][name].as_f64().unwrap_or(0.0);
            if value("work_ns") > 0.0 {
                *work.entry(path["frames"].to_string()).or_default() += value("work_ns");
            }
        }
        assert!(work.len() > 2, "{work:?}");
        Shares { work }
    }

    fn work_share(&self, path: &str) -> f64 {
        self.work.get(path).unwrap_or(&0.0) / self.work.values().sum::<f64>()
    }
}

/// For two profiles, a script can query whether one got worse.
#[test]
fn a_difference_of_profiles_decides_the_exit_code() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    for name in ["one", "other"] {
        recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", name]);
    }
    let times = ["one", "other"].map(|name| {
        let report = parsed(taskscope().args(["report", "--json"]).arg(here.path().join(name)));
        report["call_paths"]["totals"]["time_ns"].as_f64().unwrap()
    });
    let code = |before: &str, after: &str, percent: f64| {
        let percent = format!("{percent}%");
        let mut command = taskscope();
        command.current_dir(here.path()).args(["diff", "--paths", before, after, "--fail-over", &percent]);
        output(&mut command).status.code()
    };
    let grown = (times[1] / times[0] - 1.0) * 100.0;
    // In one of the two directions it grew, if only by a sample.
    let (before, after, grown) = match grown > 0.0 {
        true => ("one", "other", grown),
        false => ("other", "one", (times[0] / times[1] - 1.0) * 100.0),
    };
    assert_eq!(code(before, after, grown * 2.0 + 1.0), Some(0));
    assert_eq!(code(after, before, 0.0), Some(0));
    assert_eq!(code("one", "one", 0.0), Some(0));
    if grown > 0.1 {
        assert_eq!(code(before, after, grown / 2.0), Some(1));
    }
    assert_eq!(code("one", "absent", 5.0), Some(2));
}

#[test]
fn live_and_final_efficiency_are_from_the_same_sums() {
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
    // Time spent until then is part of the time at the end, state by state.
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

/// A program's activity during a recording pause is not its serial code, in traces as in profiles.
#[test]
fn a_pause_is_unknown_in_traces_as_in_profiles() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "paused", "paused.c", &["-g"]);
    // The initial thread's nanoseconds in regions, in the pause, and in the region in which it was paused, by the program.
    let measured = |options: &[&str]| -> [u64; 3] {
        let printed = recorded(here.path(), &program, options);
        let numbers: Vec<u64> = printed.split_whitespace().map(|number| number.parse().unwrap()).collect();
        numbers.try_into().unwrap()
    };
    let [in_regions, paused, after_pause] = measured(&["-o", "trace"]);
    let trace = parsed(taskscope().args(["report", "--json"]).arg(here.path().join("trace")));
    let trace_ns = |report: &Value, state: &str| -> u64 {
        let causes = report["causes"].as_array().unwrap().iter();
        causes.filter(|row| row["state"] == state).map(|row| row["ns"].as_u64().unwrap()).sum()
    };
    assert!(trace_ns(&trace, "unknown") >= paused + after_pause, "{}", trace["causes"]);
    let serial = trace_ns(&trace, "serial");
    let elsewhere = in_regions + paused + after_pause;
    assert!(
        serial <= trace["wall_ns"].as_u64().unwrap() - elsewhere,
        "{serial} {elsewhere} {}",
        trace["causes"]
    );

    let [in_regions, paused, after_pause] = measured(&["--mode", "profile", "-o", "profile"]);
    let profile = parsed(taskscope().args(["report", "--json"]).arg(here.path().join("profile")));
    let totals = &profile["call_paths"]["run_totals"];
    let profile_ns = |state: &str| totals[format!("state.{state}")].as_u64().unwrap_or(0);
    assert!(profile_ns("unknown") >= paused, "{paused} {totals}");
    let elsewhere = in_regions + paused + after_pause;
    assert!(profile_ns("serial") <= totals["wall_ns"].as_u64().unwrap() - elsewhere, "{elsewhere} {totals}");
    // A part that begins in the pause knows of it.
    let part = here.path().join("part");
    let cut = output(
        taskscope().args(["slice", "--range", "60ms..", "-o"]).arg(&part).arg(here.path().join("trace")),
    );
    assert!(cut.status.success(), "{}", text(&cut.stderr));
    let sliced = parsed(taskscope().args(["report", "--json"]).arg(&part));
    let kinds = |report: &Value| -> Vec<(Value, Value)> {
        let threads = report["thread_states"].as_array().unwrap().iter();
        threads.map(|thread| (thread["tid"].clone(), thread["kind"].clone())).collect()
    };
    assert_eq!(kinds(&sliced), kinds(&trace));
    // A slice lacks times off the CPU: there its code has them.
    let off_cpu: u64 =
        ["out_of_cpu", "oversubscribed", "blocked"].iter().map(|state| trace_ns(&trace, state)).sum();
    assert!(trace_ns(&sliced, "serial") <= serial + off_cpu, "{sliced}");
}

/// Regions of a forked child are its own, independent of the parent's.
#[test]
fn a_forked_childs_regions_have_its_own_paths() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "forks", "forked_regions.c", &["-g"]);
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "profile"]);
    let profile = parsed(taskscope().args(["report", "--json"]).arg(here.path().join("profile")));
    let mut bodies = BTreeSet::new();
    for path in profile["call_paths"]["paths"].as_array().unwrap() {
        let frames: Vec<&str> =
            path["frames"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap()).collect();
        if let Some(body) = frames.iter().position(|step| step.contains("[parallel")) {
            let function = frames[body].split(' ').next().unwrap();
            assert_eq!(frames[body - 1], function, "{frames:?}");
            bodies.insert(function.to_string());
        }
    }
    assert_eq!(bodies, BTreeSet::from(["of_child".to_string(), "of_parent".to_string()]));
}

/// For paths of any depth, the lines of a profile's report stay within the requested width.
#[test]
fn deep_paths_fit_the_width() {
    let here = tempfile::tempdir().unwrap();
    let flags = virtual_time_flags();
    let mut options = vec!["-g", "-O1", "-fno-optimize-sibling-calls"];
    options.extend(flags.iter().map(String::as_str));
    let program = Compiler::Clang.build(here.path(), "deep", "deep.c", &options);
    recorded(here.path(), &program, &["--mode", "profile", "--sample", "500", "-o", "profile"]);
    for width in ["40", "60", "100"] {
        let mut command = taskscope();
        command.args(["report", "--width", width, "--top", "60"]).arg(here.path().join("profile"));
        let shown = text(&output(&mut command).stdout);
        assert!(shown.lines().count() > 60, "{shown}");
        let longest = shown.lines().map(|line| line.chars().count()).max();
        assert!(longest <= width.parse().ok(), "{longest:?} of {width}\n{shown}");
    }
}

/// If no process left a profile, the known part of the reason is reported: not that there was no OpenMP.
#[test]
fn a_run_without_a_profile_reports_the_reason() {
    let here = tempfile::tempdir().unwrap();
    let build =
        |name: &str, options: &[&str]| Compiler::Clang.build(here.path(), name, "no_profile.c", options);
    let programs = [
        (build("leaves", &["-DLEAVES"]), "not by `exec`"),
        (build("killed", &["-DKILLED"]), "signal 9 ended this run after"),
        (build("static", &["-static", "-fno-openmp"]), "static is linked statically"),
    ];
    for (program, reason) in programs {
        let name = program.file_name().unwrap().to_str().unwrap().to_string() + ".profile";
        let mut command = record(here.path());
        let run = output(command.args(["--mode", "profile", "-o", &name, "--"]).arg(&program));
        let message = text(&run.stderr);
        assert!(message.contains("no profile was written") && message.contains(reason), "{message}");
        let report = output(taskscope().arg("report").arg(here.path().join(&name)));
        let message = text(&report.stderr);
        assert_eq!(report.status.code(), Some(2));
        assert!(message.contains("holds no profile") && message.contains(reason), "{message}");
        assert!(!message.contains("OpenMP"), "{message}");
        let advice = if name.starts_with("static") { "link it dynamically" } else { "record --sample" };
        assert!(message.contains(advice), "{message}");
    }
    // Tools that are disabled do not keep a program from being sampled.
    let program = build("disabled", &[]);
    let mut command = record(here.path());
    command.env("OMP_TOOL", "disabled").args(["--mode", "profile", "-o", "disabled.profile", "--"]);
    assert!(output(command.arg(&program)).status.success());
    assert!(output(taskscope().arg("report").arg(here.path().join("disabled.profile"))).status.success());
}

/// If files may not grow, no profile is written, and the signal for that does not reach the program.
#[test]
fn a_limit_of_file_sizes_ends_the_profile_and_not_the_program() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "small", "naps.c", &[]);
    let script = format!(
        "ulimit -f 1; exec '{}' record --mode profile --live 0.02 -o out -- '{}'",
        env!("CARGO_BIN_EXE_taskscope"),
        program.display()
    );
    let run = output(std::process::Command::new("sh").args(["-c", &script]).current_dir(here.path()));
    assert_eq!(run.status.code(), Some(3), "{run:?}");
    assert!(text(&run.stderr).contains("`ulimit -f`"), "{run:?}");
}

/// The last profile that fitted, or that was written before a kill, is reported as incomplete, without an
/// unknown reason.
#[test]
fn a_profile_that_is_not_the_last_is_incomplete() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "small", "no_last_profile.c", &[]);
    for (name, arguments) in [("full", &[][..]), ("killed", &["kill"])] {
        let mut command = record(here.path());
        command.args(["--mode", "profile", "-o", name, "--"]).arg(&program).args(arguments);
        let run = output(&mut command);
        let incomplete = "incomplete: 1 of 1 process did not write a profile at the end";
        assert!(text(&run.stderr).contains(incomplete), "{run:?}");
        let report = output(taskscope().args(["report", "--width", "400"]).arg(here.path().join(name)));
        assert!(text(&report.stdout).contains(incomplete), "{report:?}");
    }
}

/// A thread that only calls the runtime, or does not know it, is not a worker, and has no idle time: in
/// traces as in profiles.
#[test]
fn workers_are_the_same_in_traces_and_profiles() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "further", "second_thread.c", &["-pthread"]);
    let modes = [("sleeps", 2), ("calls", 2), ("forks", 4), ("creates", 3), ("alone", 2), ("nobody", 1)];
    for (mode, workers) in modes {
        let of = |kind: &str, options: &[&str]| {
            let path = here.path().join(format!("{mode}.{kind}"));
            let mut command = record(here.path());
            command.args(options).arg("-o").arg(&path).arg("--").arg(&program).arg(mode);
            assert!(output(&mut command).status.success());
            parsed(taskscope().args(["report", "--json"]).arg(&path))
        };
        let trace = of("trace", &["--sample", "200"]);
        assert_eq!(trace["workers"], workers, "{mode}");
        let profile = of("profile", &["--mode", "profile", "--sample", "200"]);
        let totals = &profile["call_paths"]["run_totals"];
        let [capacity, wall] = ["capacity_ns", "wall_ns"].map(|name| totals[name].as_u64().unwrap());
        assert_eq!(capacity, workers * wall, "{mode}: {totals}");
    }
}

/// Clang puts the body of an undeferred task into its creator; its work is the task's, not the runtime's.
#[test]
fn a_task_that_is_a_part_of_its_creator_works_in_its_body() {
    let here = tempfile::tempdir().unwrap();
    let flags = virtual_time_flags();
    let options: Vec<&str> = flags.iter().map(String::as_str).collect();
    let program = Compiler::Clang.build(here.path(), "undeferred", "undeferred_work.c", &options);
    for mode in ["trace", "profile"] {
        recorded(here.path(), &program, &["--mode", mode, "--sample", "500", "-o", mode]);
        let report = parsed(taskscope().args(["report", "--json"]).arg(here.path().join(mode)));
        let all = report["call_paths"]["totals"]["work_ns"].as_u64().unwrap();
        let paths = report["call_paths"]["paths"].as_array().unwrap().iter();
        let in_task: u64 = paths
            .filter(|path| {
                let last =
                    path["frames"].as_array().unwrap().last().and_then(Value::as_str).unwrap_or_default();
                last.contains("make [task at")
            })
            .map(|path| path["values"]["work_ns"].as_u64().unwrap_or(0))
            .sum();
        assert!(all.abs_diff(100_000_000) <= 4_000_000, "{mode}: {all}");
        assert!(in_task + 2_000_000 >= all, "{mode}: {in_task} of {all}");
    }
}
