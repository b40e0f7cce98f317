//! Blame for waits between threads.
//!
//! Each nanosecond of a wait belongs to one thread at a time: the holder of the lock, or otherwise the waking
//! thread, from the wait's begin on. If that thread waited itself meanwhile, its wait is followed, and so on
//! to a thread that ran, or to an end without another thread ([`Root`]). Parts of a wait sum to it exactly.

use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_event::models::wait::kind;
use taskscope_execution::{
    Execution, Object, ObjectIndex, PathIndex, SiteIndex, ThreadIndex, ThreadWait, WaitOutcome,
};

/// A call, by its site and its call path.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Call {
    /// The site.
    pub site: SiteIndex,
    /// The call path; `NONE` if unknown.
    pub path: PathIndex,
}

impl Call {
    fn of(execution: &Execution, thread: ThreadIndex, site: SiteIndex, at: u64) -> Call {
        let path = execution.samples.path_of_call(thread, site, at).unwrap_or(PathIndex::NONE);
        Call { site, path }
    }
}

/// Relation of a thread to the thread that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Tie {
    /// Held the lock, taken in this call; the path is that of the release.
    Holds(Call),
    /// Woke the waiting thread in this call.
    Wakes(Call),
    /// Was joined; the thread and its routine.
    IsJoined(ThreadIndex, SiteIndex),
}

/// The end of the chain for a part of a wait.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Root {
    /// The last thread of the chain was not waiting for another one.
    Ran,
    /// The lock was free, or the thread had been woken: until it ran again.
    Handover,
    /// A wait ended because the time that its caller allowed was over.
    TimedOut,
    /// The last thread of the chain, or the waiting thread itself, slept.
    Slept,
    /// It waited for something outside of the process: a device, a peer, a timer, another process.
    Outside,
    /// The wait is not over at the end of the recording.
    Open,
    /// The awaited thread is not recorded.
    NotKnown,
}

/// A part of the waits at one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitPartOf {
    /// The awaited thread, and the reason; `None` without one.
    pub first: Option<Tie>,
    /// The last thread of the chain; the same as `first` in a chain of one.
    pub last: Option<Tie>,
    /// The end of the chain.
    pub root: Root,
    /// The kind and call of the sleep or I/O of the last thread of the chain; `None` if it did not, and without a chain.
    pub blocked: Option<(u32, Call)>,
    /// Threads in the chain.
    pub length: u32,
    /// The most charged thread at the end of a chain; `NONE` without any.
    pub thread: ThreadIndex,
    /// Nanoseconds.
    pub ns: u64,
}

/// The waits for an object in calls at one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitsAt {
    /// The object; of joins, which are for a new thread each, none.
    pub object: ObjectIndex,
    /// `taskscope_event::models::wait::kind`.
    pub kind: u32,
    /// The call.
    pub call: Call,
    /// Number of waits.
    pub waits: u64,
    /// Threads that waited.
    pub threads: u32,
    /// Nanoseconds; the sum of `parts`.
    pub waited_ns: u64,
    /// The longest, nanoseconds.
    pub longest_ns: u64,
    /// The waits by charged thread, largest first.
    pub parts: Vec<WaitPartOf>,
}

/// Threads of one chain at most; a longer one ends as not known.
const MAX_CHAIN: usize = 64;
/// Maximum parts of one wait; the rest is not followed further than one thread.
const MAX_PARTS: usize = 100_000;

type Key = (Option<Tie>, Option<Tie>, Root, Option<(u32, Call)>, u32);

/// All waits of the selected threads, the longest first.
pub fn thread_waits(execution: &Execution) -> Vec<WaitsAt> {
    let all = &execution.thread_waits;
    let mut rows: FxHashMap<(ObjectIndex, u32, Call), Sums> = FxHashMap::default();
    let (from, until) = all.part.unwrap_or((0, u64::MAX));
    for wait in all.waits.iter().filter(|wait| execution.is_selected(wait.thread)) {
        let (start, end) = (wait.start.max(from), wait.end.min(until));
        if start >= end {
            continue;
        }
        let kind = object(execution, wait.object).map_or(0, |row| row.kind);
        let of = if kind == kind::JOIN { ObjectIndex::NONE } else { wait.object };
        let call = Call::of(execution, wait.thread, wait.site, wait.start);
        let sums = rows.entry((of, kind, call)).or_default();
        sums.waits += 1;
        sums.ns += end - start;
        sums.longest_ns = sums.longest_ns.max(end - start);
        if !sums.threads.contains(&wait.thread) {
            sums.threads.push(wait.thread);
        }
        let mut chains = Chains { execution, chain: vec![], parts: 0, take: &mut sums.parts };
        chains.follow_wait(wait, start, end);
    }
    let mut rows: Vec<WaitsAt> =
        rows.into_iter().map(|((object, kind, call), sums)| sums.row(object, kind, call)).collect();
    rows.sort_by_key(|row| (Reverse(row.waited_ns), row.kind, row.object, row.call));
    rows
}

fn object(execution: &Execution, object: ObjectIndex) -> Option<&Object> {
    execution.catalog.objects.get(object.index())
}

#[derive(Default)]
struct Sums {
    waits: u64,
    ns: u64,
    longest_ns: u64,
    threads: Vec<ThreadIndex>,
    parts: FxHashMap<Key, FxHashMap<ThreadIndex, u64>>,
}

impl Sums {
    fn row(self, object: ObjectIndex, kind: u32, call: Call) -> WaitsAt {
        let parts =
            self.parts.into_iter().map(|((first, last, root, blocked, length), threads)| WaitPartOf {
                first,
                last,
                root,
                blocked,
                length,
                thread: threads
                    .iter()
                    .max_by_key(|(thread, ns)| (**ns, Reverse(**thread)))
                    .map_or(ThreadIndex::NONE, |(thread, _)| *thread),
                ns: threads.values().sum(),
            });
        let mut parts: Vec<WaitPartOf> = parts.collect();
        parts.sort_by_key(|part| {
            (Reverse(part.ns), part.first, part.last, part.root, part.blocked, part.length)
        });
        WaitsAt {
            object,
            kind,
            call,
            waits: self.waits,
            threads: self.threads.len() as u32,
            waited_ns: self.ns,
            longest_ns: self.longest_ns,
            parts,
        }
    }
}

/// Follows the chains of one wait.
struct Chains<'a> {
    execution: &'a Execution,
    /// The threads that are waited for, from the first on.
    chain: Vec<(ThreadIndex, Tie)>,
    parts: usize,
    take: &'a mut FxHashMap<Key, FxHashMap<ThreadIndex, u64>>,
}

impl Chains<'_> {
    fn end(&mut self, root: Root, from: u64, until: u64) {
        self.end_in(root, None, from, until);
    }

    fn end_in(&mut self, root: Root, blocked: Option<(u32, Call)>, from: u64, until: u64) {
        if until > from {
            let first = self.chain.first().map(|(_, tie)| *tie);
            let last = self.chain.last();
            let thread = last.map_or(ThreadIndex::NONE, |(thread, _)| *thread);
            let blocked = blocked.filter(|_| last.is_some());
            let key = (first, last.map(|(_, tie)| *tie), root, blocked, self.chain.len() as u32);
            *self.take.entry(key).or_default().entry(thread).or_default() += until - from;
            self.parts += 1;
        }
    }

    /// The part of a wait from `from` until `until`.
    fn follow_wait(&mut self, wait: &ThreadWait, from: u64, until: u64) {
        let kind = object(self.execution, wait.object).map_or(0, |row| row.kind);
        if kind::has_holder(kind) {
            return self.follow_lock(wait, from, until);
        }
        match wait.waker {
            // It came last to a barrier itself.
            Some(waker) if waker.thread == wait.thread => self.end(Root::Handover, from, until),
            Some(waker) => {
                let tie = match kind {
                    kind::JOIN => Tie::IsJoined(waker.thread, waker.site),
                    _ => Tie::Wakes(Call::of(self.execution, waker.thread, waker.site, waker.at)),
                };
                let woken = waker.at.clamp(from, until);
                self.follow_thread(waker.thread, tie, from, woken);
                self.end(Root::Handover, woken, until);
            }
            None if kind::is_blocking(kind) => {
                let root = match kind {
                    kind::SLEEP => Root::Slept,
                    _ if wait.is_of_others => Root::Outside,
                    // A thread of the process may have ended it.
                    kind::PIPE | kind::EVENT | kind::PIPE_ROOM..=kind::FILE_LOCK => Root::NotKnown,
                    _ if wait.outcome == WaitOutcome::TimedOut => Root::TimedOut,
                    _ => Root::Outside,
                };
                let call = Call::of(self.execution, wait.thread, wait.site, wait.start);
                self.end_in(root, Some((kind, call)), from, until);
            }
            None if wait.outcome == WaitOutcome::TimedOut => self.end(Root::TimedOut, from, until),
            None if wait.outcome == WaitOutcome::Open => self.end(Root::Open, from, until),
            None => self.end(Root::NotKnown, from, until),
        }
    }

    fn follow_lock(&mut self, wait: &ThreadWait, from: u64, until: u64) {
        let execution = self.execution;
        let holds = execution.thread_waits.holds_of(wait.object, wait.start, wait.end);
        let (mut at, mut is_held) = (from, false);
        for hold in holds.iter().filter(|hold| hold.thread != wait.thread) {
            is_held = true;
            let end = hold.end.clamp(at, until);
            let call = Call::of(execution, hold.thread, hold.site, hold.end);
            self.follow_thread(hold.thread, Tie::Holds(call), at, end);
            at = end;
        }
        let rest = match wait.outcome {
            _ if is_held => Root::Handover,
            WaitOutcome::TimedOut => Root::TimedOut,
            WaitOutcome::Open => Root::Open,
            _ => Root::NotKnown,
        };
        self.end(rest, at, until);
    }

    /// The activity of a thread during waits of others for it.
    fn follow_thread(&mut self, thread: ThreadIndex, tie: Tie, from: u64, until: u64) {
        if from >= until {
            return;
        }
        // Each waits for the other, as far as is recorded.
        let is_circle = self.chain.iter().any(|(other, _)| *other == thread);
        self.chain.push((thread, tie));
        if is_circle || self.chain.len() > MAX_CHAIN {
            self.end(Root::NotKnown, from, until);
        } else if self.parts > MAX_PARTS {
            self.end(Root::Ran, from, until);
        } else {
            let execution = self.execution;
            let mut at = from;
            for wait in execution.thread_waits.of_thread(thread, from, until) {
                let (start, end) = (wait.start.max(at), wait.end.min(until));
                self.end(Root::Ran, at, start);
                if end > start {
                    self.follow_wait(wait, start, end);
                }
                at = at.max(end);
            }
            self.end(Root::Ran, at, until);
        }
        self.chain.pop();
    }
}
