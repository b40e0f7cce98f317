//! `^C`: written files are closed and valid, or removed; the subcommand reports which; the exit code contains the
//! signal.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use taskscope_event::models::ovni;
use taskscope_testkit::generator::{Generator, Runtime};
use taskscope_testkit::trace_builder::StreamBuilder;

/// Attempts to stop a subcommand that nothing holds up; it may be quicker than we are.
const ATTEMPTS: u32 = 20;

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

/// Polls a condition with short pauses; false if it never holds before the child ends.
fn wait_until(child: &mut Child, mut holds: impl FnMut() -> bool) -> bool {
    loop {
        if holds() {
            return true;
        }
        if child.try_wait().unwrap().is_some() {
            return false;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
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
    let told = format!("views up to {:.9} s", end_of(&text) as f64 / 1e9);
    assert!(stderr(&output).contains(&told), "{} but {}", text.lines().next().unwrap(), stderr(&output));
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
    let said = stderr(&output);
    assert!(said.contains("error: interrupted") && said.contains("kept: views up to"), "{said}");

    let cpus = fs::read_to_string(views.path().join("cpu.prv")).unwrap();
    let told = format!("views up to {:.9} s", end_of(&cpus) as f64 / 1e9);
    assert!(said.contains(&told), "{} but {said}", cpus.lines().next().unwrap());
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

/// Runs a subcommand and interrupts it once `begun` returns true; it gets the attempt's number and the elapsed time
/// of the subcommand.
fn interrupted(
    arguments: &[&str],
    name: &str,
    begun: impl Fn(u32, Duration) -> bool,
    mut reset: impl FnMut(),
) -> Output {
    for attempt in 0..ATTEMPTS {
        reset();
        let started = Instant::now();
        let mut child = start(arguments);
        if wait_until(&mut child, || begun(attempt, started.elapsed())) {
            signal(&child, name);
        }
        let output = child.wait_with_output().unwrap();
        // A signal that comes before the verb listens ends it as it ends any program.
        if output.status.code().is_some_and(|code| code != 0) {
            return output;
        }
    }
    panic!("never stopped in {ATTEMPTS} attempts: {arguments:?}");
}

#[test]
fn an_interrupted_slice_leaves_nothing() {
    let (_root, trace) = generated(300_000);
    let place = tempfile::tempdir().unwrap();
    let slice = place.path().join("slice");
    // Later and later, until it comes while the slice is made.
    let begun =
        |attempt: u32, running: Duration| running > Duration::from_millis(10) * (1 << attempt.min(10));
    let remove = || drop(fs::remove_dir_all(&slice));
    let output = interrupted(&["slice", "-o", slice.to_str().unwrap(), &trace], "-INT", begun, remove);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    assert!(stderr(&output).contains("kept: nothing"), "{}", stderr(&output));
    assert!(!slice.exists());
}

#[test]
fn interrupted_reports_print_an_error() {
    let (_root, trace) = generated(300_000);
    for (verb, name, code) in [("info", "-INT", 130), ("report", "-TERM", 143), ("report", "-HUP", 129)] {
        let begun =
            |attempt: u32, running: Duration| running > Duration::from_millis(10) * (1 << attempt.min(10));
        let output = interrupted(&[verb, &trace], name, begun, || ());
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
        assert_eq!(stderr(&output), "error: interrupted\n  kept: the trace is as it was\n");
    }
}

#[test]
fn an_interrupted_sort_leaves_each_file_old_or_new() {
    let trace = tempfile::tempdir().unwrap();
    let mut files: Vec<(PathBuf, Vec<u8>)> = Vec::new();
    for tid in 1..=100 {
        let mut stream = StreamBuilder::new(0, 1, tid).require(&["ovni"]).cpus(1).execute(10, 0);
        for clock in 0..20_000 {
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
    let inode = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.ino());
    let first = files[0].0.clone();
    let before = std::cell::Cell::new(0);
    let begun = |_, _| inode(&first) != before.get();
    let reset = || {
        files.iter().for_each(|(file, bytes)| fs::write(file, bytes).unwrap());
        before.set(inode(&first));
    };
    let output = interrupted(&["sort", trace.path().to_str().unwrap()], "-INT", begun, reset);
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let sorted = files.iter().filter(|(file, old)| fs::read(file).unwrap() != *old).count();
    assert!(stderr(&output).contains(&format!("kept: {sorted} files sorted")), "{}", stderr(&output));
    assert!(0 < sorted && sorted < files.len());
    for (file, old) in &files {
        assert_eq!(fs::metadata(file).unwrap().len(), old.len() as u64);
        assert!(!file.with_file_name("stream.obs.new").exists());
    }
}
