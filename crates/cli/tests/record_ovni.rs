//! `taskscope record` of programs that are linked to libovni: our library takes its place.

mod common;

use common::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles one of the C interface's test programs, as its user would have: no path to our library.
fn compile(program: &str, within: &Path) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../record-c/tests/programs");
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libovni.so");
    let output = within.join(program);
    let status = Command::new("gcc")
        .args(["-O2", "-pthread", "-o"])
        .args([&output, &source.join(format!("{program}.c")), &built])
        .status();
    assert!(status.unwrap().success());
    output
}

#[test]
fn a_program_linked_to_ovni_is_recorded_and_its_trace_accepted() {
    let here = tempfile::tempdir().unwrap();
    // Programs with events that must obey a runtime's model are recorded by those runtimes; these ones do.
    // One has a region of unsorted events, which ovni's own check requires to be sorted first.
    for (program, expected_streams, judges) in [
        ("again free", 4, [&["check"][..], &["emulate", "-l"]]),
        ("again", 4, [&["check"]; 2]),
        ("every_function", 1, [&["check"]; 2]),
    ] {
        let mut words = program.split(' ');
        let name = words.next().unwrap();
        compile(name, here.path());
        let trace = format!("{program}.trace");
        let recorded =
            output(record(here.path()).args(["-o", &trace, "--", &format!("./{name}")]).args(words));
        assert!(recorded.status.success());
        let streams = walk(&here.path().join(&trace));
        assert_eq!(streams.len(), expected_streams, "{streams:?}");
        for judge in judges {
            let verdict = output(taskscope().current_dir(here.path()).args(judge).arg(&trace));
            assert!(verdict.status.success(), "{judge:?} of {program}");
        }
    }
    // As with ovni's library: threads of `again` end without `ovni_thread_free`.
    let refused = output(taskscope().current_dir(here.path()).args(["emulate", "-l", "again.trace"]));
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(text(&refused.stderr).matches("missing ovni.finished").count(), 3);
}

#[test]
fn a_size_cap_is_kept_and_the_loss_reported() {
    let here = tempfile::tempdir().unwrap();
    compile("many", here.path());
    let capped = output(record(here.path()).args(["-o", "t.trace", "--max-size", "300K", "--", "./many"]));
    assert!(capped.status.success());
    assert!(text(&capped.stderr).contains("events could not be recorded"));
    assert!(!text(&capped.stderr).contains("  0 lost"), "the report tells it too");
    let size: u64 = walk(&here.path().join("t.trace")).iter().map(|s| fs::metadata(s).unwrap().len()).sum();
    assert!(size <= 300 << 10, "{size}");

    let ring = output(record(here.path()).args(["-o", "r.trace", "--ring", "512K", "--", "./many"]));
    assert!(ring.status.success());
    assert!(!text(&ring.stderr).contains("could not be recorded"));
    let size: u64 = walk(&here.path().join("r.trace")).iter().map(|s| fs::metadata(s).unwrap().len()).sum();
    assert!(size < 2 << 20, "{size}");
    let wrong = output(record(here.path()).args(["--ring", "much", "--", "./many"]));
    assert!(text(&wrong.stderr).contains("64M"));
}

/// Each starts two programs that are linked to libovni, in ways that their users use.
#[test]
fn programs_are_recorded_from_every_starter() {
    let here = tempfile::tempdir().unwrap();
    let bin = here.path().join("bin");
    fs::create_dir(&bin).unwrap();
    for name in ["again", "nested"] {
        compile(name, here.path());
        fs::rename(here.path().join(name), bin.join(name)).unwrap();
    }
    let write = |name: &str, text: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::write(here.path().join(name), text).unwrap();
        fs::set_permissions(here.path().join(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    write(
        "run.sh",
        "#!/bin/sh\ndir=$(dirname \"$0\")/bin\nfor prog in again nested; do\n  \"$dir/$prog\" || exit 1\ndone\n",
    );
    write("outer.sh", "#!/bin/bash\nexec env LANG=C sh ./run.sh\n");
    write("Makefile", "BIN = ./bin\nrun:\n\t@$(BIN)/again\n\t@$(BIN)/nested\n");
    write(
        "x.py",
        "import subprocess\nfor name in ['again', 'nested']:\n    subprocess.run(['bin/' + name], check=True)\n",
    );
    for (index, command) in [
        &["bash", "./run.sh"][..],
        &["sh", "run.sh"],
        &["./outer.sh"],
        &["make", "-s", "run"],
        &["python3", "x.py"],
        &["sh", "-c", "p=again; bin/$p && (cd bin; exec ./nested)"],
        &["timeout", "100", "nice", "bash", "run.sh"],
    ]
    .iter()
    .enumerate()
    {
        if Command::new(command[0]).arg("--version").output().is_err() && command[0] == "python3" {
            continue;
        }
        let trace = format!("{index}.trace");
        let recorded = output(record(here.path()).args(["-o", &trace, "--"]).args(*command));
        assert!(recorded.status.success(), "{command:?}: {}", text(&recorded.stderr));
        assert!(!text(&recorded.stderr).contains("no OpenMP"), "{command:?}: {}", text(&recorded.stderr));
        // Four of the one, which runs as two processes, and one of the other.
        assert_eq!(walk(&here.path().join(&trace)).len(), 5, "{command:?}");
        assert!(!here.path().join("ovni").exists(), "{command:?}");
    }
}

/// All `stream.obs` below a directory.
fn walk(directory: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in fs::read_dir(directory).unwrap().flatten() {
        if entry.path().is_dir() {
            found.extend(walk(&entry.path()));
        } else if entry.file_name() == "stream.obs" {
            found.push(entry.path());
        }
    }
    found
}
