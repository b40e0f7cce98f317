//! Findings of threads known only from samples and the kernel: time running, without a CPU, and blocked.
//!
//! Whether being blocked was a loss is not known: a thread that waits for work on purpose is blocked, too.

use super::paths::HotPath;
use super::rows::{Findings, Whose};
use crate::CallPaths;
use crate::format::{counted, percent};
use crate::named_finding::NamedFinding;
use crate::thread_split::{ThreadSplit, thread_splits};
use crate::words::{Source, failure, numbered, sentence};
use taskscope_analysis::Confidence;
use taskscope_analysis::call_views::{Column, own};
use taskscope_cause::{Blamed, Cause, Runtime};
use taskscope_execution::State;
use taskscope_profile::NodeId;
use taskscope_session::Session;

/// All findings.
pub(super) fn findings(session: &Session, paths: &CallPaths) -> Findings {
    let execution = &session.execution;
    let splits = thread_splits(execution, false);
    let sum = |of: fn(&ThreadSplit) -> u64| splits.iter().map(of).sum::<u64>();
    let all: u64 = (execution.threads.iter().filter(|thread| thread.selected))
        .map(|thread| thread.track.end() - thread.track.start())
        .sum();
    let (known, no_cpu, blocked) =
        (sum(|row| row.time_ns - row.unknown_ns), sum(|row| row.no_cpu_ns), sum(|row| row.blocked_ns));
    let running = known - no_cpu - blocked;
    let estimated = splits.iter().any(|row| row.estimated);
    let sure = if estimated { Confidence::Medium } else { Confidence::High };
    let is_empty = execution.samples.rows.is_empty() && execution.thread_waits.waits.is_empty();
    let tree = paths.tree.without_runtime();
    let hot = |column: Column| {
        let values: Vec<(NodeId, u64)> =
            tree.nodes().map(|node| (node, own(&tree.tree, node, column))).collect();
        HotPath::of(&tree, &values)
    };
    let (ran, slept, lacked) = (hot(Column::Work), hot(Column::Blocked), hot(Column::OutOfCpu));
    let sampled = hot(Column::Samples);
    let rows = [
        (Cause::CpuNone, Blamed::System, State::OutOfCpu, no_cpu, sure, &lacked),
        (Cause::Blocked, Blamed::Code, State::Blocked, blocked, Confidence::Low, &slept),
        (Cause::Work, Blamed::Code, State::Serial, running, sure, &ran),
        (Cause::Unknown, Blamed::Nobody, State::Unknown, all - known, Confidence::High, &sampled),
    ];
    let mut found: Vec<NamedFinding> = Vec::new();
    let mut hot_paths: Vec<(&HotPath, u64)> = Vec::new();
    for (cause, blamed, state, ns, confidence, path) in rows.into_iter().filter(|row| row.3 > 0) {
        // System time has no place; blocked code and work have the place of the samples.
        let place = if blamed == Blamed::Code { path.place() } else { String::new() };
        let mut finding = NamedFinding::new((cause, blamed), (state, place), ns, confidence);
        finding.victims.add(state, ns);
        let total: u64 = tree.nodes().map(|node| own(&tree.tree, node, column_of(cause))).sum();
        let mut evidence: Vec<String> =
            Some(path.evidence(total)).filter(|text| !text.is_empty()).into_iter().collect();
        if cause == Cause::Blocked {
            evidence.push(match execution.thread_waits.waits.is_empty() {
                true => "whether others needed these threads meanwhile, samples do not show".to_owned(),
                false => "section waits shows which thread ended each wait".to_owned(),
            });
        }
        finding.evidence = evidence.join("; ");
        finding.path = path.steps.clone();
        found.push(finding);
        hot_paths.push((path, total));
    }
    let source = Source::of(session, "threads", &found);
    for (finding, path) in found.iter_mut().zip(&hot_paths) {
        finding.text = match finding.cause {
            Cause::Work => path.0.after("threads run code of the program", path.1),
            Cause::Blocked => {
                path.0.after("threads are blocked in the kernel (sleep, I/O, a wait of a library)", path.1)
            }
            Cause::Unknown if is_empty => {
                "no event of a runtime and no sample shows what threads did".to_owned()
            }
            Cause::Unknown => {
                "samples alone: whether threads ran, had no CPU or were blocked is not recorded".to_owned()
            }
            _ => sentence(finding, &source),
        };
    }
    let number = execution.threads.iter().filter(|thread| thread.selected).count() as u64;
    let threads = counted(number, "thread");
    let (were_blocked, their) = if number == 1 { ("was blocked", "its") } else { ("were blocked", "their") };
    let parts = [("ran", running), ("had no CPU", no_cpu), (were_blocked, blocked)];
    let parts = parts.map(|(word, ns)| format!("{word} {}", percent(ns, all)));
    let of_blocked = match execution.thread_waits.waits.is_empty() {
        true => "whether being blocked was a loss, samples do not show",
        false => "section waits shows which threads waited for which",
    };
    let no_runtime = format!("No event of a recorded runtime and no sample shows what {threads} did");
    let verdict = match known {
        _ if is_empty => match failure(session) {
            Some(how) => format!("{no_runtime}: the program ended with {how}."),
            None => format!("{no_runtime}."),
        },
        0 => format!("Samples alone show the call paths of {threads}; whether time was lost is not known."),
        _ => format!("{threads} {}, {} and {} of {their} time; {of_blocked}.", parts[0], parts[1], parts[2]),
    };
    let mut rows = numbered(found, |_| Some(Runtime::Threads));
    for row in rows.iter_mut().filter(|row| is_empty && row.cause == Cause::Unknown) {
        row.remedy = match failure(session) {
            Some(_) => "Look for the reason in the program's own output.",
            None => "Record a run that reaches the parallel code, or one long enough for samples (`record --sample 100`).",
        }
        .to_owned();
    }
    Findings {
        rows,
        base_ns: all,
        whose: Whose::Threads,
        verdict: (all > 0).then_some(verdict),
        cpu_time: None,
    }
}

/// The column of call paths with the time of this cause.
fn column_of(cause: Cause) -> Column {
    match cause {
        Cause::CpuNone => Column::OutOfCpu,
        Cause::Blocked => Column::Blocked,
        Cause::Work => Column::Work,
        _ => Column::Samples,
    }
}
