//! Call sites of `taskscope.h`: cost of a disabled one, and sites of a closed shared object.

use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");

/// The directory with `program` and `plugin.so`; `None` without a compiler.
fn build(name: &str) -> Option<PathBuf> {
    if Command::new("gcc").arg("--version").output().is_err() {
        eprintln!("skipped: there is no gcc; scripts/install-packages installs it");
        return None;
    }
    let directory = std::env::temp_dir().join(format!("taskscope-sites-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&directory);
    std::fs::create_dir_all(&directory).unwrap();
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libtaskscope.so");
    for name in ["libtaskscope.so", "libtaskscope.so.1"] {
        std::os::unix::fs::symlink(&built, directory.join(name)).unwrap();
    }
    for (file, flags) in [("program", &[][..]), ("plugin.so", &["-DPLUGIN", "-shared", "-fPIC"])] {
        let output = Command::new("gcc")
            .args(["-std=c11", "-D_GNU_SOURCE", "-O2", "-Wall", "-Wextra", "-Werror", "-pthread"])
            .args(flags)
            .arg("-o")
            .arg(directory.join(file))
            .arg(format!("{CRATE}/tests/programs/sites.c"))
            .arg(format!("-I{CRATE}/include"))
            .arg("-L")
            .arg(&directory)
            .args(["-ltaskscope", "-ldl"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
    Some(directory)
}

fn program(command: &mut Command, directory: &Path) -> std::process::Output {
    let trace = directory.join("trace");
    let _ = std::fs::remove_dir_all(&trace);
    command.env("LD_LIBRARY_PATH", directory).env("TASKSCOPE_TRACE_DIR", trace).output().unwrap()
}

/// Reads of memory from start to end, as cachegrind counts them; `None` without valgrind.
fn reads(directory: &Path, passes: u64) -> Option<u64> {
    Command::new("valgrind").arg("--version").output().ok()?;
    let mut command = Command::new("valgrind");
    command
        .args(["--tool=cachegrind", "--cache-sim=yes", "--cachegrind-out-file=/dev/null"])
        .arg(directory.join("program"))
        .arg(passes.to_string());
    let output = program(&mut command, directory);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
    // "D refs:  78,432  (59,123 rd + 19,309 wr)"
    let line =
        message.lines().find(|line| line.contains("D") && line.contains("refs:") && line.contains("rd"))?;
    let number = line.split('(').nth(1)?.split("rd").next()?;
    number.replace(',', "").trim().parse().ok()
}

#[test]
fn a_site_that_is_off_costs_one_load() {
    let Some(directory) = build("off") else { return };
    let (few, many) = (10_000, 1_010_000);
    let (Some(less), Some(more)) = (reads(&directory, few), reads(&directory, many)) else {
        eprintln!("left out: valgrind is not installed (apt-get install valgrind)");
        return;
    };
    let each = (more - less) as f64 / (many - few) as f64;
    // The recorder has a thread of its own, which reads a little.
    assert!((0.9..1.3).contains(&each), "{each} loads");
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_site_of_a_closed_shared_object_does_no_harm() {
    let Some(directory) = build("closed") else { return };
    let mut command = Command::new(directory.join("program"));
    let output = program(command.arg("3").arg(directory.join("plugin.so")), &directory);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    std::fs::remove_dir_all(directory).unwrap();
}
