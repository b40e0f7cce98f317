//! Compiles a C program, runs it under the tool, decodes its trace, and checks it.

#![allow(dead_code, reason = "every test file uses its own part")]

mod judgement;
mod oracle;
pub mod profiled;
pub mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

pub use trace::Trace;

/// Compiler of a program, which determines its runtime interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// LLVM's, which calls `__kmpc_*`.
    Clang,
    /// GCC's, which calls `GOMP_*`, here in a preloaded libomp.
    Gcc,
}

pub const LIBOMP: &str = "/usr/lib/x86_64-linux-gnu/libomp.so.5";

impl Compiler {
    fn command(self) -> &'static str {
        match self {
            Compiler::Clang => "clang-19",
            Compiler::Gcc => "gcc",
        }
    }

    /// Whether the compiler and the runtime are installed; prints a message if not.
    pub fn is_installed(self) -> bool {
        let installed =
            Command::new(self.command()).arg("--version").output().is_ok() && Path::new(LIBOMP).exists();
        if !installed {
            taskscope_prerequisite::missing(format_args!("{} or {LIBOMP} is not installed", self.command()));
        }
        installed
    }
}

/// Compiles `tests/programs/NAME.c` once per test process for each set of flags.
pub fn compile(compiler: Compiler, name: &str, flags: &[&str]) -> PathBuf {
    try_compile(compiler, name, flags).unwrap_or_else(|| panic!("{name} does not compile"))
}

/// [`compile`] with flags that may be unsupported.
pub fn try_compile(compiler: Compiler, name: &str, flags: &[&str]) -> Option<PathBuf> {
    compile_to(&format!("{name}.{}{}", compiler.command(), flags.concat()), compiler, name, flags)
}

/// [`compile`] to a file of this name.
pub fn compile_as(file_name: &str, compiler: Compiler, name: &str, flags: &[&str]) -> PathBuf {
    compile_to(file_name, compiler, name, flags).unwrap_or_else(|| panic!("{name} does not compile"))
}

fn compile_to(file_name: &str, compiler: Compiler, name: &str, flags: &[&str]) -> Option<PathBuf> {
    // Of each program, whether it compiles. Tests wait for the compilation of their own program only.
    static PROGRAMS: Mutex<BTreeMap<PathBuf, Arc<OnceLock<bool>>>> = Mutex::new(BTreeMap::new());
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name).with_extension("c");
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file_name);
    let compiles = PROGRAMS.lock().unwrap().entry(program.clone()).or_default().clone();
    let compile = || {
        // Test binaries run at the same time: each moves a program of its own into place.
        let part = program.with_file_name(format!("{file_name}.part{}", std::process::id()));
        let output = Command::new(compiler.command())
            .args(["-O1", "-g", "-fopenmp"])
            .args(flags)
            .arg(source)
            .arg("-o")
            .arg(&part)
            .output()
            .unwrap();
        if !output.status.success() {
            eprintln!("{}", String::from_utf8_lossy(&output.stderr));
            return false;
        }
        std::fs::rename(&part, &program).unwrap();
        true
    };
    compiles.get_or_init(compile).then_some(program)
}

/// The library of virtual time (`programs/virtual_time.h`), to be preloaded behind the tool.
pub fn virtual_time() -> PathBuf {
    compile(Compiler::Clang, "virtual_time", &["-shared", "-fPIC", "-fno-openmp", "-pthread"])
}

/// The tool, as built for these tests.
pub fn tool() -> PathBuf {
    let path = std::env::current_exe().unwrap().with_file_name("libtaskscope_ompt.so");
    assert!(path.exists(), "{} is missing", path.display());
    path
}

/// Value of `LD_PRELOAD` for a runtime that reports barriers as LLVM's up to 16 do.
pub fn tool_under_old_kinds() -> String {
    let between = compile(Compiler::Clang, "old_kinds", &["-shared", "-fPIC", "-fno-openmp", "-ldl"]);
    format!("{}:{}", between.display(), tool().display())
}

/// A directory of this test's own, which does not exist yet.
pub fn fresh_directory() -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("trace.{}.{number}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    path
}

/// A program that is to run under the tool.
pub struct Run {
    /// To be changed before the run.
    pub command: Command,
    directory: PathBuf,
}

impl Run {
    /// A construct of `constructs.c` with two threads.
    pub fn construct(compiler: Compiler, name: &str, size: u32) -> Run {
        let mut run = Run::program(compiler, &compile(compiler, "constructs", &["-pthread"]));
        run.command.args([name, &size.to_string()]);
        run
    }

    /// Any program.
    pub fn program(compiler: Compiler, program: &Path) -> Run {
        let directory = fresh_directory();
        let mut command = Command::new(program);
        command
            .env("TASKSCOPE_TRACE_DIR", &directory)
            .env("OMP_TOOL_LIBRARIES", tool())
            .env("OMP_NUM_THREADS", "2")
            .env("OMP_WAIT_POLICY", "passive")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if compiler == Compiler::Gcc {
            command.env("LD_PRELOAD", LIBOMP);
        }
        Run { command, directory }
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Run {
        self.command.env(name, value);
        self
    }

    /// With the OpenMP runtime of a directory, if one is named.
    pub fn under(mut self, runtime: &Option<PathBuf>) -> Run {
        if let Some(directory) = runtime {
            self.command.env("LD_LIBRARY_PATH", directory);
        }
        self
    }

    /// Runs it, with any outcome. If all streams were ended, the trace must satisfy ovni's rules, even if
    /// events were lost.
    pub fn output(mut self) -> (Output, Trace) {
        let output = self.command.output().unwrap();
        let trace = Trace::read(&self.directory);
        if !trace.streams.is_empty() && trace.streams.iter().all(|stream| stream.is_finished()) {
            judgement::assert_accepted(&self.directory);
        }
        let _ = std::fs::remove_dir_all(&self.directory);
        (output, trace)
    }

    /// Runs it; it must succeed silently, and leave a trace without a fault.
    pub fn trace(self) -> Trace {
        let (output, trace) = self.output();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {errors}", output.status);
        assert_eq!(errors, "", "the tool says nothing");
        trace.assert_sound();
        trace
    }

    /// Path of the future trace.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}
