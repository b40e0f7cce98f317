//! Waits of threads for each other, in words.

use crate::documents::{CodePlace, Word, some_text};
use crate::report_json::pid_of_site;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use taskscope_analysis::{Analysis, Root, Tie, WaitPartOf, WaitsAt};
use taskscope_event::models::wait::kind;
use taskscope_execution::SiteIndex;
use taskscope_session::Session;

/// The waits of threads for an object, in calls at one place.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThreadWaitTimes {
    /// The kind of object: mutex, read-write lock, spin lock, condition, barrier, semaphore or thread.
    pub kind: String,
    /// The object's name: the variable, else its address; of joined threads null.
    pub object: Option<String>,
    /// Process id.
    pub pid: Option<i64>,
    /// The call in words.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Its code; absent if unknown.
    #[serde(flatten)]
    pub code: Option<CodePlace>,
    /// Number of waits.
    pub waits: u64,
    /// Number of threads that waited.
    pub threads: u32,
    /// Thread-nanoseconds waited: the sum of the parts.
    pub waited_ns: u64,
    /// The longest wait, nanoseconds.
    pub longest_ns: u64,
    /// The waits split by the charged thread, largest first.
    pub parts: Vec<ThreadWaitPart>,
}

/// A part of the waits at one place.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThreadWaitPart {
    /// The end of the chain of waits: `ran` (its last thread ran meanwhile), `handover` (the lock was free,
    /// or the thread was woken and did not run yet), `timeout` (the caller's time limit expired), `unknown`.
    pub end: Word,
    /// The thread waited for; null without one.
    pub by: Option<TiedThread>,
    /// The thread at the end of the chain; null if it is the same.
    pub root: Option<TiedThread>,
    /// Threads in the chain.
    pub chain: u32,
    /// Name or id of the most charged thread at the end of a chain; null without one.
    pub thread: Option<String>,
    /// Thread-nanoseconds.
    pub ns: u64,
}

/// A thread that others wait for, by the code that makes them wait.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TiedThread {
    /// `holds` (took the lock there), `wakes` (woke the thread there, after it had run until then), `joined` (its routine).
    pub role: Word,
    /// The place in words; null if unknown.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Its code; absent if unknown.
    #[serde(flatten)]
    pub code: Option<CodePlace>,
}

const fn kind_word(wait_kind: u32) -> &'static str {
    match wait_kind {
        kind::MUTEX => "mutex",
        kind::RW_LOCK => "read-write lock",
        kind::SPIN_LOCK => "spin lock",
        kind::CONDITION => "condition",
        kind::THREAD_BARRIER => "barrier",
        kind::SEMAPHORE => "semaphore",
        kind::JOIN => "thread",
        _ => "object",
    }
}

const fn end_name(root: Root) -> &'static str {
    match root {
        Root::Ran => "ran",
        Root::Handover => "handover",
        Root::TimedOut => "timeout",
        Root::NotKnown => "unknown",
    }
}

/// Waits of threads for each other, the longest first.
pub(crate) fn rows(session: &Session, analysis: &Analysis) -> Vec<ThreadWaitTimes> {
    analysis.thread_waits.iter().map(|row| times(session, row)).collect()
}

fn times(session: &Session, row: &WaitsAt) -> ThreadWaitTimes {
    let places = &session.places;
    ThreadWaitTimes {
        kind: kind_word(row.kind).to_owned(),
        object: row.object.is_some().then(|| places.name_of_memory(row.object)),
        pid: pid_of_site(session, row.site),
        place: some_place(session, verb(row.kind), row.site),
        code: CodePlace::of(places, row.site),
        waits: row.waits,
        threads: row.threads,
        waited_ns: row.waited_ns,
        longest_ns: row.longest_ns,
        parts: row.parts.iter().map(|part| part_times(session, part)).collect(),
    }
}

/// The call in which a thread waits.
const fn verb(wait_kind: u32) -> &'static str {
    match wait_kind {
        kind::JOIN => "join",
        kind::CONDITION | kind::THREAD_BARRIER | kind::SEMAPHORE => "wait",
        _ => "lock",
    }
}

fn some_place(session: &Session, what: &str, site: SiteIndex) -> Option<String> {
    site.is_some().then(|| some_text(session.places.construct(what, site))).flatten()
}

fn part_times(session: &Session, part: &WaitPartOf) -> ThreadWaitPart {
    let tied = |tie: Tie| {
        let (role, what, site) = match tie {
            Tie::Holds(site) => ("holds", "lock", site),
            Tie::Wakes(site) => ("wakes", "wake", site),
            Tie::IsJoined(site) => ("joined", "thread", site),
        };
        TiedThread {
            role: Word::Borrowed(role),
            place: some_place(session, what, site),
            code: CodePlace::of(&session.places, site),
        }
    };
    let thread = session.execution.threads.get(part.thread.index()).map(|row| match row.name.as_str() {
        "" => format!("thread {}", row.tid),
        name => format!("{name} ({})", row.tid),
    });
    ThreadWaitPart {
        end: end_name(part.root).into(),
        by: part.first.map(tied),
        root: part.last.filter(|_| part.length > 1).map(tied),
        chain: part.length,
        thread,
        ns: part.ns,
    }
}

impl ThreadWaitPart {
    /// The part in words.
    pub(crate) fn text(&self) -> String {
        let place = |tied: &TiedThread| {
            let place = tied.place.as_deref().unwrap_or("code that is not known");
            match &*tied.role {
                "holds" => format!("held by {place}"),
                "wakes" => format!("until {place}"),
                _ => format!("runs {place}"),
            }
        };
        let end = match &*self.end {
            "handover" => "until it ran again",
            "timeout" => "timeout of its caller",
            "unknown" => "not known",
            _ => "",
        };
        let mut text = self.by.as_ref().map(place).unwrap_or_default();
        if let Some(root) = &self.root {
            text += &match self.chain {
                2 => format!(", which waits: {}", place(root)),
                chain => format!(", which waits, over {chain} threads: {}", place(root)),
            };
        }
        match (text.is_empty(), end.is_empty()) {
            (true, _) => end.to_owned(),
            (false, true) => text,
            (false, false) => format!("{text}: {end}"),
        }
    }
}
