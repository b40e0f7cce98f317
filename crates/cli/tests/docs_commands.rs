//! Runs the commands of the book: tutorial, how-to pages, questions, some of the reference. `common/documented.rs` has the form of their blocks.
//!
//! Each page runs twice, in a copy of `examples/` and `docs/sql/` with two threads, in one shell:
//!
//! - Live: all commands run, and their exit codes are compared, but for those of gates (`--fail-over`).
//! - Stored: `taskscope record` copies the trace that `tests/shown/PAGE` has of this name. All other commands
//!   run, and their output must equal the page. A last line `…` matches any further lines.
//!
//! Not compared are the output of `doctor`, which depends on the machine, and of the commands after a recording that is
//! not stored (larger than [`STORED_KIB`], or with the condition `live`). The summary of a stored recording is compared
//! with `taskscope report`: each of its lines must be in the report. The viewer is ended when it has printed its address.
//!
//! `UPDATE_DOCS=1 cargo test -p taskscope --test docs_commands` replaces the compared output of the pages.
//! `UPDATE_DOCS=record` stores new traces, with a neutral folder in the place of theirs, and replaces all output by that
//! of this machine. `DOCS_LAUNCHER` is a command in
//! front of recordings, such as `chrt -r 20` on a machine with other load.

mod common;

use common::documented::{Block, blocks};
use common::{Compiler, mpi, taskscope, text};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
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
    threads: "howto/threads.md",
    busy_machine: "howto/busy-machine.md",
    mpi_slurm: "howto/mpi-slurm.md",
    gcc: "howto/gcc.md",
    python: "howto/python.md",
    containers: "howto/containers.md",
    remote: "howto/remote.md",
    parts: "howto/parts.md",
    ci_gate: "howto/ci-gate.md",
    instrument: "howto/instrument.md",
    crashed: "howto/crashed.md",
    ovni_paraver: "howto/ovni-paraver.md",
    device_queues: "howto/device-queues.md",
    sql: "howto/sql.md",
    call_paths: "call-paths.md",
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
    // Beside the test, in cargo's directory for libraries built only for tests.
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

/// Whether this machine meets a block's requirements.
fn can_run(block: &Block) -> bool {
    block.condition("norun").is_none() && block.condition("needs").is_none_or(mpi::is_there)
}

/// Marks begin and end of a command in the output of the shell.
fn mark(border: &str, number: usize) -> String {
    format!("@@docs {border} {number}")
}

/// Largest trace that is stored, KiB.
const STORED_KIB: u32 = 512;

/// Replaces `taskscope`. Uses the stored trace of a recording's name, or stores the new one. Ends the viewer.
const STAND_IN: &str = r#"#!/bin/bash
if [ "$1" = view ]; then
    printed=$(mktemp -p "$HOME")
    "$DOCS_TASKSCOPE" "$@" >"$printed" 2>&1 &
    until grep -q 'http://127.0.0.1' "$printed" || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
    kill $!
    wait $!
    cat "$printed"
    grep -q 'http://127.0.0.1' "$printed"
    exit
fi
if [ "$1" != record ]; then exec -a "$0" "$DOCS_TASKSCOPE" "$@"; fi
name= program= quiet=
for ((at = 2; at <= $#; at++)); do
    case ${!at} in
    -o) at=$((at + 1)) && name=${!at} ;;
    -q) quiet=1 ;;
    --) at=$((at + 1)) && program=${!at} && break ;;
    esac
done
name=${name:-$(basename "$program").trace}
if [ "$DOCS_RUN" = stored ] && [ -d "$DOCS_STORED/$name" ]; then
    rm -rf "$name" && cp -r "$DOCS_STORED/$name" "$name"
    [ "$quiet" ] || "$DOCS_TASKSCOPE" report "$name"
    exit 0
fi
[ "$DOCS_RUN" != stored ] || : >"$DOCS_EXAMPLE"
$DOCS_LAUNCHER "$DOCS_TASKSCOPE" "$@"
status=$?
if [ "$DOCS_RUN" = store ] && [ "$DOCS_LIVE" = 0 ] && [ "$(du -s --apparent-size "$name" | cut -f 1)" -le "$DOCS_KIB" ]; then
    mkdir -p "$DOCS_STORED" && rm -rf "$DOCS_STORED/$name" && cp -r "$name" "$DOCS_STORED/$name"
fi
exit $status
"#;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Recordings {
    /// All programs run.
    Live,
    /// All programs run, and their traces are stored.
    Store,
    /// Stored traces take the place of recordings.
    Stored,
}

/// The output of a command.
struct Output {
    /// Index of the first line that the page shows of it.
    begin: usize,
    /// Index of the line after the last one.
    end: usize,
    text: String,
    /// Whether it depends on the machine.
    is_example: bool,
    /// Whether it is the report of a stored recording.
    is_stored: bool,
}

fn run(page: &str) {
    let path = docs().join(page);
    let content = fs::read_to_string(&path).unwrap();
    let lines: Vec<&str> = content.lines().collect();
    let blocks = blocks(&lines);
    let runnable: Vec<&Block> = blocks.iter().filter(|block| can_run(block)).collect();
    let update = std::env::var("UPDATE_DOCS").ok();
    let is_recording = update.as_deref() == Some("record");

    let live = outputs(page, &runnable, if is_recording { Recordings::Store } else { Recordings::Live });
    let stored = outputs(page, &runnable, Recordings::Stored);
    if update.is_some() {
        let mut replaced = BTreeMap::new();
        for (live, stored) in live.into_iter().zip(stored) {
            let output = match stored.is_example {
                true if !is_recording => continue,
                true => live,
                false => stored,
            };
            replaced.insert(output.begin, (output.end, output.text));
        }
        fs::write(&path, updated(&lines, &replaced)).unwrap();
        return;
    }
    for output in stored.iter().filter(|output| output.is_stored) {
        let printed = printed_lines(&output.text);
        for line in summary(&lines[output.begin..output.end]) {
            assert!(
                printed.contains(line),
                "docs/{page}:{}: the summary has a line that the report of the stored trace does not have; write today's words\n\
                 --- shown\n{line}\n--- printed\n{}",
                output.begin,
                printed.join("\n"),
            );
        }
    }
    for output in stored.iter().filter(|output| !output.is_example && output.end > output.begin) {
        let shown = &lines[output.begin..output.end];
        let (shown, is_part) = match shown {
            [shown @ .., "…"] => (shown, true),
            _ => (shown, false),
        };
        let printed = printed_lines(&output.text);
        let matches = if is_part { printed.starts_with(shown) } else { printed == shown };
        assert!(
            matches,
            "docs/{page}:{}: the output has changed; UPDATE_DOCS=1 replaces it\n--- shown\n{}\n--- printed\n{}",
            output.begin + 1,
            shown.join("\n"),
            printed.join("\n"),
        );
    }
}

/// Lines of a recording's summary that `taskscope report` prints too: those between the first one, which also has the size, and
/// the commands to try next.
fn summary<'p>(shown: &'p [&'p str]) -> impl Iterator<Item = &'p &'p str> {
    let begin =
        shown.iter().rposition(|line| line.starts_with("taskscope: ")).map_or(shown.len(), |first| first + 1);
    // The first line may be continued on a second one.
    let lines = shown[begin..].iter().skip_while(|line| line.starts_with("    "));
    let lines = lines.take_while(|line| !line.starts_with("  next:"));
    lines.filter(|line| !line.is_empty() && **line != "…")
}

/// Lines of a command's output as a page shows them.
fn printed_lines(output: &str) -> Vec<&str> {
    output.trim_end().lines().map(str::trim_end).skip_while(|line| line.is_empty()).collect()
}

/// Runs the blocks of a page and returns the output of each command. Asserts exit codes, except for recordings that are
/// not made.
fn outputs(page: &str, runnable: &[&Block], recordings: Recordings) -> Vec<Output> {
    let here = tempfile::tempdir().unwrap();
    let here = here.path().canonicalize().unwrap();
    copy(&docs().join("../examples"), &here.join("examples"));
    copy(&docs().join("sql"), &here.join("docs/sql"));
    // `clang` is the newest installed one; `taskscope` is the command under test.
    let programs = here.join("programs");
    fs::create_dir(&programs).unwrap();
    let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
        .map(|at| at.join(Compiler::Clang.command().get_program()))
        .find(|file| file.is_file());
    symlink(found.unwrap(), programs.join("clang")).unwrap();
    fs::write(programs.join("taskscope"), STAND_IN).unwrap();
    fs::set_permissions(programs.join("taskscope"), fs::Permissions::from_mode(0o755)).unwrap();
    let package = install_library(&here.join("prefix"));
    let example = here.join("example");

    // A pause improves the shown times: background work left by the previous command can finish.
    let pause = if recordings == Recordings::Store { "sleep 1\n" } else { "" };
    let mut script = String::from("exec 2>&1\n");
    let mut number = 0;
    for block in runnable {
        script += &format!("export DOCS_LIVE={}\n", i32::from(block.condition("live").is_some()));
        for command in &block.commands {
            script += &format!("{pause}echo '{}'\n{}\n", mark("begin", number), command.text);
            script += "status=$?; [ -e \"$DOCS_EXAMPLE\" ]; example=$?\n";
            script += &format!("printf '\\n{} %s %s\\n' $status $example\n", mark("end", number));
            number += 1;
        }
    }
    let mut shell = std::process::Command::new("bash");
    shell.args(["--norc", "-c", &script]).current_dir(&here);
    for (name, _) in std::env::vars_os().filter(|(name, _)| is_foreign(&name.to_string_lossy())) {
        shell.env_remove(name);
    }
    let path_variable = std::env::join_paths(
        [programs].into_iter().chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
    );
    let mode = match recordings {
        Recordings::Live => "live",
        Recordings::Store => "store",
        Recordings::Stored => "stored",
    };
    let page_store = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/shown").join(page).with_extension("");
    mpi::permit(&mut shell)
        .env("PATH", path_variable.unwrap())
        .env("OMP_NUM_THREADS", "2")
        .env("HOME", &here)
        .env("PKG_CONFIG_PATH", package)
        .env("DOCS_TASKSCOPE", taskscope().get_program())
        .env("DOCS_RUN", mode)
        .env("DOCS_STORED", &page_store)
        .env("DOCS_EXAMPLE", &example)
        .env("DOCS_KIB", STORED_KIB.to_string());
    let printed = text(&common::output(&mut shell).stdout).replace(here.to_str().unwrap(), "/home/user");
    if recordings == Recordings::Store {
        replace_folder(&page_store, here.to_str().unwrap());
    }

    let mut outputs = Vec::new();
    for block in runnable {
        for (position, command) in block.commands.iter().enumerate() {
            let number = outputs.len();
            let begin = mark("begin", number) + "\n";
            let end = format!("\n{} ", mark("end", number));
            let rest = printed.split_once(&begin).expect("the shell runs every command").1;
            let (output, rest) = rest.split_once(&end).expect("the command ends");
            let numbers = rest.lines().next().unwrap();
            let (status, example) = numbers.split_once(' ').unwrap();
            let is_last = position + 1 == block.commands.len();
            let expected = block.condition("exit").filter(|_| is_last).unwrap_or("0");
            let is_recording = command.text.contains("taskscope record");
            // A gate on new recordings depends on the load of the machine.
            let is_gate = command.text.contains("--fail-over");
            let is_compared = if recordings == Recordings::Stored { !is_recording } else { !is_gate };
            if is_compared {
                assert_eq!(status, expected, "{page}:{}: {}\n{output}", command.output_begin, command.text);
            }
            outputs.push(Output {
                begin: command.output_begin,
                end: command.output_end,
                text: output.to_owned(),
                is_example: example == "0" || is_recording || command.text.contains("taskscope doctor"),
                is_stored: recordings == Recordings::Stored && is_recording && example != "0",
            });
        }
    }
    outputs
}

/// Replaces the folder of a recording in stored traces by a neutral one of the same length.
fn replace_folder(stored: &Path, folder: &str) {
    let neutral: String =
        "/usr/src/stored".chars().chain(std::iter::repeat('-')).take(folder.len()).collect();
    for entry in fs::read_dir(stored).into_iter().flatten().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            replace_folder(&path, folder);
            continue;
        }
        let mut bytes = fs::read(&path).unwrap();
        let is_there = |at: &usize| bytes[*at..].starts_with(folder.as_bytes());
        let places: Vec<usize> = (0..bytes.len()).filter(is_there).collect();
        for at in &places {
            bytes[*at..at + folder.len()].copy_from_slice(neutral.as_bytes());
        }
        if !places.is_empty() {
            fs::write(&path, bytes).unwrap();
        }
    }
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
            let shown = printed_lines(output).into_iter().map(str::to_owned);
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
