//! `taskscope record` never changes the outcome of a program: exit code, signals, input and output, for any
//! program, directory and limits.

mod common;

use common::*;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

#[test]
fn exit_codes_are_those_of_the_program_or_of_env() {
    let here = tempfile::tempdir().unwrap();
    for (code, command) in [(0, "exit 0"), (7, "exit 7"), (255, "exit 255")] {
        let output = output(record(here.path()).args(["--", "sh", "-c", command]));
        assert_eq!(output.status.code(), Some(code));
    }
    let missing = output(record(here.path()).args(["--", "no-such-command"]));
    assert_eq!(missing.status.code(), Some(127));
    assert!(text(&missing.stderr).contains("error: command not found: no-such-command"));
    fs::write(here.path().join("data"), "x").unwrap();
    let data = output(record(here.path()).args(["--", "./data"]));
    assert_eq!(data.status.code(), Some(126));
    assert!(text(&data.stderr).contains("is not executable") && text(&data.stderr).contains("chmod +x"));
    assert_eq!(output(record(here.path()).args(["--", "./"])).status.code(), Some(126));
    assert_eq!(output(record(here.path()).args(["--nonsense"])).status.code(), Some(125));
    // Options without an effect are rejected.
    let ring = ["--ring", "1M", "--mode", "profile"];
    for options in [&["--live", "1"][..], &ring, &["--clock", "cpu"], &["--control-signal", "9"]] {
        let refused = output(record(here.path()).args(options).args(["--", "true"]));
        assert_eq!(refused.status.code(), Some(125), "{options:?}");
        assert!(text(&refused.stderr).contains(options[0]), "{refused:?}");
    }
    assert_eq!(names(here.path()), ["data", "sh.trace"], "of the program that ran, the reason alone");
    assert_eq!(names(&here.path().join("sh.trace")), ["taskscope-run.json"]);
}

/// A runtime that is linked into the program loads no tool by itself.
#[test]
fn the_tool_is_preloaded_where_the_runtime_is_inside_of_the_program() {
    let here = tempfile::tempdir().unwrap();
    // Without names it is recognised by its requests to the loader.
    for (name, flags) in [
        ("inside", &["-DHAS_RUNTIME"][..]),
        ("inside, stripped", &["-DASKS_BY_NAME", "-s"]),
        ("plain", &[]),
        ("plain, stripped", &["-s"]),
    ] {
        let program = Compiler::Gcc.build(here.path(), name, "preloads.c", flags);
        let output = output(record(here.path()).arg("--").arg(program).env_remove("LD_PRELOAD"));
        let preloads = text(&output.stdout).contains("libtaskscope_ompt.so");
        assert_eq!(preloads, name.starts_with("inside"), "{name}: {output:?}");
    }
}

#[test]
fn programs_that_cannot_be_executed_are_explained() {
    let here = tempfile::tempdir().unwrap();
    for (name, content, code) in [("torn", "\x7fELF", 126), ("orphan", "#!/no/such/interpreter\n", 126)] {
        let path = here.path().join(name);
        fs::write(&path, content).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let output = output(record(here.path()).arg(format!("./{name}")));
        assert_eq!(output.status.code(), Some(code), "{name}");
        assert!(text(&output.stderr).contains("why:"), "{name}");
    }
    assert_eq!(names(here.path()), ["orphan", "torn"]);
}

#[test]
fn a_script_without_its_first_line_is_given_to_the_shell() {
    let here = tempfile::tempdir().unwrap();
    let path = here.path().join("plain");
    fs::write(&path, "echo $0 $1; exit 8\n").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let output = output(record(here.path()).args(["./plain", "one"]));
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(8), "./plain one\n"));
}

#[test]
fn a_killing_signal_is_raised_again_without_a_core_dump() {
    let here = tempfile::tempdir().unwrap();
    for (name, signal) in [("KILL", 9), ("TERM", 15), ("SEGV", 11), ("ABRT", 6), ("INT", 2)] {
        let script = format!("ulimit -c unlimited 2>/dev/null; kill -{name} $$");
        // Tests run in the background may have signals ignored, which a shell cannot undo.
        let command = ["env", "--default-signal", "sh", "-c", &script];
        let output = output(record(here.path()).args(command));
        assert_eq!(output.status.signal(), Some(signal), "{name}");
        assert!(!output.status.core_dumped(), "{name}");
    }
}

#[test]
fn input_and_output_pass_through() {
    let here = tempfile::tempdir().unwrap();
    let mut command = record(here.path());
    command.args(["-q", "--", "sh", "-c", "cat; echo talk >&2"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"given\0bytes").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.stdout, b"given\0bytes");
    assert_eq!(text(&output.stderr), "talk\n", "--quiet adds nothing");
}

#[test]
fn arguments_and_name_arrive_as_typed() {
    let here = tempfile::tempdir().unwrap();
    let output = output(record(here.path()).args([
        "sh",
        "-c",
        "printf '%s|' \"$0\" \"$@\"",
        "zero",
        "-o",
        "--",
        "a b",
        "",
    ]));
    assert_eq!(text(&output.stdout), "zero|-o|--|a b||");
}

#[test]
fn a_signal_sent_to_us_alone_reaches_the_program() {
    let here = tempfile::tempdir().unwrap();
    let script = "trap 'echo caught; exit 5' TERM; echo ready; while :; do sleep 0.05; done";
    let mut command = record(here.path());
    command.args(["-q", "--", "sh", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "ready\n");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(child.id() as i32), nix::sys::signal::SIGTERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(5));
    line.clear();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "caught\n");
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let here = tempfile::tempdir().unwrap();
    let own = env!("CARGO_BIN_EXE_taskscope");
    let ignored = |with: &str| {
        let script = format!("trap '' HUP; {with} grep SigIgn: /proc/self/status");
        let output = output(std::process::Command::new("sh").args(["-c", &script]).current_dir(here.path()));
        text(&output.stdout)
    };
    let plain = ignored("");
    let last = plain.trim_end().chars().last().and_then(|digit| digit.to_digit(16));
    assert!(last.is_some_and(|digit| digit % 2 == 1), "SIGHUP is ignored: {plain}");
    assert_eq!(ignored(&format!("'{own}' record -q --")), plain);
}

#[test]
fn a_program_without_openmp_leaves_the_reason() {
    let here = tempfile::tempdir().unwrap();
    for _ in 0..2 {
        let without = output(record(here.path()).arg("true"));
        assert!(text(&without.stderr).contains("nothing was recorded"));
        // Reused if it contains only a reason.
        assert_eq!(names(here.path()), ["true.trace"]);
        assert_eq!(names(&here.path().join("true.trace")), ["taskscope-run.json"]);
    }
    output(record(here.path()).args(["-o", "asked", "true"]));
    assert_eq!(names(here.path()), ["asked", "true.trace"]);
    let run = run_file(&here.path().join("asked"));
    assert_eq!(run["exit_code"], 0);
    assert_eq!(run["command"], serde_json::json!(["true"]));
    assert!(run["wall_ns"].as_u64().unwrap() > 0);
}

#[test]
fn a_directory_that_holds_something_is_never_touched() {
    let here = tempfile::tempdir().unwrap();
    fs::create_dir(here.path().join("out")).unwrap();
    fs::write(here.path().join("out/precious"), "x").unwrap();
    let taken = output(record(here.path()).args(["-o", "out", "true"]));
    assert_eq!(taken.status.code(), Some(0));
    assert!(text(&taken.stderr).contains("recording into out.2"));
    assert_eq!(names(&here.path().join("out")), ["precious"]);
    assert_eq!(notices(&here.path().join("out.2")), ["directory-taken"]);
}

#[test]
fn a_program_runs_where_it_cannot_be_recorded_unless_that_is_refused() {
    let here = tempfile::tempdir().unwrap();
    fs::write(here.path().join("file"), "x").unwrap();
    let cannot_be_set_up = |strict: &[&str]| {
        let exit_7 = ["--", "sh", "-c", "echo ran; exit 7"];
        let unusable = ["file", "file/below", "/proc/nowhere"]
            .map(|directory| output(record(here.path()).args(strict).args(["-o", directory]).args(exit_7)));
        let no_recorder = record(here.path())
            .env("TASKSCOPE_OMPT_LIBRARY", "/no/such.so")
            .args(strict)
            .args(exit_7)
            .output();
        unusable.into_iter().chain(no_recorder)
    };
    for ran in cannot_be_set_up(&[]) {
        assert_eq!((ran.status.code(), text(&ran.stdout)), (Some(7), "ran\n".into()));
        assert!(text(&ran.stderr).starts_with("error: cannot "));
        assert!(text(&ran.stderr).contains("the program runs, unrecorded"));
    }
    for refused in cannot_be_set_up(&["--strict"]) {
        assert_eq!((refused.status.code(), text(&refused.stdout)), (Some(125), String::new()));
        assert!(text(&refused.stderr).contains("nothing was run"));
    }
    assert_eq!(names(here.path()), ["file"]);
}

#[test]
fn the_program_inherits_signal_mask_and_ignored_sigpipe() {
    let here = tempfile::tempdir().unwrap();
    let own = env!("CARGO_BIN_EXE_taskscope");
    let caller = |ignored: &str, prefix: &str| {
        let command =
            format!("{ignored} exec env --block-signal=USR2 {prefix} grep ^Sig[BI] /proc/self/status");
        output(std::process::Command::new("sh").args(["-c", &command]).current_dir(here.path())).stdout
    };
    for ignored in ["", "trap '' PIPE;", "trap '' PIPE INT;"] {
        let without = caller(ignored, "");
        assert!(text(&without).contains("SigBlk:\t0000000000000800"));
        assert_eq!(text(&caller(ignored, &format!("{own} record -q --"))), text(&without), "{ignored}");
    }
}

#[test]
fn ranks_of_a_job_share_one_directory_and_one_speaks() {
    let here = tempfile::tempdir().unwrap();
    let rank = |rank: &str| {
        let mut command = record(here.path());
        command
            .env("OMPI_COMM_WORLD_RANK", rank)
            .env("OMPI_COMM_WORLD_SIZE", "2")
            .env("PMIX_NAMESPACE", "77");
        output(command.args(["-o", "job", "true"]))
    };
    assert!(rank("1").stderr.is_empty());
    assert!(!rank("0").stderr.is_empty());
    assert_eq!(names(here.path()), ["job"]);
    assert_eq!(names(&here.path().join("job")), ["taskscope-run.1.json", "taskscope-run.json"]);
    assert_eq!(run_file(&here.path().join("job"))["rank"], 0);
}

#[test]
fn a_users_tool_is_loaded_next_and_a_disabled_tool_is_respected() {
    let here = tempfile::tempdir().unwrap();
    let show = "echo $TASKSCOPE_NEXT_TOOL_LIBRARIES; echo $OMP_TOOL_LIBRARIES; echo $TASKSCOPE_TRACE_DIR";
    let mut command = record(here.path());
    let chained =
        output(command.env("OMP_TOOL_LIBRARIES", "/x/libown.so").args(["-o", "a", "sh", "-c", show]));
    let shown = text(&chained.stdout);
    let lines: Vec<_> = shown.lines().collect();
    assert_eq!(lines[0], "/x/libown.so");
    assert!(lines[1].ends_with("libtaskscope_ompt.so:/x/libown.so"), "{}", lines[1]);
    assert_eq!(lines[2], here.path().canonicalize().unwrap().join("a").to_str().unwrap());
    // There is no advice to run a missing library.
    assert_eq!(notices(&here.path().join("a")), ["tool-missing"]);
    let there = here.path().join("libown.so");
    std::fs::write(&there, "").unwrap();
    output(record(here.path()).env("OMP_TOOL_LIBRARIES", &there).args(["-o", "c", "true"]));
    assert_eq!(notices(&here.path().join("c")), ["tool-chained"]);
    let disabled = output(record(here.path()).env("OMP_TOOL", "disabled").args(["-o", "b", "true"]));
    assert!(text(&disabled.stderr).contains("OMP_TOOL=disabled"));
    assert_eq!(notices(&here.path().join("b")), ["tool-disabled"]);
}
