//! Findings of a profile of threads without a runtime (`record --threads --mode profile`).
//!
//! ```text
//!   capacity = used + waits, by object and culprit + no CPU + too few threads with work + blocked in other calls + no work
//! ```
//! Findings are losses of CPUs, as of a trace ([`cpus`](super::cpus)), if the recorder knows the use of CPUs, and the profile is of one
//! process. How long threads had no CPU is estimated, so no loss is sure.
//!
//! Otherwise findings are shares of the threads' life. Waits are exact; how long threads ran outside of them is known from the kernel or
//! from samples, and the rest was blocked. Waits for requests, timers, input and the ends of threads are no losses.

use super::cpus;
use super::paths::HotPath;
use super::rows::{CpuTimes, Findings, Whose};
use super::wait_rows::one;
use crate::CallPaths;
use crate::call_paths::profile_facts::stopped_text;
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
use taskscope_profile::{
    Metric, NodeId, Process, Profile, WaitEnd, WaitMeaning, WaitPart, WaitRow, cpu_sum, key,
};

/// Places that the evidence names.
const MAX_PLACES: usize = 3;
/// Other processes than the main one need one in this many of the CPU time at most.
const OTHER_PARTS: u64 = 20;

/// All findings; `None` if no waits are recorded, or a runtime with workers was seen.
pub(super) fn findings(paths: &CallPaths) -> Option<Findings> {
    let tree = &paths.tree;
    let has_runtime = [Metric::REGIONS, Metric::TASKS].iter().any(|metric| tree.tree.total(*metric) > 0);
    let total = |name| tree.totals.get(name).copied().unwrap_or(0);
    let threads_ns = total(sum::THREADS_NS);
    if paths.waits.rows.is_empty() || has_runtime || threads_ns == 0 {
        return None;
    }
    let process = main_process(tree);
    let mut rows = Rows { is_of_cpus: process.is_some(), ..Rows::default() };
    let is_of_it = |row: &&(WaitRow, ThreadWaitTimes)| process.is_none_or(|index| row.0.process == index);
    for (row, words) in paths.waits.rows.iter().filter(is_of_it) {
        for (part, text) in row.parts.iter().zip(&words.parts) {
            rows.add(row.kind, words, (part, text));
        }
    }
    let process = process.and_then(|index| tree.processes.get(index as usize));
    Some(match process {
        Some(process) => cpu_findings(rows, tree, process),
        None => thread_findings(rows, tree, threads_ns),
    })
}

/// The process whose use of CPUs is nearly that of all: others are shells and the like. `None` if that is not known, or several
/// processes share the CPUs.
fn main_process(tree: &CallTree) -> Option<u32> {
    let wants = |process: &Process| {
        process_number(process, cpu_sum::USED_NS) + process_number(process, cpu_sum::NO_CPU_NS)
    };
    let all = tree.processes.iter().map(wants).fold(0, u64::saturating_add);
    let (index, most) = (0..).zip(&tree.processes).max_by_key(|(_, process)| wants(process))?;
    let is_known = process_number(most, cpu_sum::CAPACITY_NS) > 0;
    (is_known && (all - wants(most)).saturating_mul(OTHER_PARTS) <= all).then_some(index)
}

fn process_number(process: &Process, name: &str) -> u64 {
    // Damaged files have any numbers.
    const MAX_NS: u64 = 1 << 57;
    Profile::number(process, name).unwrap_or(0).min(MAX_NS)
}

fn cpu_findings(mut rows: Rows, tree: &CallTree, process: &Process) -> Findings {
    let total = |name| process_number(process, name);
    let capacity_ns = total(cpu_sum::CAPACITY_NS);
    let cpus = &CpuTimes {
        millicpus: total(cpu_sum::MILLICPUS),
        capacity_ns,
        used_ns: total(cpu_sum::USED_NS).min(capacity_ns),
        threads_ns: total(cpu_sum::THREADS_NS),
    };
    let mut left = cpus.capacity_ns - cpus.used_ns;
    for row in &mut rows.rows {
        row.finding.ns = row.finding.ns.min(left);
        left -= row.finding.ns;
    }
    let [no_cpu, blocked, alone] = [cpu_sum::NO_CPU_NS, cpu_sum::BLOCKED_NS, cpu_sum::ALONE_NS].map(|name| {
        let ns = total(name).min(left);
        left -= ns;
        ns
    });
    // With fractions that were cut off.
    let idle = left;
    let medium = Confidence::Medium;
    let no_cpu_threads = total(cpu_sum::NO_CPU_THREADS_NS);
    rows.plain((Cause::CpuNone, Blamed::System), State::OutOfCpu, medium, (no_cpu, no_cpu_threads));
    let blocked_threads = total(cpu_sum::BLOCKED_THREADS_NS);
    rows.plain((Cause::Blocked, Blamed::Code), State::Blocked, Confidence::Low, (blocked, blocked_threads));
    let shown = tree.without_runtime();
    if let Some(row) = rows.plain((Cause::Wait, Blamed::Serial), State::Idle, medium, (alone, 0)) {
        row.path = hot_outside_of_c_library(&shown);
    }
    if let Some(row) = rows.plain((Cause::Wait, Blamed::Nobody), State::Idle, medium, (idle, 0)) {
        row.finding.pattern = Some(Pattern::NoWork);
    }
    let stopped_ns = u128::from(process_number(process, key::STOPPED_NS)) * u128::from(cpus.millicpus) / 1000;
    for row in rows.rows.iter_mut().filter(|row| row.finding.cause == Cause::CpuNone) {
        let is_stopped = stopped_ns > u128::from(row.finding.ns / 2);
        row.finding.pattern = is_stopped.then_some(Pattern::Stopped);
    }
    rows.stopped = stopped_text(std::slice::from_ref(process))
        .map_or_else(String::new, |text| format!("; the process was {text}"));
    let found = rows.finish(cpus.threads_ns);
    let verdict = Some(cpus::verdict(cpus, &found));
    let (base_ns, cpu_time) = (cpus.capacity_ns, Some(cpus.clone()));
    Findings { rows: found, base_ns, whose: Whose::Cpus, verdict, cpu_time }
}

fn thread_findings(mut rows: Rows, tree: &CallTree, base_ns: u64) -> Findings {
    let total = |name| tree.totals.get(name).copied().unwrap_or(0);
    let lost = total(sum::LOST_NS);
    let waited = rows.rows.iter().fold(0, |sum: u64, row| sum.saturating_add(row.finding.ns));
    rows.plain((Cause::Unknown, Blamed::Nobody), State::Unknown, Confidence::High, (lost, lost));
    let rest = base_ns.saturating_sub(waited).saturating_sub(lost);
    let shown = tree.without_runtime();
    // The kernel's sums, if there are any, include times without a CPU.
    let kernel_total = |name, metric| match total(cpu_sum::USED_NS) {
        0 => tree.tree.total(metric),
        _ => total(name),
    };
    let ran = kernel_total(cpu_sum::USED_NS, Metric::WORK).min(rest);
    let no_cpu = kernel_total(cpu_sum::NO_CPU_THREADS_NS, Metric::OUT_OF_CPU).min(rest - ran);
    for ((cause, blamed), state, metric, ns) in [
        ((Cause::Work, Blamed::Code), State::Serial, Metric::WORK, ran),
        ((Cause::CpuNone, Blamed::System), State::OutOfCpu, Metric::OUT_OF_CPU, no_cpu),
        ((Cause::Blocked, Blamed::Code), State::Blocked, Metric::BLOCKED, rest - ran - no_cpu),
    ] {
        let confidence = if cause == Cause::Blocked { Confidence::Low } else { Confidence::Medium };
        if let Some(row) = rows.plain((cause, blamed), state, confidence, (ns, ns)) {
            // Most blocked samples are of the recorded waits.
            row.path = if cause == Cause::Blocked { HotPath::default() } else { hot(&shown, metric) };
        }
    }
    let found = rows.finish(base_ns);
    let verdict = Some(verdict(&found, base_ns, ran));
    Findings { rows: found, base_ns, whose: Whose::Threads, verdict, cpu_time: None }
}

fn hot(tree: &CallTree, metric: Metric) -> HotPath {
    let values: Vec<(NodeId, u64)> = tree.nodes().map(|node| (node, tree.tree.value(node, metric))).collect();
    HotPath::of(tree, &values)
}

/// The path of most samples. Those in the C library, where threads wait, are left out.
fn hot_outside_of_c_library(tree: &CallTree) -> HotPath {
    let is_there = |node: NodeId| {
        let module = tree.tree.frame(node).module;
        let label = tree.labels.get(module as usize).and_then(|label| label.module.rsplit('/').next());
        label
            .is_some_and(|file| ["libc.so", "libc-", "libpthread", "ld-"].iter().any(|c| file.starts_with(c)))
    };
    let own = |node| if is_there(node) { 0 } else { tree.tree.value(node, Metric::WORK) };
    let values: Vec<(NodeId, u64)> = tree.nodes().map(|node| (node, own(node))).collect();
    HotPath::of(tree, &values)
}

/// A finding while it is summed up.
struct Row {
    finding: NamedFinding,
    /// Nanoseconds of threads.
    threads_ns: u64,
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
    /// Whether they are losses of CPUs, not shares of the threads' time.
    is_of_cpus: bool,
    /// The stops of the process by signals in words; empty for none.
    stopped: String,
    numbers: FxHashMap<(Cause, Blamed, String, String), usize>,
    rows: Vec<Row>,
}

impl Rows {
    fn add(&mut self, of: u32, words: &ThreadWaitTimes, (part, text): (&WaitPart, &ThreadWaitPart)) {
        let place = words.place.clone().unwrap_or_default();
        let ns = (if self.is_of_cpus { part.cpu_ns } else { part.ns }, part.ns);
        match (part.meaning(of), &text.by) {
            (WaitMeaning::Charged, Some(by)) => {
                let by_text = chain_text(by, text.root.as_ref(), text.chain, text.blocked.as_ref());
                let charged = text.root.as_ref().unwrap_or(by).place.clone().unwrap_or_default();
                let (cause, blamed) = match of {
                    _ if kind::has_holder(of) => (Cause::Lock, Blamed::Holder),
                    kind::THREAD_BARRIER => (Cause::WaitSync, Blamed::Waker),
                    _ => (Cause::WaitSignal, Blamed::Waker),
                };
                let state = if cause == Cause::Lock { State::LockWait } else { State::Blocked };
                // A thread in a call that is not recorded counts as one that ran. A lock is held in any case.
                let may_be_blocked = part.end == WaitEnd::Ran && cause != Cause::Lock;
                let unsure = of == kind::FUTEX || charged.is_empty() || may_be_blocked;
                let confidence = if unsure { Confidence::Medium } else { Confidence::High };
                let object = object_words(words);
                let key = (cause, blamed, object.clone(), by_text.clone());
                let row = self.row(key, (state, charged), confidence, ns);
                (row.object, row.by) = (object, by_text);
                if of == kind::GIL {
                    row.finding.pattern = Some(Pattern::InterpreterLock);
                }
                row.note(place, part.ns);
                if part.is_of_free_lock() {
                    row.finding.free_ns = row.finding.free_ns.saturating_add(ns.0);
                }
            }
            (meaning @ (WaitMeaning::Sleeps | WaitMeaning::Device), _) => {
                let is_sleep = meaning == WaitMeaning::Sleeps;
                let cause = if is_sleep { Cause::BlockedSleep } else { Cause::BlockedIo };
                let key = (cause, Blamed::Code, place.clone(), String::new());
                self.row(key, (State::Blocked, place), Confidence::High, ns);
            }
            (WaitMeaning::Listens | WaitMeaning::Rests, _) => {
                let row = self.plain((Cause::Wait, Blamed::Nobody), State::Idle, Confidence::Medium, ns);
                if let Some(row) = row {
                    row.finding.pattern = Some(Pattern::NoWork);
                    row.note(place, part.ns);
                }
            }
            (WaitMeaning::HandedOver, _) => {
                let row = self.plain((Cause::Wait, Blamed::Nobody), State::Blocked, Confidence::Medium, ns);
                if let Some(row) = row {
                    row.finding.pattern = Some(Pattern::HandOver);
                }
            }
            (WaitMeaning::NoCpu, _) => {
                self.plain((Cause::CpuNone, Blamed::System), State::OutOfCpu, Confidence::Medium, ns);
            }
            (WaitMeaning::NotKnown | WaitMeaning::Charged, _) => {
                let key = (Cause::Blocked, Blamed::Code, words.kind.clone(), place.clone());
                let row = self.row(key, (State::Blocked, place), Confidence::Low, ns);
                row.object.clone_from(&words.kind);
            }
        }
    }

    /// Adds nanoseconds of the total, and of threads.
    fn plain(
        &mut self,
        (cause, blamed): (Cause, Blamed),
        state: State,
        confidence: Confidence,
        ns: (u64, u64),
    ) -> Option<&mut Row> {
        let key = (cause, blamed, state.name().to_owned(), String::new());
        (ns != (0, 0)).then(|| self.row(key, (state, String::new()), confidence, ns))
    }

    fn row(
        &mut self,
        key: (Cause, Blamed, String, String),
        what: (State, String),
        confidence: Confidence,
        (ns, threads_ns): (u64, u64),
    ) -> &mut Row {
        let (cause, blamed) = (key.0, key.1);
        let number = *self.numbers.entry(key).or_insert(self.rows.len());
        if number == self.rows.len() {
            let finding = NamedFinding::new((cause, blamed), what, 0, confidence);
            let (object, by) = Default::default();
            let (places, path) = (Vec::new(), HotPath::default());
            self.rows.push(Row { finding, threads_ns: 0, places, object, by, path });
        }
        // Which threads had a CPU is an estimate.
        let most = if self.is_of_cpus { Confidence::Medium } else { Confidence::High };
        let row = &mut self.rows[number];
        row.finding.ns = row.finding.ns.saturating_add(ns);
        row.threads_ns = row.threads_ns.saturating_add(threads_ns);
        row.finding.confidence = row.finding.confidence.min(confidence).min(most);
        row
    }

    /// The findings, numbered; `threads_ns` is the life of all threads.
    fn finish(self, threads_ns: u64) -> Vec<NamedFinding> {
        let Rows { is_of_cpus, stopped, mut rows, .. } = self;
        rows.iter_mut().for_each(|row| row.finish(threads_ns, is_of_cpus, &stopped));
        let found = rows.into_iter().map(|row| row.finding).filter(|finding| finding.ns > 0).collect();
        numbered(found, |_| Some(Runtime::Threads))
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
    fn finish(&mut self, all_ns: u64, is_of_cpus: bool, stopped: &str) {
        let Row { finding, threads_ns, places, object, by, path } = self;
        finding.victims.add(finding.state, finding.ns);
        finding.judge_lock();
        let unit = Unit::for_total(all_ns);
        let part =
            format!("{} of {} {}", unit.show(*threads_ns), unit.show(all_ns), Whose::Threads.unit(unit));
        places.sort_by_key(|(_, ns)| Reverse(*ns));
        let shown = places.iter().take(MAX_PLACES).map(|(place, ns)| format!("{place} {}", time(*ns)));
        let shown = shown.collect::<Vec<_>>().join(", ");
        if !shown.is_empty() {
            finding.evidence = format!("they wait in {shown}");
        }
        let while_unused = if is_of_cpus { " while CPUs are unused" } else { "" };
        finding.text = match (finding.cause, finding.blamed, finding.pattern) {
            (Cause::Lock, _, Some(Pattern::FreeLock)) => {
                format!("{part} wait for {object}, which is mostly free; otherwise {by}")
            }
            (Cause::Lock | Cause::WaitSync | Cause::WaitSignal, ..) => {
                let preposition = if finding.cause == Cause::WaitSync { "in" } else { "for" };
                format!("{part} wait {preposition} {object}, {by}")
            }
            (Cause::BlockedSleep, ..) => format!("threads sleep for {part}{while_unused}: {}", finding.place),
            (Cause::BlockedIo, ..) => format!("{part} wait for a device: {}", finding.place),
            (Cause::Wait, Blamed::Serial, _) => {
                finding.place = path.place();
                finding.path.clone_from(&path.steps);
                match path.steps.is_empty() {
                    true => "CPUs are unused: only few threads have work".to_owned(),
                    false => path.after("CPUs are unused: only few threads have work", path.base()),
                }
            }
            (Cause::Wait, _, Some(Pattern::NoWork)) if is_of_cpus => {
                "no thread has work: all wait for requests, timers, input or other threads' ends".to_owned()
            }
            (Cause::Wait, _, Some(Pattern::NoWork)) => {
                format!("{part} are waits for requests, timers, input or other threads' ends")
            }
            (Cause::Wait, ..) => {
                format!("{part} are between a wake or a free lock and the woken thread's next step")
            }
            (Cause::Blocked, ..) if !object.is_empty() => format!(
                "{part} wait for {} in {}; which thread ends the waits is not known",
                one(object),
                finding.place
            ),
            (Cause::Blocked, ..) => format!("{part} are blocked in calls that are not recorded"),
            (Cause::Work, ..) => {
                finding.place = path.place();
                finding.path.clone_from(&path.steps);
                path.after("threads run code of the program", path.base())
            }
            (Cause::CpuNone, ..) if is_of_cpus => format!("threads had no CPU for {part}{stopped}"),
            (Cause::CpuNone, ..) => {
                finding.path.clone_from(&path.steps);
                path.after("threads could run and had no CPU", path.base())
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
    use taskscope_profile::{NO_MODULE, ROOT, WaitCall, WaitEnd, WaitRow, WaitTie};
    use taskscope_session::KeptModules;

    const CALL: WaitCall = WaitCall { module: NO_MODULE, offset: 0, path: ROOT };

    fn row(of: u32, parts: &[(WaitEnd, Option<WaitTie>, u64)]) -> WaitRow {
        let parts = parts.iter().map(|(end, first, ns)| {
            let length = u32::from(first.is_some());
            WaitPart {
                end: *end,
                first: *first,
                last: *first,
                blocked: None,
                length,
                ns: *ns,
                cpu_ns: ns / 2,
            }
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
                (Cause::Wait, Blamed::Nobody, Some(Pattern::HandOver), 7),
                (Cause::Blocked, Blamed::Code, None, 3),
            ]
        );
        assert_eq!(found.rows.iter().map(|row| row.ns).sum::<u64>(), 1000);
        assert!(found.rows.iter().all(|row| !row.text.is_empty() && row.victims.total() == row.ns));
        // The use of CPUs is known.
        let cpu_sums = [
            (cpu_sum::MILLICPUS, 2000),
            (cpu_sum::CAPACITY_NS, 1000),
            (cpu_sum::USED_NS, 300),
            (cpu_sum::NO_CPU_NS, 100),
            (cpu_sum::NO_CPU_THREADS_NS, 150),
            (cpu_sum::ALONE_NS, 40),
            (cpu_sum::THREADS_NS, 1000),
        ];
        profile.processes = vec![cpu_sums.map(|(name, ns)| (name.to_owned(), ns.to_string())).into()];
        let waits = ProfileWaits::of(&profile, KeptModules::default());
        let paths = CallPaths { waits, ..CallPaths::of(&profile, KeptModules::default(), None) };
        let found = findings(&paths).unwrap();
        assert_eq!((found.base_ns, found.whose), (1000, Whose::Cpus));
        let used_ns = found.cpu_time.as_ref().map_or(0, |times| times.used_ns);
        assert_eq!(used_ns + found.rows.iter().map(|row| row.ns).sum::<u64>(), 1000);
        let of = |cause| found.rows.iter().find(|row| row.cause == cause).map(|row| row.ns);
        assert_eq!([of(Cause::Lock), of(Cause::CpuNone)], [Some(200), Some(100)]);
        assert!(found.rows.iter().all(|row| row.confidence <= Confidence::Medium), "estimates");
        assert!(found.verdict.is_some_and(|verdict| verdict.starts_with("Of 2 CPUs the program used 0.60")));
        profile.tree.add(ROOT, Metric::TASKS, 1);
        let paths = CallPaths::of(&profile, KeptModules::default(), None);
        assert!(findings(&paths).is_none(), "workers have findings of their own");
    }
}
