//! Tables of stored recordings, and runs of the engine on them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A file of the repository.
pub fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// Exports the stored recordings that `expected/traces.txt` names. `TASKSCOPE` names the command; `make test-query` sets it.
pub fn tables(directory: &Path) -> PathBuf {
    let taskscope = std::env::var_os("TASKSCOPE").expect("TASKSCOPE names the command: run make test-query");
    let tables = directory.join("runs.tables");
    let mut export = Command::new(taskscope);
    export.args(["export", "--to", "parquet", "-o"]).arg(&tables);
    let names = std::fs::read_to_string(repository("query/tests/expected/traces.txt")).unwrap();
    for name in names.lines() {
        export.arg(repository("crates/cli/tests/traces").join(name));
    }
    let output = export.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    tables
}

/// The engine over a directory of tables.
pub fn engine(tables: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskscope-query"));
    command.arg(tables);
    command
}

/// Stdout and stderr of a run as text.
pub fn text(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (text(&output.stdout), text(&output.stderr))
}
