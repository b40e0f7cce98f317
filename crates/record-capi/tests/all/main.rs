//! `taskscope.h` in C and C++ programs, which run on the library that Cargo builds beside these tests.

use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

mod contexts;
mod inline_emission;
mod off;
mod pkg_config;
mod sites;

const CRATE: &str = env!("CARGO_MANIFEST_DIR");
const WARNINGS: [&str; 3] = ["-Wall", "-Wextra", "-Werror"];

/// A directory with the library in `lib`; it is removed with the value.
struct Programs(TempDir);

impl Programs {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let lib = directory.path().join("lib");
        std::fs::create_dir(&lib).unwrap();
        let built = std::env::current_exe().unwrap().parent().unwrap().join("libtaskscope.so");
        for name in ["libtaskscope.so", "libtaskscope.so.1"] {
            std::os::unix::fs::symlink(&built, lib.join(name)).unwrap();
        }
        Programs(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Compiles a source below the crate's directory without warnings, or panics with the compiler's output.
    fn compile(&self, compiler: &str, flags: &[&str], source: &str, program: &str) {
        let standard =
            if compiler.contains("++") { ["-x", "c++", "-std=c++17"] } else { ["-x", "c", "-std=c11"] };
        let output = Command::new(compiler)
            .args(standard)
            .args(["-D_GNU_SOURCE", "-O2", "-pthread"])
            .args(WARNINGS)
            .args(flags)
            .arg("-o")
            .arg(self.path(program))
            .arg(Path::new(CRATE).join(source))
            .arg(format!("-I{CRATE}/include"))
            .arg("-L")
            .arg(self.path("lib"))
            .args(["-ltaskscope", "-ldl"])
            .output()
            .unwrap();
        assert!(output.status.success(), "{compiler} {source}: {}", String::from_utf8_lossy(&output.stderr));
    }

    /// Starts `command` so that the program in it finds the library, and waits for its end.
    fn output(&self, command: &mut Command) -> std::process::Output {
        let output = command.env("LD_LIBRARY_PATH", self.path("lib")).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        output
    }
}
