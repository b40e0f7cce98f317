//! Scheduling of each thread by the operating system: running, runnable without a CPU, blocked.

use crate::format::{Unit, counted, percent, thread_words};
use crate::sheet::{BOLD, DIM};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use taskscope_execution::{Execution, OffCpu, OsSource, ThreadIndex};

/// Threads that are printed, those that ran most.
const MAX_ROWS: usize = 16;

/// Scheduling of a thread by the operating system from its begin to its end.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSplit {
    /// Process id.
    pub pid: i64,
    /// Thread id.
    pub tid: i64,
    /// Its words in text: `12/34 solver`.
    pub label: String,
    /// Nanoseconds from its begin to its end; the sum of the others.
    pub time_ns: u64,
    /// Nanoseconds on a CPU.
    pub running_ns: u64,
    /// Nanoseconds in which it could run and had no CPU.
    pub no_cpu_ns: u64,
    /// Nanoseconds in which it was blocked in the kernel.
    pub blocked_ns: u64,
    /// Whether the split is estimated from its schedstat, instead of recorded switches.
    pub estimated: bool,
}

/// Splits the time of the selected threads with known switches, those that ran most first.
pub(crate) fn thread_splits(execution: &Execution) -> Vec<ThreadSplit> {
    let total = |all: &[OffCpu]| all.iter().map(|off| off.end - off.start).sum::<u64>();
    let threads = (0..).map(ThreadIndex).zip(&execution.threads);
    let known = threads.filter(|(_, thread)| thread.os_source != OsSource::Unknown && thread.selected);
    let split = |(index, thread): (ThreadIndex, &taskscope_execution::Thread)| {
        let time_ns = thread.track.end() - thread.track.start();
        let no_cpu_ns = total(execution.off_cpu_of(index)).min(time_ns);
        let blocked_ns = total(execution.blocked_of(index)).min(time_ns - no_cpu_ns);
        let process = &execution.processes[thread.process.index()];
        ThreadSplit {
            pid: process.pid,
            tid: thread.tid,
            label: thread_words(process, thread),
            time_ns,
            running_ns: time_ns - no_cpu_ns - blocked_ns,
            no_cpu_ns,
            blocked_ns,
            estimated: thread.os_source == OsSource::Estimated,
        }
    };
    let mut rows: Vec<ThreadSplit> = known.map(split).collect();
    // The order of threads is kept among equals.
    rows.sort_by_key(|row| std::cmp::Reverse(row.running_ns));
    rows
}

/// A table of the threads with known switches: their time, and its split, which sums to it. Empty without
/// any.
pub(crate) fn thread_split_text(rows: &[ThreadSplit]) -> String {
    let Some(longest) = rows.iter().map(|row| row.time_ns).max() else { return String::new() };
    let unit = Unit::for_total(longest);
    let mut out = String::new();
    let estimated = rows.iter().any(|row| row.estimated);
    let how = if estimated { ", estimated by schedstat" } else { "" };
    let _ = writeln!(
        out,
        "\n  {BOLD}Threads{BOLD:#}  {DIM}(running, could run and had no CPU, blocked in the kernel{how}){DIM:#}"
    );
    let time = format!("time {}", unit.short());
    let _ = writeln!(out, "  {DIM}{time:>9} {:>8} {:>8} {:>8}{DIM:#}", "running", "no CPU", "blocked");
    for row in rows.iter().take(MAX_ROWS) {
        let parts = [row.running_ns, row.no_cpu_ns, row.blocked_ns];
        let [running, runnable, blocked] = parts.map(|part| percent(part, row.time_ns));
        let time = unit.show(row.time_ns);
        let _ = writeln!(out, "  {time:>9} {running:>8} {runnable:>8} {blocked:>8}  {}", row.label);
    }
    if let Some(more) = rows.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        let more = counted(more as u64, "more thread");
        let _ = writeln!(out, "  {DIM}… {more}: report --json{DIM:#}");
    }
    out
}
