//! Waits in calls of MPI for late processes, and why these did not proceed.
//!
//! ```text
//!   rank 0   ┤ MPI_Allreduce                             │   waits for rank 1, which comes last
//!   rank 1   work ┊ no CPU ┊ work ┤ MPI_Recv ┤ work ──────┤   waits for rank 2 meanwhile
//!   rank 2   work ────────────────────── ┊ no CPU ┊ work
//!              1  ╰ system ╯  1      2   ╰ system     1       keeps rank 0 waiting
//! ```
//! A process keeps others waiting by the system's doing while none of its threads works and one that could has no
//! CPU. While all of its threads wait, and one does in a call for a late process, that one keeps the others waiting. In
//! a circle no process could proceed, with a CPU or without: then each waits for its next. While it only waits in a call of
//! which no late process is known, no process is late: its messages are in transit. Calls for files are its own work.

use crate::intervals::{Times, add_parts, join_intervals, subtract};
use crate::messages::MpiCall;
use crate::{Execution, Group, ProcessIndex, State, ThreadIndex, ThreadKind};
use rustc_hash::FxHashMap;

/// A wait in a call: begin, end, awaited process.
type Wait = (u64, u64, ProcessIndex);

/// Maximum length of a followed chain of processes, each of which waits for the next.
const MAX_CHAIN: usize = 16;

/// The reason why a process does not proceed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Stop {
    System,
    WaitsFor(ProcessIndex),
    Transfer,
}

/// What keeps processes waiting for another one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum KeptBy {
    /// This process is late for a reason of its own.
    Process(ProcessIndex),
    /// The awaited process is in a call that waits for no late process, as far as is known.
    Transfer,
    /// The awaited process had code to run and no CPU.
    System,
}

/// A part of a wait for a late process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LatePart {
    /// First nanosecond.
    pub start: u64,
    /// First nanosecond after it.
    pub end: u64,
    /// What kept the others waiting.
    pub kept_by: KeptBy,
}

/// Waits in calls, and when awaited processes did not proceed.
#[derive(Default)]
pub struct LatePeers {
    /// Waits by thread, in the order of their begins.
    waits: FxHashMap<ThreadIndex, Vec<Wait>>,
    /// Times in which an awaited process did not proceed, in order and disjoint.
    stops: FxHashMap<ProcessIndex, Vec<(u64, u64, Stop)>>,
}

impl LatePeers {
    /// The waits of all calls of an execution.
    pub fn of(execution: &Execution) -> LatePeers {
        let mut peers = LatePeers::default();
        for (call, wait) in execution.communication.calls.iter().filter_map(|call| Some((call, call.wait?))) {
            let until = wait.until.min(call.end);
            if call.start < until && execution.processes.get(wait.culprit.index()).is_some() {
                peers.waits.entry(call.thread).or_default().push((call.start, until, wait.culprit));
            }
        }
        let mut awaited: FxHashMap<ProcessIndex, Vec<(u64, u64)>> = FxHashMap::default();
        for waits in peers.waits.values_mut() {
            waits.sort_unstable();
            for (start, until, culprit) in waits {
                awaited.entry(*culprit).or_default().push((*start, *until));
            }
        }
        let files = file_calls(execution);
        let mut threads: FxHashMap<ProcessIndex, Vec<ThreadIndex>> = FxHashMap::default();
        for (thread, row) in execution.threads.iter().enumerate() {
            if row.worker || row.kind == ThreadKind::Helper {
                threads.entry(row.process).or_default().push(ThreadIndex(thread as u32));
            }
        }
        for (process, mut times) in awaited {
            join_intervals(&mut times);
            let mut events = Vec::new();
            for thread in threads.get(&process).into_iter().flatten() {
                let off = execution.runnable_times(*thread);
                let of = OfThread {
                    off: &off,
                    waits: peers.waits_of(*thread),
                    files: files.get(thread).map_or(&[], Vec::as_slice),
                };
                for time in &times {
                    add_doings(execution, *thread, *time, &of, &mut events);
                }
            }
            peers.stops.insert(process, stops_of(events));
        }
        peers
    }

    /// The waits of a thread, in the order of their begins: begin, end, awaited process.
    pub fn waits_of(&self, thread: ThreadIndex) -> &[(u64, u64, ProcessIndex)] {
        self.waits.get(&thread).map_or(&[], Vec::as_slice)
    }

    /// Divides a wait for a process from `from` to `to` by what kept the waiting one: the parts are in order, and
    /// none is missing.
    pub fn parts(&self, process: ProcessIndex, from: u64, to: u64) -> Vec<LatePart> {
        let mut parts = Vec::new();
        self.follow(&mut vec![process], (from, to), &mut parts);
        parts
    }

    /// Adds the parts in which the last of `chain` is awaited.
    fn follow(&self, chain: &mut Vec<ProcessIndex>, (from, to): (u64, u64), parts: &mut Vec<LatePart>) {
        let Some(process) = chain.last().copied() else { return };
        let part = |start: u64, end: u64, kept_by| (start < end).then_some(LatePart { start, end, kept_by });
        let own = |start: u64, end: u64| part(start, end, KeptBy::Process(process));
        let stops = self.stops.get(&process).map_or(&[][..], Vec::as_slice);
        let first = stops.partition_point(|stop| stop.1 <= from);
        let mut at = from;
        for (start, end, stop) in stops[first..].iter().take_while(|stop| stop.0 < to) {
            let (start, end) = ((*start).max(from), (*end).min(to));
            parts.extend(own(at, start));
            match stop {
                Stop::System => parts.extend(part(start, end, KeptBy::System)),
                Stop::Transfer => parts.extend(part(start, end, KeptBy::Transfer)),
                Stop::WaitsFor(next) if chain.len() < MAX_CHAIN && !chain.contains(next) => {
                    chain.push(*next);
                    self.follow(chain, (start, end), parts);
                    chain.pop();
                }
                Stop::WaitsFor(_) => parts.extend(own(start, end)),
            }
            at = end;
        }
        parts.extend(own(at, to));
    }
}

/// What a thread of an awaited process does, as far as its process proceeds by it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Doing {
    Works,
    /// It would work with a CPU.
    CouldWork,
    WaitsFor(ProcessIndex),
    /// It is in a call without a known wait.
    Transfers,
}

/// It begins or ends.
struct Event {
    at: u64,
    begins: bool,
    doing: Doing,
}

/// Times of a thread, each in order and disjoint.
struct OfThread<'a> {
    /// Without a CPU.
    off: &'a Times,
    /// In calls that wait for a process.
    waits: &'a [Wait],
    /// In calls for files.
    files: &'a Times,
}

/// Calls for files by thread: their time is that of a file, not of messages.
fn file_calls(execution: &Execution) -> FxHashMap<ThreadIndex, Vec<(u64, u64)>> {
    let mut times: FxHashMap<ThreadIndex, Vec<(u64, u64)>> = FxHashMap::default();
    let is_for_file = |call: &&MpiCall| call.function_name().is_some_and(|name| name.starts_with("File_"));
    for call in execution.communication.calls.iter().filter(is_for_file) {
        times.entry(call.thread).or_default().push((call.start, call.end));
    }
    times.values_mut().for_each(join_intervals);
    times
}

/// Adds what a thread does from `from` to `to`.
fn add_doings(
    execution: &Execution,
    thread: ThreadIndex,
    (from, to): (u64, u64),
    OfThread { off, waits, files }: &OfThread<'_>,
    events: &mut Vec<Event>,
) {
    let mut add = |doing: Doing, start: u64, end: u64| {
        if start < end {
            events.push(Event { at: start, begins: true, doing });
            events.push(Event { at: end, begins: false, doing });
        }
    };
    for span in execution.spans_of_run_from(thread, from).take_while(|span| span.start < to) {
        let (begin, end) = (span.start.max(from), span.end.min(to));
        let off = off[off.partition_point(|off| off.1 <= begin)..].iter().take_while(|off| off.0 < end);
        let off = off.map(|(start, until)| ((*start).max(begin), (*until).min(end)));
        let mut at = begin;
        match span.section.state {
            State::NotStarted | State::Ended => {}
            State::Communication | State::MpiStart => {
                let mut others = Vec::new();
                let first = waits.partition_point(|wait| wait.1 <= begin);
                for (start, until, process) in waits[first..].iter().take_while(|wait| wait.0 < end) {
                    let (start, until) = ((*start).max(at), (*until).min(end));
                    others.push((at, start));
                    add(Doing::WaitsFor(*process), start, until);
                    at = at.max(until);
                }
                others.push((at, end));
                others.retain(|(start, end)| start < end);
                let mut in_files = Vec::new();
                others.iter().for_each(|time| add_parts(files, *time, &mut in_files));
                subtract(&mut others, &in_files);
                in_files.into_iter().for_each(|(start, end)| add(Doing::Works, start, end));
                others.into_iter().for_each(|(start, end)| add(Doing::Transfers, start, end));
            }
            state => match state.group() {
                Group::Useful | Group::Runtime | Group::Off | Group::Blocked => {
                    for (start, until) in off {
                        add(Doing::Works, at, start);
                        add(Doing::CouldWork, start, until);
                        at = until;
                    }
                    add(Doing::Works, at, end);
                }
                // It was woken, or looks whether there is work for it.
                Group::Sync | Group::Idle => {
                    off.for_each(|(start, until)| add(Doing::CouldWork, start, until))
                }
                Group::Mutex => {}
                Group::Device | Group::Start | Group::Unknown => add(Doing::Works, at, end),
            },
        }
    }
}

/// The times in which no thread works, with the reason.
fn stops_of(mut events: Vec<Event>) -> Vec<(u64, u64, Stop)> {
    events.sort_unstable_by_key(|event| (event.at, event.begins, event.doing));
    let (mut working, mut could, mut transferring, mut waiting) = (0_u32, 0_u32, 0_u32, Vec::new());
    let mut stops: Vec<(u64, u64, Stop)> = Vec::new();
    let mut open: Option<(u64, Stop)> = None;
    let mut left = events.as_slice();
    while let Some(at) = left.first().map(|event| event.at) {
        let (now, later) = left.split_at(left.partition_point(|event| event.at == at));
        left = later;
        for Event { begins, doing, .. } in now {
            match (doing, begins) {
                (Doing::Works, true) => working += 1,
                (Doing::Works, false) => working -= 1,
                (Doing::CouldWork, true) => could += 1,
                (Doing::CouldWork, false) => could -= 1,
                (Doing::Transfers, true) => transferring += 1,
                (Doing::Transfers, false) => transferring -= 1,
                (Doing::WaitsFor(process), true) => waiting.push(*process),
                (Doing::WaitsFor(process), false) => {
                    if let Some(place) = waiting.iter().position(|other| other == process) {
                        waiting.remove(place);
                    }
                }
            }
        }
        let stop = match (working, could, transferring, waiting.first()) {
            (0, 1.., ..) => Some(Stop::System),
            (0, 0, 1.., _) => Some(Stop::Transfer),
            (0, 0, 0, Some(process)) => Some(Stop::WaitsFor(*process)),
            _ => None,
        };
        if open.map(|open| open.1) != stop {
            stops.extend(open.filter(|open| open.0 < at).map(|(since, stop)| (since, at, stop)));
            open = stop.map(|stop| (at, stop));
        }
    }
    stops
}
