//! Benchmarks of building pyramids and of answering viewports.
//!
//! `cargo bench -p taskscope-testkit --bench viewport [-- MILLION_EVENTS [THREADS]]`

use std::time::Instant;
use taskscope_execution::ThreadIndex;
use taskscope_execution::lod::{Timeline, Window};
use taskscope_testkit::synthetic::{Shape, execution};

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let events = numbers.first().copied().unwrap_or(10) * 1_000_000;
    let threads = numbers.get(1).copied().unwrap_or(64) as usize;
    let begun = Instant::now();
    let execution =
        execution(Shape { threads, team: threads.min(64), processes_of_node: 4, events, seed: 1 });
    let sections: usize = execution.threads.iter().map(|t| t.track.len()).sum();
    println!("{events} events, {sections} sections, made in {:.2} s", begun.elapsed().as_secs_f64());

    let begun = Instant::now();
    let timeline = Timeline::build(&execution);
    let seconds = begun.elapsed().as_secs_f64();
    let per_section = timeline.bytes() as f64 / sections as f64;
    println!("pyramids built in {seconds:.2} s, {per_section:.1} bytes a section");

    let (start, end) = execution.range();
    let all: Vec<ThreadIndex> = (0..threads as u32).map(ThreadIndex).collect();
    println!("viewport of {} tracks × 1600", threads.min(64));
    println!("  {:<18}{:>10}{:>10}{:>10}", "width", "median ms", "p99 ms", "max ms");
    for divisor in [1_u64, 4, 16, 64, 256, 1024, 4096, 16384, 65536] {
        let span = ((end - start) / divisor).max(1600);
        let mut times: Vec<f64> = (0..200_u64)
            .map(|i| {
                let from = start + (end - start - span) / 200 * i;
                let first = (i as usize * 7) % (threads - threads.min(64) + 1);
                let shown = &all[first..first + threads.min(64)];
                let begun = Instant::now();
                let rows = timeline.viewport(&execution, shown, Window::covering(from, from + span, 1600));
                let elapsed = begun.elapsed().as_secs_f64() * 1e3;
                assert_eq!(rows.len(), shown.len());
                elapsed
            })
            .collect();
        times.sort_by(f64::total_cmp);
        let name = format!("1/{divisor} of the run");
        println!("  {name:<18}{:>10.2}{:>10.2}{:>10.2}", times[100], times[198], times[199]);
    }
    let begun = Instant::now();
    timeline.breakdown(&execution, &all, Window::covering(start, end, 800));
    println!("breakdown of all tracks, 800 buckets: {:.2} ms", begun.elapsed().as_secs_f64() * 1e3);
}
