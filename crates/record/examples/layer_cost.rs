//! Cost of entering and leaving a span of `tracing` with taskscope's layer and with tracing-chrome's, in
//! turns.
//!
//! `cargo run --release -p taskscope-record --features tracing --example layer_cost [ROUNDS]`
//! Each line: minimum, median and maximum of the rounds, in nanoseconds of CPU time of the process.

use taskscope_record::{instrument, tracing as layer};
use tracing_subscriber::layer::SubscriberExt;

const PAIRS: u64 = 300_000;

/// CPU time of the process: tracing-chrome writes on a thread of its own.
fn cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is valid for writing.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// CPU time of the calling thread, which is the cost for the program.
fn thread_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: as above.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

fn pairs() -> (f64, f64) {
    let span = tracing::info_span!("measured");
    let (process_start, thread_start) = (cpu_ns(), thread_ns());
    for _ in 0..PAIRS {
        let _entered = span.enter();
    }
    ((cpu_ns() - process_start) as f64 / PAIRS as f64, (thread_ns() - thread_start) as f64 / PAIRS as f64)
}

fn main() {
    let rounds: usize = std::env::args().nth(1).map_or(7, |rounds| rounds.parse().expect("a number"));
    let directory = std::env::temp_dir().join(format!("taskscope-layer-cost-{}", std::process::id()));
    instrument::start(directory.join("trace")).expect("a directory");
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        let subscriber = tracing_subscriber::registry().with(layer::layer());
        ours.push(tracing::subscriber::with_default(subscriber, pairs));
        let file = directory.join(format!("{round}.json"));
        let (chrome, guard) = tracing_chrome::ChromeLayerBuilder::new().file(&file).build();
        let subscriber = tracing_subscriber::registry().with(chrome);
        theirs.push(tracing::subscriber::with_default(subscriber, pairs));
        drop(guard);
        let _ = std::fs::remove_file(file);
    }
    instrument::finish();
    let mut medians = Vec::new();
    for (name, values) in [("taskscope", &ours), ("tracing-chrome", &theirs)] {
        for (of, pick) in [("thread", 1), ("process", 0)] {
            let mut values: Vec<f64> = values.iter().map(|v| if pick == 0 { v.0 } else { v.1 }).collect();
            values.sort_by(f64::total_cmp);
            let (low, middle, high) = (values[0], values[values.len() / 2], values[values.len() - 1]);
            println!("{name:15} enter and exit, CPU time of the {of:8} {low:8.1} {middle:8.1} {high:8.1}");
            medians.push(middle);
        }
    }
    println!(
        "ratio on the thread {:.2}, of the process {:.2} (to stay below 0.5)",
        medians[0] / medians[2],
        medians[1] / medians[3]
    );
    std::fs::remove_dir_all(&directory).expect("own directory");
}
