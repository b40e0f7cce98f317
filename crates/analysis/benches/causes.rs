//! Ledger, starvation/latency/overhead in three modes with blame, and critical path on large graphs:
//! `cargo bench -p taskscope-analysis --bench causes [-- TASKS…]`, by default 0.1, 1 and 10 million tasks
//! with three inputs each on 64 workers of 4 nodes. Prints seconds, and the memory that the process had
//! at most so far.

use std::time::Instant;
use taskscope_analysis::causes::book_causes;
use taskscope_analysis::critical_path::critical_path;
use taskscope_analysis::slo::{Mode, Prepared, SloOptions};
use taskscope_testkit::large_graph::large_graph;

fn main() {
    let asked: Vec<usize> = std::env::args().filter_map(|text| text.parse().ok()).collect();
    let sizes = if asked.is_empty() { vec![100_000, 1_000_000, 10_000_000] } else { asked };
    println!(
        "{:>10} {:>11} {:>8} {:>8} {:>8} {:>8} {:>9}",
        "tasks", "inputs", "ledger", "SLO × 3", "path", "total", "peak RSS"
    );
    for tasks in sizes {
        let graph = large_graph(tasks, 64, 4);
        let begin = Instant::now();
        let (mut causes, mut slo) = (None, Vec::new());
        let mut seconds = (0.0, 0.0);
        // The ledger beside the modes: two threads, as on two cores.
        std::thread::scope(|scope| {
            let ledger = scope.spawn(|| {
                let begin = Instant::now();
                (book_causes(&graph), begin.elapsed().as_secs_f64())
            });
            let begin = Instant::now();
            let prepared = Prepared::new(&graph);
            slo = Mode::ALL.map(|mode| prepared.attribute(mode, &SloOptions::default())).to_vec();
            seconds.1 = begin.elapsed().as_secs_f64();
            if let Ok((booked, elapsed)) = ledger.join() {
                (causes, seconds.0) = (Some(booked), elapsed);
            }
        });
        let path_begin = Instant::now();
        let path = critical_path(&graph);
        let path_seconds = path_begin.elapsed().as_secs_f64();
        let total = begin.elapsed().as_secs_f64();
        let capacity = causes.map_or(0, |causes| causes.by_cause.iter().sum::<u64>());
        assert_eq!(capacity, graph.capacity());
        assert_eq!(path.iter().map(|step| step.end - step.start).sum::<u64>(), graph.range().1);
        assert!(slo.iter().all(|slo| slo.capacity_ns == capacity));
        println!(
            "{tasks:>10} {:>11} {:>7.2}s {:>7.2}s {path_seconds:>7.2}s {total:>7.2}s {:>6} MiB",
            graph.inputs.items().len(),
            seconds.0,
            seconds.1,
            peak_mib()
        );
    }
}

/// The most memory that this process had, by the system's account.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) / 1024
}
