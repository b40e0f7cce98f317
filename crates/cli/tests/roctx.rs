//! Programs that report ranges through ROCTX.

mod common;

use common::annotations::*;
use common::*;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program, with a library of ROCTX that is linked to it.
fn program(here: &Path) -> PathBuf {
    let library = here.join("libroctx64.so");
    Compiler::Gcc.build_file(&program_source("roctx_library.c"), &library, &["-shared", "-fPIC"]);
    let (program, place) = (here.join("program"), here.display().to_string());
    let link = ["-O1", "-pthread", &format!("-L{place}"), "-lroctx64", &format!("-Wl,-rpath,{place}")];
    Compiler::Gcc.build_file(&program_source("roctx.c"), &program, &link)
}

#[test]
fn ranges_and_marks_are_counted_by_message() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let alone = text(&output(&mut Command::new(&program)).stdout);
    assert_eq!(recorded(here.path(), &program, &["--sample", "100"]), alone.trim());
    let expected = [
        ("burst", "handed over", 1),
        ("burst", "overlapping", 3),
        ("point", "done [mark]", 1),
        ("point", "without a message [mark]", 1),
        ("state", "kernel", 3),
        ("state", "other", 1),
        ("state", "step", 3),
        ("state", "without a message", 1),
    ];
    assert_eq!(begins(&report_of_annotations(here.path())), rows(expected));
    assert_is_free_of_mistakes(here.path());
    assert!(names_of_threads(here.path()).contains("steering of ranges"));
}

#[test]
fn a_profile_leaves_calls_of_roctx_as_they_are() {
    let here = tempfile::tempdir().unwrap();
    let program = program(here.path());
    let alone = text(&output(&mut Command::new(&program)).stdout);
    assert_eq!(recorded(here.path(), &program, &["--mode", "profile"]), alone.trim());
}
