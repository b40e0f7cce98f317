//! Findings of threads known only from samples and the kernel: time running, without a CPU, and blocked.
//!
//! Whether being blocked was a loss is not known: a thread that waits for work on purpose is blocked, too.

use super::paths::HotPath;
use super::profile_words::{knows_off_cpu, source_of_profile};
use super::rows::{Findings, Whose};
use crate::CallPaths;
use crate::call_paths::profile_facts::states_of;
use crate::format::{counted, percent};
use crate::named_finding::NamedFinding;
use crate::notices::failure;
use crate::thread_split::{ThreadSplit, thread_splits};
use crate::words::{Source, numbered, sentence};
use taskscope_analysis::call_views::{Column, own, total};
use taskscope_analysis::{Analysis, Confidence};
use taskscope_cause::{Blamed, Cause, Runtime};
use taskscope_execution::State;
use taskscope_profile::named::CallTree;
use taskscope_profile::{Metric, NodeId, Profile, key};
use taskscope_session::Session;

/// The time of the threads, nanoseconds.
struct Times {
    threads: u64,
    all: u64,
    /// The part of which it is known whether threads ran.
    known: u64,
    no_cpu: u64,
    blocked: u64,
    confidence: Confidence,
}

impl Times {
    fn from_trace(session: &Session) -> Times {
        let threads = || session.execution.threads.iter().filter(|thread| thread.selected);
        let splits = thread_splits(&session.execution, false);
        let sum = |of: fn(&ThreadSplit) -> u64| splits.iter().map(of).sum::<u64>();
        let estimated = splits.iter().any(|row| row.estimated);
        Times {
            threads: threads().count() as u64,
            all: threads().map(|thread| thread.track.end() - thread.track.start()).sum(),
            known: sum(|row| row.time_ns - row.unknown_ns),
            no_cpu: sum(|row| row.no_cpu_ns),
            blocked: sum(|row| row.blocked_ns),
            confidence: if estimated { Confidence::Medium } else { Confidence::High },
        }
    }

    /// Sums over the samples: each represents the time since the one before.
    fn from_profile(tree: &CallTree) -> Times {
        let total = |metric| tree.tree.total(metric);
        let number = |process, key: &str| Profile::number(process, key).unwrap_or(0);
        let threads = tree.processes.iter().map(|process| number(process, key::THREADS));
        let (no_cpu, blocked) = (total(Metric::OUT_OF_CPU), total(Metric::BLOCKED));
        let known = if knows_off_cpu(tree) {
            total(Metric::WORK).saturating_add(no_cpu).saturating_add(blocked)
        } else {
            0
        };
        Times {
            threads: threads.fold(0, u64::saturating_add),
            // Damaged files have any number.
            all: total(Metric::TIME).max(known),
            known,
            no_cpu: if known > 0 { no_cpu } else { 0 },
            blocked: if known > 0 { blocked } else { 0 },
            confidence: Confidence::Medium,
        }
    }

    fn running(&self) -> u64 {
        self.known.saturating_sub(self.no_cpu).saturating_sub(self.blocked)
    }

    /// Their division in a sentence.
    fn verdict(&self, blocked_note: &str) -> String {
        let threads = counted(self.threads, "thread");
        if self.known == 0 {
            return format!(
                "Samples alone show the call paths of {threads}; whether time was lost is not known."
            );
        }
        let (were_blocked, their) =
            if self.threads == 1 { ("was blocked", "its") } else { ("were blocked", "their") };
        let parts = [("ran", self.running()), ("had no CPU", self.no_cpu), (were_blocked, self.blocked)];
        let [ran, lacked, slept] = parts.map(|(word, ns)| format!("{word} {}", percent(ns, self.all)));
        format!("{threads} {ran}, {lacked} and {slept} of {their} time; {blocked_note}.")
    }
}

/// All findings of a trace.
pub(super) fn findings(session: &Session, analysis: &Analysis, paths: &CallPaths) -> Findings {
    let execution = &session.execution;
    let times = Times::from_trace(session);
    let has_waits = !execution.thread_waits.waits.is_empty();
    let is_empty = execution.samples.rows.is_empty() && !has_waits;
    let blocked_note = match has_waits {
        true => "section waits shows which thread ended each wait",
        false => NEEDED,
    };
    let mut found = found(&paths.tree, &times, blocked_note);
    let source = Source::of(session, analysis, "threads", &found);
    for finding in &mut found {
        match finding.cause {
            Cause::CpuNone => finding.text = sentence(finding, &source),
            Cause::Unknown if is_empty => {
                finding.text = "no event of a runtime and no sample shows what threads did".to_owned();
            }
            _ => {}
        }
    }
    let threads = counted(times.threads, "thread");
    let no_runtime = format!("No event of a recorded runtime and no sample shows what {threads} did");
    let verdict = match failure(session) {
        Some(how) if is_empty => format!("{no_runtime}: the program ended with {how}."),
        None if is_empty => format!("{no_runtime}."),
        _ if has_waits => times.verdict("section waits shows which threads waited for which"),
        _ => times.verdict(NO_LOSS_KNOWN),
    };
    let mut rows = numbered(found, |_| Some(Runtime::Threads));
    for row in rows.iter_mut().filter(|row| is_empty && row.cause == Cause::Unknown) {
        row.remedy = match failure(session) {
            Some(_) => "Look for the reason in the program's own output.",
            None => "Record a run that reaches the parallel code, or one long enough for samples (`record --sample 100`).",
        }
        .to_owned();
    }
    thread_findings(rows, &times, verdict)
}

/// All findings of a profile with samples and without workers; `None` for other profiles.
pub(super) fn findings_of_profile(tree: &CallTree) -> Option<Findings> {
    let has_workers = states_of(&tree.totals).iter().any(|(_, ns)| *ns > 0);
    let times = Times::from_profile(tree);
    if has_workers || times.all == 0 {
        return None;
    }
    let mut found = found(tree, &times, NEEDED);
    let source = source_of_profile(tree, "threads");
    for finding in found.iter_mut().filter(|finding| finding.cause == Cause::CpuNone) {
        finding.text = sentence(finding, &source);
    }
    let rows = numbered(found, |_| Some(Runtime::Threads));
    let verdict = times.verdict(NO_LOSS_KNOWN);
    Some(thread_findings(rows, &times, verdict))
}

const NEEDED: &str = "whether others needed these threads meanwhile, samples do not show";
const NO_LOSS_KNOWN: &str = "whether being blocked was a loss, samples do not show";

fn thread_findings(rows: Vec<NamedFinding>, times: &Times, verdict: String) -> Findings {
    let verdict = (times.all > 0).then_some(verdict);
    Findings { rows, base_ns: times.all, whose: Whose::Threads, verdict, cpu_time: None }
}

/// The parts of the time as findings, with the place of most of the samples of each.
fn found(tree: &CallTree, times: &Times, blocked_note: &str) -> Vec<NamedFinding> {
    let tree = tree.without_runtime();
    let parts = [
        (Cause::CpuNone, Blamed::System, State::OutOfCpu, times.no_cpu, times.confidence),
        (Cause::Blocked, Blamed::Code, State::Blocked, times.blocked, Confidence::Low),
        (Cause::Work, Blamed::Code, State::Serial, times.running(), times.confidence),
        (Cause::Unknown, Blamed::Nobody, State::Unknown, times.all - times.known, Confidence::High),
    ];
    let mut found: Vec<NamedFinding> = Vec::new();
    for (cause, blamed, state, ns, confidence) in parts.into_iter().filter(|row| row.3 > 0) {
        let column = column_of(cause);
        let values: Vec<(NodeId, u64)> =
            tree.nodes().map(|node| (node, own(&tree.tree, node, column))).collect();
        let (path, total) = (HotPath::of(&tree, &values), total(&tree.tree, column));
        // System time has no place; blocked code and work have the place of the samples.
        let place = if blamed == Blamed::Code { path.place() } else { String::new() };
        let mut finding = NamedFinding::new((cause, blamed), (state, place), ns, confidence);
        finding.victims.add(state, ns);
        let blocked_note = if cause == Cause::Blocked { blocked_note.to_owned() } else { String::new() };
        let evidence = [path.evidence(total), blocked_note];
        finding.evidence =
            evidence.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("; ");
        finding.text = match cause {
            Cause::Work => path.after("threads run code of the program", total),
            Cause::Blocked => {
                path.after("threads are blocked in the kernel (sleep, I/O, a wait of a library)", total)
            }
            _ => "samples alone: whether threads ran, had no CPU or were blocked is not recorded".to_owned(),
        };
        finding.path = path.steps;
        found.push(finding);
    }
    found
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

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_profile::{FrameKind, ROOT, named::Label};

    fn sampled(no_cpu: &str) -> CallTree {
        let mut tree = CallTree::default();
        let label = |function: &str| Label {
            what: taskscope_profile::named::StepKind::Function,
            function: function.to_owned(),
            file: None,
            line: None,
            module: String::new(),
        };
        let work = tree.child(ROOT, FrameKind::User, label("work"));
        let wait = tree.child(ROOT, FrameKind::User, label("wait"));
        for (node, metric, ns) in [
            (work, Metric::TIME, 700),
            (work, Metric::WORK, 500),
            (work, Metric::OUT_OF_CPU, 200),
            (wait, Metric::TIME, 300),
            (wait, Metric::WORK, 10),
            (wait, Metric::BLOCKED, 290),
        ] {
            tree.tree.add(node, metric, ns);
        }
        let facts = [(key::THREADS, "2"), (key::NO_CPU, no_cpu)];
        tree.processes =
            vec![facts.map(|(key, fact)| (key.to_owned(), fact.to_owned())).into_iter().collect()];
        tree
    }

    #[test]
    fn samples_of_a_profile_divide_the_time_of_its_threads() {
        let found = findings_of_profile(&sampled("schedstat")).unwrap();
        assert_eq!((found.base_ns, found.whose), (1000, Whose::Threads));
        let rows: Vec<_> = found.rows.iter().map(|row| (row.cause, row.ns, row.place.as_str())).collect();
        assert_eq!(
            rows,
            [(Cause::Work, 510, "work"), (Cause::Blocked, 290, "wait"), (Cause::CpuNone, 200, "")]
        );
        assert!(found.verdict.unwrap().starts_with("2 threads ran 51.0 %, had no CPU 20.0 %"));
        let unknown = findings_of_profile(&sampled("none")).unwrap();
        assert_eq!(
            unknown.rows.iter().map(|row| (row.cause, row.ns)).collect::<Vec<_>>(),
            [(Cause::Unknown, 1000)]
        );
        let mut with_workers = sampled("schedstat");
        with_workers.totals.insert("state.serial".to_owned(), 5);
        assert!(findings_of_profile(&with_workers).is_none(), "workers have findings of their own");
    }
}
