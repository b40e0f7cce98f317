//! Runs the commands of the book: tutorial, how-to pages, questions. `common/documented.rs` has the form of their blocks.
//!
//! Each page runs in a copy of `examples/` with two threads, in one shell. A test asserts exit codes alone, as the output has
//! times. `UPDATE_DOCS=1 cargo test -p taskscope --test docs_commands` replaces the shown output by that of this machine:
//! where output is shown, and as many lines of it as are shown where the last one is `…`.

mod common;

use common::documented::{Block, blocks};
use common::{Compiler, mpi, taskscope, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

macro_rules! pages {
    ($($name:ident: $page:literal,)*) => {
        const PAGES: &[&str] = &[$($page),*];
        $(#[test]
        fn $name() {
            run($page);
        })*
    };
}

pages! {
    tutorial: "tutorial.md",
    faq: "faq.md",
    barriers: "howto/barriers.md",
    locks: "howto/locks.md",
    small_tasks: "howto/small-tasks.md",
    busy_machine: "howto/busy-machine.md",
    mpi_slurm: "howto/mpi-slurm.md",
    gcc: "howto/gcc.md",
    python: "howto/python.md",
    containers: "howto/containers.md",
    remote: "howto/remote.md",
    ci_gate: "howto/ci-gate.md",
    instrument: "howto/instrument.md",
    crashed: "howto/crashed.md",
    ovni_paraver: "howto/ovni-paraver.md",
    device_queues: "howto/device-queues.md",
    openmp: "runtimes/openmp.md",
}

#[test]
fn every_page_with_commands_has_a_test() {
    let root = docs().canonicalize().unwrap();
    for page in common::documented::pages() {
        let Ok(page) = page.canonicalize().unwrap().strip_prefix(&root).map(Path::to_owned) else { continue };
        let content = fs::read_to_string(root.join(&page)).unwrap();
        let runs = blocks(&content.lines().collect::<Vec<_>>())
            .iter()
            .any(|block| block.condition("norun").is_none());
        assert!(!runs || PAGES.contains(&page.to_str().unwrap()), "{}", page.display());
    }
}

/// Copies sources: no links, no built programs, no traces.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let (kind, name) = (entry.file_type().unwrap(), entry.file_name());
        let is_made = ["build", "target"].iter().any(|made| name == *made)
            || Path::new(&name).extension().is_some_and(|extension| extension == "trace");
        if kind.is_dir() && !is_made {
            copy(&entry.path(), &to.join(name));
        } else if kind.is_file() {
            fs::copy(entry.path(), to.join(name)).unwrap();
        }
    }
}

/// Puts `libtaskscope.so.1` below a prefix, as `scripts/install` does. Returns the folder of the pkg-config file.
fn install_library(prefix: &Path) -> PathBuf {
    let sources = docs().join("../crates/record-capi").canonicalize().unwrap();
    // Beside the test, where cargo puts libraries that it builds for tests alone.
    let built = std::env::current_exe().unwrap().with_file_name("libtaskscope.so");
    fs::create_dir_all(prefix.join("lib/pkgconfig")).unwrap();
    symlink(&built, prefix.join("lib/libtaskscope.so")).unwrap();
    symlink(&built, prefix.join("lib/libtaskscope.so.1")).unwrap();
    symlink(sources.join("include"), prefix.join("include")).unwrap();
    let package = fs::read_to_string(sources.join("taskscope.pc.in")).unwrap();
    let package = package.replace("@PREFIX@", prefix.to_str().unwrap()).replace("@VERSION@", "0");
    fs::write(prefix.join("lib/pkgconfig/taskscope.pc"), package).unwrap();
    prefix.join("lib/pkgconfig")
}

/// Whether this machine has what a block needs.
fn can_run(block: &Block) -> bool {
    block.condition("norun").is_none() && block.condition("needs").is_none_or(mpi::is_there)
}

/// Marks begin and end of a command in the output of the shell.
fn mark(what: &str, number: usize) -> String {
    format!("@@docs {what} {number}")
}

fn run(page: &str) {
    let path = docs().join(page);
    let content = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = content.lines().collect();
    let blocks = blocks(&lines);
    let runnable: Vec<&Block> = blocks.iter().filter(|block| can_run(block)).collect();
    let here = tempfile::tempdir().unwrap();
    let here = here.path().canonicalize().unwrap();
    copy(&docs().join("../examples"), &here.join("examples"));
    // `clang` is the newest one that is installed; `taskscope` the command under test.
    let programs = here.join("programs");
    fs::create_dir(&programs).unwrap();
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|at| at.join(Compiler::Clang.command().get_program()))
        .find(|file| file.is_file());
    symlink(found.unwrap(), programs.join("clang")).unwrap();
    symlink(taskscope().get_program(), programs.join("taskscope")).unwrap();
    let package = install_library(&here.join("prefix"));

    // Shown times are better where a command does not run into what the one before has left to the system.
    let pause = if is_updating() { "sleep 1\n" } else { "" };
    let mut script = String::from("exec 2>&1\n");
    let commands: Vec<_> = runnable.iter().flat_map(|block| &block.commands).collect();
    for (number, command) in commands.iter().enumerate() {
        script += &format!("{pause}echo '{}'\n{}\n", mark("begin", number), command.text);
        script += &format!("status=$?; printf '\\n{} %s\\n' $status\n", mark("end", number));
    }
    let mut shell = std::process::Command::new("bash");
    shell.args(["--norc", "-c", &script]).current_dir(&here);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_foreign(&name.to_string_lossy())) {
        shell.env_remove(name);
    }
    let path_variable = std::env::join_paths(
        [programs].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    mpi::permit(&mut shell)
        .env("PATH", path_variable.unwrap())
        .env("OMP_NUM_THREADS", "2")
        .env("HOME", &here)
        .env("PKG_CONFIG_PATH", package);
    let printed = text(&common::output(&mut shell).stdout).replace(here.to_str().unwrap(), "/home/user");

    let mut outputs = BTreeMap::new();
    let mut number = 0;
    for block in &runnable {
        for (position, command) in block.commands.iter().enumerate() {
            let begin = mark("begin", number) + "\n";
            let end = format!("\n{} ", mark("end", number));
            let rest = printed.split_once(&begin).expect("the shell runs every command").1;
            let (output, rest) = rest.split_once(&end).expect("the command ends");
            let status: i32 = rest.lines().next().unwrap().parse().unwrap();
            let is_last = position + 1 == block.commands.len();
            let expected =
                block.condition("exit").filter(|_| is_last).map_or(0, |code| code.parse().unwrap());
            assert_eq!(status, expected, "{page}:{}: {}\n{output}", command.output_begin, command.text);
            outputs.insert(command.output_begin, (command.output_end, output.to_owned()));
            number += 1;
        }
    }
    if is_updating() {
        fs::write(&path, updated(&lines, &outputs)).unwrap();
    }
}

fn is_updating() -> bool {
    std::env::var_os("UPDATE_DOCS").is_some()
}

/// Variables of the tests' own surroundings that change a recording.
fn is_foreign(name: &str) -> bool {
    ["OMP_", "TASKSCOPE_", "OVNI_", "OMPI_", "SLURM_", "PMI_", "PMIX_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
        || ["LD_PRELOAD", "NO_COLOR", "CLICOLOR_FORCE"].contains(&name)
}

/// The page with the outputs in the place of those that it shows.
fn updated(lines: &[&str], outputs: &BTreeMap<usize, (usize, String)>) -> String {
    let mut page: Vec<String> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        if let Some((end, output)) = outputs.get(&at)
            && *end > at
        {
            let shown = output
                .trim_end()
                .lines()
                .skip_while(|line| line.is_empty())
                .map(|line| line.trim_end().to_owned());
            if lines[end - 1] == "…" {
                page.extend(shown.take(end - at - 1));
                page.push("…".to_owned());
            } else {
                page.extend(shown);
            }
            at = *end;
        } else {
            page.push(lines[at].to_owned());
            at += 1;
        }
    }
    page.join("\n") + "\n"
}
