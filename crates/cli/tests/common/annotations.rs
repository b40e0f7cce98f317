//! Programs that annotate their code through ITT, Kokkos Tools or NVTX: building and recording them, and their
//! annotations in reports.

use super::{Compiler, output, program_source, record, taskscope, text};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// Number of begins by kind and name.
pub type Begins = BTreeMap<(String, String), u64>;

/// Builds a file of `tests/programs`, which contains the program's own side of the interface.
pub fn annotated(here: &Path, source: &str) -> PathBuf {
    let program = here.join("program");
    Compiler::Gcc.build_file(&program_source(source), &program, &["-O1", "-pthread", "-ldl"])
}

/// Records a program, to `trace` without options for another name; what it printed.
pub fn recorded(here: &Path, program: &Path, options: &[&str]) -> String {
    let mut command = record(here);
    command.args(["-q", "-o", "trace"]).args(options).arg("--");
    let run = output(command.arg(program));
    assert!(run.status.success(), "{:?}", run.status);
    text(&run.stdout).trim().to_owned()
}

/// Sections `summary` and `instrumentation` of the report of `trace`.
pub fn report_of_annotations(here: &Path) -> Value {
    let mut command = taskscope();
    command.current_dir(here).args(["report", "trace", "--section", "summary,instrumentation", "--json"]);
    serde_json::from_slice(&output(&mut command).stdout).unwrap()
}

/// The begins that a report has.
pub fn begins(report: &Value) -> Begins {
    let rows = report["instrumentation"]["rows"].as_array().unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    rows.iter()
        .map(|row| ((text(&row["kind"]), text(&row["name"])), row["begins"].as_u64().unwrap()))
        .collect()
}

/// The names of the threads of `trace`.
pub fn names_of_threads(here: &Path) -> BTreeSet<String> {
    let info = output(taskscope().current_dir(here).args(["info", "trace", "--json"]));
    let info: Value = serde_json::from_slice(&info.stdout).unwrap();
    let threads = info["threads"].as_array().unwrap();
    threads.iter().filter_map(|thread| Some(thread["name"].as_str()?.to_owned())).collect()
}

/// Begins written as rows.
pub fn rows<N: Into<String>, const ROWS: usize>(rows: [(&str, N, u64); ROWS]) -> Begins {
    rows.map(|(kind, name, begins)| ((kind.to_owned(), name.into()), begins)).into()
}

/// Fails if `check` finds a mistake in `trace`.
pub fn assert_is_free_of_mistakes(here: &Path) {
    assert!(output(taskscope().current_dir(here).args(["check", "trace"])).status.success());
}

/// Records a shell that prints `shown`, in an environment whose `variable` names a tool of the user; fails unless the
/// program gets that tool, and a notice names it.
pub fn assert_tool_of_user_is_kept(variable: &str, shown: &str) {
    let here = tempfile::tempdir().unwrap();
    let mut command = record(here.path());
    command.env(variable, "/opt/tool.so").args(["-o", "trace", "--", "sh", "-c"]);
    let run = output(command.arg(format!("echo {shown}")));
    assert_eq!(text(&run.stdout).trim(), "/opt/tool.so");
    assert!(text(&run.stderr).contains(&format!("goes to /opt/tool.so, which {variable} names")));
}
