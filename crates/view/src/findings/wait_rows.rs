//! Findings of recorded waits of threads, one per object and culprit: sums while they are made, and their sentences.

use crate::awaited::AwaitedObjects;
use crate::cpus::mask_of;
use crate::format::{Unit, percent, time};
use crate::named_finding::{NamedFinding, WaitsOf};
use crate::names::thread_or_id;
use crate::thread_waits::{WaitWords, chain_text};
use crate::words::{Source, sentence};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_analysis::{Analysis, Confidence, LostTo, ThreadCall, Tie};
use taskscope_cause::{Blamed, Cause, Pattern};
use taskscope_event::models::wait::kind;
use taskscope_execution::{SiteIndex, State, ThreadIndex};
use taskscope_session::{Session, kind_of_awaited};

use super::rows::Whose;

/// Places that the evidence names.
const MAX_PLACES: usize = 3;

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

/// Findings by their words, while they are summed up.
pub(super) struct WaitRows<'a> {
    words: WaitWords<'a>,
    session: &'a Session,
    awaited: AwaitedObjects,
    /// Confidence in complete chains.
    sure: Confidence,
    numbers: FxHashMap<(Cause, Blamed, String, String), usize>,
    rows: Vec<Row>,
}

impl<'a> WaitRows<'a> {
    /// `sure` is the confidence in complete chains.
    pub fn of(session: &'a Session, sure: Confidence) -> WaitRows<'a> {
        WaitRows {
            words: WaitWords::of(session),
            session,
            awaited: AwaitedObjects::of(&session.execution),
            sure,
            numbers: FxHashMap::default(),
            rows: Vec::new(),
        }
    }

    /// Adds a loss: its nanoseconds, and those of the threads concerned.
    pub fn add(&mut self, to: LostTo, loss: (u64, u64)) {
        let unsure = self.sure.min(Confidence::Medium);
        match to {
            LostTo::NoCpu => {
                self.plain(loss, (Cause::CpuNone, Blamed::System), State::OutOfCpu, self.sure);
            }
            LostTo::Bound(thread) => self.bound(loss, thread),
            LostTo::Handover => {
                let row = self.plain(loss, (Cause::Wait, Blamed::Nobody), State::Blocked, unsure);
                row.finding.pattern = Some(Pattern::HandOver);
            }
            LostTo::Alone => {
                self.plain(loss, (Cause::Wait, Blamed::Serial), State::Idle, self.sure);
            }
            LostTo::Idle => {
                let row = self.plain(loss, (Cause::Wait, Blamed::Nobody), State::Idle, unsure);
                row.finding.pattern = Some(Pattern::NoWork);
            }
            LostTo::BlockedUnknown => {
                self.plain(loss, (Cause::Blocked, Blamed::Code), State::Blocked, Confidence::Low);
            }
            LostTo::Unknown => {
                self.plain(loss, (Cause::Unknown, Blamed::Nobody), State::Unknown, Confidence::High);
            }
            LostTo::WaitUnknown(of, call) => {
                let place = self.words.blocked(of, call).place.unwrap_or_default();
                let object = kind_of_awaited(of).to_owned();
                let key = (Cause::Blocked, Blamed::Code, object.clone(), place.clone());
                let row = self.row(key, (State::Blocked, place), Confidence::Low);
                row.object = object;
                row.finding.waits.push(WaitsOf::In(call.site));
                row.add(loss, None);
            }
            LostTo::WaitUnrecorded { kind: of, object, at, thread } => {
                let waiting = self.words.blocked(of, at).place;
                let object = self.awaited.words(
                    &self.session.places,
                    &self.session.execution,
                    object,
                    waiting.as_deref(),
                );
                let by = thread_or_id(&self.session.execution, thread);
                let key = (Cause::Blocked, Blamed::Code, object.clone(), by.clone());
                let row = self.row(key, (State::Blocked, waiting.unwrap_or_default()), Confidence::Low);
                row.finding.pattern = Some(Pattern::Unrecorded);
                (row.object, row.by) = (object, by);
                row.finding.waits.push(WaitsOf::In(at.site));
                row.add(loss, None);
            }
            LostTo::TimedOut(of, call) => {
                let end = (Pattern::TimeLimit, "until the time limit of the call");
                self.without_waker(loss, (of, call), end, self.sure);
            }
            LostTo::Outside(of, call) => {
                let end = (Pattern::Outside, "which no thread of the program ends");
                self.without_waker(loss, (of, call), end, unsure);
            }
            LostTo::Blocked(of, call) => {
                let cause = if of == kind::FILE { Cause::BlockedIo } else { Cause::BlockedSleep };
                let place = self.words.blocked(of, call).place.unwrap_or_default();
                let key = (cause, Blamed::Code, place.clone(), String::new());
                let row = self.row(key, (State::Blocked, place), unsure);
                row.finding.waits.push(WaitsOf::In(call.site));
                row.add(loss, None);
            }
            LostTo::Wait { kind, object, at, first, last, length, blocked, is_free } => {
                let by = self.words.tied(first);
                let root = (length > 1).then(|| self.words.tied(last));
                let call = blocked.map(|(kind, call)| self.words.blocked(kind, call));
                let by_text = chain_text(&by, root.as_ref(), length, call.as_ref());
                let place = root.unwrap_or(by).place.unwrap_or_default();
                let waiting = self.words.blocked(kind, at).place;
                let is_monitor = self.words.leaves_monitor(first);
                let waits = WaitsOf::Tied(object, first);
                let object = match &waiting {
                    Some(place) if is_monitor => format!("a monitor of Java in {place}"),
                    waiting => self.awaited.words(
                        &self.session.places,
                        &self.session.execution,
                        object,
                        waiting.as_deref(),
                    ),
                };
                let (cause, blamed) = match kind {
                    _ if is_monitor || kind::has_holder(kind) => (Cause::Lock, Blamed::Holder),
                    kind::THREAD_BARRIER => (Cause::WaitSync, Blamed::Waker),
                    _ => (Cause::WaitSignal, Blamed::Waker),
                };
                let state = if cause == Cause::Lock { State::LockWait } else { State::Blocked };
                // Of a word of memory it is known who wakes, not who had it.
                let sure = match blocked {
                    // Of a disk, or of a peer.
                    Some((kind::OPERATIONS, _)) => Confidence::Low,
                    _ if kind == kind::FUTEX || place.is_empty() => unsure,
                    _ => self.sure,
                };
                let key = (cause, blamed, object.clone(), by_text.clone());
                let site = self.site(last);
                let row = self.row(key, (state, place), sure);
                if !row.finding.site.is_some() {
                    row.finding.site = site;
                }
                if kind == kind::GIL {
                    row.finding.pattern = Some(Pattern::InterpreterLock);
                }
                (row.object, row.by) = (object, by_text);
                row.finding.waits.push(waits);
                if is_free {
                    row.finding.free_ns += loss.0;
                }
                row.add(loss, waiting);
            }
        }
    }

    /// The findings with their sentences, times as parts of this time.
    pub fn finish(self, analysis: &Analysis, all: (u64, Whose)) -> Vec<NamedFinding> {
        let found: Vec<NamedFinding> = self.rows.iter().map(|row| row.finding.clone()).collect();
        let source = Source::of(self.session, analysis, all.1.name(), &found);
        let rows = self.rows.into_iter().map(|mut row| {
            row.finish(all, &source);
            row.finding
        });
        rows.collect()
    }

    fn plain(
        &mut self,
        loss: (u64, u64),
        (cause, blamed): (Cause, Blamed),
        state: State,
        confidence: Confidence,
    ) -> &mut Row {
        let key = (cause, blamed, state.name().to_owned(), String::new());
        let row = self.row(key, (state, String::new()), confidence);
        row.add(loss, None);
        row
    }

    /// Waits in a call that no thread ends, with how they end.
    fn without_waker(
        &mut self,
        loss: (u64, u64),
        (of, call): (u32, ThreadCall),
        (pattern, end): (Pattern, &str),
        confidence: Confidence,
    ) {
        let place = self.words.blocked(of, call).place.unwrap_or_default();
        let object = kind_of_awaited(of).to_owned();
        let key = (Cause::Blocked, Blamed::Code, format!("{object} {end}"), place.clone());
        let row = self.row(key, (State::Blocked, place), confidence);
        row.finding.pattern = Some(pattern);
        (row.object, row.by) = (object, end.to_owned());
        row.finding.waits.push(WaitsOf::In(call.site));
        row.add(loss, None);
    }

    /// Threads without a CPU because the program's own threads that are bound to the same CPUs run there.
    fn bound(&mut self, loss: (u64, u64), thread: ThreadIndex) {
        let cpus = mask_of(&self.session.execution, thread).unwrap_or_default();
        let key = (Cause::CpuOversubscribed, Blamed::System, cpus.clone(), String::new());
        let row = self.row(key, (State::Oversubscribed, String::new()), self.sure);
        row.finding.pattern = Some(Pattern::Bound);
        row.object = cpus;
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
    fn add(&mut self, (ns, threads_ns): (u64, u64), place: Option<String>) {
        self.finding.ns += ns;
        self.threads_ns += threads_ns;
        if let Some(place) = place {
            match self.places.iter_mut().find(|(known, _)| *known == place) {
                Some((_, ns)) => *ns += threads_ns,
                None => self.places.push((place, threads_ns)),
            }
        }
    }

    /// Writes the sentence and the evidence. Times are parts of this time.
    fn finish(&mut self, (all_ns, whose): (u64, Whose), source: &Source) {
        let Row { finding, threads_ns, places, object, by } = self;
        finding.victims.add(finding.state, finding.ns);
        finding.judge_lock();
        let unit = Unit::for_total(all_ns);
        let part = format!("{} of {} {}", unit.show(*threads_ns), unit.show(all_ns), whose.unit(unit));
        let share = format!(
            "{} of {}, {} of their time",
            time(*threads_ns),
            whose.name(),
            percent(*threads_ns, all_ns)
        );
        finding.evidence = match (finding.cause, finding.pattern) {
            (Cause::Lock | Cause::WaitSync | Cause::WaitSignal, _) => {
                places.sort_by_key(|(_, ns)| Reverse(*ns));
                let shown =
                    places.iter().take(MAX_PLACES).map(|(place, ns)| format!("{place} {}", time(*ns)));
                format!("{share}; they wait in {}", shown.collect::<Vec<_>>().join(", "))
            }
            // It is time of CPUs: that of the threads which end others' waits meanwhile explains nothing.
            (Cause::Wait, Some(Pattern::NoWork)) => String::new(),
            _ => share,
        };
        let text = sentence_of_wait(finding, &part, whose, (object, by));
        finding.text = text.unwrap_or_else(|| sentence(finding, source));
    }
}

/// The sentence of recorded waits: they take `part` of the time: the awaited object, and the words for their end. `None` for losses
/// with the sentences of all recordings.
pub(super) fn sentence_of_wait(
    finding: &NamedFinding,
    part: &str,
    whose: Whose,
    (object, by): (&str, &str),
) -> Option<String> {
    Some(match (finding.cause, finding.blamed, finding.pattern) {
        (Cause::Lock, _, Some(Pattern::FreeLock)) => {
            format!("{part} wait for {object}, which is mostly free; otherwise {by}")
        }
        (Cause::Lock | Cause::WaitSync | Cause::WaitSignal, ..) => {
            let preposition = if finding.cause == Cause::WaitSync { "in" } else { "for" };
            format!("{part} wait {preposition} {object}, {by}")
        }
        (Cause::BlockedSleep, ..) => {
            // Of workers it is not known whether CPUs were unused meanwhile.
            let unused = if whose == Whose::Threads { " while CPUs are unused" } else { "" };
            format!("{} sleep for {part}{unused}: {}", whose.name(), finding.place)
        }
        (Cause::BlockedIo, ..) => format!("{part} wait for a device: {}", finding.place),
        (Cause::Wait, Blamed::Serial, _) => "CPUs are unused: only few threads have work".to_owned(),
        (Cause::CpuOversubscribed, _, Some(Pattern::Bound)) => {
            format!(
                "{part} without a CPU: threads are bound to CPUs {object}, which others of the program use"
            )
        }
        (Cause::Wait, _, Some(Pattern::NoWork)) => {
            "no thread has work: all wait for requests, timers, input or other threads' ends".to_owned()
        }
        (Cause::Wait, ..) => {
            format!("{part} are between a wake or a free lock and the woken thread's next step")
        }
        (Cause::Blocked, _, Some(Pattern::Unrecorded)) => {
            format!("{part} wait for {object}; why is not known: {by} was in a call that is not recorded")
        }
        (Cause::Blocked, ..) if !object.is_empty() => {
            // Calls of a runtime have no site.
            let place = match finding.place.as_str() {
                "" => String::new(),
                place => format!(" in {place}"),
            };
            let object = one(object);
            match by {
                "" => format!("{part} wait for {object}{place}; which thread ends the waits is not known"),
                by => format!("{part} wait for {object}{place}, {by}"),
            }
        }
        (Cause::Blocked, ..) => format!("{part} are blocked in calls that are not recorded"),
        (Cause::Unknown, ..) => format!("{part} are not recorded: whether they ran is not known"),
        _ => return None,
    })
}

/// One awaited object of a kind, with its article.
pub(super) fn one(kind: &str) -> String {
    match kind {
        "descriptors" => "one of several descriptors".to_owned(),
        "other process" => "another process".to_owned(),
        "asynchronous I/O" => kind.to_owned(),
        "once" => "the routine of pthread_once".to_owned(),
        _ if kind.starts_with(['a', 'e', 'i', 'o', 'u']) => format!("an {kind}"),
        _ => format!("a {kind}"),
    }
}

/// Whether a loss is not known.
pub(super) const fn is_not_known(to: LostTo) -> bool {
    matches!(
        to,
        LostTo::BlockedUnknown | LostTo::Unknown | LostTo::WaitUnknown(..) | LostTo::WaitUnrecorded { .. }
    )
}
