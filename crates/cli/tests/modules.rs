//! Code that is loaded and unloaded while a program runs.

mod common;

use common::call_paths::{frames, program, rows};
use common::{Compiler, output, record, taskscope};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// Two libraries with the same code layout, and the program that loads them one after the other.
fn build(here: &Path) {
    for name in ["first_", "second"] {
        let define = format!("-DNAME={name}");
        let library = here.join(format!("{name}.so"));
        let flags = ["-shared", "-fPIC", "-fno-optimize-sibling-calls", &define];
        Compiler::Clang.build_file(&program("same_place_library"), &library, &flags);
    }
    Compiler::Clang.build_file(&program("same_place"), &here.join("program"), &["-fno-openmp"]);
}

/// Records with these options; the report.
fn run(here: &Path, options: &[&str]) -> Value {
    let libraries = ["./first_.so", "./second.so", "./first_.so"];
    let mut command = record(here);
    command.args(["-o", "trace"]).args(options).args(["--", "./program"]).args(libraries);
    assert!(output(&mut command).status.success());
    let printed = output(taskscope().args(["report", "--json"]).arg(here.join("trace")));
    std::fs::remove_dir_all(here.join("trace")).unwrap();
    serde_json::from_slice(&printed.stdout).unwrap()
}

#[test]
fn libraries_at_one_address_are_distinguished_by_time() {
    let here = tempfile::tempdir().unwrap();
    build(here.path());
    for options in [&[][..], &["--sample", "500"]] {
        let report = run(here.path(), options);
        let sum = |table: &str, function: &str, key: &str| -> u64 {
            let function_rows = rows(&report, table).iter().filter(|row| row["function"] == function);
            function_rows.map(|row| row[key].as_u64().unwrap()).sum()
        };
        // The first library makes one task, and later three; the second one makes two.
        for (function, tasks, regions) in [("first_", 4, 2), ("second", 2, 1)] {
            assert_eq!(sum("task_types", function, "began"), tasks, "{function} {options:?}");
            assert_eq!(sum("regions", function, "executions"), regions, "{function} {options:?}");
        }
    }
}

#[test]
fn paths_of_libraries_at_one_address_are_not_mixed() {
    let here = tempfile::tempdir().unwrap();
    build(here.path());
    for mode in ["trace", "profile"] {
        let report = run(here.path(), &["--sample", "500", "--mode", mode]);
        let mut found = [false; 2];
        for path in rows(&report["call_paths"], "paths") {
            let steps = frames(path);
            let of = |name: &str| steps.iter().any(|step| step.starts_with(name));
            assert!(!(of("first_") && of("second")), "{mode}: {steps:?}");
            found = [found[0] || of("first_"), found[1] || of("second")];
        }
        assert_eq!(found, [true; 2], "{mode}");
    }
}

/// A library, one that replaces it, and the program that loads it; the report of a run in this way.
fn run_removed(here: &Path, way: &str, options: &[&str], flags: &[&str]) -> (Value, String) {
    let mut own = vec!["-shared", "-fPIC", "-O1", "-DNAME=kept_kernel"];
    own.extend(flags);
    Compiler::Clang.build_file(&program("removed_library"), &here.join("own.so"), &own);
    let other = [&own[..3], &["-DNAME=wrong_kernel", "-DOTHER"], flags].concat();
    Compiler::Clang.build_file(&program("removed_library"), &here.join("other.so"), &other);
    Compiler::Clang.build_file(&program("removed"), &here.join("program"), &["-fno-openmp"]);
    let mut command = record(here);
    command.args(["-o", "trace"]).args(options).args(["--", "./program", way, "own.so", "other.so"]);
    assert!(output(&mut command).status.success());
    let report = |options: &[&str]| {
        let printed = output(taskscope().arg("report").args(options).arg(here.join("trace")));
        String::from_utf8(printed.stdout).unwrap()
    };
    let found = (serde_json::from_str(&report(&["--json"])).unwrap(), report(&[]));
    std::fs::remove_dir_all(here.join("trace")).unwrap();
    found
}

#[test]
fn removed_and_replaced_libraries_keep_their_names() {
    let here = tempfile::tempdir().unwrap();
    for way in ["removed", "replaced", "later", "memory"] {
        for flags in [&[][..], &["-Wl,--build-id=none"]] {
            let (report, _) = run_removed(here.path(), way, &["--sample", "500"], flags);
            let regions: Vec<&str> =
                rows(&report, "regions").iter().filter_map(|row| row["function"].as_str()).collect();
            assert_eq!(regions, ["run"], "{way} {flags:?}");
            let lines: Vec<&Value> = rows(&report, "task_types").iter().map(|row| &row["line"]).collect();
            assert_eq!(lines, [20], "{way} {flags:?}");
            let paths: String =
                rows(&report["call_paths"], "paths").iter().flat_map(frames).collect::<Vec<_>>().join("\n");
            assert!(paths.contains("kept_kernel") && !paths.contains("wrong_kernel"), "{way}: {paths}");
        }
    }
}

#[test]
fn profiles_keep_names_of_removed_libraries() {
    let here = tempfile::tempdir().unwrap();
    let options = ["--sample", "500", "--mode", "profile"];
    for way in ["removed", "memory"] {
        let (report, _) = run_removed(here.path(), way, &options, &[]);
        let paths: String =
            rows(&report["call_paths"], "paths").iter().flat_map(frames).collect::<Vec<_>>().join("\n");
        assert!(paths.contains("kept_kernel"), "{way}: {paths}");
    }
}

#[test]
#[cfg(target_arch = "x86_64")]
fn code_generated_at_run_time_has_the_names_of_its_map() {
    let here = tempfile::tempdir().unwrap();
    Compiler::Clang.build_file(&program("generated"), &here.path().join("program"), &["-fno-openmp"]);
    let without = "[code generated at run time]";
    for mode in ["trace", "profile"] {
        for (argument, expected) in [
            (&[][..], &[without][..]),
            (&["removed"], &[without]),
            (&["kept"], &["generated::first", "generated::second"]),
        ] {
            let mut command = record(here.path());
            command
                .args(["-o", "trace", "--sample", "500", "--mode", mode, "--", "./program"])
                .args(argument);
            assert!(output(&mut command).status.success());
            let trace = here.path().join("trace");
            let printed = output(taskscope().args(["report", "--json"]).arg(&trace));
            let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
            let mut innermost: Vec<&str> = rows(&report["call_paths"], "paths")
                .iter()
                .filter_map(|path| frames(path).into_iter().rfind(|step| step.contains("generated")))
                .collect();
            innermost.sort();
            innermost.dedup();
            assert_eq!(innermost, expected, "{mode} {argument:?}");
            if let Ok(kept) = std::fs::read_dir(trace.join("modules")) {
                for map in
                    kept.flatten().filter(|file| file.file_name().to_string_lossy().starts_with("perf-"))
                {
                    std::fs::remove_file(Path::new("/tmp").join(map.file_name())).unwrap();
                }
            }
            std::fs::remove_dir_all(trace).unwrap();
        }
    }
}

/// Number of executions of each region of `ending_library.c`, by its function.
fn executions(here: &Path, way: &str, options: &[&str]) -> BTreeMap<String, u64> {
    let mut command = record(here);
    command.args(["-o", "trace"]).args(options).args(["--", "./program", way, "./second.so"]);
    assert!(output(&mut command).status.success());
    let printed = output(taskscope().args(["report", "--json"]).arg(here.join("trace")));
    std::fs::remove_dir_all(here.join("trace")).unwrap();
    let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
    let mut counts = BTreeMap::new();
    for row in rows(&report, "regions") {
        let function = row["function"].as_str().unwrap().to_string();
        *counts.entry(function).or_insert(0) += row["executions"].as_u64().unwrap();
    }
    counts
}

#[test]
fn regions_in_destructors_of_libraries_are_recorded() {
    let here = tempfile::tempdir().unwrap();
    let ends =
        [("set_up", 1), ("called", 2), ("tear_down", 1), ("tear_down_early", 1), ("tear_down_last", 1)];
    let expected =
        |counts: &[(&str, u64)]| counts.iter().map(|(name, count)| (name.to_string(), *count)).collect();
    for compiler in Compiler::ALL {
        let source = program("ending_library");
        for library in ["first.so", "second.so"] {
            compiler.build_file(&source, &here.path().join(library), &["-shared", "-fPIC"]);
        }
        // The program itself uses no OpenMP.
        let flags = ["-fno-openmp", "./first.so"];
        let mut build = compiler.command();
        build.current_dir(here.path()).arg(program("ending")).args(["-g", "-o", "program"]).args(flags);
        assert!(output(&mut build).status.success());
        assert_eq!(executions(here.path(), "exit", &["--sample", "100"]), expected(&ends), "{compiler:?}");
        let of = |way: &str| executions(here.path(), way, &[]);
        assert_eq!(of("exit"), expected(&ends), "{compiler:?}");
        // No destructor runs, and no function of `atexit`.
        for way in ["_exit", "quick_exit"] {
            assert_eq!(of(way), expected(&[("set_up", 1), ("called", 1)]), "{compiler:?} {way}");
        }
        let twice = ends.map(|(name, count)| (name, if name == "called" { 2 } else { 2 * count }));
        assert_eq!(of("close"), expected(&twice), "{compiler:?}");
    }
}
