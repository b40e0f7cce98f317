//! Waits between threads by object, place and charged thread.

use crate::wait_chains::{Root, ThreadCall, Tie, follow, object};
use rustc_hash::FxHashMap;
use std::cmp::Reverse;
use taskscope_event::models::wait::kind;
use taskscope_execution::{Execution, ObjectIndex, ThreadIndex};

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
    pub blocked: Option<(u32, ThreadCall)>,
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
    pub call: ThreadCall,
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

type Key = (Option<Tie>, Option<Tie>, Root, Option<(u32, ThreadCall)>, u32);

/// All waits of the selected threads, the longest first.
pub fn thread_waits(execution: &Execution) -> Vec<WaitsAt> {
    let all = &execution.thread_waits;
    let mut rows: FxHashMap<(ObjectIndex, u32, ThreadCall), Sums> = FxHashMap::default();
    let (from, until) = all.part.unwrap_or((0, u64::MAX));
    for wait in all.waits.iter().filter(|wait| execution.is_selected(wait.thread)) {
        let (start, end) = (wait.start.max(from), wait.end.min(until));
        if start >= end {
            continue;
        }
        let kind = object(execution, wait.object).map_or(0, |row| row.kind);
        let of = if kind == kind::JOIN { ObjectIndex::NONE } else { wait.object };
        let call = ThreadCall::of(execution, wait.thread, wait.site, wait.start);
        let sums = rows.entry((of, kind, call)).or_default();
        sums.waits += 1;
        sums.ns = sums.ns.saturating_add(end - start);
        sums.longest_ns = sums.longest_ns.max(end - start);
        if !sums.threads.contains(&wait.thread) {
            sums.threads.push(wait.thread);
        }
        follow(execution, wait, start, end, &mut |part| {
            let blocked = part.blocked.filter(|_| part.length > 0);
            let key = (part.first, part.last, part.root, blocked, part.length);
            let ns = sums.parts.entry(key).or_default().entry(part.thread).or_default();
            *ns = ns.saturating_add(part.until - part.from);
        });
    }
    let mut rows: Vec<WaitsAt> =
        rows.into_iter().map(|((object, kind, call), sums)| sums.row(object, kind, call)).collect();
    rows.sort_by_key(|row| (Reverse(row.waited_ns), row.kind, row.object, row.call));
    rows
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
    fn row(self, object: ObjectIndex, kind: u32, call: ThreadCall) -> WaitsAt {
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
                ns: threads.values().fold(0, |sum: u64, ns| sum.saturating_add(*ns)),
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
