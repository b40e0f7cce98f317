//! The cost of a pair of lock and unlock of a free mutex: bare, behind the least interposer (which counts calls), recorded.
//!
//! `cargo bench -p taskscope-record-threads`; runs in turns, medians of 21.

use std::path::{Path, PathBuf};
use std::process::Command;

const PAIRS: u64 = 10_000_000;
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

fn nanos_of_pair(program: &Path, preload: Option<&Path>, trace: Option<&Path>) -> f64 {
    let mut command = Command::new(program);
    command.arg(PAIRS.to_string());
    if let Some(library) = preload {
        command.env("LD_PRELOAD", library);
    }
    if let Some(trace) = trace {
        command.env("TASKSCOPE_TRACE_DIR", trace).env("TASKSCOPE_SAMPLE", "100");
    }
    let output = command.output().expect("the program runs");
    let nanos: f64 = String::from_utf8_lossy(&output.stdout).trim().parse().expect("nanoseconds");
    nanos / PAIRS as f64
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let directory = std::env::temp_dir().join(format!("taskscope-pairs-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory for programs and traces");
    let program = build(&directory, "pairs", &[]);
    let least = build(&directory, "least", &["-shared", "-fPIC"]);
    let own =
        std::env::current_exe().expect("the path of this program").with_file_name("libtaskscope_threads.so");
    let (mut bare, mut counted, mut recorded) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let trace = directory.join(format!("trace-{round}"));
        bare.push(nanos_of_pair(&program, None, None));
        counted.push(nanos_of_pair(&program, Some(&least), None));
        recorded.push(nanos_of_pair(&program, Some(&own), Some(&trace)));
        let _ = std::fs::remove_dir_all(&trace);
    }
    let _ = std::fs::remove_dir_all(&directory);
    let (bare, counted, recorded) = (median(bare), median(counted), median(recorded));
    println!("pair of lock and unlock, {PAIRS} in a run, medians of {ROUNDS}");
    println!("  bare      {bare:6.2} ns");
    println!("  least     {counted:6.2} ns  {:.2} x bare", counted / bare);
    println!(
        "  recorded  {recorded:6.2} ns  {:.2} x bare  {:.2} x least",
        recorded / bare,
        recorded / counted
    );
}
