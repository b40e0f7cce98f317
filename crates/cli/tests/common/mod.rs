//! Shared parts of the command's tests: running it, compiling programs for it, inspecting traces.

#![allow(dead_code)] // each test file uses a part of this

pub mod annotations;
pub mod call_paths;
pub mod documented;
pub mod mpi;

use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// Variables that would change the behaviour of `record`.
const FOREIGN: [&str; 18] = [
    "INTEL_LIBITTNOTIFY64",
    "KOKKOS_PROFILE_LIBRARY",
    "KOKKOS_TOOLS_LIBS",
    "NVTX_INJECTION64_PATH",
    "OMP_TOOL",
    "OMP_TOOL_LIBRARIES",
    "OMP_NUM_THREADS",
    "LD_PRELOAD",
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "TASKSCOPE_TRACE_DIR",
    "TASKSCOPE_NEXT_TOOL_LIBRARIES",
    "PMI_RANK",
    "PMIX_RANK",
    "OMPI_COMM_WORLD_RANK",
    "SLURM_PROCID",
    "PALS_RANKID",
    "MV2_COMM_WORLD_RANK",
];

/// The command under test, in a clean environment.
pub fn taskscope() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskscope"));
    FOREIGN.iter().for_each(|name| {
        command.env_remove(name);
    });
    command
}

/// `taskscope record` in `directory`, two threads.
pub fn record(directory: &Path) -> Command {
    let mut command = taskscope();
    command.current_dir(directory).env("OMP_NUM_THREADS", "2").arg("record");
    command
}

/// Maximum duration of a test's command; longer ones hang.
const PATIENCE: Duration = Duration::from_secs(600);

/// Runs to the end; the output is printed, so that a failing test shows it.
pub fn output(command: &mut Command) -> Output {
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id() as i32;
    let (ended, watch) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        if watch.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
            // The process may have ended just now.
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::SIGKILL);
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(ended);
    println!("$ {command:?}\n{}{}({})", text(&output.stdout), text(&output.stderr), output.status);
    output
}

pub fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A file of `tests/programs`.
pub fn program_source(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs").join(name)
}

/// The directory of the programs that `record-ompt`'s tests and these share (`work.h`, `virtual_time.h`).
pub fn recorder_programs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../record-ompt/tests/programs")
}

/// Whether two workers can run at once. On one CPU they wait for it, not for each other; then the test is skipped.
pub fn has_two_cpus() -> bool {
    let has = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() > 1);
    if !has {
        taskscope_prerequisite::skip("this process may use one CPU");
    }
    has
}

/// Compilers that the tests use; `make test` installs them.
#[derive(Clone, Copy, Debug)]
pub enum Compiler {
    Clang,
    Gcc,
}

impl Compiler {
    pub const ALL: [Compiler; 2] = [Compiler::Clang, Compiler::Gcc];

    pub fn command(self) -> Command {
        let names: &[&str] = match self {
            Compiler::Clang => &["clang-19", "clang-18", "clang-17", "clang-16", "clang"],
            Compiler::Gcc => &["gcc"],
        };
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = names.iter().find(|name| std::env::split_paths(&path).any(|at| at.join(name).is_file()));
        Command::new(found.expect("no compiler for OpenMP programs: run scripts/install-packages"))
    }

    /// Compiles a file of `tests/programs` to a program of this name in `directory`.
    pub fn build(self, directory: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
        self.build_file(&program_source(source), &directory.join(name), options)
    }

    pub fn build_file(self, source: &Path, program: &Path, options: &[&str]) -> PathBuf {
        let mut command = self.command();
        command.args(["-g", "-O2", "-fopenmp", "-o"]).arg(program).arg(source);
        // The header of work and virtual time.
        command.arg("-I").arg(recorder_programs()).args(options).arg("-lm");
        let output = output(&mut command);
        assert!(output.status.success(), "the compiler failed");
        program.to_owned()
    }
}

/// The answer for each item, in their order; as many at a time as there are CPUs.
pub fn side_by_side<T: Send, A: Send>(items: Vec<T>, answer: impl Fn(T) -> A + Sync) -> Vec<A> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let items = Mutex::new(items.into_iter().enumerate());
    let mut answers: Vec<(usize, A)> = std::thread::scope(|scope| {
        let work = || {
            let next = || items.lock().unwrap().next();
            std::iter::from_fn(next).map(|(place, item)| (place, answer(item))).collect::<Vec<_>>()
        };
        let threads: Vec<_> = (0..cpus).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// The run file of a trace.
pub fn run_file(trace: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(trace.join("taskscope-run.json")).unwrap()).unwrap()
}

/// Names of the notices in a run file.
pub fn notices(trace: &Path) -> Vec<String> {
    let run = run_file(trace);
    let notices = run["notices"].as_array().unwrap();
    notices.iter().map(|notice| notice["name"].as_str().unwrap().to_owned()).collect()
}

/// Names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Thread directories of a trace that hold a stream.
pub fn streams(trace: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut todo = vec![trace.to_owned()];
    while let Some(directory) = todo.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                todo.push(entry.path());
            } else if entry.file_name() == "stream.obs" {
                found.push(entry.path().parent().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// `report --json` of a trace.
pub fn report(trace: &Path) -> Value {
    let printed = output(taskscope().arg("report").arg("--json").arg(trace));
    assert!(printed.status.success());
    serde_json::from_slice(&printed.stdout).unwrap()
}

/// `report --json` of a trace that is being recorded; `None` while it holds no events.
pub fn report_so_far(trace: &Path) -> Option<Value> {
    let printed = output(taskscope().arg("report").arg("--json").arg(trace));
    printed.status.success().then(|| serde_json::from_slice(&printed.stdout).unwrap())
}

/// Panics if a JSON document does not fit the schema that it names, `docs/NAME.schema.json`.
pub fn check_document(document: &Value) {
    let id = document["schema"].as_str().expect("a document names its schema");
    let name = id.strip_prefix("taskscope-").and_then(|id| id.split('/').next()).expect(id);
    thread_local! {
        // By name; a compilation takes far longer than a check.
        static SCHEMAS: RefCell<BTreeMap<String, (boon::Schemas, boon::SchemaIndex)>> = const { RefCell::new(BTreeMap::new()) };
    }
    let compiled = || {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
        let text = std::fs::read(docs.join(format!("{name}.schema.json"))).expect(id);
        let schema: Value = serde_json::from_slice(&text).unwrap();
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.add_resource("document.json", schema).unwrap();
        let index = compiler.compile("document.json", &mut schemas).unwrap();
        (schemas, index)
    };
    SCHEMAS.with_borrow_mut(|all| {
        let (schemas, index) = all.entry(name.to_owned()).or_insert_with(compiled);
        schemas.validate(document, *index).unwrap_or_else(|error| panic!("{error:#}"));
    });
}
