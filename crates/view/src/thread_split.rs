//! Scheduling of each thread by the operating system: running, runnable without a CPU, blocked.

use crate::format::{Unit, counted, percent, thread_words};
use anstyle::Style;
use std::fmt::Write;
use taskscope_execution::{Execution, OffCpu, OsSource, ThreadIndex};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Threads that are printed, those that ran most.
const MAX_ROWS: usize = 16;

/// Scheduling of a thread by the operating system, nanoseconds.
pub(crate) struct ThreadSplit {
    /// The thread.
    pub thread: ThreadIndex,
    /// Time from its begin to its end.
    pub time: u64,
    /// The part in which it could run and had no CPU.
    pub no_cpu: u64,
    /// The part in which it was blocked in the kernel.
    pub blocked: u64,
}

impl ThreadSplit {
    fn running(&self) -> u64 {
        self.time - self.no_cpu - self.blocked
    }
}

/// Splits the time of the selected threads with known switches.
pub(crate) fn thread_splits(execution: &Execution) -> Vec<ThreadSplit> {
    let total = |all: &[OffCpu]| all.iter().map(|off| off.end - off.start).sum::<u64>();
    let threads = (0..).map(ThreadIndex).zip(&execution.threads);
    let known = threads.filter(|(_, thread)| thread.os_source != OsSource::Unknown && thread.selected);
    let split = |(index, thread): (ThreadIndex, &taskscope_execution::Thread)| {
        let time = thread.track.end() - thread.track.start();
        let no_cpu = total(execution.off_cpu_of(index)).min(time);
        let blocked = total(execution.blocked_of(index)).min(time - no_cpu);
        ThreadSplit { thread: index, time, no_cpu, blocked }
    };
    known.map(split).collect()
}

/// A table of the threads with known switches: their time, and its split, which sums to it. Empty without
/// any.
pub fn thread_split_text(execution: &Execution) -> String {
    let mut rows = thread_splits(execution);
    rows.sort_by_key(|row| (std::cmp::Reverse(row.running()), row.thread));
    let Some(longest) = rows.iter().map(|row| row.time).max() else { return String::new() };
    let unit = Unit::for_total(longest);
    let mut out = String::new();
    let estimated =
        rows.iter().any(|row| execution.threads[row.thread.index()].os_source == OsSource::Estimated);
    let how = if estimated { ", estimated by schedstat" } else { "" };
    let _ = writeln!(
        out,
        "\n  {BOLD}Threads{BOLD:#}  {DIM}(running, could run and had no CPU, blocked in the kernel{how}){DIM:#}"
    );
    let time = format!("time {}", unit.short());
    let _ = writeln!(out, "  {DIM}{time:>9} {:>8} {:>8} {:>8}{DIM:#}", "running", "no CPU", "blocked");
    for row in rows.iter().take(MAX_ROWS) {
        let thread = &execution.threads[row.thread.index()];
        let parts = [row.running(), row.no_cpu, row.blocked];
        let [running, runnable, blocked] = parts.map(|part| percent(part, row.time));
        let time = unit.show(row.time);
        let words = thread_words(&execution.processes[thread.process.index()], thread);
        let _ = writeln!(out, "  {time:>9} {running:>8} {runnable:>8} {blocked:>8}  {words}");
    }
    if let Some(more) = rows.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        let more = counted(more as u64, "more thread");
        let _ = writeln!(out, "  {DIM}… {more}: report --json{DIM:#}");
    }
    out
}
