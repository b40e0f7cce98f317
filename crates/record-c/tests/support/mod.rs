//! Compiles the C programs of `tests/programs` and runs them with our library in ovni's place.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use taskscope_trace::{OpenOptions, ReadOrder, Trace};

/// The compilers that are there; gcc must be.
pub fn compilers() -> Vec<&'static str> {
    let is_there =
        |name: &&str| Command::new(name).arg("--version").output().is_ok_and(|o| o.status.success());
    ["gcc", "clang", "clang-19"].into_iter().filter(is_there).take(2).collect()
}

/// A directory of a test's own, which the test removes.
pub fn temporary(name: &str) -> PathBuf {
    tempfile::Builder::new().prefix(&format!("taskscope-c-{name}-")).tempdir().unwrap().keep()
}

/// A directory that has our library under the names that the linker and the loader look for.
pub fn library_directory(within: &Path) -> PathBuf {
    // Cargo builds the library beside this test.
    let built = std::env::current_exe().unwrap().parent().unwrap().join("libovni.so");
    let directory = within.join("lib");
    std::fs::create_dir_all(&directory).unwrap();
    for name in ["libovni.so", "libovni.so.1"] {
        let _ = std::os::unix::fs::symlink(&built, directory.join(name));
    }
    directory
}

/// Compiles `programs/NAME.c`.
pub fn compile(compiler: &str, name: &str, within: &Path, flags: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/programs/{name}.c"));
    let program = within.join(format!("{name}-{compiler}"));
    let output = Command::new(compiler)
        .args(["-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-pthread", "-o"])
        .arg(&program)
        .arg(source)
        .args(flags)
        .arg("-L")
        .arg(library_directory(within))
        .args(["-Wl,--no-as-needed", "-lovni", "-ldl"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// Runs a program with its trace in `trace`.
pub fn command(program: &Path, within: &Path, trace: &Path) -> Command {
    let mut command = Command::new(program);
    command
        .env("LD_LIBRARY_PATH", library_directory(within))
        .env("OVNI_TRACEDIR", trace)
        .env_remove("OVNI_TMPDIR")
        .current_dir(within);
    command
}

/// Fails with the program's messages unless it ended well.
pub fn succeeded(output: Output) -> String {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{}: {stderr}", output.status);
    stderr
}

/// Opens a trace with the events as they are stored.
pub fn open(trace: &Path) -> Trace {
    Trace::open(trace, &OpenOptions { order: ReadOrder::Stored, ..OpenOptions::default() }).unwrap()
}
