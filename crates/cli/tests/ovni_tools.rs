//! Paraver views, and ovni's own test cases, run on the command under the names of ovni's tools.

#[path = "common/reading.rs"]
mod reading;

use reading::{run, stderr, stdout, taskscope, written};
use std::fs;
use std::path::Path;
use std::process::Command;
use taskscope_event::models::{self, nosv, ovni};
use taskscope_testkit::trace_builder::{StreamBuilder, one_task, pair, type_payload};

/// ovni finds streams by their metadata, so its rules say nothing of one without.
#[test]
fn strict_emulation_reports_omitted_streams() {
    let (root, path) = written(&one_task());
    let other = StreamBuilder::new(0, 1, 102).execute(1_000, -1).end(6_000);
    fs::remove_file(other.write(root.path()).unwrap().join("stream.json")).unwrap();
    let output = taskscope(&["emulate", "-l", &path]);
    assert_eq!(output.status.code(), Some(0), "as ovniemu");
    let notes = stderr(&output);
    assert!(notes.starts_with("note: problems of the trace: 1 missing-metadata\n"), "{notes}");
    let ovniemu = root.path().join("ovniemu");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_taskscope"), &ovniemu).unwrap();
    let output = run(&ovniemu, &["-l", &path]);
    assert_eq!(output.status.code(), Some(0));
    assert!(stderr(&output).lines().all(|line| line.starts_with("ovniemu: INFO: ")), "{}", stderr(&output));
}

/// Configurations are those of the run that wrote the views; the user's own files beside them stay.
#[test]
fn configurations_are_made_anew_by_each_run() {
    let (root, path) = written(&one_task());
    assert_eq!(taskscope(&["emulate", &path]).status.code(), Some(0));
    let folder = root.path().join("cfg/thread");
    fs::write(folder.join("999-old.cfg"), "#ParaverCFG").unwrap();
    fs::write(folder.join("mine.cfg"), "#ParaverCFG").unwrap();
    fs::write(folder.join("13-nos-v-subsystem.cfg"), "old").unwrap();
    assert_eq!(taskscope(&["emulate", &path]).status.code(), Some(0));
    assert!(!folder.join("999-old.cfg").exists() && folder.join("mine.cfg").exists());
    assert!(fs::read(folder.join("13-nos-v-subsystem.cfg")).unwrap().len() > 100);
}

#[test]
fn emulate_cuts_and_compresses() {
    let (root, path) = written(&one_task());
    let output = taskscope(&["emulate", "--gzip", "--range", "2.5us..", "--threads", "101", &path]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let packed = fs::read(root.path().join("thread.prv.gz")).unwrap();
    assert_eq!(packed[..2], [0x1f, 0x8b]);
    assert!(root.path().join("cfg/thread/13-nos-v-subsystem.cfg").exists());
    for (verb, tid) in [("emulate", "5"), ("emulate", "-5"), ("slice", "-5")] {
        let directory = tempfile::tempdir().unwrap();
        let output = taskscope(&[verb, "--threads", tid, "-o", directory.path().to_str().unwrap(), &path]);
        assert_eq!(output.status.code(), Some(2));
        let expected = format!("no thread has the id {tid}");
        assert!(stderr(&output).contains(&expected), "{verb}: {}", stderr(&output));
    }
}

#[test]
fn views_of_a_range_after_the_trace_are_refused() {
    let (root, path) = written(&one_task());
    let output = taskscope(&["emulate", "--range", "10s..", &path]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("before the range begins"), "{}", stderr(&output));
    assert!(!root.path().join("thread.prv").exists());
    let last = taskscope(&["emulate", "--range", "5us..10s", &path]);
    assert_eq!(last.status.code(), Some(0), "{}", stderr(&last));
}

#[test]
fn ovniemu_lists_the_models_that_are_enabled() {
    let (root, path) = written(&one_task());
    let tool = root.path().join("ovniemu");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_taskscope"), &tool).unwrap();
    let models = |arguments: &[&str]| stderr(&run(&tool, arguments)).matches(" events)\n").count();
    assert_eq!((models(&[&path]), models(&["-a", &path])), (2, 8));
}

#[test]
fn views_of_some_threads_include_objects_of_the_others() {
    let root = tempfile::tempdir().unwrap();
    let shown = StreamBuilder::new(0, 1, 101)
        .require(&["ovni", "nosv"])
        .cpus(2)
        .execute(1_000, 0)
        .event(4_000, nosv::TASK_EXECUTE, &pair(1, 0))
        .event(8_000, nosv::TASK_END, &pair(1, 0))
        .end(9_000);
    let other = StreamBuilder::new(0, 1, 102)
        .require(&["ovni", "nosv"])
        .cpus(2)
        .execute(1_001, -1)
        .jumbo(2_000, nosv::TYPE_CREATE, &type_payload(7, "work"))
        .event(3_000, nosv::TASK_CREATE, &pair(1, 7))
        .point(3_500, nosv::SCHEDULER_SERVING_BEGIN)
        .point(3_600, nosv::SCHEDULER_SERVING_END)
        .event(5_000, ovni::REMOTE_AFFINITY, &pair(1, 101))
        .end(9_001);
    shown.write(root.path()).unwrap();
    other.write(root.path()).unwrap();
    let path = root.path().to_str().unwrap();
    let lines = |row: u32, number: u32| -> Vec<String> {
        let prv = fs::read_to_string(root.path().join("thread.prv")).unwrap();
        let row_value = |line: &str| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.get(4) == Some(&row.to_string().as_str())
                && fields.get(6) == Some(&number.to_string().as_str()))
            .then(|| [fields[5], fields[7]].join(":"))
        };
        prv.lines().filter_map(row_value).collect()
    };
    assert_eq!(taskscope(&["emulate", path]).status.code(), Some(0));
    let (types, cpus) = (lines(1, 11), lines(1, 6));
    assert_eq!((types.len(), cpus.len()), (3, 3), "{types:?} {cpus:?}");
    let other_thread_lines = || lines(2, 13).into_iter().filter(|line| !line.ends_with(":0")).count();
    assert_eq!(other_thread_lines(), 1);
    let output = taskscope(&["emulate", "--threads", "101", path]);
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
    assert_eq!((lines(1, 11), lines(1, 6)), (types, cpus));
    assert_eq!(other_thread_lines(), 0, "what the other thread did is not asked for");
    assert_eq!(taskscope(&["emulate", "-l", "--threads", "101", path]).status.code(), Some(2));
}

#[test]
fn ovnis_own_cases_pass_under_the_names_of_its_tools() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/ovni");
    let Ok(index) = fs::read_to_string(corpus.join("INDEX.tsv")) else {
        taskscope_prerequisite::skip(format_args!("no reference traces in {}", corpus.display()));
        return;
    };
    let links = tempfile::tempdir().unwrap();
    for tool in ["ovniemu", "ovnisort"] {
        let target = env!("CARGO_BIN_EXE_taskscope");
        std::os::unix::fs::symlink(target, links.path().join(tool)).unwrap();
    }
    let mut failures = Vec::new();
    for line in index.lines().skip(1) {
        let columns: Vec<&str> = line.split('\t').collect();
        let [name, _, expect, regex, steps, flags, ..] = columns[..] else { panic!("{line}") };
        if name.starts_with("synth") {
            continue;
        }
        let copy = tempfile::tempdir().unwrap();
        copy_tree(&corpus.join(name).join("ovni"), copy.path());
        let path = copy.path().to_str().unwrap();
        let (mut accepted, mut talk) = (true, String::new());
        for tool in steps.split(';').map(str::trim) {
            let mut arguments: Vec<&str> = Vec::new();
            if tool == "ovniemu" && flags != "-" {
                arguments.extend(flags.split(' '));
            }
            arguments.push(path);
            let output = run(&links.path().join(tool), &arguments);
            accepted &= output.status.success();
            talk.push_str(&stderr(&output));
        }
        let matches = regex.is_empty() || {
            let file = copy.path().join("talk");
            fs::write(&file, &talk).unwrap();
            run(Path::new("grep"), &["-q", "-e", regex, file.to_str().unwrap()]).status.success()
        };
        if accepted != (expect == "ok") || !matches {
            failures.push(format!("{name}: expected {expect} {regex}\n{talk}"));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Every byte of `ovnitop` and of `ovnidump -x`, and the columns of `ovnidump`, on every reference trace.
#[test]
fn dumps_and_counts_are_those_of_ovnis_tools() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus/ovni");
    if !corpus.exists() {
        taskscope_prerequisite::skip(format_args!("no reference traces in {}", corpus.display()));
        return;
    }
    let links = tempfile::tempdir().unwrap();
    let mut compared = 0;
    for (name, tool, options) in
        [("ovnitop", "ovnitop", &[][..]), ("ovnidump-x", "ovnidump", &["-x"]), ("ovnidump", "ovnidump", &[])]
    {
        let link = links.path().join(tool);
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_taskscope"), &link);
        for case in fs::read_dir(&corpus).unwrap() {
            let case = case.unwrap().path();
            let Ok(expected) = fs::read_to_string(case.join(format!("{name}.txt"))) else { continue };
            let code: i32 =
                fs::read_to_string(case.join(format!("{name}.rc"))).unwrap().trim().parse().unwrap();
            let output = Command::new(&link).args(options).arg("ovni").current_dir(&case).output().unwrap();
            // If ovni's tool crashed there is nothing to compare.
            if code < 0 {
                assert!(output.status.code().is_some(), "{tool} {}", case.display());
                continue;
            }
            assert_eq!(output.status.code(), Some(code), "{tool} {}: {}", case.display(), stderr(&output));
            let columns = |text: &str| -> Vec<String> {
                let words = |line: &str| line.split_whitespace().take(3).collect::<Vec<_>>().join(" ");
                text.lines()
                    .map(|line| if name == "ovnidump" { words(line) } else { line.to_owned() })
                    .collect()
            };
            assert_eq!(columns(&stdout(&output)), columns(&expected), "{tool} {}", case.display());
            compared += 1;
        }
    }
    assert!(compared > 200, "only {compared} outputs were compared");
}

fn copy_tree(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_tree(&entry.path(), &target);
        } else {
            fs::write(&target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

#[test]
fn tools_of_ovni_print_its_messages() {
    let root = tempfile::tempdir().unwrap();
    let tool = |name: &str| {
        let link = root.path().join(name);
        let _ = std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_taskscope"), &link);
        link
    };
    let help = run(&tool("ovniemu"), &["-h"]);
    let text = stdout(&help);
    let models: Vec<&str> =
        text.lines().skip_while(|line| !line.contains("emulation models")).skip(1).collect();
    let words: Vec<Vec<&str>> = models.iter().map(|line| line.split_whitespace().collect()).collect();
    assert!(words.contains(&vec!["V", "nosv", "2.7.0"]), "{text}");
    assert_eq!(words.len(), models::MODELS.iter().filter(|model| !model.own).count());

    let directory = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let place = root.path().join("lib");
    fs::create_dir(&place).unwrap();
    std::os::unix::fs::symlink(directory.join("libovni.so"), place.join("libovni.so.1")).unwrap();
    let version = Command::new(tool("ovniver")).env("LD_LIBRARY_PATH", &place).output().unwrap();
    let text = stdout(&version);
    assert!(text.contains(&format!("LD_LIBRARY_PATH set to {}", place.display())), "{text}");
    assert!(text.contains("libovni: build v1.14.0 (taskscope-"), "{text}");
    assert!(text.contains("dynamic v1.14.0 (taskscope-"), "{text}");
    assert!(text.contains(&format!("loaded from {}", place.join("libovni.so.1").display())), "{text}");
    let without = Command::new(tool("ovniver")).env_remove("LD_LIBRARY_PATH").output().unwrap();
    assert!(stdout(&without).contains("LD_LIBRARY_PATH not set"));

    let phrase = |stream: &StreamBuilder, phrase: &str| {
        let (_root, path) = written(stream);
        let output = run(&tool("ovniemu"), &["-l", &path]);
        assert!(!output.status.success());
        assert!(stderr(&output).contains(phrase), "{phrase}: {}", stderr(&output));
    };
    let begin = || StreamBuilder::new(0, 1, 101).cpus(1).execute(1_000, 0);
    let task = || {
        begin().jumbo(1_100, nosv::TYPE_CREATE, &type_payload(1, "t")).event(
            1_200,
            nosv::TASK_CREATE,
            &pair(1, 1),
        )
    };
    let execute = |stream: StreamBuilder, at| stream.event(at, nosv::TASK_EXECUTE, &pair(1, 0));
    let twice = execute(execute(task(), 2_000), 3_000).end(4_000);
    phrase(&twice, "body_execute: body(id=1,taskid=1) state must be Created but is Running");
    let paused =
        execute(execute(task(), 2_000).event(2_500, nosv::TASK_PAUSE, &pair(1, 0)), 3_000).end(4_000);
    phrase(&paused, "body_execute: refusing to run body(id=1,taskid=1) in Paused state");
    let not_enabled =
        begin().require(&["ovni"]).jumbo(1_100, nosv::TYPE_CREATE, &type_payload(1, "t")).end(2_000);
    phrase(&not_enabled, "model nosv not enabled for event VYc");
}
