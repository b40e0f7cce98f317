//! Programs of which nothing can be recorded unchanged, and subcommands without a trace's name.

mod common;

use common::{Compiler, names, output, record, run_file, taskscope, text};
use serde_json::json;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

fn without_openmp(directory: &Path, name: &str, source: &str, options: &[&str]) -> PathBuf {
    Compiler::Gcc.build(directory, name, source, &[options, &["-fno-openmp", "-pthread"]].concat())
}

/// Keys of the findings. The run file fits its schema.
fn found(trace: &Path) -> Vec<String> {
    let run = run_file(trace);
    common::check_document(&run);
    let found = run["not_recorded"]["found"].as_array().cloned().unwrap_or_default();
    found.iter().map(|found| found["key"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn threads_are_counted_and_named_in_every_subcommand() {
    let here = tempfile::tempdir().unwrap();
    without_openmp(here.path(), "threads", "waiting_threads.c", &[]);
    let recorded = output(record(here.path()).args(["--", "./threads"]));
    assert_eq!(recorded.status.code(), Some(3));
    let talk = text(&recorded.stderr);
    assert!(!talk.contains("no OpenMP") && talk.contains("at least 5 threads at once"), "{talk}");
    for option in ["--sample 100", "--threads", "--mode profile"] {
        assert!(talk.contains(&format!("taskscope record {option} -- ./threads")), "{talk}");
    }
    let trace = here.path().join("threads.trace");
    let reason = &run_file(&trace)["not_recorded"];
    assert_eq!((&reason["threads"], &reason["processes"]), (&json!(5), &json!(1)));
    let sentence = reason["text"].as_str().unwrap();
    for verb in [
        &["report"][..],
        &["report", "--json"],
        &["info"],
        &["view"],
        &["explain", "F1"],
        &["check"],
        &["top"],
        &["dump"],
        &["emulate"],
    ] {
        for named in [&[][..], &["threads.trace"]] {
            let shown = output(taskscope().current_dir(here.path()).args(verb).args(named));
            let talk = text(&shown.stderr);
            assert!(
                talk.contains(sentence) && talk.contains("--sample 100 -- ./threads"),
                "{verb:?}: {talk}"
            );
            assert_eq!(talk.contains("taskscope: reading threads.trace"), named.is_empty(), "{talk}");
            assert_eq!((shown.status.code(), text(&shown.stdout).as_str()), (Some(2), ""), "{verb:?}");
        }
    }
}

#[test]
fn short_programs_are_known_by_their_files() {
    let here = tempfile::tempdir().unwrap();
    without_openmp(here.path(), "short", "short_thread.c", &[]);
    without_openmp(here.path(), "static", "short_thread.c", &["-static"]);
    let none = without_openmp(here.path(), "none", "nothing.c", &[]);
    // Named like TBB's; whether it is that is not asked.
    without_openmp(
        here.path(),
        "libtbb.so.12",
        "named_library.c",
        &["-shared", "-fPIC", "-Wl,-soname,libtbb.so.12"],
    );
    let at = format!("-L{}", here.path().display());
    without_openmp(here.path(), "user", "calls_tbb.c", &[&at, "-l:libtbb.so.12", "-Wl,-rpath,$ORIGIN"]);
    let of = |program: &str| {
        let trace = here.path().join(format!("{program}.t"));
        let talk =
            text(&output(record(here.path()).args(["-o", &format!("{program}.t"), "--", program])).stderr);
        (run_file(&trace)["not_recorded"]["reason"].as_str().unwrap().to_owned(), found(&trace), talk)
    };
    let (reason, keys, talk) = of("./short");
    assert_eq!((reason.as_str(), keys), ("other-runtime", vec!["threads".to_owned()]));
    assert!(!talk.contains("no OpenMP"), "{talk}");
    assert_eq!(of("./static").0, "static");
    let (reason, keys, talk) = of("./user");
    assert_eq!((reason.as_str(), keys), ("other-runtime", vec!["tbb".to_owned()]));
    assert!(talk.contains("TBB (libtbb.so.12)"), "{talk}");
    let (reason, keys, talk) = of("./none");
    assert_eq!((reason.as_str(), keys.len()), ("nothing-parallel", 0));
    assert!(talk.contains("no OpenMP, threads or other runtimes were seen in ./none"), "{talk}");
    // An argument of a program is not a file that it runs.
    fs::copy(&none, here.path().join("other")).unwrap();
    output(record(here.path()).args(["-o", "argument", "--", "./other", "./short"]));
    assert!(found(&here.path().join("argument")).is_empty());
}

#[test]
fn libraries_that_are_loaded_later_are_found_in_children_too() {
    let here = tempfile::tempdir().unwrap();
    without_openmp(here.path(), "libQt6Core.so.6", "named_library.c", &["-shared", "-fPIC"]);
    without_openmp(here.path(), "loader", "loads_qt.c", &["-ldl"]);
    let script = "#!/bin/sh\nname=load\n./${name}er\nexit 7\n";
    fs::write(here.path().join("run.sh"), script).unwrap();
    fs::set_permissions(here.path().join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    for (trace, command) in
        [("a", &["./loader"][..]), ("b", &["./run.sh"]), ("c", &["sh", "-c", "./loader; true"])]
    {
        let recorded = output(record(here.path()).args(["-o", trace, "--"]).args(command));
        assert!(text(&recorded.stderr).contains("Qt (libQt6Core.so.6)"), "{command:?}");
        assert_eq!(found(&here.path().join(trace)), ["qt"], "{command:?}");
    }
}

#[test]
fn options_of_the_command_are_repeated_as_typed() {
    let here = tempfile::tempdir().unwrap();
    let recorded = output(record(here.path()).args(["--", "sh", "-c", "exit 0"]));
    let talk = text(&recorded.stderr);
    assert!(talk.contains("taskscope record --sample 100 -- sh -c 'exit 0'  "), "{talk}");
}

#[test]
fn the_newest_trace_is_read_where_none_is_named() {
    let here = tempfile::tempdir().unwrap();
    let report = |directory: &Path| text(&output(taskscope().current_dir(directory).arg("report")).stderr);
    let none = report(here.path());
    assert!(
        none.contains("found no trace in this directory") && none.contains("taskscope record -- "),
        "{none}"
    );
    let write = |name: &str, start: u64| {
        fs::create_dir(here.path().join(name)).unwrap();
        let run =
            json!({ "start_unix_ns": start, "wall_ns": 1, "not_recorded": { "text": format!("of {name}") } });
        fs::write(here.path().join(name).join("taskscope-run.json"), run.to_string()).unwrap();
    };
    fs::create_dir(here.path().join("no trace")).unwrap();
    write("b", 20);
    let one = report(here.path());
    assert!(one.starts_with("taskscope: reading b\n") && one.contains("of b"), "{one}");
    write("a", 30);
    write("c", 10);
    let newest = report(here.path());
    assert!(
        newest.starts_with("taskscope: reading a, the newest of 3 traces here (others: b, c)\n"),
        "{newest}"
    );
    assert!(newest.contains("of a"), "{newest}");
    let inside = report(&here.path().join("c"));
    assert!(
        inside.starts_with("taskscope: reading the trace in this directory\n") && inside.contains("of c"),
        "{inside}"
    );
    // Files changed in place are named.
    for verb in ["sort", "sync"] {
        let refused = output(taskscope().current_dir(here.path()).arg(verb));
        assert_eq!(refused.status.code(), Some(2));
        assert!(text(&refused.stderr).contains(&format!("taskscope {verb} TRACE")));
    }
}

#[test]
fn a_trace_that_is_being_recorded_is_called_so() {
    let here = tempfile::tempdir().unwrap();
    // It waits for the end of its input.
    let mut recording = record(here.path())
        .args(["-q", "--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = recording.stdin.take().unwrap();
    input.write_all(b"x").unwrap();
    let mut first = [0];
    std::io::Read::read_exact(recording.stdout.as_mut().unwrap(), &mut first).unwrap();
    let report = || text(&output(taskscope().current_dir(here.path()).arg("report")).stderr);
    let running = report();
    assert!(running.contains("reading cat.trace, which is still being recorded"), "{running}");
    assert!(running.contains("its program is still running"), "{running}");
    drop(input);
    assert!(recording.wait().unwrap().success());
    let ended = report();
    assert!(!ended.contains("still"), "{ended}");
    assert_eq!(names(here.path()), ["cat.trace"]);
}

#[test]
fn a_program_or_trace_without_a_subcommand_is_recognized() {
    let here = tempfile::tempdir().unwrap();
    without_openmp(here.path(), "app", "nothing.c", &[]);
    fs::create_dir(here.path().join("a.trace")).unwrap();
    fs::write(here.path().join("a.trace/taskscope-run.json"), "{}").unwrap();
    let talk = |word: &str| {
        let refused = output(taskscope().current_dir(here.path()).arg(word));
        assert_eq!(refused.status.code(), Some(2));
        text(&refused.stderr)
    };
    assert!(talk("./app").contains("  try:  taskscope record -- ./app\n"));
    assert!(talk("a.trace").contains("  try:  taskscope report a.trace\n"));
    assert!(!talk("repotr").contains("try:"));
    assert!(talk("repotr").contains("'report'"));
}

/// Words behind a lone `1` that are plurals.
fn plurals_of_one(text: &str) -> Vec<String> {
    let words: Vec<&str> =
        text.split([' ', '\n', '(', ')', ',', ';', ':']).filter(|word| !word.is_empty()).collect();
    let is_plural = |word: &str| {
        word.len() > 2
            && word.ends_with('s')
            && !word.ends_with("ss")
            && word.chars().all(|c| c.is_ascii_lowercase())
    };
    let pairs = words.windows(2).filter(|pair| pair[0] == "1" && is_plural(pair[1]));
    pairs.map(|pair| pair.join(" ")).collect()
}

#[test]
fn one_of_a_thing_is_singular() {
    assert_eq!(plurals_of_one("1 threads, 1 s, 1 process, 11 tasks"), ["1 threads"]);
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "one", "one_task.c", &[]);
    let recorded = output(
        record(here.path())
            .env("OMP_NUM_THREADS", "1")
            .args(["-o", "t", "--sample", "100", "--"])
            .arg(program),
    );
    let mut shown = text(&recorded.stderr);
    assert!(shown.contains("1 thread ") && shown.contains("1 task "), "{shown}");
    for arguments in [
        &["report", "t", "--section", "all"][..],
        &["report", "t", "--section", "ledger,blame,queues,diagnosis,idle,path,pop,whatif"],
        &["report", "t", "--timeline"],
        &["info", "t"],
        &["check", "t"],
        &["top", "t"],
        &["slice", "t", "-o", "s"],
        &["explain", "F1", "t"],
    ] {
        let output = output(taskscope().current_dir(here.path()).args(arguments));
        shown += &(text(&output.stdout) + &text(&output.stderr));
    }
    assert_eq!(plurals_of_one(&shown), [""; 0]);
}

#[test]
fn names_are_listed_by_group_within_eighty_columns() {
    let list = text(&output(taskscope().arg("explain")).stdout);
    assert!(list.lines().all(|line| line.chars().count() <= 80), "{list}");
    let groups = ["Causes of lost time\n", "\nStates of threads\n", "\nNanos6: ", "\nnOS-V: ", "\nOptions "];
    let places: Vec<_> =
        groups.iter().map(|group| list.find(group).unwrap_or_else(|| panic!("{group}"))).collect();
    assert!(places.is_sorted(), "{places:?}");
    let near = output(taskscope().args(["explain", "badly-distribute"]));
    assert_eq!(near.status.code(), Some(2));
    assert!(text(&near.stderr).contains("taskscope explain badly-distributed\n"));
}
