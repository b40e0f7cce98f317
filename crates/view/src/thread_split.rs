//! Scheduling of each thread by the operating system: running, runnable without a CPU, blocked.

use crate::format::{Unit, counted, percent, thread_words};
use crate::sheet::{BOLD, DIM};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write;
use taskscope_analysis::{ThreadStates, thread_states};
use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, OsSource, Thread, ThreadIndex};
use taskscope_session::kind_of_awaited;

/// Threads that are printed, those that ran most.
const MAX_ROWS: usize = 16;
/// Kinds of waits that are printed of a thread, the longest.
const MAX_KINDS: usize = 3;

/// Scheduling of a thread by the operating system from its begin to its end.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThreadSplit {
    /// Process id.
    pub pid: i64,
    /// Thread id.
    pub tid: i64,
    /// Its words in text: `12/34 solver`.
    pub label: String,
    /// Nanoseconds from its begin to its end: `running_ns` + `no_cpu_ns` + `blocked_ns` + `unknown_ns`.
    pub time_ns: u64,
    /// Nanoseconds on a CPU, outside of waits for locks: also in calls of the kernel.
    pub running_ns: u64,
    /// Nanoseconds in which it could run and had no CPU.
    pub no_cpu_ns: u64,
    /// Nanoseconds in which it was blocked: in recorded waits and in other calls.
    pub blocked_ns: u64,
    /// The part of `blocked_ns` in recorded waits (`record --threads`), by the kind of object; the rest is blocked in calls that are
    /// not recorded.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub waits: BTreeMap<String, u64>,
    /// Nanoseconds of which nothing is known: a process that is killed loses the newest records.
    #[serde(default)]
    pub unknown_ns: u64,
    /// Whether the split is estimated from its schedstat, instead of recorded switches.
    pub estimated: bool,
}

/// Splits the time of the selected threads with known switches or waits, those that ran most first. Beside workers of a runtime,
/// these are the `others`.
pub(crate) fn thread_splits(execution: &Execution, others: bool) -> Vec<ThreadSplit> {
    let threads = (0..).map(ThreadIndex).zip(&execution.threads).zip(thread_states(execution));
    let waits = |thread| !execution.thread_waits.waits_of(thread, 0, u64::MAX).is_empty();
    let known = threads.filter(|((index, thread), _)| {
        thread.selected
            && !(others && thread.worker)
            && (thread.os_source != OsSource::Unknown || waits(*index))
    });
    let split = |((_, thread), states): ((ThreadIndex, &Thread), ThreadStates)| {
        let waited: u64 = states.waits.iter().map(|(_, ns)| ns).sum();
        let process = &execution.processes[thread.process.index()];
        let mut waits = BTreeMap::new();
        for (of, ns) in states.waits {
            let word = if of == kind::JOIN { "join" } else { kind_of_awaited(of) };
            *waits.entry(word.to_owned()).or_default() += ns;
        }
        ThreadSplit {
            pid: process.pid,
            tid: thread.tid,
            label: thread_words(process, thread),
            time_ns: thread.track.end() - thread.track.start(),
            running_ns: states.running_ns,
            no_cpu_ns: states.no_cpu_ns,
            blocked_ns: waited + states.blocked_ns,
            waits,
            unknown_ns: states.unknown_ns,
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
pub(crate) fn thread_split_text(rows: &[ThreadSplit], are_all: bool) -> String {
    let Some(longest) = rows.iter().map(|row| row.time_ns).max() else { return String::new() };
    let unit = Unit::for_total(longest);
    let mut out = String::new();
    let estimated = rows.iter().any(|row| row.estimated);
    let how = if estimated { ", estimated by schedstat" } else { "" };
    let blocked = match rows.iter().any(|row| !row.waits.is_empty()) {
        true => "blocked, and in what",
        false => "blocked in the kernel",
    };
    let title = if are_all { "Threads" } else { "Threads that are not workers" };
    let _ = writeln!(
        out,
        "\n  {BOLD}{title}{BOLD:#}  {DIM}(running, could run and had no CPU, {blocked}{how}){DIM:#}"
    );
    let time = format!("time {}", unit.short());
    let _ = writeln!(out, "  {DIM}{time:>9} {:>8} {:>8} {:>8}{DIM:#}", "running", "no CPU", "blocked");
    for row in rows.iter().take(MAX_ROWS) {
        let parts = [row.running_ns, row.no_cpu_ns, row.blocked_ns];
        let [running, runnable, blocked] = parts.map(|part| percent(part, row.time_ns));
        let time = unit.show(row.time_ns);
        let mut waits: Vec<(&str, u64)> = row.waits.iter().map(|(kind, ns)| (kind.as_str(), *ns)).collect();
        if row.unknown_ns > 0 {
            waits.push(("not known", row.unknown_ns));
        }
        waits.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
        let is_large = |ns: u64| ns.saturating_mul(100) >= row.time_ns;
        let waits = waits.into_iter().filter(|(_, ns)| is_large(*ns)).take(MAX_KINDS);
        let waits: Vec<String> =
            waits.map(|(kind, ns)| format!("{kind} {}", percent(ns, row.time_ns))).collect();
        let of = if waits.is_empty() { String::new() } else { format!("  {DIM}{}{DIM:#}", waits.join(", ")) };
        let _ = writeln!(out, "  {time:>9} {running:>8} {runnable:>8} {blocked:>8}  {}{of}", row.label);
    }
    if let Some(more) = rows.len().checked_sub(MAX_ROWS).filter(|more| *more > 0) {
        let more = counted(more as u64, "more thread");
        let _ = writeln!(out, "  {DIM}… {more}: report --json{DIM:#}");
    }
    out
}
