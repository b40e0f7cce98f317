//! Odd and broken file systems: every subcommand ends, reports the problem, and leaves no half-written files.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use taskscope_event::models::ovni;
use taskscope_testkit::generator::{Generator, Runtime};
use taskscope_testkit::trace_builder::StreamBuilder;

const TASKSCOPE: &str = env!("CARGO_BIN_EXE_taskscope");
/// Subcommands that read a trace and write only to their outputs.
const READERS: [&str; 5] = ["check", "dump", "top", "report", "info"];

/// Runs it for at most twenty seconds of processor time and half a minute.
fn limited(script: &str, arguments: &[&str]) -> Output {
    Command::new("timeout")
        .args(["600", "sh", "-c", &format!("ulimit -t 30; {script}"), TASKSCOPE])
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn taskscope(arguments: &[&str]) -> Output {
    limited("exec \"$0\" \"$@\"", arguments)
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts that it ended by itself, without a panic.
fn assert_ended(output: &Output, what: &str) {
    let code = output.status.code();
    assert!(code.is_some_and(|code| code < 124), "{what}: {:?}\n{}", output.status, stderr(output));
    assert!(!stderr(output).contains("panicked"), "{what}: {}", stderr(output));
}

fn generated(root: &Path) {
    let generator =
        Generator { runtime: Runtime::Nosv, threads: 4, threads_per_loom: 4, events: 20_000, seed: 7 };
    generator.write(root).unwrap();
}

/// One thread with a region that must be sorted.
fn stream(tid: u32) -> StreamBuilder {
    StreamBuilder::new(0, 1, tid)
        .require(&["ovni"])
        .cpus(2)
        .execute(10, tid as i32 % 2)
        .point(20, ovni::BURST)
        .point(30, ovni::UNSORTED_BEGIN)
        .point(15, ovni::BURST)
        .point(40, ovni::UNSORTED_END)
        .end(50)
}

fn files_below(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path())
            } else {
                files.push(entry.path())
            }
        }
    }
    files
}

/// A limit on the size of files simulates a full disk: writing fails in the middle of a file.
#[test]
fn a_full_disk_leaves_no_half_written_output() {
    const FULL: &str = "ulimit -f 64; exec \"$0\" \"$@\"";
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("trace");
    generated(&trace);
    let trace_text = trace.to_str().unwrap();

    let views = root.path().join("views");
    for options in [&["emulate", "-b"][..], &["emulate", "--gzip"], &["emulate", "-l"]] {
        let arguments = [options, &["-o", views.to_str().unwrap(), trace_text]].concat();
        let output = limited(FULL, &arguments);
        assert_ended(&output, "emulate");
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains("cannot write views"), "{}", stderr(&output));
        // Those that would still have had room were not played to the end.
        let left: Vec<PathBuf> = files_below(&views);
        assert!(left.is_empty(), "{left:?}");
        let _ = fs::remove_dir_all(&views);
    }

    let slice = root.path().join("slice");
    let output = limited(FULL, &["slice", "-o", slice.to_str().unwrap(), trace_text]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing of the slice"), "{}", stderr(&output));
    assert!(stderr(&output).contains("/stream.obs: file too large"), "{}", stderr(&output));
    assert!(files_below(&slice).is_empty());
    // A directory that is there stays, and so does a link to it.
    let (there, link) = (root.path().join("there"), root.path().join("link"));
    fs::create_dir(&there).unwrap();
    symlink(&there, &link).unwrap();
    let output = limited(FULL, &["slice", "-o", link.to_str().unwrap(), trace_text]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(link.is_symlink() && fs::read_dir(&there).unwrap().next().is_none());
    fs::remove_file(&link).unwrap();
    fs::remove_dir(&there).unwrap();

    let page = root.path().join("report.html");
    let output = limited(FULL, &["report", "--html", page.to_str().unwrap(), trace_text]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(!page.exists() && fs::read_dir(root.path()).unwrap().count() == 1);

    for verb in [&["dump"][..], &["dump", "--json"], &["top"], &["top", "--json"], &["report"], &["info"]] {
        let output = limited("exec \"$0\" \"$@\" > /dev/full", &[verb, &[trace_text]].concat());
        assert_ended(&output, verb[0]);
        assert_eq!(output.status.code(), Some(2), "{verb:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("error:"), "{verb:?}: {}", stderr(&output));
    }
}

/// If violations cannot be listed, truncated views are removed. A reader that closes the list early does not
/// affect the views.
#[test]
fn a_list_that_cannot_be_printed_leaves_no_view_that_was_cut() {
    let root = tempfile::tempdir().unwrap();
    let (trace, views) = (root.path().join("trace"), root.path().join("views"));
    // A thread that continues after its end.
    stream(1).point(60, ovni::THREAD_PAUSES).write(&trace).unwrap();
    let arguments = ["emulate", "-l", "--json", "-o", views.to_str().unwrap(), trace.to_str().unwrap()];

    let output = limited("exec \"$0\" \"$@\" > /dev/full", &arguments);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("cannot print"), "{}", stderr(&output));
    assert!(files_below(&views).is_empty(), "{:?}", files_below(&views));

    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let output = Command::new(TASKSCOPE).args(arguments).stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "the verdict stays: {}", stderr(&output));
    assert!(views.join("thread.pcf").exists() && views.join("cpu.row").exists());
}

/// As after `2>&1 | head -1`, and with a log on a full disk.
#[test]
fn a_closed_stderr_ends_no_verb() {
    let root = tempfile::tempdir().unwrap();
    let trace = root.path().join("trace");
    // Events after the end, so that there is something to say.
    stream(1).point(60, ovni::THREAD_PAUSES).point(55, ovni::BURST).write(&trace).unwrap();
    let (trace, views) = (trace.to_str().unwrap(), root.path().join("views"));
    let slice = root.path().join("slice");
    let verbs: [(&[&str], i32); 4] = [
        (&["check", trace], 1),
        (&["emulate", "-o", views.to_str().unwrap(), trace], 0),
        (&["slice", "-o", slice.to_str().unwrap(), trace], 0),
        (&["sort", trace], 0),
    ];
    for (verb, code) in verbs {
        let output = limited("exec \"$0\" \"$@\" 2> /dev/full", verb);
        assert_eq!(output.status.code(), Some(code), "{verb:?}");
    }
    assert!(views.join("thread.pcf").exists());
}

#[test]
fn a_full_disk_leaves_the_file_that_was_to_be_sorted() {
    let root = tempfile::tempdir().unwrap();
    let mut unsorted = stream(1);
    for clock in 0..8_000 {
        unsorted = unsorted.point(60 + clock, ovni::BURST);
    }
    let file = unsorted.write(root.path()).unwrap().join("stream.obs");
    let before = fs::read(&file).unwrap();
    let full = "ulimit -f 64; exec \"$0\" \"$@\"";
    let output = limited(full, &["sort", root.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("the file is as it was"), "{}", stderr(&output));
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(files_below(root.path()).len(), 2, "nothing else is left");
}

#[test]
fn links_in_circles_are_followed_once() {
    let root = tempfile::tempdir().unwrap();
    let directory = stream(1).write(root.path()).unwrap();
    symlink(root.path(), directory.join("up")).unwrap();
    symlink(&directory, directory.join("itself")).unwrap();
    symlink("round", directory.join("round")).unwrap();
    symlink(root.path().join("nowhere"), directory.join("broken")).unwrap();
    for verb in READERS {
        let output = taskscope(&[verb, root.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{verb}: {}", stderr(&output));
    }
}

/// A link may lead to the whole file system: files there are not part of the named trace.
#[test]
fn sort_writes_nothing_behind_links_that_lead_out_of_the_trace() {
    let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let inside = stream(1).write(root.path()).unwrap().join("stream.obs");
    let outside = stream(2).write(elsewhere.path()).unwrap().join("stream.obs");
    symlink(elsewhere.path(), root.path().join("loom.elsewhere")).unwrap();
    // A file alone, too.
    let linked = stream(3).write(root.path()).unwrap().join("stream.obs");
    let alone = elsewhere.path().join("alone");
    fs::rename(&linked, &alone).unwrap();
    symlink(&alone, &linked).unwrap();
    let (before, unsorted) = (fs::read(&outside).unwrap(), fs::read(&inside).unwrap());
    let alone_before = fs::read(&alone).unwrap();
    let output = taskscope(&["sort", root.path().to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("lies outside of the trace"), "{}", stderr(&output));
    assert_eq!(fs::read(&outside).unwrap(), before);
    assert_eq!(fs::read(&alone).unwrap(), alone_before);
    assert_ne!(fs::read(&inside).unwrap(), unsorted);
    let named = root.path().join("loom.elsewhere");
    assert_eq!(taskscope(&["sort", named.to_str().unwrap()]).status.code(), Some(0));
    assert_ne!(fs::read(&outside).unwrap(), before, "what is named is sorted, by whatever link");
}

/// Pipes, devices, directories and links to them, in the place of the files of a trace.
#[test]
fn only_regular_files_are_read() {
    for file in ["stream.json", "stream.obs", "taskscope.obs"] {
        for place in ["/dev/zero", "/proc/self/mem", "pipe", "directory", "nowhere"] {
            let root = tempfile::tempdir().unwrap();
            stream(1).write(root.path()).unwrap();
            let path = stream(2).write(root.path()).unwrap().join(file);
            let _ = fs::remove_file(&path);
            match place {
                "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "directory" => fs::create_dir(&path).unwrap(),
                place => symlink(place, &path).unwrap(),
            }
            for verb in READERS {
                let output = taskscope(&[verb, root.path().to_str().unwrap()]);
                assert_ended(&output, &format!("{verb}, {file} is {place}"));
            }
            // Half of the trace is read, and the problem with the rest is reported.
            let output = taskscope(&["top", root.path().to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(0), "{file} is {place}: {}", stderr(&output));
            let is_reported =
                ["unreadable", "missing-stream"].iter().any(|kind| stderr(&output).contains(kind));
            let may_be_missing = file == "taskscope.obs" && place == "nowhere";
            let is_no_stream = file == "stream.json" && place == "directory";
            assert!(is_reported || may_be_missing || is_no_stream, "{file} is {place}: {}", stderr(&output));
        }
    }
}

/// An empty result would pass for one.
#[test]
fn every_verb_fails_with_a_message_on_unreadable_traces() {
    for damage in ["no file", "five bytes", "pipe"] {
        let root = tempfile::tempdir().unwrap();
        let path = stream(1).write(root.path()).unwrap().join("stream.obs");
        fs::remove_file(&path).unwrap();
        match damage {
            "five bytes" => fs::write(&path, "ovni\x01").unwrap(),
            "pipe" => assert!(Command::new("mkfifo").arg(&path).status().unwrap().success()),
            _ => {}
        }
        for verb in ["report", "info", "dump", "top", "emulate"] {
            let output = taskscope(&[verb, root.path().to_str().unwrap()]);
            assert_eq!(output.status.code(), Some(2), "{verb}, {damage}: {}", stderr(&output));
            assert!(stderr(&output).contains("nothing can be read from"), "{verb}, {damage}");
        }
        assert!(!root.path().join("thread.prv").exists(), "{damage}");
        let output = taskscope(&["check", root.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1), "{damage}: {}", stderr(&output));
    }
}

#[test]
fn giant_deep_and_strange_metadata_is_refused_in_bounded_memory() {
    let numbers = format!("{{\"version\":3,\"ovni\":{{\"x\":[{}1]}}}}", "1,".repeat(10_000_000));
    let deep = "{\"ovni\":".repeat(200_000);
    let long = format!("{{\"ovni\":{{\"loom\":\"{}\"}}}}", "n".repeat(5_000_000));
    for (what, text) in [("giant", numbers), ("deep", deep), ("long", long)] {
        let root = tempfile::tempdir().unwrap();
        stream(1).write(root.path()).unwrap();
        let directory = stream(2).write(root.path()).unwrap();
        fs::write(directory.join("stream.json"), text).unwrap();
        for verb in READERS {
            // A gigabyte of address space has room for the program, its threads' stacks, and its heap.
            let output =
                limited("ulimit -v 1000000; exec \"$0\" \"$@\"", &[verb, root.path().to_str().unwrap()]);
            assert_ended(&output, &format!("{verb}, {what} metadata"));
        }
    }
}

#[test]
fn names_that_are_no_text_and_empty_directories() {
    let root = tempfile::tempdir().unwrap();
    let odd = root.path().join(OsStr::from_bytes(b"loom.\xff\xfe"));
    stream(1).write(&odd).unwrap();
    for verb in READERS {
        let output = taskscope(&[verb, root.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(0), "{verb}: {}", stderr(&output));
    }
    let empty = tempfile::tempdir().unwrap();
    for verb in READERS.into_iter().chain(["emulate", "sort", "sync", "view"]) {
        let output = taskscope(&[verb, empty.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(2), "{verb}");
        assert!(
            stderr(&output).contains("error:") && stderr(&output).contains("try:"),
            "{verb}: {}",
            stderr(&output)
        );
    }
}

/// Runs it without root's right to read every file, which this test may have.
fn without_privileges(arguments: &[&str]) -> Output {
    const DROP: &str = "setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-all --";
    let is_root = Command::new("id").arg("-u").output().unwrap().stdout == b"0\n";
    limited(&format!("exec {} \"$0\" \"$@\"", if is_root { DROP } else { "env" }), arguments)
}

#[test]
fn files_that_may_not_be_read_are_named() {
    for (file, kind) in
        [("stream.obs", "unreadable"), ("stream.json", "unreadable"), ("taskscope.obs", "unreadable")]
    {
        let root = tempfile::tempdir().unwrap();
        stream(1).write(root.path()).unwrap();
        let locked = stream(2).write(root.path()).unwrap().join(file);
        if file == "taskscope.obs" {
            fs::write(&locked, "ovni").unwrap();
        }
        assert!(Command::new("chmod").arg("000").arg(&locked).status().unwrap().success());
        for verb in READERS {
            let output = without_privileges(&[verb, root.path().to_str().unwrap()]);
            assert_ended(&output, verb);
            let message = stderr(&output) + &String::from_utf8_lossy(&output.stdout);
            assert!(message.contains(kind) && message.contains("ermission"), "{verb}, {file}: {message}");
            // Readable parts are read; `check` reports a fault.
            assert_eq!(output.status.code(), Some(i32::from(verb == "check")), "{verb}, {file}: {message}");
        }
    }
}

#[test]
fn directories_that_may_not_be_read_are_named() {
    let root = tempfile::tempdir().unwrap();
    stream(1).write(root.path()).unwrap();
    let locked = stream(2).write(root.path()).unwrap();
    for (directory, code) in [(locked.as_path(), 0), (root.path(), 2)] {
        assert!(Command::new("chmod").arg("000").arg(directory).status().unwrap().success());
        let output = without_privileges(&["top", root.path().to_str().unwrap()]);
        assert!(Command::new("chmod").arg("700").arg(directory).status().unwrap().success());
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(stderr(&output).contains("ermission"), "{}", stderr(&output));
    }
}
