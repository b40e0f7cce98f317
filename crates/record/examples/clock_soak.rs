//! The recorder's clock against `CLOCK_MONOTONIC`, for as long as wanted.
//!
//! `cargo run --release -p taskscope-record --example clock_soak -- [SECONDS] [PROCESSES]`
//!
//! Each process has two threads. A thread reads the kernel's clock, ours, and the kernel's again, some twenty
//! times a second, at irregular intervals, which covers anchors of every age. The error is the distance of
//! ours from the interval between the two. Readings with kernel readings more than 1 µs apart (the thread
//! lost its CPU) are counted separately.

use std::process::{Command, ExitCode};
use std::time::Duration;

use taskscope_record::clock::kernel_ns;
use taskscope_record::{enter, process, thread};

const TOLD_NS: u64 = 200;
const TOO_WIDE_NS: u64 = 1000;

fn main() -> ExitCode {
    let number = |n| std::env::args().nth(n).and_then(|text| text.parse::<u64>().ok());
    let (seconds, processes) = (number(1).unwrap_or(60), number(2).unwrap_or(2));
    if processes == 0 {
        return watch(seconds);
    }
    let own = std::env::current_exe().unwrap();
    let start = |_| Command::new(&own).args([seconds.to_string(), "0".to_owned()]).spawn().unwrap();
    let children: Vec<_> = (0..processes).map(start).collect();
    let all_well = children.into_iter().map(|mut child| child.wait().unwrap().success());
    if all_well.collect::<Vec<_>>().iter().all(|well| *well) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// One process.
fn watch(seconds: u64) -> ExitCode {
    let directory = std::env::temp_dir().join(format!("clock-soak.{}", std::process::id()));
    let config = process::Config {
        trace_directory: directory.clone(),
        app_id: 1,
        require: vec![],
        own_require: vec![],
        attributes: vec![],
    };
    process::start(config).expect("the temporary directory can be written");
    let errors: Vec<Readings> = std::thread::scope(|scope| {
        let threads = [1, 2].map(|seed| scope.spawn(move || read(seconds, seed)));
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let mut all: Vec<u64> = errors.iter().flat_map(|readings| readings.errors_ns.iter().copied()).collect();
    process::finish();
    // Only the clock was wanted.
    let _ = std::fs::remove_dir_all(directory);
    all.sort_unstable();
    let mut widths: Vec<u64> =
        errors.iter().flat_map(|readings| readings.widths_ns.iter().copied()).collect();
    widths.sort_unstable();
    let at = |share: f64| all.get(((all.len() as f64 * share) as usize).min(all.len() - 1)).copied();
    let too_wide: u64 = errors.iter().map(|readings| readings.too_wide).sum();
    let backwards: u64 = errors.iter().map(|readings| readings.backwards).sum();
    let beyond = all.iter().filter(|error| **error > TOLD_NS).count();
    println!(
        "process {}: {seconds} s, {} readings ({too_wide} more interrupted); error p50 {} p99 {} p99.9 {} \
         max {} ns, between readings of the kernel's clock that are {} ns apart (median); beyond {TOLD_NS} ns: {beyond}; backwards: {backwards}",
        std::process::id(),
        all.len(),
        at(0.5).unwrap_or(0),
        at(0.99).unwrap_or(0),
        at(0.999).unwrap_or(0),
        all.last().unwrap_or(&0),
        widths.get(widths.len() / 2).unwrap_or(&0),
    );
    if beyond == 0 && backwards == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[derive(Default)]
struct Readings {
    errors_ns: Vec<u64>,
    /// Distance of the two kernel readings: the resolution of an error of 0.
    widths_ns: Vec<u64>,
    too_wide: u64,
    backwards: u64,
}

fn read(seconds: u64, seed: u64) -> Readings {
    assert!(thread::attach(std::ptr::null_mut(), Box::new(|_, _| {})), "the thread can be recorded");
    let (mut found, mut last, mut random) = (Readings::default(), 0, seed);
    let end = kernel_ns() + seconds * 1_000_000_000;
    while last < end {
        random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        std::thread::sleep(Duration::from_micros(1000 + (random >> 33) % 100_000));
        // The tightest of a few tries: after a sleep the first one waits for the caches.
        let mut best = (u64::MAX, 0);
        let mut ours = 0;
        for _ in 0..5 {
            let before = kernel_ns();
            ours = enter().map_or(0, |mut recorder| recorder.now());
            let after = kernel_ns();
            best = best.min((after - before, before.saturating_sub(ours).max(ours.saturating_sub(after))));
        }
        let (width, error) = best;
        if width > TOO_WIDE_NS {
            found.too_wide += 1;
        } else {
            found.errors_ns.push(error);
            found.widths_ns.push(width);
        }
        found.backwards += u64::from(ours < last);
        last = ours;
    }
    found
}
