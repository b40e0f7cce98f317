//! Directories prepared with links by another user: the recorder writes nothing to the links' targets.

mod support;

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use support::*;

const PRECIOUS: &str = "precious";
/// Names that `every_function.c` gives.
const THREAD: &str = "loom.node7.test/proc.4242/thread.77";
const FILES: [&str; 3] = ["stream.json", "stream.obs", "taskscope.obs"];

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn a_loom_behind_a_link_is_not_entered() {
    let directory = temporary("linked-loom");
    let program = compile(compilers()[0], "every_function", &directory, &[]);
    for variable in ["OVNI_TRACEDIR", "OVNI_TMPDIR"] {
        let (root, victim) = (directory.join(variable), directory.join(format!("victim-{variable}")));
        fs::create_dir(&root).unwrap();
        fs::create_dir(&victim).unwrap();
        symlink(&victim, root.join("loom.node7.test")).unwrap();
        let trace = directory.join("trace");
        let output = command(&program, &directory, &trace).env(variable, &root).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(
            message.contains("recording is disabled") && message.contains("loom.node7.test"),
            "{message}"
        );
        assert!(is_empty(&victim) && !trace.join("loom.node7.test").exists());
    }
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_process_behind_a_link_gets_another_directory() {
    let directory = temporary("linked-process");
    let program = compile(compilers()[0], "every_function", &directory, &[]);
    let (trace, victim) = (directory.join("trace"), directory.join("victim"));
    fs::create_dir_all(trace.join("loom.node7.test")).unwrap();
    fs::create_dir(&victim).unwrap();
    symlink(&victim, trace.join("loom.node7.test/proc.4242")).unwrap();
    assert_eq!(succeeded(command(&program, &directory, &trace).output().unwrap()), "");
    assert!(is_empty(&victim));
    assert!(trace.join("loom.node7.test/proc.4242-2/thread.77/stream.obs").exists());
    fs::remove_dir_all(directory).unwrap();
}

#[test]
fn streams_from_a_temporary_directory_replace_no_linked_content() {
    let directory = temporary("linked-files");
    let program = compile(compilers()[0], "every_function", &directory, &[]);
    for is_hard in [true, false] {
        let trace = directory.join(format!("trace-{is_hard}"));
        let (temporary, victim) = (directory.join("tmp"), directory.join("victim"));
        fs::write(&victim, PRECIOUS).unwrap();
        fs::create_dir_all(trace.join(THREAD)).unwrap();
        for name in FILES {
            let place = trace.join(THREAD).join(name);
            if is_hard { fs::hard_link(&victim, place) } else { symlink(&victim, place) }.unwrap();
        }
        let output = command(&program, &directory, &trace).env("OVNI_TMPDIR", &temporary).output().unwrap();
        let message = succeeded(output);
        assert_eq!(fs::read_to_string(&victim).unwrap(), PRECIOUS);
        let written = trace.join(THREAD).join("stream.obs");
        if is_hard {
            assert_eq!((message.as_str(), temporary.exists()), ("", false));
            assert!(open(&trace).streams()[0].is_finished());
        } else {
            assert!(message.contains("symbolic link") && message.contains("kept:"), "{message}");
            assert!(written.is_symlink() && temporary.join(THREAD).join("stream.obs").exists());
        }
    }
    fs::remove_dir_all(directory).unwrap();
}

/// The last directory of a finished stream is checked too.
#[test]
fn a_thread_behind_a_link_keeps_its_stream_in_the_temporary_directory() {
    let directory = temporary("linked-thread");
    let program = compile(compilers()[0], "every_function", &directory, &[]);
    let (trace, temporary, victim) =
        (directory.join("trace"), directory.join("tmp"), directory.join("victim"));
    fs::create_dir(&victim).unwrap();
    let process = trace.join(THREAD);
    fs::create_dir_all(process.parent().unwrap()).unwrap();
    symlink(&victim, &process).unwrap();
    let output = command(&program, &directory, &trace).env("OVNI_TMPDIR", &temporary).output().unwrap();
    let message = succeeded(output);
    assert!(message.contains("cannot copy a stream"), "{message}");
    assert!(is_empty(&victim) && temporary.join(THREAD).join("stream.json").exists());
    fs::remove_dir_all(directory).unwrap();
}

/// Whatever the umask, tails in a directory for all users are their owner's, unless they are shared.
#[test]
fn tails_elsewhere_are_readable_by_their_owner_alone_unless_they_are_shared() {
    let directory = temporary("tail-modes");
    let program = compile(compilers()[0], "sudden_end", &directory, &[]);
    for (share, mode) in [("0", 0o600), ("1", 0o644)] {
        let (trace, tails) =
            (directory.join(format!("trace{share}")), directory.join(format!("tails{share}")));
        fs::create_dir(&tails).unwrap();
        let mut shell = command(Path::new("sh"), &directory, &trace);
        shell.args(["-c", "umask 0; exec \"$0\" 9"]).arg(&program);
        shell.env("TASKSCOPE_TAIL_DIR", &tails).env("TASKSCOPE_SHARE", share).output().unwrap();
        let modes: Vec<u32> = fs::read_dir(&tails)
            .unwrap()
            .map(|entry| entry.unwrap().metadata().unwrap().permissions().mode() & 0o777)
            .collect();
        // A stream each of two threads, and the sign of life.
        assert!(modes.len() >= 2 && modes.iter().all(|found| *found == mode), "{modes:?}");
    }
    fs::remove_dir_all(directory).unwrap();
}
