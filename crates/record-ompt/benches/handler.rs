//! What one sample costs: how long the handler keeps a thread away from its work, beside a handler that does
//! nothing, whose cost is the kernel's and the machine's.
//!
//! `cargo bench -p taskscope-record-ompt --bench handler`
//!
//! The program (`programs/handler.c`) sits at a known depth in a parallel region and looks for gaps in its own
//! time. Each pair is measured five times in turns; the table has the medians.

use std::path::Path;
use std::process::{Command, ExitCode};

/// Calls of the program's own between `main` and the interrupted function; four more frames lie outside.
const DEPTHS: [u32; 3] = [4, 16, 40];
const ROUNDS: usize = 5;
/// Signals a second: many beside the clock interrupts of the kernel.
const RATE: &str = "2000";

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
    println!("one signal, ns: with an empty handler, with a sample taken, and what the sample adds");
    println!("| frames | caches | empty | sampled | the sample's own cost |");
    println!("| ---: | --- | ---: | ---: | ---: |");
    for depth in DEPTHS {
        for caches in ["warm", "cold"] {
            let mut costs = [Vec::new(), Vec::new()];
            for _ in 0..ROUNDS {
                for (costs, handler) in costs.iter_mut().zip(["empty", "sampled"]) {
                    costs.push(gap(&program, handler, depth, caches));
                }
            }
            let [empty, sampled] = costs.map(|mut costs| {
                costs.sort_unstable();
                costs[ROUNDS / 2]
            });
            let frames = depth + 4;
            println!("| {frames} | {caches} | {empty} | {sampled} | {} |", sampled - empty);
        }
    }
    ExitCode::SUCCESS
}

/// The median gap of one run, nanoseconds.
fn gap(program: &Path, handler: &str, depth: u32, caches: &str) -> i64 {
    let trace = Path::new(env!("CARGO_TARGET_TMPDIR")).join("handler.trace");
    let tool = std::env::current_exe().unwrap().with_file_name("libtaskscope_ompt.so");
    let mut command = Command::new(program);
    command.args([handler, &depth.to_string(), caches]).env("TASKSCOPE_SAMPLE", RATE);
    if handler == "sampled" {
        command.env("LD_PRELOAD", &tool).env("OMP_TOOL_LIBRARIES", &tool).env("TASKSCOPE_TRACE_DIR", &trace);
    }
    let output = command.output().expect("the program starts");
    let _ = std::fs::remove_dir_all(&trace);
    let text = String::from_utf8_lossy(&output.stdout);
    text.split(' ').next().and_then(|number| number.parse().ok()).expect("the program prints its median")
}
