//! Call paths of recorded programs against those known by construction.

mod common;

use common::call_paths::*;
use common::*;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn the_paths_in_which_time_is_spent_are_those_of_the_source() {
    WAYS.iter().for_each(paths_are_those_of_the_source);
}

fn paths_are_those_of_the_source(how: &How<'_>) {
    let is_trace = how.options.is_empty();
    let expected_steps =
        |steps| if matches!(how.compiler, Compiler::Gcc) { without_lines(steps) } else { steps };
    let source = program("paths");
    let at = |text: &str| format!("at paths.c:{}", line_of(&source, text));
    let outer = format!("outer [parallel {}]", at("/* the outer region */"));
    let inner = format!("inner [parallel {}]", at("/* the inner region */"));
    let task = format!("create [task {}]", at("/* the task */"));
    let nested = format!("descend [task {}]", at("/* the nested task */"));
    let in_outer = |steps: &[&str]| -> Vec<String> {
        let all = [&["main", "outer", &outer], steps, &["burn"]].concat();
        expected_steps(all.into_iter().map(str::to_string).collect())
    };
    let expected: BTreeSet<Vec<String>> = [
        ["main", "down", "down", "down", "leaf", "burn"].map(str::to_string).to_vec(),
        in_outer(&["in_region"]),
        in_outer(&["inner", &inner, "deep"]),
        in_outer(&["create", &task, "in_task"]),
        in_outer(&["descend", &nested, "descend", &nested, "descend", "in_task"]),
    ]
    .into();
    let here = tempfile::tempdir().unwrap();
    let paths = call_paths(here.path(), &source, how);
    let (mut found, mut outside) = (BTreeSet::new(), 0);
    for path in rows(&paths, "paths").iter().filter(|path| path["values"]["work_ns"].is_u64()) {
        let steps = expected_steps(frames(path).iter().map(|step| step.to_string()).collect());
        if steps.last().is_some_and(|last| last == "burn") {
            found.insert(steps);
        } else if steps[0] != "main" {
            // A process starts and ends outside of it.
            outside += path["values"]["samples"].as_u64().unwrap_or(0);
        } else {
            // Few samples are on the path to it.
            let leads = |to: &Vec<String>| to.starts_with(&steps);
            let prints = steps.get(1).is_some_and(|step| step.contains("printf"));
            assert!(prints || expected.iter().any(leads), "{steps:?}");
        }
    }
    assert!(outside <= 5, "{outside} samples outside of main");
    assert_eq!(found, expected);
    // All of that time is in one loop.
    let one = &rows(&paths, "loops")[0];
    let line = line_of(&source, "for (long i = 1") as u64;
    assert_eq!(one["function"], "burn");
    assert!((line..line + 2).contains(&one["line"].as_u64().unwrap()), "{one}");
    // Each time is at a line, or at a reason for the missing line; lines of the runtime are hidden as its
    // frames are.
    let lines = rows(&paths, "lines");
    assert_eq!(lines.iter().filter_map(|row| row["own"].as_u64()).sum::<u64>(), paths["totals"]["time_ns"]);
    let runtime_files = ["/futex", "/syscall", "/sched_yield", "kmp_"];
    let is_of_runtime = |row: &&Value| {
        let file = row["file"].as_str().unwrap_or_default();
        runtime_files.iter().any(|part| file.contains(part))
    };
    assert_eq!(lines.iter().find(is_of_runtime), None);
    if !is_trace {
        return;
    }
    // The outer continuation of a task can be chosen. All tasks ran in the outer region, some at its end.
    let printed = output(
        taskscope().args(["report", "--json", "--task-context", "execution"]).arg(here.path().join("trace")),
    );
    let executed: Value = serde_json::from_slice(&printed.stdout).unwrap();
    for path in rows(&executed["call_paths"], "paths") {
        let steps = frames(path);
        let task = steps.iter().position(|step| step.starts_with("create [task"));
        assert!(task.is_none_or(|task| steps[..task].contains(&"outer")), "{steps:?}");
    }
}

#[test]
fn functions_of_the_c_library_are_on_the_side_of_their_caller() {
    let runtimes = further_runtimes();
    for runtime in std::iter::once(None).chain(runtimes.iter().map(|runtime| Some(runtime.as_path()))) {
        for how in WAYS {
            calls_are_on_the_side_of_their_caller(&How { arguments: &["60"], runtime, ..how });
        }
    }
}

fn calls_are_on_the_side_of_their_caller(how: &How<'_>) {
    let here = tempfile::tempdir().unwrap();
    let paths = call_paths(here.path(), &program("copies"), how);
    let (mut copied, mut waited, mut given) = (0, 0, 0);
    for path in rows(&paths, "paths") {
        let steps = frames(path);
        let time = path["values"]["time_ns"].as_u64().unwrap_or(0);
        if time == 0 {
            continue;
        }
        // In the program's own calls, `copy` copies and allocates, and `main` prints and allocates.
        let own = ["main", "main [parallel", "copy", "wait_here", "give_copies", "<"];
        if let Some(first) = steps.iter().position(|step| !own.iter().any(|own| step.starts_with(own))) {
            // It runs before `main`, and at the first call of a function.
            let is_in_loader = first == 0 || steps[first].starts_with("_dl_");
            assert!(is_in_loader || ["copy", "main"].contains(&steps[first - 1]), "{steps:?}");
        }
        copied += if steps.contains(&"copy") { time } else { 0 };
        waited += if steps.ends_with(&["wait_here", "<waiting for a lock>"]) { time } else { 0 };
        given += if steps.ends_with(&["give_copies", "<runtime>"]) { time } else { 0 };
    }
    assert!(copied > 0 && waited > 0 && given > 0, "{copied} {waited} {given}");
    // On demand the runtime's frames are there, below the state: how it waits, and that it copies.
    let printed =
        output(taskscope().args(["report", "--json", "--runtime-frames"]).arg(here.path().join("trace")));
    let shown: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let inside = |state: &str, function: &str| {
        rows(&shown["call_paths"], "paths").iter().any(|path| {
            let steps = frames(path);
            let at = steps.iter().position(|step| *step == state);
            at.is_some_and(|at| steps[at + 1..].iter().any(|step| step.contains(function)))
        })
    };
    assert!(inside("<waiting for a lock>", ""), "no frame of the runtime below the lock wait");
    // Without debug symbols of the C library its function has no name.
    assert!(inside("<runtime>", "mem") || inside("<runtime>", "libc.so.6+"), "no copying below the runtime");
}

/// The demonstration of the talk: top-down reaches every parallel loop by its user path and line, bottom-up the
/// waiting at the ends of regions is divided among the regions.
#[test]
fn the_hydrodynamics_code_is_taken_apart_with_24_threads() {
    for options in [&[][..], &["--mode", "profile"]] {
        // Each loop runs for so long that samples fall into it.
        let (arguments, report) = (&["200", "100"][..], &["--top", "10000"][..]);
        hydrodynamics_are_taken_apart(&How { threads: "24", options, arguments, report, ..TRACED });
    }
}

fn hydrodynamics_are_taken_apart(how: &How<'_>) {
    let here = tempfile::tempdir().unwrap();
    let source = example("hydro");
    let paths = call_paths(here.path(), &source, how);
    let loops = ["equation_of_state", "time_step", "corner_forces", "move_nodes", "do_work"];
    // Steps from the outermost to each row of the top-down view.
    let mut open: Vec<&str> = Vec::new();
    let mut reached = BTreeSet::new();
    for row in rows(&paths, "top_down") {
        open.truncate(row["depth"].as_u64().unwrap() as usize);
        open.push(row["name"].as_str().unwrap());
        let open: Vec<&str> = open.iter().copied().filter(|step| !step.contains(" [loop at ")).collect();
        for function in loops {
            let body = format!("{function} [parallel at hydro.c:");
            if open.len() == 4 && open[..3] == ["main", "advance", function] && open[3].starts_with(&body) {
                reached.insert(function);
            }
        }
    }
    // The join barrier's row and the rows below it, region by region.
    let table = rows(&paths, "bottom_up");
    let barrier = table.iter().position(|row| row["state"] == "join_barrier").unwrap();
    let whole = &table[barrier];
    let below = table[barrier + 1..].iter().take_while(|row| row["depth"].as_u64().unwrap() > 0);
    let callers: Vec<&Value> = below.filter(|row| row["depth"] == 1).collect();
    for column in ["time_ns", "waiting_ns"] {
        let sum: u64 = callers.iter().map(|row| row[column].as_u64().unwrap_or(0)).sum();
        assert_eq!(sum, whole[column].as_u64().unwrap_or(0), "{column}");
    }
    let regions: BTreeSet<&str> = callers.iter().map(|row| row["function"].as_str().unwrap()).collect();
    assert_eq!(regions, BTreeSet::from(loops), "{callers:#?}");
    let taken = paths["balances"].as_array().unwrap().iter().find(|row| row["wait"] == "join_barrier");
    assert_eq!(whole["waiting_ns"], taken.unwrap()["taken_ns"]);
    assert_eq!(reached, BTreeSet::from(loops));
}

#[test]
fn paths_go_through_regions_eight_deep_and_tasks_that_tasks_create() {
    WAYS[..2].iter().for_each(paths_go_through_regions_eight_deep);
}

fn paths_go_through_regions_eight_deep(how: &How<'_>) {
    let source = program("nested_paths");
    let at = |text: &str| format!("at nested_paths.c:{}", line_of(&source, text));
    let region = format!("nest [parallel {}]", at("/* the region */"));
    let task = format!("at_bottom [task {}]", at("/* the task */"));
    let inner = format!("in_task [task {}]", at("/* the task of a task */"));
    let mut bottom = vec!["main"];
    bottom.extend((0..8).flat_map(|_| ["nest", region.as_str()]));
    bottom.extend(["nest", "at_bottom"]);
    let below = |steps: &[&str]| -> Vec<String> {
        bottom.iter().chain(steps).chain(&["burn"]).map(|step| step.to_string()).collect()
    };
    let expected: BTreeSet<Vec<String>> =
        [below(&[]), below(&[&task, "in_task"]), below(&[&task, "in_task", &inner, "in_inner_task"])].into();
    let here = tempfile::tempdir().unwrap();
    let paths = call_paths(here.path(), &source, how);
    let found: BTreeSet<Vec<String>> = rows(&paths, "paths")
        .iter()
        .filter(|path| path["values"]["work_ns"].is_u64())
        .map(|path| frames(path).iter().map(|step| step.to_string()).collect::<Vec<_>>())
        .filter(|steps| steps.last().is_some_and(|last| last == "burn"))
        .collect();
    assert_eq!(found, expected);
}

/// The runtime's device code belongs to the runtime, and its device operations are waited for. Flags with
/// which clang's kernels run on LLVM's plugin for the host.
const OFFLOAD: [&str; 3] =
    ["-fopenmp-targets=x86_64-pc-linux-gnu", "-L/usr/lib/llvm-19/lib", "-Wl,-rpath,/usr/lib/llvm-19/lib"];

fn can_offload() -> bool {
    let can = Path::new("/usr/lib/llvm-19/lib/libomptarget.so").exists();
    if !can {
        taskscope_prerequisite::missing("LLVM's runtime for devices is not installed");
    }
    can
}

#[test]
fn waiting_for_a_device_is_at_the_construct() {
    if !can_offload() {
        return;
    }
    for options in [&[][..], &["--mode", "profile"]] {
        let here = tempfile::tempdir().unwrap();
        let paths =
            call_paths(here.path(), &program("offloaded"), &How { flags: &OFFLOAD, options, ..TRACED });
        let (mut at, mut taken, mut given, mut given_at) = ([0, 0], 0, 0, 0);
        for path in rows(&paths, "paths") {
            let value = |name: &str| path["values"][name].as_u64().unwrap_or(0);
            let (steps, time) = (frames(path), value("time_ns"));
            taken += value("taken_target_wait_ns");
            given += value("given_target_wait_ns");
            if steps == ["main", "copy_much"] || steps == ["main", "compute_long"] {
                given_at += value("given_target_wait_ns");
            }
            let of = |place: &str| u64::from(steps == ["main", place, "<waiting for a device>"]) * time;
            at = [at[0] + of("copy_much"), at[1] + of("compute_long")];
            let is_device_step =
                |step: &&str| step.contains("libomptarget") || step.contains("omp_offloading");
            // Code before `main` runs before the runtime is up.
            assert!(time == 0 || steps[0] != "main" || !steps.iter().any(is_device_step), "{steps:?}");
        }
        assert!(at[0] > 0 && at[1] > at[0] / 10, "{at:?}");
        // The device works for the constructs that wait for it.
        assert!(taken > 0 && taken == given && given_at > taken / 100 * 95, "{taken} {given} {given_at}");
    }
}

/// Records the program `late` with samples. Returns the default output of `report`, and its JSON.
fn late(here: &Path, arguments: &[&Path]) -> (String, String, Value) {
    // Without `-fopenmp` of its own.
    let program = here.join("late");
    let mut compiler = std::process::Command::new(Compiler::Clang.command().get_program());
    compiler.args(["-g", "-O2", "-o"]).arg(&program).arg(self::program("late")).arg("-ldl");
    assert!(output(&mut compiler).status.success());
    let recorded =
        output(record(here).args(["--sample", "500", "-o", "trace", "--"]).arg(&program).args(arguments));
    assert!(recorded.status.success(), "{}", text(&recorded.stderr));
    let trace = here.join("trace");
    let shown = text(&output(taskscope().arg("report").arg(&trace)).stdout);
    (text(&recorded.stderr), shown, report(&trace))
}

/// A program without OpenMP is known only from samples: it has call paths, and no efficiency.
#[test]
fn a_program_without_openmp_has_call_paths_and_no_efficiency() {
    let here = tempfile::tempdir().unwrap();
    let (recorded, shown, _) = late(here.path(), &[]);
    for text in [recorded, shown] {
        assert!(text.contains("Call paths, top-down") && text.contains("early"), "{text}");
        assert!(!text.contains("efficiency") && !text.contains("does not record what"), "{text}");
    }
}

/// Activity before the start of the OpenMP runtime is the program's own code, and threads that do not exist
/// yet wait for it.
#[test]
fn time_before_openmp_starts_is_serial_code() {
    let here = tempfile::tempdir().unwrap();
    let plugin = here.path().join("plugin.so");
    Compiler::Clang.build_file(&program("plugin"), &plugin, &["-shared", "-fPIC"]);
    let (_, shown, report) = late(here.path(), &[&plugin]);
    let of = |state: &str| {
        let causes = report["causes"].as_array().unwrap();
        causes.iter().filter(|row| row["state"] == state).map(|row| row["ns"].as_u64().unwrap()).sum::<u64>()
    };
    // The program works for 0.3 s by the clock, on a CPU or kept off it.
    let before = of("serial") + of("out_of_cpu") + of("oversubscribed");
    assert!(of("serial") > 0 && before > 250_000_000, "{before} {shown}");
    assert_eq!(of("unknown"), 0, "{shown}");
    assert!(shown.contains("serial code before"), "{shown}");
}

/// The outermost rows of a view sum to the whole in every column, even without samples.
#[test]
fn outermost_rows_sum_to_the_whole_in_every_column() {
    let here = tempfile::tempdir().unwrap();
    let paths = call_paths(here.path(), &program("helpers"), &TRACED);
    for view in ["top_down", "bottom_up"] {
        for column in ["time_ns", "waiting_ns", "blame_ns", "idleness_ns"] {
            let outermost = rows(&paths, view).iter().filter(|row| row["depth"] == 0);
            let sum: u64 = outermost.map(|row| row[column].as_u64().unwrap_or(0)).sum();
            assert_eq!(sum, paths["totals"][column].as_u64().unwrap(), "{view} {column}");
        }
    }
    assert_parts_sum_to_the_whole(here.path());
    // Shares are those of time.
    let notes = paths["notes"].to_string();
    assert!(notes.contains("taken inside the runtime, whatever time each represents"), "{notes}");
    let sorted = |column: &str| {
        let mut command = taskscope();
        command.args(["report", "--json", "--section", "call-paths", "--sort", column]);
        let printed = output(command.arg(here.path().join("trace")));
        let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
        let rows = rows(&report["call_paths"], "bottom_up").iter().filter(|row| row["depth"] == 0);
        let values: Vec<u64> = rows.map(|row| row[column].as_u64().unwrap_or(0)).collect();
        (report["call_paths"]["sorted_by"].as_str().map(str::to_string), values.is_sorted_by(|a, b| a >= b))
    };
    for column in ["blame_ns", "idleness_ns"] {
        assert_eq!(sorted(column), (Some(column.to_string()), true));
    }
    assert_eq!(sorted("given_lock_wait_ns").0.as_deref(), Some("given_lock_wait_ns"));
}

/// With few rows, every step has a row for the rest, so that parts sum to it.
fn assert_parts_sum_to_the_whole(here: &Path) {
    let mut command = taskscope();
    command.args(["report", "--json", "--section", "call-paths", "--top", "4"]).arg(here.join("trace"));
    let report: Value = serde_json::from_slice(&output(&mut command).stdout).unwrap();
    let paths = &report["call_paths"];
    let time = |row: &Value| row["time_ns"].as_u64().unwrap_or(0);
    for (view, own) in [("top_down", "own"), ("bottom_up", "outermost")] {
        let rows = rows(paths, view);
        assert_eq!(rows.iter().filter(|row| row["what"] != "rest").count(), 4, "{view}");
        for (number, row) in rows.iter().enumerate().filter(|(_, row)| row["what"] != "rest") {
            let depth = row["depth"].as_u64();
            let inner = rows[number + 1..].iter().take_while(|inner| inner["depth"].as_u64() > depth);
            let parts = inner.filter(|inner| inner["depth"].as_u64() == depth.map(|depth| depth + 1));
            assert_eq!(parts.map(time).sum::<u64>() + row[own].as_u64().unwrap(), time(row), "{view} {row}");
        }
        let outermost = rows.iter().filter(|row| row["depth"] == 0);
        assert_eq!(outermost.map(time).sum::<u64>(), time(&paths["totals"]), "{view}");
    }
    let functions = rows(paths, "functions");
    assert_eq!(functions.len(), 5);
    let own = functions.iter().map(|row| row["own"].as_u64().unwrap()).sum::<u64>();
    assert_eq!(own, time(&paths["totals"]));
}

/// Bottom-up, waits of one function are those of its constructs: the lines below a wait sum to it. Deferred
/// constructs are tasks of the runtime's own threads: these are not workers, and their idle time does not
/// count.
#[test]
fn deferred_target_constructs_are_tasks_on_the_paths_of_their_creators() {
    let source = program("deferred");
    let line = |text: &str| line_of(&source, text);
    let code = format!("start_code [task at deferred.c:{}]", line("/* the code */"));
    let teams = format!("start_teams [task at deferred.c:{}]", line("/* the teams */"));
    let flags = [&[][..], &OFFLOAD];
    let both = flags.iter().take(if can_offload() { 2 } else { 1 });
    for (flags, options) in both.flat_map(|flags| [(*flags, &[][..]), (*flags, &["--mode", "profile"])]) {
        let here = tempfile::tempdir().unwrap();
        let paths = call_paths(here.path(), &source, &How { flags, options, ..TRACED });
        let (mut time, mut blame, mut taken, mut helpers) = ([0, 0], [0, 0], 0, 0);
        for path in rows(&paths, "paths") {
            let (steps, value) = (frames(path), |name: &str| path["values"][name].as_u64().unwrap_or(0));
            taken += value("taken_taskwait_ns");
            helpers += if steps == ["<idle or absent>"] { value("samples") } else { 0 };
            for (at, (creator, task)) in [("start_code", &code), ("start_teams", &teams)].iter().enumerate() {
                if steps.starts_with(&["main", creator, task]) {
                    time[at] += value("time_ns");
                    blame[at] += value("given_taskwait_ns");
                }
            }
            let outlined = |step: &&str| step.contains("omp_outlined") || step.contains("__omp_offloading");
            assert!(!steps.iter().any(outlined), "{steps:?}");
        }
        let sums = format!("{flags:?} {options:?}: time {time:?}, blame {blame:?}, of {taken}");
        // By the clock, which is at least four rounds of 40 ms, and of 20 ms on two threads. Samples come late on a loaded
        // machine; events do not.
        assert!(time.iter().all(|ns| *ns > 20_000_000), "{sums}");
        // The creator waits for the runtime's own threads, or runs the tasks itself, as on a loaded machine: then it waits for
        // nobody. Most of what it waits is charged to the tasks.
        let charged = blame[0] + blame[1];
        assert!(charged <= taken && 2 * charged + 1_000_000 >= taken, "{sums}");
        assert!(taken < 100_000_000 || blame.iter().all(|ns| *ns > 0), "{sums}");
        assert!(helpers < 100, "{helpers} samples of idle helpers");
    }
}

/// With frame pointers or without, callees of an undeferred task's body belong to the task, and so do tasks
/// that it creates.
#[test]
fn frames_in_the_body_of_an_undeferred_task_belong_to_it() {
    let source = program("undeferred");
    let step = |text: &str| format!("stage [task at undeferred.c:{}]", line_of(&source, text));
    let (undeferred, deferred) = (step("/* the undeferred */"), step("/* the deferred */"));
    let once = ["stage", &undeferred];
    let expected: BTreeSet<Vec<&str>> = [
        [&once[..], &["helper"]].concat(),
        [&once[..], &once, &["helper"]].concat(),
        [&once[..], &once, &[&deferred, "helper"]].concat(),
    ]
    .into();
    for flags in [["-fomit-frame-pointer"], ["-fno-omit-frame-pointer"]] {
        for options in [&[][..], &["--mode", "profile"]] {
            let here = tempfile::tempdir().unwrap();
            let paths = call_paths(here.path(), &source, &How { flags: &flags, options, ..TRACED });
            let mut found = BTreeSet::new();
            for path in rows(&paths, "paths").iter().filter(|path| path["values"]["work_ns"].is_u64()) {
                let steps = frames(path);
                let stage = steps.iter().position(|step| *step == "stage");
                let Some(helper) = steps.iter().position(|step| *step == "helper") else { continue };
                found.insert(steps[stage.unwrap()..=helper].to_vec());
            }
            assert_eq!(found, expected, "{flags:?} {options:?}");
        }
    }
}

#[test]
fn waits_are_kept_apart_by_their_constructs() {
    let source = program("two_waits");
    let line = |text: &str| line_of(&source, text) as u64;
    let expected = [
        ("join_barrier", vec![line("/* the first region */"), line("/* the second region */")]),
        ("barrier", vec![line("/* the first barrier */"), line("/* the second barrier */")]),
    ];
    for how in &WAYS[..2] {
        let here = tempfile::tempdir().unwrap();
        let paths = call_paths(here.path(), &source, how);
        let table = rows(&paths, "bottom_up");
        for (state, lines) in &expected {
            let outermost: Vec<usize> = (0..table.len())
                .filter(|row| table[*row]["depth"] == 0 && table[*row]["state"] == *state)
                .collect();
            let [wait] = outermost[..] else { panic!("{outermost:?} of {state}") };
            let below = table[wait + 1..].iter().take_while(|row| row["depth"] != 0);
            let callers: Vec<&Value> = below.filter(|row| row["depth"] == 1).collect();
            let found: BTreeSet<u64> = callers.iter().filter_map(|row| row["line"].as_u64()).collect();
            assert_eq!(found, lines.iter().copied().collect(), "{state} {:?}", how.options);
            let sum: u64 = callers.iter().map(|row| row["waiting_ns"].as_u64().unwrap_or(0)).sum();
            assert_eq!(sum, table[wait]["waiting_ns"].as_u64().unwrap());
        }
    }
}

/// Outwards of a thread's code, the frames of its stack appear once, for any forking thread; even if threads
/// wait through the same functions, in any order of arrival.
#[test]
fn waits_and_holds_are_separate_by_their_paths() {
    for options in [&[][..], &["--mode", "profile"]] {
        let here = tempfile::tempdir().unwrap();
        let how = How { options, flags: &["-fno-optimize-sibling-calls"], ..TRACED };
        let paths = call_paths(here.path(), &program("helpers"), &how);
        // In milliseconds, of all rounds.
        let sum = |metric: &str, through: &[&str]| {
            let rows = rows(&paths, "paths").iter();
            let through = |path: &&Value| through.iter().all(|step| frames(path).contains(step));
            rows.filter(through).filter_map(|path| path["values"][metric].as_f64()).sum::<f64>() / 1e6
        };
        let expected = [
            ("taken_lock_wait_ns", ["waiter", "take"], 60.0),
            ("given_lock_wait_ns", ["holder", "take"], 60.0),
            ("taken_barrier_ns", ["first_phase", "meet"], 60.0),
            ("taken_barrier_ns", ["second_phase", "meet"], 120.0),
            ("taken_taskwait_ns", ["short_child", "wait_for_children"], 60.0),
            ("taken_taskwait_ns", ["long_child", "wait_for_children"], 120.0),
        ];
        for (metric, through, owed) in expected {
            let found = sum(metric, &through);
            // Threads that wait for another one to begin look every 0.1 ms.
            assert!((found - owed).abs() < 1.0, "{options:?} {metric} {through:?}: {found} of {owed} ms");
        }
        // Nothing, as no thread waited.
        let nothing = [("given_lock_wait_ns", "waiter"), ("taken_lock_wait_ns", "holder")];
        assert!(nothing.iter().all(|(metric, function)| sum(metric, &[function]) < 0.1), "{options:?}");
    }
}

/// Independent of the runtime's place of creation, and of the creating thread.
#[test]
fn a_taskgroup_waits_for_all_tasks_in_it_and_these_are_the_programs() {
    for options in [&[][..], &["--mode", "profile"]] {
        let here = tempfile::tempdir().unwrap();
        let how = How { options, flags: &["-fno-optimize-sibling-calls"], ..TRACED };
        let paths = call_paths(here.path(), &program("groups"), &how);
        // Nor are a thread's first function or the runtime's own tasks a step of them.
        let program_steps = ["main", "work", "item", "loop", "leaf", "middle", "group"];
        let (mut given, mut at_nobody) = (0.0, 0.0);
        for path in rows(&paths, "paths") {
            let steps = frames(path);
            let value = |metric: &str| path["values"][metric].as_f64().unwrap_or(0.0);
            // Time without a sample is at the construct.
            if value("work_ns") > 0.0
                && value("samples") > 0.0
                && steps.iter().any(|step| step.contains(" ["))
            {
                let is_known = |step: &&str| program_steps.contains(&step.split(" [").next().unwrap());
                // The rest belongs to a library.
                let known = steps.iter().take_while(|step| is_known(step)).count();
                assert!(
                    known > 0 && !steps[known..].iter().any(|step| step.contains(" [")),
                    "{options:?} {steps:?}"
                );
                let in_tasks = steps.iter().filter(|step| step.contains("[task")).count();
                let task_steps = usize::from(steps.contains(&"item") || steps.contains(&"middle"));
                assert_eq!(
                    in_tasks,
                    task_steps + usize::from(steps.contains(&"leaf")),
                    "{options:?} {steps:?}"
                );
            }
            given += value("given_taskgroup_ns");
            at_nobody += if steps.contains(&"<nobody>") { value("given_taskgroup_ns") } else { 0.0 };
        }
        assert!(given > 100e6 && at_nobody < 0.1e6, "{options:?} {at_nobody} of {given}");
    }
}

#[test]
fn paths_by_execution_hold_the_masters_stack_once() {
    let here = tempfile::tempdir().unwrap();
    let how = How { report: &["--task-context", "execution"], ..TRACED };
    let paths = call_paths(here.path(), &program("jumps"), &how);
    let mut regions = 0;
    for path in rows(&paths, "paths").iter().filter(|path| path["values"]["work_ns"].is_u64()) {
        let steps = frames(path);
        regions += usize::from(steps.iter().any(|step| step.contains("[parallel")));
        assert!(steps.iter().filter(|step| **step == "main").count() <= 1, "{steps:?}");
        assert!(!steps.iter().any(|step| step.contains("start")), "{steps:?}");
    }
    assert!(regions > 2, "{regions}");
}

/// A runtime that takes no tool is treated as an ordinary library, and its callees are the program's.
#[test]
fn code_in_regions_is_known_where_the_runtime_takes_no_tool() {
    let here = tempfile::tempdir().unwrap();
    let how = How { environment: &[("OMP_TOOL", "disabled")], ..TRACED };
    let paths = call_paths(here.path(), &program("jumps"), &how);
    let within = rows(&paths, "paths").iter().filter(|path| frames(path).contains(&"in_region"));
    let ns: u64 = within.map(|path| path["values"]["time_ns"].as_u64().unwrap_or(0)).sum();
    // Two threads for 50 ms each, in samples of 1 ms.
    assert!(ns.abs_diff(100_000_000) <= 2_000_000, "{ns}");
}
