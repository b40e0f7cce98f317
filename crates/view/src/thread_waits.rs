//! Waits of threads for each other, in words.

use crate::documents::{CodePlace, Word, some_text};
use crate::names::pid_of_site;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use taskscope_analysis::{Analysis, Root, ThreadCall, Tie, WaitPartOf, WaitsAt};
use taskscope_event::models::wait::kind;
use taskscope_execution::ObjectIndex;
use taskscope_session::{Session, kind_of_awaited, name_of_awaited};

/// The waits of threads for an object, in calls at one place.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThreadWaitTimes {
    /// The kind of object: mutex, read-write lock, spin lock, condition, barrier, semaphore, thread, futex, once, interpreter lock; of sleep and
    /// I/O: sleep, pipe, full pipe (waits for room in it), socket, socket pair, full socket pair, eventfd, timer, file, file lock,
    /// terminal, descriptors (several), descriptor, signal, message queue, full message queue, semaphore set, asynchronous I/O, other
    /// process.
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
    /// Number of threads that waited; of several calls in one place, the most that waited in one of them.
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
    /// The end of the chain of waits: `ran` (its last thread ran meanwhile), `no-cpu` (its last thread could
    /// run and had no CPU; without one, the waiting thread itself), `handover` (the lock was free, or the thread was woken and did
    /// not run yet), `timeout` (the caller's time limit expired), `sleep` (the
    /// last thread slept), `outside` (it waited for a device, a peer or another process), `unrecorded` (it was blocked in
    /// a call that is not recorded), `open` (the wait is not over at the end of the recording), `unknown`.
    pub end: Word,
    /// The thread waited for; null without one.
    pub by: Option<TiedThread>,
    /// The thread at the end of the chain; null if it is the same.
    pub root: Option<TiedThread>,
    /// The call in which the last thread of the chain slept or waited for input or output; null if it did not.
    pub blocked: Option<TiedThread>,
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
    /// `holds` (took the lock there), `wakes` (woke the thread there, after it had run until then), `joined` (its routine),
    /// `blocks` (slept or waited for input or output there).
    pub role: Word,
    /// The place in words; null if unknown.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// Its code; absent if unknown.
    #[serde(flatten)]
    pub code: Option<CodePlace>,
}

const fn end_name(root: Root) -> &'static str {
    match root {
        Root::Ran => "ran",
        Root::NoCpu => "no-cpu",
        Root::Handover => "handover",
        Root::TimedOut => "timeout",
        Root::Slept => "sleep",
        Root::Outside => "outside",
        Root::Unrecorded => "unrecorded",
        Root::Open => "open",
        Root::NotKnown => "unknown",
    }
}

/// Waits of threads, those first that make up most of the time charged to the code of other threads. Calls with the same words are one row, and
/// parts with the same words one part.
pub(crate) fn rows(session: &Session, analysis: &Analysis) -> Vec<ThreadWaitTimes> {
    let mut words = WaitWords::of(session);
    joined(analysis.thread_waits.iter().map(|waits| words.row(waits)))
}

/// Rows with the same words become one.
pub(crate) fn joined(waits: impl Iterator<Item = ThreadWaitTimes>) -> Vec<ThreadWaitTimes> {
    let mut rows: Vec<ThreadWaitTimes> = Vec::new();
    let mut numbers = FxHashMap::default();
    for row in waits {
        let key = (row.kind.clone(), row.object.clone(), row.pid, row.place.clone());
        let number = *numbers.entry(key).or_insert(rows.len());
        match rows.get_mut(number) {
            Some(known) => known.add(row),
            None => rows.push(row),
        }
    }
    for row in &mut rows {
        row.join_parts();
    }
    rows.sort_by_key(|row| Reverse((row.charged_ns(), row.waited_ns)));
    rows
}

impl ThreadWaitTimes {
    /// Nanoseconds that are charged to other threads. Joins are not: the waits of the joined thread have rows of
    /// their own.
    fn charged_ns(&self) -> u64 {
        let is_charged = |part: &&ThreadWaitPart| part.by.as_ref().is_some_and(|by| by.role != "joined");
        self.parts.iter().filter(is_charged).fold(0, |sum: u64, part| sum.saturating_add(part.ns))
    }

    fn add(&mut self, other: ThreadWaitTimes) {
        self.waits = self.waits.saturating_add(other.waits);
        self.threads = self.threads.max(other.threads);
        self.waited_ns = self.waited_ns.saturating_add(other.waited_ns);
        self.longest_ns = self.longest_ns.max(other.longest_ns);
        self.parts.extend(other.parts);
    }

    /// Joins parts with the same words: of the thread with the largest one. The largest is first.
    fn join_parts(&mut self) {
        self.parts.sort_by_key(|part| Reverse(part.ns));
        let mut numbers = FxHashMap::default();
        let mut joined: Vec<ThreadWaitPart> = Vec::new();
        for part in self.parts.drain(..) {
            let tied =
                |tied: &Option<TiedThread>| tied.as_ref().map(|tied| (tied.role.clone(), tied.place.clone()));
            let key = (part.end.clone(), tied(&part.by), tied(&part.root), tied(&part.blocked), part.chain);
            let number = *numbers.entry(key).or_insert(joined.len());
            match joined.get_mut(number) {
                Some(known) => known.ns = known.ns.saturating_add(part.ns),
                None => joined.push(part),
            }
        }
        joined.sort_by_key(|part| Reverse(part.ns));
        self.parts = joined;
    }
}

/// Whether a function of HotSpot leaves a monitor of Java. The functions between it and the wake may be jumps, as in JDK 25.
fn leaves_monitor(function: &str) -> bool {
    const LEAVING: [&str; 9] = [
        "ObjectMonitor::Exit",
        "ObjectMonitor::exit",
        "ObjectMonitor::wait",
        "ObjectSynchronizer::exit",
        "ObjectLocker::~ObjectLocker",
        "InterpreterRuntime::monitorexit",
        "Runtime1::monitorexit",
        "SharedRuntime::complete_monitor_unlocking",
        "SharedRuntime::monitor_exit",
    ];
    LEAVING.iter().any(|start| function.starts_with(start))
}

/// A place in words, and its code.
type Written = (Option<String>, Option<CodePlace>);

/// Places of calls in words, each resolved once.
pub(crate) struct WaitWords<'a> {
    session: &'a Session,
    known: FxHashMap<(&'static str, Tie), Written>,
}

impl WaitWords<'_> {
    pub fn of(session: &Session) -> WaitWords<'_> {
        WaitWords { session, known: FxHashMap::default() }
    }

    fn row(&mut self, row: &WaitsAt) -> ThreadWaitTimes {
        let (place, code) = self.write_call(verb(row.kind), Tie::Wakes(row.call));
        ThreadWaitTimes {
            kind: kind_of_awaited(row.kind).to_owned(),
            object: self.object_name(row.kind, row.object),
            pid: pid_of_site(self.session, row.call.site),
            place,
            code,
            waits: row.waits,
            threads: row.threads,
            waited_ns: row.waited_ns,
            longest_ns: row.longest_ns,
            parts: row.parts.iter().map(|part| self.part(part)).collect(),
        }
    }

    fn object_name(&self, wait_kind: u32, object: ObjectIndex) -> Option<String> {
        let session = self.session;
        let number = session.execution.catalog.objects.get(object.index())?.id;
        name_of_awaited(wait_kind, number, || session.places.name_of_memory(object))
    }

    fn write_call(&mut self, what: &'static str, tie: Tie) -> Written {
        if let Some(known) = self.known.get(&(what, tie)) {
            return known.clone();
        }
        let (places, execution) = (&self.session.places, &self.session.execution);
        let caller = match tie {
            Tie::Holds(call) | Tie::Wakes(call) if call.site.is_some() => {
                Some(places.caller(execution, call.site, call.path))
            }
            Tie::IsJoined(thread, site) if site.is_some() => Some(places.routine(execution, thread, site)),
            _ => None,
        };
        let written = caller.map_or((None, None), |caller| {
            // In a library, the path is that of the release.
            let what = if caller.is_outer && matches!(tie, Tie::Holds(_)) { "unlock" } else { what };
            (some_text(places.construct_of(what, &caller.place)), Some(CodePlace::from(&*caller.place)))
        });
        self.known.insert((what, tie), written.clone());
        written
    }

    /// The thread waited for.
    pub fn tied(&mut self, tie: Tie) -> TiedThread {
        let (role, what) = match tie {
            Tie::Holds(_) => ("holds", "lock"),
            Tie::Wakes(_) if self.leaves_monitor(tie) => ("holds", "unlock"),
            Tie::Wakes(_) => ("wakes", "wake"),
            Tie::IsJoined(..) => ("joined", "thread"),
        };
        let (place, code) = self.write_call(what, tie);
        TiedThread { role: Word::Borrowed(role), place, code }
    }

    /// Whether a thread is woken because another one leaves a monitor of Java, which is a lock: each thread waits for it at a
    /// condition of its own.
    pub fn leaves_monitor(&self, tie: Tie) -> bool {
        let Tie::Wakes(call) = tie else { return false };
        let code = self.session.places.code(call.site);
        code.frame.function.as_deref().is_some_and(leaves_monitor)
    }

    /// A call in which threads wait for an object of this kind.
    pub fn blocked(&mut self, kind: u32, call: ThreadCall) -> TiedThread {
        let (place, code) = self.write_call(verb(kind), Tie::Wakes(call));
        TiedThread { role: Word::Borrowed("blocks"), place, code }
    }

    fn part(&mut self, part: &WaitPartOf) -> ThreadWaitPart {
        let execution = &self.session.execution;
        let known = part.thread.index() < execution.threads.len();
        let thread = known.then(|| crate::names::thread_or_id(execution, part.thread));
        ThreadWaitPart {
            end: end_name(part.root).into(),
            by: part.first.map(|tie| self.tied(tie)),
            root: part.last.filter(|_| part.length > 1).map(|tie| self.tied(tie)),
            blocked: part.blocked.map(|(kind, call)| self.blocked(kind, call)),
            chain: part.length,
            thread,
            ns: part.ns,
        }
    }
}

/// The call in which a thread waits.
pub(crate) const fn verb(wait_kind: u32) -> &'static str {
    match wait_kind {
        kind::JOIN => "join",
        kind::CONDITION
        | kind::THREAD_BARRIER
        | kind::SEMAPHORE
        | kind::FUTEX
        | kind::PROCESS
        | kind::SIGNAL..=kind::SEMAPHORE_SET
        | kind::ONCE => "wait",
        kind::SLEEP => "sleep",
        kind::PIPE | kind::PIPE_ROOM => "pipe I/O",
        kind::SOCKET | kind::SOCKET_PAIR | kind::SOCKET_PAIR_ROOM => "socket I/O",
        kind::EVENT => "eventfd I/O",
        kind::TIMER => "timer",
        kind::FILE => "file I/O",
        kind::TERMINAL => "terminal I/O",
        kind::SEVERAL => "poll",
        kind::OPERATIONS => "asynchronous I/O",
        kind::DESCRIPTOR => "I/O",
        _ => "lock",
    }
}

/// A chain of waits: its first thread, its last one in a chain of several, and the call in which that is blocked.
pub(crate) fn chain_text(
    by: &TiedThread,
    root: Option<&TiedThread>,
    length: u32,
    blocked: Option<&TiedThread>,
) -> String {
    let place = |tied: &TiedThread| {
        let place = tied.place.as_deref().unwrap_or("code that is not known");
        match &*tied.role {
            "holds" => format!("held by {place}"),
            "wakes" => format!("until {place}"),
            _ => format!("runs {place}"),
        }
    };
    let mut text = place(by);
    if let Some(root) = root {
        text += &match length {
            2 => format!(", which waits: {}", place(root)),
            length => format!(", which waits, over {length} threads: {}", place(root)),
        };
    }
    if let Some(blocked) = blocked {
        text += ", in ";
        text += blocked.place.as_deref().unwrap_or("a call that is not known");
    }
    text
}

impl ThreadWaitPart {
    /// The part in words.
    pub(crate) fn text(&self) -> String {
        let end = match &*self.end {
            "no-cpu" => "had no CPU",
            "handover" => "until it ran again",
            "timeout" => "timeout of its caller",
            "open" => "not over at the end",
            "unknown" => "not known",
            "unrecorded" => "in a call that is not recorded",
            "sleep" if self.blocked.is_none() => "its own doing",
            "outside" if self.blocked.is_none() => "a device, a peer or another process",
            _ => "",
        };
        let text = match &self.by {
            Some(by) => chain_text(by, self.root.as_ref(), self.chain, self.blocked.as_ref()),
            None => String::new(),
        };
        match (text.is_empty(), end.is_empty()) {
            (true, _) => end.to_owned(),
            (false, true) => text,
            (false, false) => format!("{text}: {end}"),
        }
    }
}
