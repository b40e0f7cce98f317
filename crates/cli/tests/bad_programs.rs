//! Programs that crash, fork, replace themselves, cancel, …, and resource limits during recording: the
//! program's outcome is the same as without taskscope, and the events so far are recorded.

mod common;

use common::*;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A directory with one program of `tests/programs`, built by one compiler.
struct Place {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Place {
    fn new(name: &str, compiler: Compiler, options: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let program = compiler.build(directory.path(), name, &format!("{name}.c"), options);
        Place { directory, program }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn trace(&self) -> PathBuf {
        self.path().join("out.trace")
    }

    /// Runs the program without and with taskscope; returns the second after comparing both.
    fn record_unchanged(&self, arguments: &[&str]) -> Output {
        let set = |command: &mut Command| {
            command
                .current_dir(self.path())
                .env("OMP_NUM_THREADS", "2")
                .env("OMP_CANCELLATION", "true")
                .args(arguments);
        };
        let mut plain = Command::new(&self.program);
        set(&mut plain);
        let plain = output(&mut plain);
        let mut recorded = record(self.path());
        recorded.args(["-o", "out.trace", "--"]).arg(&self.program);
        set(&mut recorded);
        let recorded = output(&mut recorded);
        assert_eq!(recorded.status.code(), plain.status.code());
        assert_eq!(recorded.status.signal(), plain.status.signal());
        assert_eq!(text(&recorded.stdout), text(&plain.stdout));
        recorded
    }
}

/// If the recorder cannot be loaded, the reason is reported.
#[test]
fn static_programs_and_those_with_a_tool_run_and_report_why_nothing_is_recorded() {
    let here = tempfile::tempdir().unwrap();
    let errors = |program: &Path| {
        let run = output(record(here.path()).arg("--").arg(program).env("OMP_NUM_THREADS", "2"));
        assert_eq!(run.status.code(), Some(0));
        text(&run.stderr)
    };
    let tool = program_source("own_tool.c").display().to_string();
    let program = Compiler::Gcc.build(here.path(), "static", "region.c", &["-static"]);
    assert!(errors(&program).contains("is linked statically, so no recorder"), "{}", errors(&program));
    let program = Compiler::Clang.build(here.path(), "own", "region.c", &[&tool, "-rdynamic"]);
    assert!(errors(&program).contains("own has its own OMPT tool (ompt_start_tool)"), "{}", errors(&program));
}

/// The program's library is asked second; the recording is unaffected.
#[test]
fn a_tool_in_a_library_of_the_program_runs_behind_ours() {
    let here = tempfile::tempdir().unwrap();
    let library = Compiler::Clang.build(here.path(), "libown.so", "own_tool.c", &["-shared", "-fPIC"]);
    let options = ["-Wl,--no-as-needed", library.to_str().unwrap()];
    let program = Compiler::Clang.build(here.path(), "with-library", "region.c", &options);
    for options in [&[][..], &["--sample", "100"], &["--mode", "profile"]] {
        let mut recorded = record(here.path());
        recorded.args(options).args(["-o", "out.trace", "--"]).arg(&program).env("OMP_NUM_THREADS", "2");
        let run = output(&mut recorded);
        assert_eq!(text(&run.stdout), "started\nended\n", "{options:?}");
        assert!(text(&run.stderr).contains("libown.so runs behind taskscope's"), "{}", text(&run.stderr));
        let report = output(taskscope().current_dir(here.path()).args(["report", "out.trace"]));
        assert_eq!(report.status.code(), Some(0), "{}", text(&report.stderr));
        assert!(text(&report.stdout).contains("2 threads"), "{}", text(&report.stdout));
        std::fs::remove_dir_all(here.path().join("out.trace")).unwrap();
    }
}

/// The program gets the sampling signal on request, and sampling continues.
#[test]
fn a_program_handles_the_signal_of_samples_itself() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "urgent", "urgent.c", &[]);
    for options in [&["--sample", "500"][..], &["--sample", "500", "--mode", "profile"]] {
        let run = output(record(here.path()).args(options).args(["-o", "out", "--"]).arg(&program));
        assert_eq!((text(&run.stdout).as_str(), run.status.code()), ("1 2 1 1\n", Some(0)), "{options:?}");
        let shown = text(&output(taskscope().current_dir(here.path()).args(["report", "out"])).stdout);
        assert!(shown.contains("work  (urgent.c"), "{shown}");
        std::fs::remove_dir_all(here.path().join("out")).unwrap();
    }
}

#[test]
fn programs_end_as_they_do_without_us_and_are_recorded() {
    for (name, exit_code, tasks) in [
        ("fork", 6, 160),
        ("exec", 9, 50),
        ("pthreads", 0, 30),
        ("nested", 0, 4),
        ("cancel", 0, 100),
        ("many", 3, 100),
    ] {
        // A child of a process that has used libgomp hangs in its next region, without us too.
        let compilers = if name == "fork" { &[Compiler::Clang][..] } else { &Compiler::ALL };
        for &compiler in compilers {
            let place = Place::new(name, compiler, &[]);
            let recorded = place.record_unchanged(&[]);
            assert_eq!(recorded.status.code(), Some(exit_code), "{name} {compiler:?}");
            assert!(streams(&place.trace()).len() >= 2, "{name} {compiler:?}");
            assert_eq!(run_file(&place.trace())["exit_code"], exit_code, "{name} {compiler:?}");
            let report = report(&place.trace());
            assert_eq!(report["lost_events"], 0, "{name} {compiler:?}");
            // In a cancelled taskgroup not every task begins.
            let began = report["tasks"].as_u64().unwrap();
            assert!(
                began == tasks || (name == "cancel" && began <= tasks),
                "{name} {compiler:?}: {began} tasks"
            );
        }
    }
}

#[test]
fn a_dying_program_dies_the_same_way_and_leaves_its_trace() {
    for (name, signal, tasks) in [("crash", 11, 100), ("kill", 9, 5000)] {
        for compiler in Compiler::ALL {
            let place = Place::new(name, compiler, &[]);
            let recorded = place.record_unchanged(&[]);
            assert_eq!(recorded.status.signal(), Some(signal), "{name} {compiler:?}");
            assert!(!streams(&place.trace()).is_empty(), "{name} {compiler:?}");
            assert_eq!(run_file(&place.trace())["signal"], signal, "{name} {compiler:?}");
            assert!(text(&recorded.stderr).contains("incomplete"), "the header says what is missing");
            let report = report(&place.trace());
            assert_eq!(report["complete"], false, "{name} {compiler:?}");
            assert_eq!(report["tasks"], tasks, "{name} {compiler:?}");
            assert_eq!(report["signal"], signal, "{name} {compiler:?}");
        }
    }
}

/// A program that is killed long after its last event was there until its last sample.
#[test]
fn a_killed_programs_time_extends_to_its_last_sample() {
    let here = tempfile::tempdir().unwrap();
    let program = Compiler::Clang.build(here.path(), "spins", "killed_region.c", &[]);
    let mut command = record(here.path());
    command.args(["--sample", "200", "-o", "out.trace", "--"]).arg(&program);
    assert_eq!(output(&mut command).status.signal(), Some(nix::libc::SIGKILL));
    let report = report(&here.path().join("out.trace"));
    let wall = report["wall_ns"].as_u64().unwrap();
    assert!(wall > 300_000_000, "{wall} ns");
    assert_eq!(report["capacity_ns"].as_u64().unwrap(), 2 * wall);
    for thread in report["thread_states"].as_array().unwrap() {
        let states = thread["states"].as_object().unwrap().values();
        assert_eq!(states.map(|ns| ns.as_u64().unwrap()).sum::<u64>(), wall, "{thread}");
    }
    // A thread's section is uncertain only after its own last sample, or event.
    let until: Vec<u64> = (report["incomplete_streams"].as_array().unwrap().iter())
        .map(|stream| stream["kept_until_ns"].as_u64().unwrap())
        .collect();
    assert_eq!((until.len(), until.iter().max()), (2, Some(&wall)));
    assert_eq!(report["uncertain"]["ns"].as_u64().unwrap(), wall - until[0].min(until[1]));
    // Shares of the trace are of all of that.
    let half = output(
        taskscope().args(["report", "--range", "50%..100%", "--json"]).arg(here.path().join("out.trace")),
    );
    let half: serde_json::Value = serde_json::from_slice(&half.stdout).unwrap();
    assert!(half["wall_ns"].as_u64().unwrap().abs_diff(wall / 2) <= 1, "{wall} {}", half["wall_ns"]);
}

#[test]
fn the_newest_events_of_a_dead_program_are_collected_from_any_tail_directory() {
    let place = Place::new("kill", Compiler::Clang, &[]);
    let tails = place.path().join("tails");
    std::fs::create_dir(&tails).unwrap();
    let mut recorded = record(place.path());
    recorded.args(["-o", "out.trace", "--"]).arg(&place.program).env("TASKSCOPE_TAIL_DIR", &tails);
    assert_eq!(output(&mut recorded).status.signal(), Some(nix::libc::SIGKILL));
    assert_eq!(names(&tails), [""; 0]);
    // The trace is whole wherever it is.
    let moved = place.path().join("moved.trace");
    std::fs::rename(place.trace(), &moved).unwrap();
    let report = report(&moved);
    assert_eq!(report["complete"], false);
    assert!(report["tasks"].as_u64().unwrap() > 0);
}

#[test]
fn a_program_is_recorded_whole_while_its_drainer_is_stopped() {
    let place = Place::new("stop_recorder", Compiler::Clang, &[]);
    let tails = place.path().join("tails");
    std::fs::create_dir(&tails).unwrap();
    let mut recorded = record(place.path());
    // Relative, as users write it; the program may be anywhere when it starts to record.
    recorded.args(["-o", "out.trace", "--"]).arg(&place.program).env("TASKSCOPE_TAIL_DIR", "tails");
    let recorded = output(&mut recorded);
    assert_eq!(recorded.status.code(), Some(3));
    assert_eq!(text(&recorded.stdout), "drained by its parent\n");
    assert_eq!(names(&tails), [""; 0]);
    let report = report(&place.trace());
    assert_eq!(report["complete"], true);
    assert_eq!(report["tasks"], 20_000);
}

/// Its library ends a program in which another one comes before it, and would find leaks that are the recorder's.
#[test]
fn programs_with_address_sanitizer_are_recorded() {
    let place = Place::new("many", Compiler::Gcc, &["-fsanitize=address"]);
    let recorded = place.record_unchanged(&[]);
    assert!(!text(&recorded.stderr).contains("Sanitizer:"), "{}", text(&recorded.stderr));
    assert_eq!(notices(&place.trace()), ["runtime-replaced", "sanitizer"]);
}

#[test]
fn gcc_programs_run_on_another_runtime_only_where_it_can_do_everything() {
    let replaced = Place::new("many", Compiler::Gcc, &[]);
    replaced.record_unchanged(&[]);
    assert_eq!(notices(&replaced.trace()), ["runtime-replaced"]);

    let detach = Place::new("detach", Compiler::Gcc, &[]);
    let recorded = detach.record_unchanged(&[]);
    assert_eq!(notices(&detach.trace()), ["runtime-kept"]);
    assert!(text(&recorded.stderr).contains("omp_fulfill_event"), "the symbol is named");

    let native = Place::new("detach", Compiler::Clang, &[]);
    native.record_unchanged(&[]);
    assert!(notices(&native.trace()).is_empty());
    assert_eq!(report(&native.trace())["tasks"], 2);
}

#[test]
fn a_missing_entry_point_is_found_in_a_library_of_the_program() {
    let directory = tempfile::tempdir().unwrap();
    Compiler::Gcc.build(directory.path(), "libinner.so", "scope_library.c", &["-shared", "-fPIC"]);
    let here = directory.path().to_str().unwrap();
    let options = [&format!("-L{here}")[..], "-linner", "-Wl,-rpath,$ORIGIN"];
    let program = Compiler::Gcc.build(directory.path(), "outer", "calls_scope.c", &options);
    let recorded = output(record(directory.path()).args(["-o", "t", "--"]).arg(program));
    assert_eq!(recorded.status.code(), Some(5));
    let talk = text(&recorded.stderr);
    assert!(talk.contains("GOMP_scope_start") && talk.contains("libinner.so"), "{talk}");
}

#[test]
fn no_preload_leaves_gcc_programs_alone() {
    let place = Place::new("many", Compiler::Gcc, &[]);
    let plain = output(record(place.path()).args(["--no-preload", "-o", "t", "--"]).arg(&place.program));
    assert_eq!(plain.status.code(), Some(3));
    assert!(streams(&place.path().join("t")).is_empty());
    assert!(text(&plain.stderr).contains("nothing was recorded"));
}

#[test]
fn openmp_loaded_by_dlopen_is_recorded() {
    let place = Place::new("dlopen", Compiler::Clang, &[]);
    let library = Compiler::Clang.build(place.path(), "plugin.so", "plugin.c", &["-shared", "-fPIC"]);
    let recorded = place.record_unchanged(&[library.to_str().unwrap()]);
    assert_eq!(text(&recorded.stdout), "40\n");
    assert_eq!(report(&place.trace())["tasks"], 40);
}

/// As Python's modules are loaded: the program's file does not name GCC's runtime.
#[test]
fn gcc_openmp_loaded_by_dlopen_is_recorded_on_demand() {
    let place = Place::new("dlopen", Compiler::Gcc, &["-fno-openmp"]);
    let libraries = place.path().join("lib");
    std::fs::create_dir(&libraries).unwrap();
    Compiler::Gcc.build(&libraries, "plugin.so", "plugin.c", &["-shared", "-fPIC"]);
    // Python itself is a script if several versions are installed side by side.
    let script = place.path().join("run.sh");
    std::fs::write(&script, "#!/bin/sh\nprogram=./dlopen\n\"$program\" \"$@\"\n").unwrap();
    std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let recorded = |options: &[&str], program: &Path, trace: &str| {
        let mut command = record(place.path());
        command.env("LD_LIBRARY_PATH", &libraries).args(["-o", trace]).args(options);
        let run = output(command.arg("--").arg(program).arg("plugin.so"));
        assert_eq!((run.status.code(), &*text(&run.stdout)), (Some(0), "40\n"));
        text(&run.stderr)
    };
    let without = recorded(&[], &place.program, "without");
    assert!(without.contains("taskscope record --preload -- "), "{without}");
    let profile = recorded(&["--mode", "profile", "--sample", "2000"], &place.program, "profile");
    // Within a few milliseconds, no sample may fall into the runtime.
    assert!(profile.contains("profile of 1 process"), "{profile}");
    for (program, trace) in [(&place.program, "with"), (&script, "script")] {
        recorded(&["--preload"], program, trace);
        assert_eq!(report(&place.path().join(trace))["tasks"], 40, "{trace}");
        assert_eq!(notices(&place.path().join(trace)), ["runtime-replaced"], "{trace}");
    }
}

#[test]
fn wrappers_and_scripts_are_seen_through() {
    let place = Place::new("many", Compiler::Gcc, &[]);
    let script = place.path().join("run.sh");
    std::fs::write(&script, "#!/bin/sh\n./many 10\n").unwrap();
    let made = Command::new("chmod").arg("+x").arg(&script).status().unwrap();
    assert!(made.success());
    for (number, command) in
        [&["./run.sh"][..], &["env", "A=1", "./many"], &["sh", "-c", "./many; exit 3"]].iter().enumerate()
    {
        let trace = format!("t{number}");
        let recorded = output(record(place.path()).args(["-o", &trace]).args(*command));
        assert_eq!(recorded.status.code(), Some(3), "{command:?}");
        assert_eq!(streams(&place.path().join(trace)).len(), 2, "{command:?}");
    }
}

#[test]
fn limits_stop_the_recording_and_not_the_program() {
    for limit in ["ulimit -f 64", "ulimit -v 100000", "ulimit -n 32"] {
        let place = Place::new("many", Compiler::Clang, &[]);
        let own = env!("CARGO_BIN_EXE_taskscope");
        let script = format!("{limit}; exec '{own}' record -o out.trace -- ./many 20000");
        let mut command = Command::new("bash");
        let limited =
            output(command.args(["-c", &script]).current_dir(place.path()).env("OMP_NUM_THREADS", "2"));
        assert_eq!(limited.status.code(), Some(3), "{limit}");
        assert_eq!(text(&limited.stdout), "20000 tasks\n", "{limit}");
        assert_eq!(run_file(&place.trace())["exit_code"], 3, "{limit}");
        let report = report(&place.trace());
        let (kept, lost) = (report["events"].as_u64().unwrap(), report["lost_events"].as_u64().unwrap());
        println!("{limit}: {kept} events, {lost} lost");
        // Each of the three events of each task is recorded, or counted as lost.
        assert!(kept + lost >= 60_000, "{limit}: {kept} events, {lost} lost");
        assert_eq!(limit.starts_with("ulimit -f"), lost > 0, "{limit}");
        assert_eq!(lost > 0, is_mostly_unknown(&report), "{limit}: {}", report["causes"]);
    }
}

/// If no event can be stored, the message says so, rather than that there were no events.
#[test]
fn a_limit_without_room_for_any_event_is_reported() {
    let place = Place::new("many", Compiler::Clang, &[]);
    let own = env!("CARGO_BIN_EXE_taskscope");
    let script = format!("ulimit -f 4; exec '{own}' record -o out.trace -- ./many 200");
    let limited = output(Command::new("sh").args(["-c", &script]).current_dir(place.path()));
    assert_eq!(limited.status.code(), Some(3));
    let asked = output(taskscope().arg("report").arg(place.trace()));
    assert_eq!(asked.status.code(), Some(2));
    assert!(text(&asked.stderr).contains("could not store anything"), "{}", text(&asked.stderr));
}

/// LLVM's runtime crashes if a killed process of the same id has left it an empty file. The report names that
/// cause.
#[test]
fn a_runtime_that_dies_at_its_start_is_distinguished_from_the_recorder() {
    let place = Place::new("many", Compiler::Clang, &[]);
    let script = r#"file=/dev/shm/__KMP_REGISTERED_LIB_$$_$(id -u); rm -f "$file"; : > "$file"; echo "$file"; exec ./many 200"#;
    let run = output(record(place.path()).args(["-o", "out.trace", "--", "sh", "-c", script]));
    let file = text(&run.stdout).trim().to_owned();
    assert_eq!(run.status.signal(), Some(nix::libc::SIGBUS), "the runtime has been mended");
    let asked = output(taskscope().arg("report").arg(place.trace()));
    std::fs::remove_file(&file).unwrap();
    for message in [text(&run.stderr), text(&asked.stderr)] {
        assert!(
            message.contains(&format!("{file} empty")) && message.contains(&format!("rm {file}")),
            "{message}"
        );
    }
    let asked = output(taskscope().arg("report").arg(place.trace()));
    assert!(text(&asked.stderr).contains("signal 7 ended the program"), "{}", text(&asked.stderr));
}

/// The calibration events of `record` itself are not in the trace, however few files may be open.
#[test]
fn few_descriptors_leave_the_program_alone_in_its_trace() {
    let place = Place::new("many", Compiler::Clang, &[]);
    let own = env!("CARGO_BIN_EXE_taskscope");
    let script = format!("ulimit -n 5; exec '{own}' record -o out.trace -- ./many 200");
    let limited = output(Command::new("sh").args(["-c", &script]).current_dir(place.path()));
    assert_eq!(limited.status.code(), Some(3));
    let entries = std::fs::read_dir(place.trace()).unwrap().map(|entry| entry.unwrap().file_name());
    let others: Vec<_> = entries.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Whether the first thread's state is unknown for most of the time in which the tasks ran.
fn is_mostly_unknown(report: &serde_json::Value) -> bool {
    let of = |causes: &[&str]| -> u64 {
        let rows = report["causes"].as_array().unwrap().iter();
        rows.filter(|row| causes.contains(&row["state"].as_str().unwrap()))
            .map(|row| row["ns"].as_u64().unwrap())
            .sum()
    };
    of(&["unknown"]) > of(&["task", "task_creation", "worksharing"])
}

/// Records on a file system of one MiB, if this user may mount one.
#[test]
fn a_full_disk_stops_the_recording_and_not_the_program() {
    let place = Place::new("many", Compiler::Clang, &[]);
    std::fs::create_dir(place.path().join("small")).unwrap();
    let may_mount = ["-r", "-m", "mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "small"];
    let mounted = Command::new("unshare").args(may_mount).current_dir(place.path()).output();
    if !mounted.is_ok_and(|mounted| mounted.status.success()) {
        taskscope_prerequisite::skip("this user may not mount a file system");
        return;
    }
    let own = env!("CARGO_BIN_EXE_taskscope");
    let script = format!(
        "mount -t tmpfs -o size=1m tmpfs small && '{own}' record -o small/t -- ./many 100000; code=$?; \
         cp -r small/t kept; exit $code"
    );
    let full = output(
        Command::new("unshare")
            .args(["-r", "-m", "sh", "-c", &script])
            .current_dir(place.path())
            .env("OMP_NUM_THREADS", "2"),
    );
    assert_eq!(full.status.code(), Some(3));
    assert_eq!(text(&full.stdout), "100000 tasks\n");
    let report = report(&place.path().join("kept"));
    assert!(report["lost_events"].as_u64().unwrap() > 0);
    assert!(report["events"].as_u64().unwrap() > 10_000);
    assert!(is_mostly_unknown(&report), "{}", report["causes"]);
}

#[test]
fn a_program_without_debug_information_is_reported_by_its_functions() {
    let place = Place::new("many", Compiler::Clang, &["-g0"]);
    place.record_unchanged(&[]);
    let printed = output(taskscope().args(["report", "--section", "all"]).arg(place.trace()));
    let page = text(&printed.stdout).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("run_tasks+") && page.contains("[task]"), "the function is named");
    assert_eq!(page.matches("debug information").count(), 1, "reported once");
}

#[test]
fn a_construct_at_the_end_of_a_function_is_named_after_that_function() {
    for compiler in [Compiler::Clang, Compiler::Gcc] {
        let place = Place::new("tail", compiler, &["-O2"]);
        place.record_unchanged(&[]);
        let report = report(&place.trace());
        let causes = report["causes"].as_array().unwrap().iter();
        let places: Vec<&str> = causes.filter_map(|cause| cause["where"].as_str()).collect();
        assert!(places.iter().any(|place| place.starts_with("smooth [parallel at tail.c:")), "{places:?}");
        // Two regions end this function: with clang the calling one cannot be determined.
        assert!(places.iter().any(|place| place.starts_with("sharpen [parallel")), "{places:?}");
        let wrong = ["main [parallel", "through_another [parallel", "tail+"];
        assert!(!places.iter().any(|place| wrong.iter().any(|w| place.contains(w))), "{places:?}");
    }
}
