//! Findings of a profile of threads without a runtime (`record --threads --mode profile`): shares of the threads' time.
//!
//! ```text
//!   life of the threads = waits, by object and culprit + ran + had no CPU + blocked in other calls
//! ```
//! Waits are exact. How long threads ran or had no CPU outside of them is known from samples; the rest was blocked. Waits for requests,
//! timers, input and the ends of threads are no losses. A profile does not know which CPUs were unused meanwhile: whether a thread
//! had been able to run instead is the reader's judgement.

use super::paths::HotPath;
use super::rows::{Findings, Whose};
use crate::CallPaths;
use crate::format::{Unit, percent, time};
use crate::named_finding::NamedFinding;
use crate::profile_waits::sum;
use crate::thread_waits::{ThreadWaitPart, ThreadWaitTimes, chain_text};
use crate::words::numbered;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_analysis::Confidence;
use taskscope_cause::{Blamed, Cause, Pattern, Runtime};
use taskscope_event::models::wait::kind;
use taskscope_execution::State;
use taskscope_profile::named::CallTree;
use taskscope_profile::{Metric, NodeId, WaitEnd, WaitPart, WaitTie};

/// Places that the evidence names.
const MAX_PLACES: usize = 3;

/// All findings; `None` if no waits are recorded, or a runtime with workers was seen.
pub(super) fn findings(paths: &CallPaths) -> Option<Findings> {
    let tree = &paths.tree;
    let has_runtime = [Metric::REGIONS, Metric::TASKS].iter().any(|metric| tree.tree.total(*metric) > 0);
    let total = |name| tree.totals.get(name).copied().unwrap_or(0);
    let base_ns = total(sum::THREADS_NS);
    if paths.waits.rows.is_empty() || has_runtime || base_ns == 0 {
        return None;
    }
    let mut rows = Rows::default();
    for (row, words) in &paths.waits.rows {
        for (part, text) in row.parts.iter().zip(&words.parts) {
            rows.add(row.kind, words, (part, text));
        }
    }
    let waited = rows.rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.finding.ns));
    rows.plain((Cause::Unknown, Blamed::Nobody), State::Unknown, Confidence::High, total(sum::LOST_NS));
    let rest = base_ns.saturating_sub(waited).saturating_sub(total(sum::LOST_NS));
    let shown = tree.without_runtime();
    let of_samples = |metric| tree.tree.total(metric);
    let ran = of_samples(Metric::WORK).min(rest);
    let no_cpu = of_samples(Metric::OUT_OF_CPU).min(rest - ran);
    for ((cause, blamed), state, metric, ns) in [
        ((Cause::Work, Blamed::Code), State::Serial, Metric::WORK, ran),
        ((Cause::CpuNone, Blamed::System), State::OutOfCpu, Metric::OUT_OF_CPU, no_cpu),
        ((Cause::Blocked, Blamed::Code), State::Blocked, Metric::BLOCKED, rest - ran - no_cpu),
    ] {
        let confidence = if cause == Cause::Blocked { Confidence::Low } else { Confidence::Medium };
        if let Some(row) = rows.plain((cause, blamed), state, confidence, ns) {
            // Most blocked samples are of the recorded waits.
            row.path = if cause == Cause::Blocked { HotPath::default() } else { hot(&shown, metric) };
        }
    }
    let mut found = rows.rows;
    found.iter_mut().for_each(|row| row.finish(base_ns));
    let found = found.into_iter().map(|row| row.finding).filter(|finding| finding.ns > 0).collect();
    let rows = numbered(found, |_| Some(Runtime::Threads));
    let verdict = Some(verdict(&rows, base_ns, ran));
    Some(Findings { rows, base_ns, whose: Whose::Threads, verdict, cpu_time: None })
}

fn hot(tree: &CallTree, metric: Metric) -> HotPath {
    let values: Vec<(NodeId, u64)> = tree.nodes().map(|node| (node, tree.tree.value(node, metric))).collect();
    HotPath::of(tree, &values)
}

/// A finding while it is summed up.
struct Row {
    finding: NamedFinding,
    /// Waiting time by the place of the wait.
    places: Vec<(String, u64)>,
    /// The awaited object: `mutex cache_mutex`.
    object: String,
    /// The charged thread: `held by evict [lock at cache.cc:88]`.
    by: String,
    path: HotPath,
}

/// Findings by their words.
#[derive(Default)]
struct Rows {
    numbers: FxHashMap<(Cause, Blamed, String, String), usize>,
    rows: Vec<Row>,
}

/// The meaning of a part of a wait for the time of its thread.
enum Meaning {
    /// Another thread makes it wait.
    Charged,
    /// Its own sleep, or a file.
    Own(Cause),
    /// For a request, a timer, input, or the end of a thread or of the run.
    Rests,
    Handover,
    NoCpu,
    NotKnown,
}

impl Meaning {
    /// The rules are those of the CPU time of traces (`taskscope_analysis::cpu_time`).
    fn of(of: u32, part: &WaitPart) -> Meaning {
        let of_file = part.blocked.map_or(of, |(kind, _)| kind) == kind::FILE;
        match (part.end, part.first) {
            (WaitEnd::NoCpu, _) => Meaning::NoCpu,
            (WaitEnd::Handover, None) => Meaning::Handover,
            _ if of == kind::JOIN => Meaning::Rests,
            (WaitEnd::Open | WaitEnd::TimedOut, _) => Meaning::Rests,
            (WaitEnd::NotKnown, _) | (WaitEnd::Ran, None) => Meaning::NotKnown,
            (WaitEnd::Slept, None) => Meaning::Own(Cause::BlockedSleep),
            (WaitEnd::Outside, None) if of_file => Meaning::Own(Cause::BlockedIo),
            (WaitEnd::Outside, None) => Meaning::Rests,
            // A lock is held by a thread that waits for the outside; else its thread waits for requests, too.
            (WaitEnd::Outside, Some(first)) if !of_file && !matches!(first, WaitTie::Holds(_)) => {
                Meaning::Rests
            }
            _ => Meaning::Charged,
        }
    }
}

impl Rows {
    fn add(&mut self, of: u32, words: &ThreadWaitTimes, (part, text): (&WaitPart, &ThreadWaitPart)) {
        let place = words.place.clone().unwrap_or_default();
        match (Meaning::of(of, part), &text.by) {
            (Meaning::Charged, Some(by)) => {
                let by_text = chain_text(by, text.root.as_ref(), text.chain, text.blocked.as_ref());
                let charged = text.root.as_ref().unwrap_or(by).place.clone().unwrap_or_default();
                let (cause, blamed) = match of {
                    _ if kind::has_holder(of) => (Cause::Lock, Blamed::Holder),
                    kind::THREAD_BARRIER => (Cause::WaitSync, Blamed::Waker),
                    _ => (Cause::WaitSignal, Blamed::Waker),
                };
                let state = if cause == Cause::Lock { State::LockWait } else { State::Blocked };
                let unsure = of == kind::FUTEX || charged.is_empty();
                let confidence = if unsure { Confidence::Medium } else { Confidence::High };
                let object = object_words(words);
                let key = (cause, blamed, object.clone(), by_text.clone());
                let row = self.row(key, (state, charged), confidence, part.ns);
                (row.object, row.by) = (object, by_text);
                row.note(place, part.ns);
            }
            (Meaning::Own(cause), _) => {
                let key = (cause, Blamed::Code, place.clone(), String::new());
                self.row(key, (State::Blocked, place), Confidence::High, part.ns);
            }
            (Meaning::Rests, _) => {
                let row = self.plain((Cause::Wait, Blamed::Nobody), State::Idle, Confidence::Medium, part.ns);
                if let Some(row) = row {
                    row.finding.pattern = Some(Pattern::NoWork);
                    row.note(place, part.ns);
                }
            }
            (Meaning::Handover, _) => {
                self.plain((Cause::Wait, Blamed::Nobody), State::Blocked, Confidence::Medium, part.ns);
            }
            (Meaning::NoCpu, _) => {
                self.plain((Cause::CpuNone, Blamed::System), State::OutOfCpu, Confidence::Medium, part.ns);
            }
            (Meaning::NotKnown | Meaning::Charged, _) => {
                let key = (Cause::Blocked, Blamed::Code, words.kind.clone(), place.clone());
                let row = self.row(key, (State::Blocked, place), Confidence::Low, part.ns);
                row.object.clone_from(&words.kind);
            }
        }
    }

    fn plain(
        &mut self,
        (cause, blamed): (Cause, Blamed),
        state: State,
        confidence: Confidence,
        ns: u64,
    ) -> Option<&mut Row> {
        let key = (cause, blamed, state.name().to_owned(), String::new());
        (ns > 0).then(|| self.row(key, (state, String::new()), confidence, ns))
    }

    fn row(
        &mut self,
        key: (Cause, Blamed, String, String),
        what: (State, String),
        confidence: Confidence,
        ns: u64,
    ) -> &mut Row {
        let (cause, blamed) = (key.0, key.1);
        let number = *self.numbers.entry(key).or_insert(self.rows.len());
        if number == self.rows.len() {
            let finding = NamedFinding::new((cause, blamed), what, 0, confidence);
            let (object, by) = Default::default();
            self.rows.push(Row { finding, places: Vec::new(), object, by, path: HotPath::default() });
        }
        let row = &mut self.rows[number];
        row.finding.ns = row.finding.ns.saturating_add(ns);
        row.finding.confidence = row.finding.confidence.min(confidence);
        row
    }
}

/// The object in words. One without a name is named after the place that waits.
fn object_words(words: &ThreadWaitTimes) -> String {
    let word = &words.kind;
    match &words.object {
        // `pipe:[12]` has its kind in its name.
        Some(name) if name.starts_with(word.as_str()) => name.clone(),
        Some(name) if !name.starts_with("0x") => format!("{word} {name}"),
        _ => match &words.place {
            Some(place) => format!("a {word} waited for in {place}"),
            None => format!("a {word}"),
        },
    }
}

impl Row {
    fn note(&mut self, place: String, ns: u64) {
        if place.is_empty() {
            return;
        }
        match self.places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, sum)) => *sum = sum.saturating_add(ns),
            None => self.places.push((place, ns)),
        }
    }

    /// Writes the sentence and the evidence.
    fn finish(&mut self, base_ns: u64) {
        let Row { finding, places, object, by, path } = self;
        finding.victims.add(finding.state, finding.ns);
        let unit = Unit::for_total(base_ns);
        let part =
            format!("{} of {} {}", unit.show(finding.ns), unit.show(base_ns), Whose::Threads.unit(unit));
        places.sort_by_key(|(_, ns)| Reverse(*ns));
        let shown = places.iter().take(MAX_PLACES).map(|(place, ns)| format!("{place} {}", time(*ns)));
        let shown = shown.collect::<Vec<_>>().join(", ");
        if !shown.is_empty() {
            finding.evidence = format!("they wait in {shown}");
        }
        finding.text = match (finding.cause, finding.pattern) {
            (Cause::Lock | Cause::WaitSync | Cause::WaitSignal, _) => {
                let preposition = if finding.cause == Cause::WaitSync { "in" } else { "for" };
                format!("{part} wait {preposition} {object}, {by}")
            }
            (Cause::BlockedSleep, _) => format!("threads sleep for {part}: {}", finding.place),
            (Cause::BlockedIo, _) => format!("{part} wait for a device: {}", finding.place),
            (Cause::Wait, Some(Pattern::NoWork)) => {
                format!("{part} are waits for requests, timers, input or other threads' ends")
            }
            (Cause::Wait, _) => {
                format!("{part} are between a wake or a free lock and the woken thread's next step")
            }
            (Cause::Blocked, _) if !object.is_empty() => format!(
                "{part} wait for a {object} in {}; which thread ends the waits is not known",
                finding.place
            ),
            (Cause::Blocked, _) => format!("{part} are blocked in calls that are not recorded"),
            (Cause::Work, _) => {
                finding.place = path.place();
                finding.path.clone_from(&path.steps);
                path.after("threads run code of the program", path.part)
            }
            (Cause::CpuNone, _) => {
                finding.path.clone_from(&path.steps);
                path.after("threads could run and had no CPU", path.part)
            }
            _ => format!("{part} are waits that were not summed up"),
        };
    }
}

/// The verdict in one sentence.
fn verdict(rows: &[NamedFinding], base_ns: u64, ran: u64) -> String {
    let mut text = format!("Threads ran for {} of their time", percent(ran, base_ns));
    let is_charged = |finding: &&NamedFinding| {
        !matches!(finding.cause, Cause::Work | Cause::Unknown) && finding.pattern != Some(Pattern::NoWork)
    };
    match rows.iter().find(is_charged) {
        Some(largest) => text += &format!("; most of the other time: {}", largest.text),
        None => text += "; the other time are waits for requests, timers, input or other threads' ends",
    }
    text + "."
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile_waits::ProfileWaits;
    use taskscope_profile::{NO_MODULE, ROOT, WaitCall, WaitRow};
    use taskscope_session::KeptModules;

    const CALL: WaitCall = WaitCall { module: NO_MODULE, offset: 0, path: ROOT };

    fn row(of: u32, parts: &[(WaitEnd, Option<WaitTie>, u64)]) -> WaitRow {
        let parts = parts.iter().map(|(end, first, ns)| {
            let length = u32::from(first.is_some());
            WaitPart { end: *end, first: *first, last: *first, blocked: None, length, ns: *ns }
        });
        let parts = parts.collect();
        WaitRow {
            process: 0,
            kind: of,
            module: NO_MODULE,
            object: 0x10,
            call: CALL,
            waits: 1,
            threads: 1,
            longest_ns: 1,
            parts,
        }
    }

    #[test]
    fn findings_sum_to_the_life_of_the_threads() {
        let (holds, wakes) = (Some(WaitTie::Holds(CALL)), Some(WaitTie::Wakes(CALL)));
        let mut profile = taskscope_profile::Profile {
            thread_waits: vec![
                row(kind::MUTEX, &[(WaitEnd::Ran, holds, 400), (WaitEnd::Handover, None, 7)]),
                row(kind::CONDITION, &[(WaitEnd::Ran, wakes, 30), (WaitEnd::Outside, wakes, 50)]),
                row(kind::JOIN, &[(WaitEnd::Ran, Some(WaitTie::IsJoined(CALL)), 100)]),
                row(kind::SLEEP, &[(WaitEnd::Slept, None, 20)]),
                row(kind::FUTEX, &[(WaitEnd::NotKnown, None, 3)]),
            ],
            ..Default::default()
        };
        profile.totals.insert(sum::THREADS_NS.to_owned(), 1000);
        profile.totals.insert(sum::LOST_NS.to_owned(), 11);
        profile.tree.add(ROOT, Metric::WORK, 300);
        let waits = ProfileWaits::of(&profile, KeptModules::default());
        let paths = CallPaths { waits, ..CallPaths::of(&profile, KeptModules::default(), None) };
        let found = findings(&paths).unwrap();
        assert_eq!((found.base_ns, found.whose), (1000, Whose::Threads));
        let rows: Vec<_> =
            found.rows.iter().map(|row| (row.cause, row.blamed, row.pattern, row.ns)).collect();
        assert_eq!(
            rows,
            [
                (Cause::Lock, Blamed::Holder, None, 400),
                (Cause::Work, Blamed::Code, None, 300),
                (Cause::Wait, Blamed::Nobody, Some(Pattern::NoWork), 150),
                (Cause::Blocked, Blamed::Code, None, 79),
                (Cause::WaitSignal, Blamed::Waker, None, 30),
                (Cause::BlockedSleep, Blamed::Code, None, 20),
                (Cause::Unknown, Blamed::Nobody, None, 11),
                (Cause::Wait, Blamed::Nobody, None, 7),
                (Cause::Blocked, Blamed::Code, None, 3),
            ]
        );
        assert_eq!(found.rows.iter().map(|row| row.ns).sum::<u64>(), 1000);
        assert!(found.rows.iter().all(|row| !row.text.is_empty() && row.victims.total() == row.ns));
        profile.tree.add(ROOT, Metric::TASKS, 1);
        let paths = CallPaths::of(&profile, KeptModules::default(), None);
        assert!(findings(&paths).is_none(), "workers have findings of their own");
    }
}
