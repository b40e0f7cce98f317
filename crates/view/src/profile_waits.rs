//! Waits of threads for each other in a profile, in the words of those in a trace.

use crate::documents::{CodePlace, Word, some_text};
use crate::thread_waits::{ThreadWaitPart, ThreadWaitTimes, TiedThread, joined, verb};
use std::collections::BTreeMap;
use taskscope_event::models::wait::kind;
use taskscope_profile::{Profile, WaitCall, WaitEnd, WaitPart, WaitRow, WaitTie, key};
use taskscope_session::{KeptModules, ProfileWaitNames, kind_of_awaited, name_of_awaited, words_of_code};

/// The waits of a profile.
#[derive(Clone, Debug, Default)]
pub struct ProfileWaits {
    /// Each row with its words; the parts of both are in one order.
    pub(crate) rows: Vec<(WaitRow, ThreadWaitTimes)>,
}

/// Sums of a profile about its waits, by their names in its totals.
pub(crate) mod sum {
    /// Life of all threads, nanoseconds.
    pub const THREADS_NS: &str = "thread_waits.threads_ns";
    /// Waits that found no room before they were summed up, and their nanoseconds.
    pub const LOST: &str = "thread_waits.lost";
    pub const LOST_NS: &str = "thread_waits.lost_ns";
    /// Waits and parts without a row of their own.
    pub const UNFIT: &str = "thread_waits.unfit";
}

impl ProfileWaits {
    /// Names the waits of a profile, with files that were kept of modules.
    pub fn of(profile: &Profile, kept: KeptModules) -> ProfileWaits {
        if profile.thread_waits.is_empty() {
            return ProfileWaits::default();
        }
        let mut words = Words { names: ProfileWaitNames::of(profile, kept), profile };
        ProfileWaits { rows: profile.thread_waits.iter().map(|row| (row.clone(), words.row(row))).collect() }
    }

    /// The table of the report: rows and parts with the same words are one, those first that make up most of the time charged to
    /// other threads.
    pub fn table(&self) -> Vec<ThreadWaitTimes> {
        joined(self.rows.iter().map(|(_, row)| row.clone()))
    }
}

/// The sentence on waits that are missing in the rows, if there are any.
pub(crate) fn missing_waits(totals: &BTreeMap<String, u64>) -> Option<String> {
    let of = |name| totals.get(name).copied().unwrap_or(0);
    let (lost, unfit) = (of(sum::LOST), of(sum::UNFIT));
    let lost = (lost > 0).then(|| {
        format!(
            "{} of {} came faster than the recorder summed them up: the threads that ended them are not known",
            crate::format::counted(lost, "wait"),
            crate::format::time(of(sum::LOST_NS))
        )
    });
    let unfit = (unfit > 0).then(|| {
        format!(
            "the table of waits was full: {} have no row of their own",
            crate::format::counted(unfit, "wait or part")
        )
    });
    let notes: Vec<String> = lost.into_iter().chain(unfit).collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

struct Words<'a> {
    names: ProfileWaitNames<'a>,
    profile: &'a Profile,
}

impl Words<'_> {
    fn row(&mut self, row: &WaitRow) -> ThreadWaitTimes {
        let (place, code) = self.call(verb(row.kind), row.call);
        let process = self.profile.processes.get(row.process as usize);
        let object = match row.kind {
            kind::JOIN => None,
            _ if row.object == 0 => None,
            of => name_of_awaited(of, row.object, || self.names.object(row)),
        };
        ThreadWaitTimes {
            kind: kind_of_awaited(row.kind).to_owned(),
            object,
            pid: process.and_then(|process| process.get(key::PID)?.parse().ok()),
            place,
            code,
            waits: row.waits,
            threads: row.threads,
            waited_ns: row.waited_ns(),
            longest_ns: row.longest_ns,
            parts: row.parts.iter().map(|part| self.part(part)).collect(),
        }
    }

    fn part(&mut self, part: &WaitPart) -> ThreadWaitPart {
        ThreadWaitPart {
            end: Word::Borrowed(end_name(part.end)),
            by: part.first.map(|tie| self.tied(tie)),
            root: part.last.filter(|_| part.length > 1).map(|tie| self.tied(tie)),
            blocked: part.blocked.map(|(kind, call)| {
                let (place, code) = self.call(verb(kind), call);
                TiedThread { role: Word::Borrowed("blocks"), place, code }
            }),
            chain: part.length,
            thread: None,
            ns: part.ns,
        }
    }

    fn tied(&mut self, tie: WaitTie) -> TiedThread {
        let (role, caller, what) = match tie {
            WaitTie::Holds(call) => ("holds", self.names.caller(call), "lock"),
            WaitTie::Wakes(call) => ("wakes", self.names.caller(call), "wake"),
            WaitTie::IsJoined(call) => ("joined", self.names.routine(call), "thread"),
        };
        // In a library, the path is that of the release.
        let is_release = role == "holds" && caller.as_ref().is_some_and(|caller| caller.is_outer);
        let what = if is_release { "unlock" } else { what };
        let place = caller.as_ref().and_then(|caller| some_text(words_of_code(what, &caller.place)));
        let code = caller.map(|caller| CodePlace::from(&*caller.place));
        TiedThread { role: Word::Borrowed(role), place, code }
    }

    fn call(&mut self, what: &str, call: WaitCall) -> (Option<String>, Option<CodePlace>) {
        match self.names.caller(call) {
            Some(caller) => {
                (some_text(words_of_code(what, &caller.place)), Some(CodePlace::from(&*caller.place)))
            }
            None => (None, None),
        }
    }
}

const fn end_name(end: WaitEnd) -> &'static str {
    match end {
        WaitEnd::Ran => "ran",
        WaitEnd::NoCpu => "no-cpu",
        WaitEnd::Handover => "handover",
        WaitEnd::TimedOut => "timeout",
        WaitEnd::Slept => "sleep",
        WaitEnd::Outside => "outside",
        WaitEnd::Open => "open",
        WaitEnd::NotKnown => "unknown",
    }
}
