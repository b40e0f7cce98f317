//! Runs of the subcommands that read events.

use std::path::Path;
use std::process::{Command, Output};
use taskscope_testkit::trace_builder::StreamBuilder;

pub fn run(program: &Path, arguments: &[&str]) -> Output {
    Command::new(program).args(arguments).output().unwrap()
}

pub fn taskscope(arguments: &[&str]) -> Output {
    run(Path::new(env!("CARGO_BIN_EXE_taskscope")), arguments)
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn written(stream: &StreamBuilder) -> (tempfile::TempDir, String) {
    let root = tempfile::tempdir().unwrap();
    stream.write(root.path()).unwrap();
    let path = root.path().to_str().unwrap().to_owned();
    (root, path)
}
