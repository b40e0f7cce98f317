//! Programs that a recorder must not change, or cannot be loaded into: they run as alone, in each mode.

mod common;

use common::*;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const MODES: [&[&str]; 3] = [&[], &["--sample", "1000"], &["--mode", "profile"]];

/// Builds a file of `tests/programs` with a compiler driver. `None`, with the reason printed, if that is not installed or fails.
fn build(driver: &str, directory: &Path, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
    let program = directory.join(name);
    let built =
        Command::new(driver).arg(program_source(source)).arg("-o").arg(&program).args(options).output();
    if !built.as_ref().is_ok_and(|built| built.status.success()) {
        // Runtimes of sanitizers are in packages of their own.
        let lack = format!("{driver} {options:?} does not build here");
        match options.iter().any(|option| option.starts_with("-fsanitize")) {
            true => taskscope_prerequisite::skip(lack),
            false => taskscope_prerequisite::missing(lack),
        }
        return None;
    }
    Some(program)
}

/// Runs a command under `record`.
fn recorded(here: &Path, mode: &[&str], command: &[&str]) -> Output {
    output(record(here).args(["-o", "out"]).args(mode).arg("--").args(command))
}

/// A command runs with its own exit code and output in each mode, and one line names the reason why nothing is recorded.
fn assert_untouched(here: &Path, command: &[&str], reason: &str) {
    let alone = {
        let mut alone = Command::new(command[0]);
        // As `record` has it here.
        output(alone.args(&command[1..]).current_dir(here).env("OMP_NUM_THREADS", "2"))
    };
    for mode in MODES {
        let run = recorded(here, mode, command);
        assert_eq!(run.status.code(), alone.status.code(), "{mode:?}");
        assert_eq!(text(&run.stdout), text(&alone.stdout), "{mode:?}");
        let stderr = text(&run.stderr);
        let reasons = stderr.lines().filter(|line| line.contains(reason)).count();
        assert_eq!(reasons, 1, "{mode:?}");
        // Without the program's own output.
        let others = stderr.lines().filter(|line| !line.starts_with("taskscope: ")).count();
        assert_eq!(others, text(&alone.stderr).lines().count(), "{mode:?}");
        let _ = fs::remove_dir_all(here.join("out"));
    }
}

/// A forked child has none of its parent's threads, so memory that only those point to is a leak to its checker.
#[test]
fn forked_children_have_no_leaks_of_the_recorder() {
    for driver in ["gcc", "clang-19"] {
        let here = tempfile::tempdir().unwrap();
        let options = ["-fsanitize=address", "-g", "-pthread"];
        let source = "leak_checked_children.c";
        let Some(program) = build(driver, here.path(), "children", source, &options) else { continue };
        let program = program.to_str().unwrap();
        for mode in ["trace", "profile"] {
            let run = recorded(here.path(), &["-q", "--threads", "--mode", mode], &[program]);
            assert_eq!(text(&run.stdout), "0 failed\n", "{driver} {mode} {}", text(&run.stderr));
            assert_eq!(run.status.code(), Some(0), "{driver} {mode}");
            fs::remove_dir_all(here.path().join("out")).unwrap();
        }
    }
}

#[test]
fn programs_of_another_c_library_run_untouched() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build("musl-gcc", here.path(), "other", "environment.c", &[]) else { return };
    let reason = "uses another C library";
    assert_untouched(here.path(), &["./other", "one"], reason);
    assert_untouched(here.path(), &["sh", "-c", "./other one two | tail -n 1; exit 7"], reason);
    let script = here.path().join("script");
    fs::write(&script, format!("#!{} -x\n", program.display())).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    assert_untouched(here.path(), &["./script"], reason);
    let nested = here.path().join("nested");
    fs::write(&nested, format!("#!{}\n", script.display())).unwrap();
    fs::set_permissions(&nested, fs::Permissions::from_mode(0o755)).unwrap();
    assert_untouched(here.path(), &["./nested", "a", "b"], reason);
}

#[test]
fn programs_with_other_rights_run_untouched() {
    let here = tempfile::tempdir().unwrap();
    let Some(program) = build("gcc", here.path(), "rights", "environment.c", &[]) else { return };
    if std::os::unix::fs::chown(&program, Some(65534), Some(65534)).is_err() {
        taskscope_prerequisite::skip("only root gives files away");
        return;
    }
    for mode in [0o4755, 0o2755] {
        fs::set_permissions(&program, fs::Permissions::from_mode(mode)).unwrap();
        assert_untouched(here.path(), &["./rights"], "runs with the rights of another user");
    }
}

#[test]
fn programs_with_thread_sanitizer_run_as_alone() {
    let here = tempfile::tempdir().unwrap();
    let reason = "has ThreadSanitizer";
    let checked = ["-fsanitize=thread", "-g", "-O1", "-pthread"];
    for (name, code, more) in [("locked", "locked.c", &[][..]), ("region", "region_sums.c", &["-fopenmp"])] {
        if build("gcc", here.path(), name, code, &[&checked[..], more].concat()).is_some() {
            assert_untouched(here.path(), &[&format!("./{name}")], reason);
            assert_untouched(here.path(), &["sh", "-c", &format!("./{name}")], reason);
        }
    }
    // Only a library is checked.
    let library = here.path().join("libothers.so");
    let flags = [&checked[..], &["-shared", "-fPIC"]].concat();
    if build("gcc", here.path(), "libothers.so", "add_one.c", &flags).is_some() {
        let path = library.display().to_string();
        let flags = [path.as_str(), "-Wl,-rpath,$ORIGIN", "-fsanitize=thread"];
        if build("gcc", here.path(), "calls", "calls_add_one.c", &flags).is_some() {
            assert_untouched(here.path(), &["./calls"], reason);
        }
    }
}

/// Variables of one name, entries that are none, and their order reach the program.
#[test]
fn the_environment_is_passed_on_in_its_order() {
    let here = tempfile::tempdir().unwrap();
    let Some(starter) = build("gcc", here.path(), "starter", "starter.c", &[]) else { return };
    let Some(shown) = build("gcc", here.path(), "shown", "environment.c", &[]) else { return };
    let alone = output(Command::new(&starter).arg(&shown));
    for mode in MODES {
        let mut command = Command::new(&starter);
        command.args([env!("CARGO_BIN_EXE_taskscope"), "record", "-q", "-o"]).arg(here.path().join("out"));
        let run = output(command.args(mode).arg("--").arg(&shown));
        assert_eq!(run.status.code(), alone.status.code());
        let own = [
            "OMP_TOOL",
            "ASAN_OPTIONS=",
            "TASKSCOPE_",
            "LD_PRELOAD=",
            "OPENCL_LAYERS=",
            "CUDA_INJECTION64_PATH=",
            "INTEL_LIBITTNOTIFY64=",
            "KOKKOS_TOOLS_LIBS=",
            "NVTX_INJECTION64_PATH=",
            "LD_LIBRARY_PATH=",
            "OVNI_TRACEDIR=",
        ];
        let shown = text(&run.stdout);
        let kept: Vec<&str> =
            shown.lines().filter(|line| !own.iter().any(|name| line.starts_with(name))).collect();
        assert_eq!(kept, text(&alone.stdout).lines().collect::<Vec<_>>(), "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
    }
}

/// Go's runtime ends a process if a signal handler runs on a goroutine's stack.
#[test]
fn go_programs_with_c_code_run_as_alone() {
    let here = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs/cgo");
    let program = here.path().join("cgo");
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(source)
        .env("GOFLAGS", "-mod=mod -buildvcs=false")
        .env("GOCACHE", here.path().join("cache"))
        .env("GOPATH", here.path().join("path"))
        .output();
    if !built.as_ref().is_ok_and(|built| built.status.success()) {
        taskscope_prerequisite::missing(format_args!("go does not build here: {built:?}"));
        return;
    }
    let alone = output(&mut Command::new(&program));
    assert_eq!(alone.status.code(), Some(0));
    for mode in [&["--sample", "1000"][..], &["--sample", "97"], &["--mode", "profile"]] {
        for _ in 0..5 {
            let run = recorded(here.path(), mode, &["./cgo"]);
            assert_eq!(
                (run.status.code(), run.stdout.as_slice()),
                (Some(0), alone.stdout.as_slice()),
                "{mode:?}"
            );
            let _ = fs::remove_dir_all(here.path().join("out"));
        }
    }
}

/// On a thread with the recorder's alternate stack they run on that.
#[test]
fn handlers_that_take_much_of_the_stack_run_as_alone() {
    let here = tempfile::tempdir().unwrap();
    let here = here.path();
    if build("gcc", here, "handlers", "large_handlers.c", &["-O1", "-pthread"]).is_none() {
        return;
    }
    for mode in MODES {
        let run = recorded(here, mode, &["./handlers"]);
        assert_eq!((run.status.code(), text(&run.stdout)), (Some(0), "2 of 2\n".to_owned()), "{mode:?}");
        let _ = fs::remove_dir_all(here.join("out"));
    }
}

/// Ways to start a program that `record` does not see: the shell's variable `P` names it.
const STARTERS: [&[&str]; 4] =
    [&["sh", "-c", "$P"], &["sh", "-c", "echo | xargs $P"], &["./static"], &["./calls_system"]];

fn build_starters(here: &Path) -> bool {
    build("gcc", here, "static", "executes.c", &["-static"]).is_some()
        && build("gcc", here, "calls_system", "calls_system.c", &[]).is_some()
}

/// Started in any way, and although it is not named: a program runs as alone, in each mode.
fn assert_unnamed_as_alone(here: &Path, program: &str, reason: Option<&str>) {
    for starter in STARTERS {
        let alone = Command::new(starter[0])
            .args(&starter[1..])
            .current_dir(here)
            .env("P", program)
            .env("OMP_NUM_THREADS", "2")
            .output()
            .unwrap();
        for mode in MODES {
            let run = output(
                record(here).env("P", program).args(["-q", "-o", "out"]).args(mode).arg("--").args(starter),
            );
            assert_eq!(run.status.code(), alone.status.code(), "{program} by {starter:?} {mode:?}");
            assert_eq!(text(&run.stdout), text(&alone.stdout), "{program} by {starter:?} {mode:?}");
            assert_eq!(text(&run.stderr), text(&alone.stderr), "{program} by {starter:?} {mode:?}");
            if let Some(reason) = reason.filter(|_| !mode.is_empty()) {
                let reasons = notices(&here.join("out"));
                assert_eq!(reasons.iter().filter(|name| *name == reason).count(), 1, "{reasons:?}");
            }
            let _ = fs::remove_dir_all(here.join("out"));
        }
    }
}

#[test]
fn programs_of_another_c_library_run_from_every_starter() {
    let here = tempfile::tempdir().unwrap();
    if build("musl-gcc", here.path(), "other", "prints.c", &["-DLINE=\"musl\"", "-DSTATUS=12"]).is_some()
        && build_starters(here.path())
    {
        assert_unnamed_as_alone(here.path(), "./other", None);
    }
}

#[test]
fn programs_with_checkers_run_as_alone_from_every_starter() {
    let here = tempfile::tempdir().unwrap();
    if !build_starters(here.path()) {
        return;
    }
    let checked = ["-g", "-O1", "-pthread", "-DPRINTS_ENVIRONMENT"];
    for (driver, name, flag, reason) in [
        ("gcc", "races", "-fsanitize=thread", "thread-sanitizer"),
        ("clang-19", "clang_races", "-fsanitize=thread", "thread-sanitizer"),
        ("clang-19", "memory", "-fsanitize=memory", "memory-sanitizer"),
    ] {
        if build(driver, here.path(), name, "locked.c", &[&checked[..], &[flag]].concat()).is_some() {
            // The environment is printed: attached additions are removed from it if preloaded.
            let quiet = format!("./{name}");
            for mode in MODES.into_iter().skip(1) {
                let command = |taskscope: &mut Command| {
                    let all = taskscope.env("P", &quiet).env_remove("PWD").env_remove("OLDPWD");
                    output(all.args(["-q", "-o", "out"]).args(mode).args(["--", "./static"]))
                };
                let run = command(&mut record(here.path()));
                let alone = output(
                    taskscope_environment()
                        .current_dir(here.path())
                        .env("P", &quiet)
                        .env_remove("PWD")
                        .env_remove("OLDPWD")
                        .arg("./static"),
                );
                assert_eq!(run.status.code(), alone.status.code());
                assert_eq!(text(&run.stdout), text(&alone.stdout));
                assert_eq!(text(&run.stderr), text(&alone.stderr));
                assert_eq!(notices(&here.path().join("out")), [reason]);
                let _ = fs::remove_dir_all(here.path().join("out"));
            }
        }
    }
    let options = ["-DLINE=\"checked\"", "-DSTATUS=29", "-fsanitize=thread"];
    if build("gcc", here.path(), "races", "prints.c", &options).is_some() {
        assert_unnamed_as_alone(here.path(), "./races", Some("thread-sanitizer"));
    }
}

/// `env`, with the environment that [`record`] has.
fn taskscope_environment() -> Command {
    let mut command = Command::new("env");
    for (name, value) in taskscope().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    command.env("OMP_NUM_THREADS", "2");
    command
}

/// A call of the recorder's would end them.
#[test]
fn programs_that_restrict_their_system_calls_end_as_alone() {
    const KILL: &str = "0x80000000";
    const REFUSE: &str = "0x00050001";
    let here = tempfile::tempdir().unwrap();
    let flags = ["-pthread", "-O1", "-g"];
    if build("gcc", here.path(), "restricted", "restricted.c", &flags).is_none() {
        return;
    }
    let alone = output(Command::new("./restricted").args(["prctl", KILL]).current_dir(here.path()));
    if alone.status.code() != Some(13) {
        taskscope_prerequisite::skip("a program cannot restrict its system calls here");
        return;
    }
    let warnings = |run: &Output| text(&run.stderr).matches("restricts its system calls").count();
    for mode in MODES {
        for how in ["prctl", "seccomp"] {
            let run = recorded(here.path(), mode, &["./restricted", how, KILL]);
            assert_eq!(run.status.code(), Some(13), "{how} {mode:?}");
            assert_eq!(text(&run.stdout), text(&alone.stdout), "{how} {mode:?}");
            assert_eq!((warnings(&run), notices(&here.path().join("out")).len()), (1, 1), "{how} {mode:?}");
            // Activity before it is recorded.
            let is_profile = mode.contains(&"profile");
            assert_eq!(
                streams(&here.path().join("out")).len(),
                if mode.contains(&"--sample") { 2 } else { 0 }
            );
            if is_profile {
                assert!(text(&run.stderr).contains("profile of 1 process"), "{mode:?}");
            }
            let _ = fs::remove_dir_all(here.path().join("out"));
        }
        // A handler's return is refused.
        let run = recorded(here.path(), mode, &["./restricted", "seccomp", REFUSE]);
        assert_eq!((run.status.code(), warnings(&run)), (Some(13), 1), "{mode:?}");
        assert_eq!(text(&run.stdout), text(&alone.stdout), "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
        // Refused are calls of the recorder's, by a list of them.
        let run = recorded(here.path(), mode, &["./restricted", "refuse", REFUSE]);
        assert_eq!((run.status.code(), warnings(&run)), (Some(13), 0), "{mode:?}");
        assert_eq!(text(&run.stdout), text(&alone.stdout), "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
    }
}

/// Filters outlast `exec`.
#[test]
fn programs_of_a_restricted_process_end_as_alone() {
    let here = tempfile::tempdir().unwrap();
    if build("gcc", here.path(), "restricted", "restricted.c", &["-pthread", "-O1"]).is_none() {
        return;
    }
    let options = ["-DLINE=\"done\"", "-DSTATUS=14", "-DWORKS", "-fno-stack-protector"];
    build("gcc", here.path(), "plain", "prints.c", &options);
    let command = ["./restricted", "prctl", "0x80000000", "./plain"];
    let alone = output(Command::new(command[0]).args(&command[1..]).current_dir(here.path()));
    if alone.status.code() != Some(14) {
        taskscope_prerequisite::skip("a program cannot restrict its system calls so here");
        return;
    }
    for mode in MODES {
        let run = recorded(here.path(), mode, &command);
        assert_eq!(run.status.code(), Some(14), "{mode:?}");
        assert_eq!(text(&run.stdout), text(&alone.stdout), "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
    }
}

/// The program's leaks are found, the recorder's memory is not reported.
#[test]
fn leaks_are_found_as_alone() {
    let here = tempfile::tempdir().unwrap();
    for (driver, name, flag) in [
        ("gcc", "address", "-fsanitize=address"),
        ("gcc", "leak", "-fsanitize=leak"),
        ("gcc", "undefined", "-fsanitize=undefined"),
        ("clang-19", "clang_address", "-fsanitize=address"),
    ] {
        if build(driver, here.path(), name, "leaks.c", &[flag, "-pthread"]).is_none() {
            continue;
        }
        let program = format!("./{name}");
        for arguments in [&[][..], &["leak"]] {
            let command = [&[program.as_str()][..], arguments].concat();
            let alone = output(Command::new(command[0]).args(&command[1..]).current_dir(here.path()));
            for mode in MODES {
                let run = recorded(here.path(), mode, &command);
                assert_eq!(run.status.code(), alone.status.code(), "{command:?} {mode:?}");
                assert_eq!(text(&run.stdout), text(&alone.stdout), "{command:?} {mode:?}");
                let leaks = |output: &Output| text(&output.stderr).matches("77 byte(s) leaked").count();
                assert_eq!(leaks(&run), leaks(&alone), "{command:?} {mode:?}");
                let _ = fs::remove_dir_all(here.path().join("out"));
            }
        }
    }
}

/// A program that may not be recorded does not exclude others that the same command names.
#[test]
fn others_are_recorded_beside_an_untouched_program() {
    let here = tempfile::tempdir().unwrap();
    if build("musl-gcc", here.path(), "other", "prints.c", &["-DLINE=\"musl\"", "-DSTATUS=0"]).is_none() {
        return;
    }
    for compiler in Compiler::ALL {
        compiler.build(here.path(), "region", "region.c", &[]);
        for mode in MODES {
            let run = recorded(here.path(), mode, &["sh", "-c", "./other && ./region && ./other"]);
            assert_eq!((run.status.code(), text(&run.stdout).as_str()), (Some(0), "musl\nmusl\n"));
            assert!(notices(&here.path().join("out")).contains(&"cannot-load".to_owned()));
            let is_profile = mode.contains(&"profile");
            assert!(is_profile || streams(&here.path().join("out")).len() == 2, "{compiler:?} {mode:?}");
            assert!(text(&run.stderr).contains(if is_profile {
                "profile of 1 process"
            } else {
                "2 threads"
            }));
            let _ = fs::remove_dir_all(here.path().join("out"));
        }
    }
}

/// The program can start as many threads as alone, minus one for the process of `record`.
#[test]
fn thread_limits_leave_the_program_as_many_as_alone() {
    let here = tempfile::tempdir().unwrap();
    fs::set_permissions(here.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(other) = OtherUser::new(here.path(), 1_900_000_000, 24) else { return };
    let own = env!("CARGO_BIN_EXE_taskscope");
    for (name, code) in [("count", "starts_threads.c"), ("forks", "starts_processes.c")] {
        for compiler in Compiler::ALL {
            let program = compiler.build(here.path(), name, code, &["-Wno-unused-result"]);
            let program = program.display().to_string();
            let alone = output(&mut other.command(&[&program]));
            let threads = |run: &Output| text(&run.stdout).trim().parse::<i64>().unwrap();
            assert!(threads(&alone) > 15, "{alone:?}");
            for mode in MODES {
                let record = [&[own, "record", "-q", "-o", "out"], mode, &["--", &program]].concat();
                let run = output(&mut other.command(&record));
                assert_eq!(run.status.code(), alone.status.code(), "{name} {compiler:?} {mode:?}");
                assert_eq!(threads(&run), threads(&alone) - 1, "{name} {compiler:?} {mode:?}");
                let _ = fs::remove_dir_all(here.path().join("out"));
            }
        }
    }
}

/// Near a large limit, a recorder that is preloaded ends its thread for the program's.
#[test]
fn a_thread_of_the_recorder_gives_way_to_the_programs() {
    let here = tempfile::tempdir().unwrap();
    fs::set_permissions(here.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let Some(other) = OtherUser::new(here.path(), 1_950_000_000, 1100) else { return };
    let Some(program) =
        build("gcc", here.path(), "count", "starts_threads.c", &["-pthread", "-DSMALL_STACKS"])
    else {
        return;
    };
    let program = program.display().to_string();
    let threads = |run: &Output| text(&run.stdout).trim().parse::<i64>().unwrap();
    let alone = output(&mut other.command(&[&program]));
    for mode in MODES {
        let own = env!("CARGO_BIN_EXE_taskscope");
        let record = [&[own, "record", "-q", "-o", "out"], mode, &["--", &program]].concat();
        let run = output(&mut other.command(&record));
        assert_eq!(run.status.code(), alone.status.code(), "{mode:?}");
        assert_eq!(threads(&run), threads(&alone) - 1, "{mode:?}");
        let _ = fs::remove_dir_all(here.path().join("out"));
    }
}

/// A user without any other process, with a low process limit.
struct OtherUser<'a> {
    here: &'a Path,
    id: String,
    limit: String,
}

impl<'a> OtherUser<'a> {
    /// `None`, with the reason printed, if this user may not become another, or that one may not run the
    /// command.
    fn new(here: &'a Path, first_id: u32, limit: u32) -> Option<Self> {
        let user = OtherUser {
            here,
            id: (first_id + std::process::id()).to_string(),
            limit: format!("--nproc={limit}"),
        };
        let own = env!("CARGO_BIN_EXE_taskscope");
        let may = user.command(&[own, "--version"]).output().is_ok_and(|may| may.status.success());
        if !may {
            taskscope_prerequisite::skip(format_args!("no other user can run {own} here"));
        }
        may.then_some(user)
    }

    fn command(&self, command: &[&str]) -> Command {
        let mut limited = Command::new("setpriv");
        limited.args(["--reuid", &self.id, "--regid", &self.id, "--clear-groups", "prlimit", &self.limit]);
        limited.args(command).current_dir(self.here).env("OMP_NUM_THREADS", "2");
        limited
    }
}
