//! `TASKSCOPE_OFF`: the instrumentation leaves no code in the program.

use std::path::Path;
use std::process::Command;

use crate::{CRATE, WARNINGS};
use taskscope_prerequisite::has;

const STANDARDS: [(&str, &str, &[&str]); 4] = [
    ("gcc", "c", &["c99", "c11", "c17", "gnu99", "gnu17"]),
    ("clang-19", "c", &["c99", "c11", "c23", "gnu17"]),
    ("g++", "c++", &["c++11", "c++14", "c++17", "c++20"]),
    ("clang++-19", "c++", &["c++11", "c++17", "c++20"]),
];

/// Compiles without warnings, or panics with the compiler's output.
fn compile(compiler: &str, language: &str, standard: &str, flags: &[&str], to: &Path) {
    let output = Command::new(compiler)
        .args(["-x", language, &format!("-std={standard}"), "-pedantic"])
        .args(WARNINGS)
        .args(flags)
        .arg(format!("{CRATE}/tests/programs/off.c"))
        .arg(format!("-I{CRATE}/include"))
        .arg("-o")
        .arg(to)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{compiler} {standard} {flags:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn symbols(object: &Path) -> Vec<String> {
    let output = Command::new("nm").arg(object).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

#[test]
fn nothing_is_left_in_object_files() {
    let directory = tempfile::tempdir().unwrap();
    let (object, on) = (directory.path().join("off.o"), directory.path().join("on.o"));
    for (compiler, language, standards) in STANDARDS.into_iter().filter(|(name, ..)| has(name)) {
        for standard in standards {
            compile(compiler, language, standard, &["-DTASKSCOPE_OFF", "-O2", "-c"], &object);
            let left = symbols(&object);
            assert!(
                left.len() == 1 && left[0].contains("instrumented"),
                "{compiler} {standard} leaves {left:?}"
            );
            let bytes = std::fs::read(&object).unwrap();
            assert!(!bytes.windows(6).any(|window| window == b"canary"), "{compiler} {standard} keeps texts");
        }
        // Without the switch the same program compiles, and all of it is there.
        compile(compiler, language, standards[0], &["-D_GNU_SOURCE", "-O2", "-c"], &on);
        assert!(symbols(&on).iter().any(|symbol| symbol == "taskscope_start"));
    }
}

#[test]
fn no_library_is_needed_without_optimisation_either() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("program");
    for (compiler, language, standards) in STANDARDS.into_iter().filter(|(name, ..)| has(name)) {
        for level in ["-O0", "-Os"] {
            compile(compiler, language, standards[0], &["-DTASKSCOPE_OFF", "-DPROGRAM", level], &program);
            let output = Command::new(&program).output().unwrap();
            assert_eq!(
                (output.status.code(), output.stdout.as_slice()),
                (Some(0), &b"3\n"[..]),
                "{compiler}"
            );
        }
    }
}

/// Names of the functions that are declared in a text, those for inline emission (`…_`) left out.
fn functions(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = text
        .match_indices("taskscope_")
        .filter_map(|(at, _)| {
            // At the start of a line, or after a type in it.
            let line = text[..at].rsplit('\n').next().unwrap_or_default();
            let length = text[at..].find(|c: char| !c.is_alphanumeric() && c != '_')?;
            let name = &text[at..at + length];
            let is_declared = !line.contains(['(', '=', '*', ';', ',', '\t']) && !line.starts_with("return");
            let is_called = text[at + length..].starts_with('(');
            (is_declared && is_called && !line.contains('#') && !name.ends_with('_')).then_some(name)
        })
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[test]
fn every_function_has_an_empty_one() {
    let header = std::fs::read_to_string(format!("{CRATE}/include/taskscope.h")).unwrap();
    let (on, off) = header.split_once("#else /* TASKSCOPE_OFF */").unwrap();
    assert!(functions(on).len() > 40 && functions(on).contains(&"taskscope_start"));
    assert_eq!(functions(on), functions(off));
}
