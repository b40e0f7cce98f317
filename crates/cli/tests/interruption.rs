//! `^C`: written files are closed and valid, or removed; the subcommand reports which; the exit code contains the
//! signal.

mod common;

use common::Compiler;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use taskscope_event::models::ovni;
use taskscope_testkit::generator::{Generator, Runtime};
use taskscope_testkit::trace_builder::StreamBuilder;

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_taskscope"))
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn generated(events: u64) -> (tempfile::TempDir, String) {
    let root = tempfile::tempdir().unwrap();
    let generator = Generator { runtime: Runtime::Nosv, threads: 8, threads_per_loom: 8, events, seed: 3 };
    generator.write(root.path()).unwrap();
    let path = root.path().to_str().unwrap().to_owned();
    (root, path)
}

#[test]
fn an_interrupted_emulation_leaves_whole_views() {
    let (_root, trace) = generated(300_000);
    for (name, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
        interrupts_emulation(&trace, name, code);
    }
}

/// The end time in a `.prv`'s header.
fn end_of(text: &str) -> i64 {
    text.split([':', '_']).find_map(|field| field.parse().ok().filter(|_| field.len() == 20)).unwrap()
}

#[test]
fn interrupted_compressed_views_end_at_the_reported_time() {
    let (_root, trace) = generated(300_000);
    let views = tempfile::tempdir().unwrap();
    let pipe = views.path().join("thread.prv.gz");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = start(&["emulate", "--gzip", "-o", views.path().to_str().unwrap(), &trace]);
    let mut records = fs::File::open(&pipe).unwrap();
    records.read_exact(&mut [0]).unwrap();
    signal(&child, "-INT");
    records.read_to_end(&mut Vec::new()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let unpacked = Command::new("gzip").arg("-dc").arg(views.path().join("cpu.prv.gz")).output().unwrap();
    assert!(unpacked.status.success());
    let text = String::from_utf8(unpacked.stdout).unwrap();
    let kept = format!("views up to {:.9} s", end_of(&text) as f64 / 1e9);
    assert!(stderr(&output).contains(&kept), "{} but {}", text.lines().next().unwrap(), stderr(&output));
}

fn interrupts_emulation(trace: &str, name: &str, code: i32) {
    let views = tempfile::tempdir().unwrap();
    // A pipe in the place of one file holds the emulation up until it is read.
    let pipe = views.path().join("thread.prv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = start(&["emulate", "-o", views.path().to_str().unwrap(), trace]);
    let mut records = BufReader::new(fs::File::open(&pipe).unwrap());
    let mut header = String::new();
    records.read_line(&mut header).unwrap();
    signal(&child, name);
    let mut rest = String::new();
    records.read_to_string(&mut rest).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    let message = stderr(&output);
    assert!(message.contains("error: interrupted") && message.contains("kept: views up to"), "{message}");

    let cpus = fs::read_to_string(views.path().join("cpu.prv")).unwrap();
    let kept = format!("views up to {:.9} s", end_of(&cpus) as f64 / 1e9);
    assert!(message.contains(&kept), "{} but {message}", cpus.lines().next().unwrap());
    for text in [header.clone() + &rest, cpus] {
        assert!(text.starts_with("#Paraver ") && text.ends_with('\n'));
        let mut last = 0;
        for line in text.lines().skip(1) {
            let fields: Vec<i64> = line.split(':').map(|field| field.parse().unwrap()).collect();
            assert!(fields.len() == 8 && fields[5] >= last, "{line}");
            last = fields[5];
        }
        let whole = end_of(&header);
        assert!(0 < last && last < whole, "stopped before the end: {last} of {whole}");
        assert!(last <= end_of(&text));
    }
    for file in ["thread.pcf", "thread.row", "cpu.pcf", "cpu.row", "cfg"] {
        assert!(views.path().join(file).exists(), "{file}");
    }
}

/// `nohup` ignores the end of the terminal for the programs that it starts.
#[test]
fn an_emulation_that_ignores_sighup_completes() {
    let (_root, trace) = generated(100_000);
    let views = tempfile::tempdir().unwrap();
    let pipe = views.path().join("thread.prv");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let child = Command::new("sh")
        .args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_taskscope")])
        .args(["emulate", "-o", views.path().to_str().unwrap(), &trace])
        .spawn()
        .unwrap();
    let mut records = BufReader::new(fs::File::open(&pipe).unwrap());
    records.read_line(&mut String::new()).unwrap();
    signal(&child, "-HUP");
    records.read_to_string(&mut String::new()).unwrap();
    assert_eq!(child.wait_with_output().unwrap().status.code(), Some(0));
}

#[test]
fn an_interrupted_dump_ends_with_a_whole_line() {
    let (_root, trace) = generated(100_000);
    for (name, code) in [("-INT", 130), ("-TERM", 143)] {
        let mut child = start(&["dump", "--json", &trace]);
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        lines.read_line(&mut text).unwrap();
        signal(&child, name);
        lines.read_to_string(&mut text).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert!(text.ends_with('\n'));
        for line in text.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        let printed = text.lines().count();
        assert!(0 < printed && printed < 50_000, "{printed}");
        assert!(
            stderr(&output).contains(&format!("kept: the printed part ({printed} events)")),
            "{}",
            stderr(&output)
        );
    }
}

/// A call of a subcommand at which a signal comes, and whether the thread that made the call stays in it.
struct Moment<'a> {
    signal: i32,
    call: &'a str,
    path: &'a str,
    count: usize,
    stays: bool,
}

/// Runs a subcommand that interrupts itself at a moment (`programs/interrupting.c`).
fn interrupted(arguments: &[&str], moment: &Moment<'_>) -> Output {
    let here = tempfile::tempdir().unwrap();
    let options = ["-shared", "-fPIC", "-fno-openmp", "-ldl"];
    let library = Compiler::Gcc.build(here.path(), "interrupting.so", "interrupting.c", &options);
    let mut command = Command::new(env!("CARGO_BIN_EXE_taskscope"));
    if moment.stays {
        command.env("INTERRUPT_STAYS", "1");
    }
    let moment = [
        ("INTERRUPT_SIGNAL", moment.signal.to_string()),
        ("INTERRUPT_CALL", moment.call.to_owned()),
        ("INTERRUPT_PATH", moment.path.to_owned()),
        ("INTERRUPT_COUNT", moment.count.to_string()),
    ];
    common::output(command.args(arguments).env("LD_PRELOAD", library).envs(moment))
}

#[test]
fn an_interrupted_slice_leaves_nothing() {
    let (_root, trace) = generated(1_000);
    let place = tempfile::tempdir().unwrap();
    let slice = place.path().join("slice");
    // Files of some threads are there, those of others are not.
    let moment = Moment { signal: nix::libc::SIGINT, call: "open", path: "/slice/", count: 5, stays: false };
    let output = interrupted(&["slice", "-o", slice.to_str().unwrap(), &trace], &moment);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("kept: nothing"), "{}", stderr(&output));
    assert!(!slice.exists());
}

#[test]
fn interrupted_reports_print_an_error() {
    let (_root, trace) = generated(1_000);
    for (verb, signal, code) in [
        ("info", nix::libc::SIGINT, 130),
        ("report", nix::libc::SIGTERM, 143),
        ("report", nix::libc::SIGHUP, 129),
    ] {
        let moment = Moment { signal, call: "open", path: "stream.obs", count: 1, stays: true };
        let output = interrupted(&[verb, &trace], &moment);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert_eq!(stderr(&output), "error: interrupted\n  kept: the trace is as it was\n");
    }
}

#[test]
fn an_interrupted_sort_leaves_each_file_old_or_new() {
    const SORTED: usize = 3;
    let trace = tempfile::tempdir().unwrap();
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for tid in 1..=10 {
        let mut stream = StreamBuilder::new(0, 1, tid).require(&["ovni"]).cpus(1).execute(10, 0);
        for clock in 0..100 {
            stream = stream.point(1_000 + clock, ovni::BURST);
        }
        let stream = stream
            .point(30_000, ovni::UNSORTED_BEGIN)
            .point(15, ovni::BURST)
            .point(30_001, ovni::UNSORTED_END);
        let file = stream.end(40_000).write(trace.path()).unwrap().join("stream.obs");
        let bytes = fs::read(&file).unwrap();
        files.push((file, bytes));
    }
    let moment = Moment {
        signal: nix::libc::SIGINT,
        call: "rename",
        path: "/stream.obs",
        count: SORTED,
        stays: false,
    };
    let output = interrupted(&["sort", trace.path().to_str().unwrap()], &moment);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains(&format!("kept: {SORTED} files sorted")), "{}", stderr(&output));
    let sorted = files.iter().filter(|(file, old)| fs::read(file).unwrap() != *old).count();
    assert_eq!(sorted, SORTED);
    for (file, old) in &files {
        assert_eq!(fs::metadata(file).unwrap().len(), old.len() as u64);
        let names = common::names(file.parent().unwrap());
        assert!(
            names.iter().all(|name| name.starts_with("stream.") && !name.ends_with(".part")),
            "{names:?}"
        );
    }
}
