//! The cost of waits: bare, behind the least interposer (which counts calls that lock and unlock), recorded.
//!
//! - `pairs`: lock and unlock of a free mutex;
//! - `queue`: four threads at a queue of one mutex, per item;
//! - `pipeline`: three threads with a mutex and a condition between two, per item.
//!
//! `cargo bench -p taskscope-record-threads [-- PROGRAM…]`; runs in turns, medians of 21.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs, their units of work, and the number of units in a run.
const PROGRAMS: [(&str, &str, u64); 3] = [
    ("pairs", "pair of lock and unlock", 10_000_000),
    ("queue", "item of a contended queue", 1_000_000),
    ("pipeline", "item of a pipeline", 50_000),
];
const ROUNDS: usize = 21;

fn build(directory: &Path, name: &str, options: &[&str]) -> PathBuf {
    let source =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/programs").join(name).with_extension("c");
    let built = directory.join(name);
    let status =
        Command::new("cc").args(["-O2", "-pthread"]).args(options).arg(source).arg("-o").arg(&built).status();
    assert!(status.is_ok_and(|status| status.success()), "{name} is not built");
    built
}

fn nanos_of_one(program: &Path, count: u64, preload: Option<&Path>, trace: Option<&Path>) -> f64 {
    let mut command = Command::new(program);
    command.arg(count.to_string());
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    if let Some(trace) = trace {
        command.env("TASKSCOPE_TRACE_DIR", trace).env("TASKSCOPE_SAMPLE", "100");
    }
    let output = command.output().expect("the program runs");
    let nanos: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("nanoseconds");
    nanos / count as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let directory = std::env::temp_dir().join(format!("taskscope-locks-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for programs and traces");
    let least = build(&directory, "least", &["-shared", "-fPIC"]);
    let own =
        std::env::current_exe().expect("the path of this program").with_file_name("libtaskscope_threads.so");
    let chosen = |name: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == name);
    for (name, unit, count) in PROGRAMS.into_iter().filter(|(name, ..)| chosen(name)) {
        let program = build(&directory, name, &[]);
        let (mut bare, mut counted, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let trace = directory.join(format!("trace-{round}"));
            bare.push(nanos_of_one(&program, count, None, None));
            counted.push(nanos_of_one(&program, count, Some(&least), None));
            recorded.push(nanos_of_one(&program, count, Some(&own), Some(&trace)));
            let _ = std::fs::remove_dir_all(&trace);
        }
        let (bare, counted, recorded) = (median(bare), median(counted), median(recorded));
        println!("{unit}, {count} in a run, medians of {ROUNDS}");
        println!("  bare      {bare:9.2} ns");
        println!("  least     {counted:9.2} ns  {:.2} x bare", counted / bare);
        println!(
            "  recorded  {recorded:9.2} ns  {:.2} x bare  {:.2} x least",
            recorded / bare,
            recorded / counted
        );
    }
    let _ = std::fs::remove_dir_all(&directory);
}
