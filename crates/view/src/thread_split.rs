//! How the operating system treated each thread: running, runnable without a CPU, blocked.

use crate::format::{Unit, counted, percent, thread_words};
use anstyle::Style;
use std::fmt::Write;
use taskscope_execution::{Execution, OffCpu, OsSource, ThreadIndex};

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Threads that are printed, those that ran most.
const MAX_ROWS: usize = 16;

/// A table of the threads whose switches are known: their time, and its split, which sums to it. Empty where none is
/// known.
pub fn thread_split_text(execution: &Execution) -> String {
    let total = |all: &[OffCpu]| all.iter().map(|off| off.end - off.start).sum::<u64>();
    let threads = (0..).map(ThreadIndex).zip(&execution.threads);
    let known = threads.filter(|(_, thread)| thread.os_source != OsSource::Unknown && thread.selected);
    let mut rows: Vec<_> = known
        .map(|(index, thread)| {
            let time = thread.track.end() - thread.track.start();
            let (runnable, blocked) =
                (total(execution.off_cpu_of(index)), total(execution.blocked_of(index)));
            (index, time, time - runnable - blocked, runnable, blocked)
        })
        .collect();
    rows.sort_by_key(|(index, _, running, ..)| (std::cmp::Reverse(*running), *index));
    let Some(longest) = rows.iter().map(|row| row.1).max() else { return String::new() };
    let unit = Unit::for_total(longest);
    let mut out = String::new();
    let estimated = rows.iter().any(|row| execution.threads[row.0.index()].os_source == OsSource::Estimated);
    let how = if estimated { ", estimated by schedstat" } else { "" };
    let _ = writeln!(
        out,
        "\n  {BOLD}Threads{BOLD:#}  {DIM}(running, could run and had no CPU, blocked in the kernel{how}){DIM:#}"
    );
    let time = format!("time {}", unit.short());
    let _ = writeln!(out, "  {DIM}{time:>9} {:>8} {:>8} {:>8}{DIM:#}", "running", "no CPU", "blocked");
    for (index, time, running, runnable, blocked) in rows.iter().take(MAX_ROWS) {
        let thread = &execution.threads[index.index()];
        let [running, runnable, blocked] = [running, runnable, blocked].map(|part| percent(*part, *time));
        let time = unit.show(*time);
        let words = thread_words(&execution.processes[thread.process.index()], thread);
        let _ = writeln!(out, "  {time:>9} {running:>8} {runnable:>8} {blocked:>8}  {words}");
    }
    if let Some(more) = rows.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        let more = counted(more as u64, "more thread");
        let _ = writeln!(out, "  {DIM}… {more}: report --json{DIM:#}");
    }
    out
}
