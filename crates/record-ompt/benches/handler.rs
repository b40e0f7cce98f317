//! Measures the cost of one sample: the time in the recorder's signal handler, from its call by the kernel to
//! its return.
//!
//! `cargo bench -p taskscope-record-ompt --bench handler`
//!
//! The program (`programs/handler.c`) runs at a known depth in a parallel region and installs a timing
//! handler in front of the recorder's. Runs take turns; the table shows the median of the runs' medians, with
//! the smallest and largest of these.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Calls of the program's own between `main` and the interrupted function; four more frames are further out.
const DEPTHS: [u32; 3] = [4, 16, 40];
const ROUNDS: usize = 7;
/// Distance between two samples, activity of the program meanwhile, and the sampling rate for it.
const BETWEEN: [(&str, &str, &str); 3] = [
    ("0.125 ms of nothing", "warm", "8000"),
    ("1 ms of other data", "cold", "1000"),
    ("25 ms of other data", "cold", "40"),
];
const MODES: [&str; 2] = ["trace", "profile"];

fn main() -> ExitCode {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/programs/handler.c");
    let program = directory.join("handler");
    let compiled =
        Command::new("clang-19").args(["-O2", "-fopenmp"]).arg(source).arg("-o").arg(&program).status();
    if !compiled.is_ok_and(|status| status.success()) {
        println!("skipped: clang-19 is not installed, or cannot compile OpenMP programs");
        return ExitCode::SUCCESS;
    }
    println!(
        "one sample in the recorder's handler, ns: median (least and greatest of {ROUNDS} runs' medians)"
    );
    println!("| frames | between two samples | trace | profile |");
    println!("| ---: | --- | ---: | ---: |");
    for depth in DEPTHS {
        for between in BETWEEN {
            let mut costs = [const { Vec::new() }; MODES.len()];
            for _ in 0..ROUNDS {
                for (costs, mode) in costs.iter_mut().zip(MODES) {
                    costs.push(median_of_run(&program, mode, depth, between));
                }
            }
            let [trace, profile] = costs.map(|mut costs| {
                costs.sort_unstable();
                format!("{} ({} to {})", costs[ROUNDS / 2], costs[0], costs[ROUNDS - 1])
            });
            println!("| {} | {} | {trace} | {profile} |", depth + 4, between.0);
        }
    }
    ExitCode::SUCCESS
}

/// The median of one run's samples, nanoseconds.
fn median_of_run(program: &Path, mode: &str, depth: u32, (_, caches, rate): (&str, &str, &str)) -> u64 {
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("handler.trace");
    let tool = std::env::current_exe().unwrap().with_file_name("libtaskscope_ompt.so");
    let output = Command::new(program)
        .args([&depth.to_string(), caches])
        .envs([("TASKSCOPE_MODE", mode), ("TASKSCOPE_SAMPLE", rate)])
        .envs(["LD_PRELOAD", "OMP_TOOL_LIBRARIES"].map(|name| (name, &tool)))
        .env("TASKSCOPE_TRACE_DIR", &trace)
        .output()
        .expect("the program starts");
    let _ = std::fs::remove_dir_all(&trace);
    let text = String::from_utf8_lossy(&output.stdout);
    let mut samples: Vec<u64> = text.lines().map(|line| line.parse().expect("a line is a number")).collect();
    assert!(
        samples.len() >= 100,
        "only {} samples: {}",
        samples.len(),
        String::from_utf8_lossy(&output.stderr)
    );
    samples.sort_unstable();
    samples[samples.len() / 2]
}
