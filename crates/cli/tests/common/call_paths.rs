//! Test programs for call paths: building and recording them, and parsing reports.

use super::{Compiler, output, program_source, record, recorder_programs, taskscope};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

pub fn program(name: &str) -> PathBuf {
    program_source(&format!("{name}.c"))
}

pub fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/openmp").join(format!("{name}.c"))
}

/// The 1-based line that holds `text`.
pub fn line_of(source: &Path, text: &str) -> usize {
    let content = std::fs::read_to_string(source).unwrap();
    content.lines().position(|line| line.contains(text)).expect(text) + 1
}

/// Options for building and recording a program.
pub struct How<'a> {
    pub compiler: Compiler,
    pub flags: &'a [&'a str],
    pub threads: &'a str,
    /// Options of `record`.
    pub options: &'a [&'a str],
    pub arguments: &'a [&'a str],
    /// Options of `report`.
    pub report: &'a [&'a str],
    /// Variables of the environment.
    pub environment: &'a [(&'a str, &'a str)],
    /// Directory of the OpenMP runtime, if it is not the usual one.
    pub runtime: Option<&'a Path>,
}

pub const TRACED: How<'static> = How {
    compiler: Compiler::Clang,
    flags: &[],
    threads: "2",
    options: &[],
    arguments: &[],
    report: &[],
    environment: &[],
    runtime: None,
};

/// Directories of further runtimes: of LLVM's other packages, and those in `TASKSCOPE_OPENMP_RUNTIMES`.
pub fn further_runtimes() -> Vec<PathBuf> {
    let packages = ["/usr/lib/llvm-14/lib", "/usr/lib/llvm-16/lib"].map(PathBuf::from);
    let named = std::env::var_os("TASKSCOPE_OPENMP_RUNTIMES").unwrap_or_default();
    let all = packages.into_iter().chain(std::env::split_paths(&named).collect::<Vec<_>>());
    all.filter(|directory| directory.join("libomp.so.5").exists()).collect()
}

/// Each way in which paths are to be the same. gcc makes calls at the end of a task jumps, of which nothing is left.
pub const WAYS: [How<'static>; 4] = [
    TRACED,
    How { options: &["--mode", "profile"], ..TRACED },
    How { compiler: Compiler::Gcc, flags: &["-fno-optimize-sibling-calls"], ..TRACED },
    How {
        compiler: Compiler::Gcc,
        flags: &["-fno-optimize-sibling-calls"],
        options: &["--mode", "profile"],
        ..TRACED
    },
];

/// Flags with which a program that includes `virtual_time.h` or `work.h` runs in virtual time, by a library that is built once per test
/// process.
pub fn virtual_time_flags() -> &'static [String; 2] {
    static FLAGS: OnceLock<[String; 2]> = OnceLock::new();
    FLAGS.get_or_init(|| {
        let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join("libvirtual_time.so");
        // Test binaries run at the same time: each moves a file of its own into place.
        let part = library.with_extension(format!("part{}", std::process::id()));
        let options = ["-shared", "-fPIC", "-fno-openmp", "-pthread"];
        Compiler::Clang.build_file(&recorder_programs().join("virtual_time.c"), &part, &options);
        std::fs::rename(&part, &library).unwrap();
        ["-Wl,--no-as-needed".to_owned(), library.display().to_string()]
    })
}

/// The environment of such a program. Its events have an order, and threads that wait sleep.
pub const VIRTUAL_TIME: [(&str, &str); 4] = [
    ("TASKSCOPE_CLOCK", "kernel"),
    ("VIRTUAL_TICK", "1"),
    ("OMP_WAIT_POLICY", "passive"),
    ("KMP_BLOCKTIME", "0"),
];

/// Builds, records with samples, and returns the call paths; the trace stays in `here`.
pub fn call_paths(here: &Path, source: &Path, how: &How<'_>) -> Value {
    // Without the dynamic linker's work at first calls, which are paths of their own.
    let mut flags = [&["-Wl,-z,now"], how.flags].concat();
    // Samples are at their intended places, independent of scheduling.
    let program = std::fs::read_to_string(source).unwrap();
    let is_virtual = ["\"virtual_time.h\"", "\"work.h\""].iter().any(|header| program.contains(header));
    if is_virtual {
        flags.extend(virtual_time_flags().iter().map(String::as_str));
    }
    let built = how.compiler.build_file(source, &here.join("program"), &flags);
    let mut command = record(here);
    if is_virtual {
        command.envs(VIRTUAL_TIME);
    }
    if let Some(directory) = how.runtime {
        command.env("LD_LIBRARY_PATH", directory);
        if matches!(how.compiler, Compiler::Gcc) {
            command.env("LD_PRELOAD", directory.join("libomp.so.5"));
        }
    }
    let run = output(
        command
            .env("OMP_NUM_THREADS", how.threads)
            // Paths and blame are those of the program, independent of scheduling on a busy machine.
            .env("TASKSCOPE_OS_TIME", "off")
            .envs(how.environment.iter().copied())
            .args(["--sample", "1000", "-o", "trace"])
            .args(how.options)
            .arg("--")
            .arg(built)
            .args(how.arguments),
    );
    assert!(run.status.success());
    let printed = output(taskscope().args(["report", "--json"]).args(how.report).arg(here.join("trace")));
    let report: Value = serde_json::from_slice(&printed.stdout).unwrap();
    for balance in report["call_paths"]["balances"].as_array().unwrap() {
        let (taken, given, shared) = (&balance["taken_ns"], &balance["given_ns"], &balance["shared_ns"]);
        assert!(given == taken || *given == 0, "{balance}");
        assert!(shared == taken || *shared == 0, "{balance}");
    }
    report["call_paths"].clone()
}

/// Steps without the lines of constructs, of which each compiler has its own idea.
pub fn without_lines(steps: Vec<String>) -> Vec<String> {
    let without = |step: String| match step.split_once(" at ") {
        Some((construct, _)) => format!("{construct}]"),
        None => step,
    };
    steps.into_iter().map(without).collect()
}

pub fn frames(path: &Value) -> Vec<&str> {
    path["frames"].as_array().unwrap().iter().map(|frame| frame.as_str().unwrap()).collect()
}

pub fn rows<'a>(paths: &'a Value, table: &str) -> &'a [Value] {
    paths[table].as_array().unwrap()
}
