//! Names of the steps of call paths: the bodies of regions and tasks, parts of functions, code without names.

mod common;

use common::call_paths::*;
use common::*;
use serde_json::Value;
use std::collections::BTreeSet;

/// The body of a region or task is a step of its own even without a frame, after a tail call.
#[test]
fn bodies_without_frames_are_steps_of_paths() {
    let jumps = |how: &How<'static>| How { flags: &[], ..*how };
    WAYS.iter().map(jumps).for_each(|how| bodies_without_frames_are_steps(&how));
}

fn bodies_without_frames_are_steps(how: &How<'_>) {
    let expected: BTreeSet<Vec<String>> = [
        "main region region_[parallel] in_region burn",
        "main tasks tasks_[parallel] create create_[task] in_task burn",
        "main nested nested_[parallel] nested_[parallel] in_inner burn",
    ]
    .map(|path| path.split(' ').map(|step| step.replace("_[", " [")).collect())
    .into();
    let here = tempfile::tempdir().unwrap();
    let paths = call_paths(here.path(), &program("jumps"), how);
    let mut found = BTreeSet::new();
    for path in rows(&paths, "paths").iter().filter(|path| path["values"]["time_ns"].is_u64()) {
        let steps = without_lines(frames(path).into_iter().map(str::to_string).collect());
        assert!(!steps.iter().any(|step| step.contains("start")), "{steps:?}");
        if steps.last().is_some_and(|last| last == "burn") {
            assert!(expected.contains(&steps), "{steps:?}");
            found.insert(steps);
        }
    }
    // The tasks that a taskwait waits for are to blame, not their creator.
    for path in rows(&paths, "paths").iter().filter(|path| path["values"]["given_taskwait_ns"].is_u64()) {
        let last = *frames(path).last().unwrap();
        let own = ["create [task", "burn", "<nobody", "<no CPU"];
        assert!(own.iter().any(|own| last.starts_with(own)), "{path}");
    }
    assert_eq!(found, expected);
}

/// A body that the compiler has cut out twice is one step, and that of a template has the name of the instantiation
/// which creates it.
#[test]
fn bodies_are_steps_once_and_have_their_creators_name() {
    let source = program_source("templates.cpp");
    let task = |of: &str| format!("main main_[parallel] create<{of}> create<{of}>_[task] burn");
    let region = |of: &str| format!("main region<{of}> region<{of}>_[parallel] burn");
    let member = "main Solver::solve Solver::solve_[parallel] Solver::solve_[task] burn".to_owned();
    let expected: BTreeSet<Vec<String>> =
        [task("int"), task("double"), region("int"), region("double"), member]
            .map(|path| path.split(' ').map(|step| step.replace("_[", " [")).collect())
            .into();
    for flags in [&["-O0", "-fno-exceptions"][..], &["-O2", "-fno-exceptions"]] {
        let here = tempfile::tempdir().unwrap();
        let paths = call_paths(here.path(), &source, &How { flags, ..TRACED });
        let found: BTreeSet<Vec<String>> = rows(&paths, "paths")
            .iter()
            .map(|path| without_lines(frames(path).into_iter().map(str::to_string).collect()))
            .filter(|steps| steps.last().is_some_and(|last| last == "burn"))
            .collect();
        assert_eq!(found, expected, "{flags:?}");
    }
}

/// A task's body is not named after a compiler-generated reduction function or a lambda that is declared
/// above.
#[test]
fn tasks_of_reductions_and_below_lambdas_have_their_creators_name() {
    let source = program_source("reductions.cpp");
    for (flags, options) in [("-O0", &[][..]), ("-O2", &[]), ("-O0", &["--mode", "profile"])] {
        let here = tempfile::tempdir().unwrap();
        let paths =
            call_paths(here.path(), &source, &How { flags: &[flags, "-fno-exceptions"], options, ..TRACED });
        let named: Vec<String> = rows(&paths, "paths").iter().flat_map(frames).map(str::to_string).collect();
        let tasks: BTreeSet<String> =
            without_lines(named.clone()).into_iter().filter(|step| step.ends_with("[task]")).collect();
        let creators = ["main [task]", "sum_loop [task]", "sum_up [task]"].map(str::to_string);
        assert_eq!(tasks, creators.into(), "{flags} {options:?}");
        assert!(!named.iter().any(|step| step.contains(".red_")), "{named:#?}");
    }
}

/// A task has one name, whether its creator is inlined, as in blame, or called, as in symbols.
#[test]
fn tasks_of_lambdas_in_line_have_one_name() {
    let source = program_source("inlined.cpp");
    for (options, debug) in [(&[][..], "-g"), (&["--mode", "profile"], "-g"), (&[], "-gsplit-dwarf")] {
        let here = tempfile::tempdir().unwrap();
        let flags = &["-O2", "-fno-exceptions", debug];
        let how = How { compiler: Compiler::Gcc, flags, options, ..TRACED };
        let paths = call_paths(here.path(), &source, &how);
        let steps = rows(&paths, "paths").iter().flat_map(frames).map(str::to_string).collect();
        let tasks: BTreeSet<String> =
            without_lines(steps).into_iter().filter(|step| step.ends_with("[task]")).collect();
        let of = |number: u32| format!("main::{{lambda(int)#{number}}}::operator() [task]");
        assert_eq!(tasks, [of(1), of(2)].into(), "{options:?} {debug}");
    }
}

/// Missing external debug information: function names remain, and the missing files are reported.
#[test]
fn missing_split_debug_information_is_reported() {
    let source = program_source("inlined.cpp");
    let here = tempfile::tempdir().unwrap();
    let flags = &["-O2", "-fno-exceptions", "-gsplit-dwarf"];
    call_paths(here.path(), &source, &How { flags, options: &["--mode", "profile"], ..TRACED });
    let report = || text(&output(taskscope().arg("report").arg(here.path().join("trace"))).stdout);
    let whole = report();
    assert!(!whole.contains(".dwo files") && whole.contains("for_each<"), "{whole}");
    let files = std::fs::read_dir(here.path()).unwrap().map(|file| file.unwrap().path());
    let split: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == "dwo")).collect();
    assert!(!split.is_empty());
    split.iter().for_each(|path| std::fs::remove_file(path).unwrap());
    let left = report();
    assert!(left.contains(".dwo files") && left.contains("main [task at inlined.cpp:"), "{left}");
}

/// Nested functions stay separate, and bodies have their creators' names, with any debug information.
#[test]
fn nested_functions_are_distinguished() {
    let source = program_source("scopes.cpp");
    let run = "two::Local::run two::Local::run_[parallel] two::Local::run_[task]";
    for (compiler, debug, lambdas) in [
        (Compiler::Clang, "-g", ["$_0", "$_1"]),
        (Compiler::Clang, "-gline-tables-only", ["$_0", "$_1"]),
        (Compiler::Clang, "-g0", ["$_0", "$_1"]),
        (Compiler::Gcc, "-g", ["{lambda(int)#1}", "{lambda(int)#2}"]),
        (Compiler::Gcc, "-g0", ["{lambda(int)#1}", "{lambda(int)#2}"]),
    ] {
        let [first, second] = lambdas.map(|lambda| format!("main two two::{lambda}::operator() burn"));
        let less = "main (anonymous_namespace)::Less::operator< burn".to_owned();
        let expected: BTreeSet<Vec<String>> = [first, second, less, format!("main two {run} burn")]
            .map(|path| path.split(' ').map(|step| step.replace('_', " ").replace("$ ", "$_")).collect())
            .into();
        let here = tempfile::tempdir().unwrap();
        let flags = &[debug, "-fno-exceptions"];
        let paths = call_paths(here.path(), &source, &How { compiler, flags, ..TRACED });
        let found: BTreeSet<Vec<String>> = rows(&paths, "paths")
            .iter()
            .filter_map(|path| to_burn(frames(path)).map(without_lines))
            .collect();
        assert_eq!(found, expected, "{debug}");
    }
}

/// The steps up to the one that is called so.
fn to_burn(steps: Vec<&str>) -> Option<Vec<String>> {
    let burn = steps.iter().position(|step| *step == "burn")?;
    Some(steps[..=burn].iter().map(|step| step.to_string()).collect())
}

/// A part that gcc splits off a function is not a recursion of it.
#[test]
fn a_part_of_a_function_is_one_step_with_it() {
    let here = tempfile::tempdir().unwrap();
    let how = How { compiler: Compiler::Gcc, flags: &["-O2"], ..TRACED };
    let paths = call_paths(here.path(), &program("parts"), &how);
    let burning: BTreeSet<Vec<String>> =
        rows(&paths, "paths").iter().map(frames).filter_map(to_burn).collect();
    let paths = ["constant", "other", "outer"]
        .map(|caller| ["main", caller, "work", "burn"].map(str::to_string).to_vec());
    assert_eq!(burning, paths.into());
}

/// In a stripped program `_start` has no name; it is left out nevertheless.
#[test]
fn start_code_of_a_stripped_program_is_left_out() {
    let here = tempfile::tempdir().unwrap();
    let paths = call_paths(here.path(), &program("parts"), &How { flags: &["-O0", "-s"], ..TRACED });
    let without_names = |path: &Value| frames(path).iter().filter(|step| step.contains("+0x")).count();
    // main, outer or other, work, burn.
    assert_eq!(rows(&paths, "paths").iter().map(without_names).max(), Some(4));
    let steps: BTreeSet<&str> = rows(&paths, "paths").iter().flat_map(frames).collect();
    assert!(!steps.iter().any(|step| step.contains("__libc_start")), "{steps:?}");
    // A function is one step, wherever in it samples are: `constant` is the sixth.
    let functions = steps.iter().filter(|step| step.starts_with("program+0x")).count();
    assert!(functions <= 6, "{steps:?}");
}

/// A region is named by its body if a pointer to a function without a frame was called: the call is its
/// caller's.
#[test]
fn regions_behind_pointers_have_their_own_lines() {
    let source = program_source("pointers.cpp");
    for how in WAYS.iter().map(|how| How { flags: &["-O2", "-lstdc++"], ..*how }) {
        let here = tempfile::tempdir().unwrap();
        let paths = call_paths(here.path(), &source, &how);
        let plain = format!("plain [parallel at pointers.cpp:{}]", line_of(&source, "// plain"));
        let lambda = format!("[parallel at pointers.cpp:{}]", line_of(&source, "// lambda"));
        let calls = ["// call of plain", "// call of the lambda"].map(|call| line_of(&source, call));
        let steps = || rows(&paths, "paths").iter().map(frames);
        assert!(steps().any(|steps| steps.windows(2).any(|pair| pair == ["plain", &plain])), "{paths}");
        assert!(steps().flatten().any(|step| step.ends_with(&lambda)), "{paths}");
        for step in steps().flatten().filter(|step| step.contains("[parallel")) {
            assert!(calls.iter().all(|call| !step.contains(&format!(":{call}]"))), "{step}");
        }
    }
}
