//! Code that is loaded and unloaded while a program runs.

mod common;

use common::call_paths::{frames, program, rows};
use common::{Compiler, output, record, taskscope};
use serde_json::Value;
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
fn libraries_at_one_address_are_told_apart_by_time() {
    let here = tempfile::tempdir().unwrap();
    build(here.path());
    for options in [&[][..], &["--sample", "500"]] {
        let report = run(here.path(), options);
        let sum = |table: &str, function: &str, key: &str| -> u64 {
            let of_function = rows(&report, table).iter().filter(|row| row["function"] == function);
            of_function.map(|row| row[key].as_u64().unwrap()).sum()
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
