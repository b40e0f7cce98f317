//! Findings of processes without a runtime, with recorded waits: reasons why their threads did not use all CPUs.
//!
//! Rows are losses of CPU time, one per object and culprit. They sum to the time of the CPUs that was not used.

use super::paths::HotPath;
use super::rows::{CpuTimes, Findings, Whose};
use crate::CallPaths;
use crate::format::{Unit, percent, time};
use crate::named_finding::NamedFinding;
use crate::thread_waits::{WaitWords, chain_text, kind_word};
use crate::verdict::SMALL_LOSS;
use crate::words::{Source, numbered, sentence};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::{Column, own};
use taskscope_analysis::{Call, Confidence, CpuLoss, CpuTime, LostTo, Tie, cpu_time};
use taskscope_cause::{Blamed, Cause, Pattern, Runtime};
use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, ObjectIndex, SiteIndex, State};
use taskscope_profile::NodeId;
use taskscope_session::Session;

/// Places that the evidence names.
const MAX_PLACES: usize = 3;
/// The part of the capacity that is not known, from which on no cause is sure: one in this many.
const UNSURE_PARTS: u64 = 5;

/// All findings; `None` if no waits are recorded, or if the CPUs or their use are not known.
pub(super) fn findings(session: &Session) -> Option<Findings> {
    let execution = &session.execution;
    if execution.thread_waits.waits.is_empty() {
        return None;
    }
    let cpus = cpu_time(execution)?;
    let mut rows = Rows::of(session, &cpus);
    for loss in &cpus.losses {
        rows.add(loss);
    }
    let mut found = rows.rows;
    let source =
        Source::of(session, "threads", &found.iter().map(|row| row.finding.clone()).collect::<Vec<_>>());
    for row in &mut found {
        row.finish(session, &cpus, &source);
    }
    let found: Vec<NamedFinding> =
        found.into_iter().map(|row| row.finding).filter(|finding| finding.ns > 0).collect();
    let rows = numbered(found, |_| Some(Runtime::Threads));
    let CpuTime { millicpus, capacity_ns, used_ns, threads_ns, .. } = cpus;
    let cpu_time = CpuTimes { millicpus, capacity_ns, used_ns, threads_ns };
    let verdict = Some(verdict(&cpu_time, &rows));
    Some(Findings { rows, base_ns: capacity_ns, whose: Whose::Cpus, verdict, cpu_time: Some(cpu_time) })
}

/// A finding while it is summed up.
struct Row {
    finding: NamedFinding,
    threads_ns: u64,
    /// Waiting time by the place of the wait.
    places: Vec<(String, u64)>,
    /// The awaited object: `mutex cache_mutex`.
    object: String,
    /// The charged thread: `held by evict [lock at cache.cc:88]`.
    by: String,
}

/// Findings by their words.
struct Rows<'a> {
    words: WaitWords<'a>,
    session: &'a Session,
    /// The first wait for each object, to name objects without a name.
    first_waits: FxHashMap<ObjectIndex, (u64, Call)>,
    /// Confidence in complete chains.
    sure: Confidence,
    numbers: FxHashMap<(Cause, Blamed, String, String), usize>,
    rows: Vec<Row>,
}

impl<'a> Rows<'a> {
    fn of(session: &'a Session, cpus: &CpuTime) -> Rows<'a> {
        let not_known = cpus.losses.iter().filter(|loss| is_not_known(loss.to));
        let not_known: u64 = not_known.map(|loss| loss.ns).sum();
        let is_sure = !cpus.is_estimated && not_known.saturating_mul(UNSURE_PARTS) < cpus.capacity_ns;
        Rows {
            words: WaitWords::of(session),
            session,
            first_waits: first_waits(&session.execution),
            sure: if is_sure { Confidence::High } else { Confidence::Medium },
            numbers: FxHashMap::default(),
            rows: Vec::new(),
        }
    }

    fn add(&mut self, loss: &CpuLoss) {
        let unsure = self.sure.min(Confidence::Medium);
        match loss.to {
            LostTo::NoCpu => self.plain(loss, (Cause::CpuNone, Blamed::System), State::OutOfCpu, self.sure),
            LostTo::Handover => self.plain(loss, (Cause::Wait, Blamed::Nobody), State::Blocked, unsure),
            LostTo::Alone => self.plain(loss, (Cause::Wait, Blamed::Serial), State::Idle, self.sure),
            LostTo::Idle => self.plain(loss, (Cause::Wait, Blamed::Nobody), State::Idle, unsure),
            LostTo::BlockedUnknown => {
                self.plain(loss, (Cause::Blocked, Blamed::Code), State::Blocked, Confidence::Low);
            }
            LostTo::Unknown => {
                self.plain(loss, (Cause::Unknown, Blamed::Nobody), State::Unknown, Confidence::High);
            }
            LostTo::WaitUnknown(of, call) => {
                let place = self.words.blocked(of, call).place.unwrap_or_default();
                let object = kind_word(of).to_owned();
                let key = (Cause::Blocked, Blamed::Code, object.clone(), place.clone());
                let row = self.row(key, (State::Blocked, place), Confidence::Low);
                row.object = object;
                row.add(loss, None);
            }
            LostTo::Blocked(of, call) => {
                let cause = if of == kind::FILE { Cause::BlockedIo } else { Cause::BlockedSleep };
                let place = self.words.blocked(of, call).place.unwrap_or_default();
                let key = (cause, Blamed::Code, place.clone(), String::new());
                let row = self.row(key, (State::Blocked, place), unsure);
                row.add(loss, None);
            }
            LostTo::Wait { kind, object, at, first, last, length, blocked } => {
                let by = self.words.tied(first);
                let root = (length > 1).then(|| self.words.tied(last));
                let call = blocked.map(|(kind, call)| self.words.blocked(kind, call));
                let by_text = chain_text(&by, root.as_ref(), length, call.as_ref());
                let place = root.unwrap_or(by).place.unwrap_or_default();
                let waiting = self.words.blocked(kind, at).place;
                let object = self.object(kind, object);
                let (cause, blamed) = match kind {
                    _ if kind::has_holder(kind) => (Cause::Lock, Blamed::Holder),
                    kind::THREAD_BARRIER => (Cause::WaitSync, Blamed::Waker),
                    _ => (Cause::WaitSignal, Blamed::Waker),
                };
                let state = if cause == Cause::Lock { State::LockWait } else { State::Blocked };
                // Of a word of memory it is known who wakes, not who had it.
                let sure = if kind == kind::FUTEX || place.is_empty() { unsure } else { self.sure };
                let key = (cause, blamed, object.clone(), by_text.clone());
                let site = self.site(last);
                let row = self.row(key, (state, place), sure);
                if !row.finding.site.is_some() {
                    row.finding.site = site;
                }
                (row.object, row.by) = (object, by_text);
                row.add(loss, waiting);
            }
        }
    }

    fn plain(
        &mut self,
        loss: &CpuLoss,
        (cause, blamed): (Cause, Blamed),
        state: State,
        confidence: Confidence,
    ) {
        let key = (cause, blamed, state.name().to_owned(), String::new());
        let row = self.row(key, (state, String::new()), confidence);
        if loss.to == LostTo::Idle {
            row.finding.pattern = Some(Pattern::NoWork);
        }
        row.add(loss, None);
    }

    fn row(
        &mut self,
        key: (Cause, Blamed, String, String),
        what: (State, String),
        confidence: Confidence,
    ) -> &mut Row {
        let (cause, blamed) = (key.0, key.1);
        let number = *self.numbers.entry(key).or_insert(self.rows.len());
        if number == self.rows.len() {
            self.rows.push(Row {
                finding: NamedFinding::new((cause, blamed), what, 0, confidence),
                threads_ns: 0,
                places: Vec::new(),
                object: String::new(),
                by: String::new(),
            });
        }
        let row = &mut self.rows[number];
        row.finding.confidence = row.finding.confidence.min(confidence);
        row
    }

    /// The object in words. One without a name is named after the first wait for it.
    fn object(&mut self, of: u32, object: ObjectIndex) -> String {
        let word = kind_word(of);
        match self.words.object_name(of, object) {
            // `pipe:[12]` has its kind in its name.
            Some(name) if name.starts_with(word) => name,
            Some(name) if !name.starts_with("0x") => format!("{word} {name}"),
            _ => {
                let first = self.first_waits.get(&object).map(|(_, call)| *call);
                match first.and_then(|call| self.words.blocked(of, call).place) {
                    Some(place) => format!("a {word} first waited for in {place}"),
                    None => format!("a {word}"),
                }
            }
        }
    }

    /// The site that is charged, if it is in the program's own code.
    fn site(&self, tie: Tie) -> SiteIndex {
        let site = match tie {
            Tie::Holds(call) | Tie::Wakes(call) => call.site,
            Tie::IsJoined(_, site) => site,
        };
        match site.is_some() && !self.session.places.code(site).is_of_language_library() {
            true => site,
            false => SiteIndex::NONE,
        }
    }
}

impl Row {
    fn add(&mut self, loss: &CpuLoss, place: Option<String>) {
        self.finding.ns += loss.ns;
        self.threads_ns += loss.threads_ns;
        if let Some(place) = place {
            match self.places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, ns)) => *ns += loss.threads_ns,
                None => self.places.push((place, loss.threads_ns)),
            }
        }
    }

    /// Writes the sentence and the evidence.
    fn finish(&mut self, session: &Session, cpus: &CpuTime, source: &Source) {
        let Row { finding, threads_ns, places, object, by } = self;
        finding.victims.add(finding.state, finding.ns);
        let unit = Unit::for_total(cpus.threads_ns);
        let part = format!(
            "{} of {} {}",
            unit.show(*threads_ns),
            unit.show(cpus.threads_ns),
            Whose::Threads.unit(unit)
        );
        let share = format!(
            "{} of threads, {} of their time",
            time(*threads_ns),
            percent(*threads_ns, cpus.threads_ns)
        );
        finding.evidence = share.clone();
        match (finding.cause, finding.blamed, finding.pattern) {
            (Cause::Lock | Cause::WaitSync | Cause::WaitSignal, ..) => {
                let preposition = if finding.cause == Cause::WaitSync { "in" } else { "for" };
                finding.text = format!("{part} wait {preposition} {object}, {by}");
                places.sort_by_key(|(_, ns)| Reverse(*ns));
                let shown =
                    places.iter().take(MAX_PLACES).map(|(place, ns)| format!("{place} {}", time(*ns)));
                finding.evidence = format!("{share}; they wait in {}", shown.collect::<Vec<_>>().join(", "));
            }
            (Cause::BlockedSleep, ..) => {
                finding.text = format!("threads sleep for {part} while CPUs are unused: {}", finding.place);
            }
            (Cause::BlockedIo, ..) => {
                finding.text = format!("{part} wait for a device: {}", finding.place);
            }
            (Cause::Wait, Blamed::Serial, _) => {
                let path = path_of_alone(session, cpus);
                finding.place = path.0.place();
                finding.path = path.0.steps.clone();
                finding.text = path.0.after("CPUs are unused: only few threads have work", path.1);
                if path.0.steps.is_empty() {
                    finding.text = "CPUs are unused: only few threads have work".to_owned();
                }
                finding.evidence = path.0.evidence_of("samples meanwhile", path.1);
            }
            (Cause::Wait, _, Some(Pattern::NoWork)) => {
                finding.text =
                    "no thread has work: all wait for requests, timers, input or other threads' ends"
                        .to_owned();
            }
            (Cause::Wait, ..) => {
                finding.text =
                    format!("{part} are between a wake or a free lock and the woken thread's next step");
            }
            (Cause::Blocked, ..) if !object.is_empty() => {
                finding.text = format!(
                    "{part} wait for a {object} in {}; which thread ends the waits is not known",
                    finding.place
                );
            }
            (Cause::Blocked, ..) => {
                finding.text = format!("{part} are blocked in calls that are not recorded");
            }
            (Cause::Unknown, ..) => {
                finding.text = format!("{part} are not recorded: whether they ran is not known");
            }
            _ => finding.text = sentence(finding, source),
        }
    }
}

const fn is_not_known(to: LostTo) -> bool {
    matches!(to, LostTo::BlockedUnknown | LostTo::Unknown | LostTo::WaitUnknown(..))
}

/// The first wait for each object.
fn first_waits(execution: &Execution) -> FxHashMap<ObjectIndex, (u64, Call)> {
    let whole = execution.whole();
    let mut first: FxHashMap<ObjectIndex, (u64, Call)> = FxHashMap::default();
    for wait in &whole.thread_waits.waits {
        if first.get(&wait.object).is_none_or(|(at, _)| wait.start < *at) {
            let path = whole.samples.path_of_call(wait.thread, wait.site, wait.start);
            let path = path.unwrap_or(taskscope_execution::PathIndex::NONE);
            first.insert(wait.object, (wait.start, Call { site: wait.site, path }));
        }
    }
    first
}

/// The path of most samples of threads that ran while too few others had work, and the number of these samples.
fn path_of_alone(session: &Session, cpus: &CpuTime) -> (HotPath, u64) {
    let mut execution = session.execution.clone();
    execution.samples.rows.retain(|sample| {
        let key = (sample.thread, sample.at);
        let next = cpus.alone.partition_point(|(thread, _, until)| (*thread, *until) < key);
        cpus.alone.get(next).is_some_and(|(thread, from, _)| *thread == key.0 && *from <= key.1)
    });
    let paths = CallPaths::of_execution(session, &execution, TaskContext::Creation);
    let tree = paths.tree.without_runtime();
    let values: Vec<(NodeId, u64)> =
        tree.nodes().map(|node| (node, own(&tree.tree, node, Column::Samples))).collect();
    let total = values.iter().map(|(_, value)| value).sum();
    (HotPath::of(&tree, &values), total)
}

/// The verdict in one sentence.
pub(super) fn verdict(cpus: &CpuTimes, findings: &[NamedFinding]) -> String {
    let of_cpus = |ns: u64| {
        let used = ns as f64 / cpus.capacity_ns as f64 * cpus.millicpus as f64 / 1000.0;
        if used < 9.995 { format!("{used:.2}") } else { format!("{used:.1}") }
    };
    let all = match cpus.millicpus {
        1000 => "1 CPU".to_owned(),
        all => format!("{} CPUs", all as f64 / 1000.0),
    };
    let is_idle = |finding: &&NamedFinding| finding.pattern == Some(Pattern::NoWork);
    let is_unknown = |finding: &&NamedFinding| matches!(finding.cause, Cause::Blocked | Cause::Unknown);
    let sum = |is: &dyn Fn(&&NamedFinding) -> bool| {
        findings.iter().filter(is).map(|finding| finding.ns).sum::<u64>()
    };
    let (idle, unknown) = (sum(&is_idle), sum(&is_unknown));
    let lost: u64 = findings.iter().map(|finding| finding.ns).sum::<u64>() - idle;
    let used = ["Of", &all, "the program used", &of_cpus(cpus.used_ns)].join(" ");
    let is_small = |ns: u64| (ns as f64) < cpus.capacity_ns as f64 * SMALL_LOSS;
    let no_work = match is_small(idle) {
        true => String::new(),
        false => format!(
            "; {} had nothing to do, as all threads waited for requests, timers, input or other threads' ends",
            of_cpus(idle)
        ),
    };
    let not_known =
        format!("why {} were unused is not known, as the awaited threads are not recorded", of_cpus(unknown));
    if unknown > cpus.capacity_ns / 2 {
        return format!("{used}{no_work}; {not_known}.");
    }
    if is_small(lost) {
        return match is_small(idle) {
            true => format!("Nothing to mend: of {all} the program used {}.", of_cpus(cpus.used_ns)),
            false => format!("{used}{no_work}."),
        };
    }
    let mut text = format!("{used}{no_work}");
    let mut known = findings.iter().filter(|finding| !is_idle(finding) && !is_unknown(finding));
    let largest = known.next();
    if !is_small(unknown) && largest.is_none_or(|loss| loss.ns < unknown) {
        text += "; ";
        text += &not_known;
    }
    // What the system takes is not in the program's hands.
    let of_system = |finding: &&NamedFinding| finding.cause.is_in(Cause::Cpu);
    match largest {
        Some(loss) if of_system(&loss) => {
            text += &format!("; {} were lost as {}", of_cpus(loss.ns), loss.text);
            if let Some(own) = known.find(|loss| !of_system(loss)).filter(|loss| !is_small(loss.ns)) {
                text += &format!("; the largest loss of its own, {}: {}", of_cpus(own.ns), own.text);
            }
        }
        Some(loss) => text += &format!("; the largest loss, {}: {}", of_cpus(loss.ns), loss.text),
        None => {}
    }
    text + "."
}
