//! Programs that give up their rights after they have started.

mod common;

use common::*;
use std::os::unix::fs::PermissionsExt;

/// A user without rights.
const NOBODY: u32 = 65534;

/// Records the program, which becomes another user, into a directory with this mode. Returns its trace's threads that have an
/// end, and what was printed to standard error; `None` if this test's user cannot become another one.
fn recorded(mode: u32) -> Option<(usize, String)> {
    if !nix::unistd::geteuid().is_root() {
        taskscope_prerequisite::skip("only root can become another user");
        return None;
    }
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    let is_open = |above: &&std::path::Path| above.metadata().unwrap().permissions().mode() & 1 != 0;
    if !here.ancestors().skip(1).all(|above| is_open(&above)) {
        taskscope_prerequisite::skip("other users cannot enter the temporary directory");
        return None;
    }
    std::fs::set_permissions(here, std::fs::Permissions::from_mode(mode)).unwrap();
    let program = here.join("program");
    let source = program_source("gives_up_rights.c");
    Compiler::Gcc.build_file(&source, &program, &["-g", "-O1", "-pthread"]);
    let mut command = record(here);
    command.args(["-q", "--threads", "-o", "run", "--"]).arg(&program).arg(NOBODY.to_string());
    let run = output(&mut command);
    assert!(run.status.success(), "{:?} {}", run.status, text(&run.stderr));
    assert_eq!(text(&run.stdout), "served\n");
    let is_finished = |stream: &&std::path::PathBuf| {
        let metadata = std::fs::read_to_string(stream.join("stream.json")).unwrap();
        metadata.contains("\"finished\":1")
    };
    let finished = streams(&here.join("run")).iter().filter(is_finished).count();
    Some((finished, text(&run.stderr)))
}

/// The thread that the program begins with, and two that start later.
#[test]
fn threads_that_start_as_another_user_are_recorded() {
    let Some((finished, printed)) = recorded(0o755) else { return };
    assert_eq!((finished, printed.as_str()), (3, ""));
}

#[test]
fn a_user_who_cannot_enter_the_directory_is_reported() {
    let Some((_, printed)) = recorded(0o700) else { return };
    assert!(printed.contains("the recording is incomplete from now on"), "{printed}");
    assert!(printed.contains("user 65534"), "{printed}");
}
