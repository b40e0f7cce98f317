//! Pairs the message records of threads of several processes.

use crate::message_change::MessageChange;
use crate::messages::{Communication, Fulfilment, MpiCall, Participation, PeerWait};
use crate::{NO_TIME, PlaceKind, ProcessIndex, SiteIndex, TaskIndex, ThreadIndex};
use rustc_hash::FxHashMap;

mod job_starts;
mod open_calls;
mod pairs;
mod peer_waits;
mod starts;

use job_starts::{Starts, starts_job};

/// No row.
const NONE: u32 = u32::MAX;
/// No rank.
const NO_RANK: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct PendingMessage {
    thread: ThreadIndex,
    process: ProcessIndex,
    post: u64,
    comm: u64,
    peer: u32,
    tag: i32,
    bytes: u64,
    /// Time of a send, or of posting a receive.
    at: u64,
    received: u64,
    call: u32,
}

/// A completed receive or operation that has not been claimed yet.
#[derive(Clone, Copy, Debug)]
enum Completion {
    Receive(usize),
    Participation(u32),
}

/// A call that concerns a rank of an object.
#[derive(Clone, Copy, Debug)]
struct Concern {
    call: u32,
    process: ProcessIndex,
    comm: u64,
    peer: u32,
}

/// A message that was found before it was received.
#[derive(Clone, Copy, Debug)]
struct Probe {
    call: u32,
    process: ProcessIndex,
    comm: u64,
    peer: u32,
    tag: i32,
    /// Begin of the call.
    since: u64,
}

/// Collects [`MessageChange`]s.
#[derive(Debug, Default)]
pub(crate) struct MessagesBuilder {
    communication: Communication,
    /// Row of the last call of each thread, by its number.
    last_call: FxHashMap<u32, u32>,
    sends: Vec<PendingMessage>,
    receives: Vec<PendingMessage>,
    /// Calls in which sends end, by process and post.
    send_ends: FxHashMap<(ProcessIndex, u64), u32>,
    /// Parts that complete later, with the calls that begin them.
    begins: Vec<(u32, u32)>,
    /// Nonblocking parts that have not completed.
    open_parts: FxHashMap<(ProcessIndex, u64, u64), u32>,
    /// Completions in the last call of a thread, in order.
    completions: FxHashMap<u32, std::collections::VecDeque<Completion>>,
    fulfilled: Vec<(TaskIndex, u64, Completion)>,
    concerns: Vec<Concern>,
    probes: Vec<Probe>,
    /// Partners of the last call of each thread, by its number.
    awaits: FxHashMap<u32, Vec<MessageChange>>,
    /// Processes of threads that call.
    threads_of: FxHashMap<ThreadIndex, ProcessIndex>,
    /// By call: the last arrival among its necessary partners, before it ended.
    came: FxHashMap<u32, PeerWait>,
    /// Halves recorded by the program, by domain and id.
    reported: FxHashMap<(u32, u64), ReportedMessages>,
    /// Starts of jobs of launchers.
    starts: Starts,
}

/// Halves of messages with one domain and id, by time.
#[derive(Debug, Default)]
struct ReportedMessages {
    /// Thread, time and size of sends.
    sends: Vec<(ThreadIndex, u64, u64)>,
    /// Thread and time of receipts.
    receipts: Vec<(ThreadIndex, u64)>,
}

impl MessagesBuilder {
    pub fn change(&mut self, thread: ThreadIndex, process: ProcessIndex, at: u64, change: MessageChange) {
        let call = self.last_call.get(&thread.0).copied().unwrap_or(NONE);
        let pending = |post, (comm, peer, tag), bytes, (at, received)| PendingMessage {
            thread,
            process,
            post,
            comm,
            peer,
            tag,
            bytes,
            at,
            received,
            call,
        };
        match change {
            MessageChange::IsRank(rank) => {
                let before = self.communication.ranks.insert(process.0, rank);
                self.starts.rank_is(process, before, rank);
            }
            MessageChange::CallBegins { function, place } => {
                self.last_call.insert(thread.0, self.communication.calls.len() as u32);
                let (start, end, count, bytes) = (at, NO_TIME, 1, 0);
                self.threads_of.insert(thread, process);
                let call = MpiCall { thread, function, place, start, end, count, bytes, wait: None };
                self.communication.calls.push(call);
                self.completions.remove(&thread.0);
                self.awaits_nothing(thread);
            }
            MessageChange::IsMember { comm, size } => {
                let members = self.communication.members.entry(comm).or_default();
                members.size = members.size.max(size);
                members.processes.push(process);
            }
            MessageChange::Awaits(_) | MessageChange::AwaitsSent { .. } => {
                self.awaits.entry(thread.0).or_default().push(change);
            }
            MessageChange::CallIsAt(place) => {
                if let Some(call) = self.communication.calls.get_mut(call as usize) {
                    call.place = place;
                }
            }
            MessageChange::CallRepeats => {
                if let Some(call) = self.communication.calls.get_mut(call as usize) {
                    call.count = call.count.saturating_add(1);
                }
            }
            MessageChange::CallRepeatsNot => {
                if let Some(call) = self.communication.calls.get_mut(call as usize) {
                    call.count = call.count.saturating_sub(1).max(1);
                }
            }
            MessageChange::Concerns { comm, peer, bytes } => {
                self.add_bytes(call, bytes);
                self.concerns.push(Concern { call, process, comm, peer });
            }
            MessageChange::Probed { comm, peer, tag } => {
                let since = self.communication.calls.get(call as usize).map_or(at, |call| call.start);
                self.probes.push(Probe { call, process, comm, peer, tag, since });
            }
            MessageChange::CallEnds => {
                if let Some(call) = self.communication.calls.get_mut(call as usize) {
                    call.end = at;
                }
                self.awaits_nothing(thread);
            }
            MessageChange::Sends { post, comm, peer, tag, bytes } => {
                self.sends.push(pending(post, (comm, peer, tag), bytes, (at, NO_TIME)));
                self.add_bytes(call, bytes);
                self.send_ends.insert((process, post), call);
            }
            MessageChange::Sent { post } => drop(self.send_ends.insert((process, post), call)),
            MessageChange::Received { post, age, comm, peer, tag, bytes } => {
                let row = self.receives.len();
                self.completions.entry(thread.0).or_default().push_back(Completion::Receive(row));
                let posted = at.saturating_sub(age);
                self.receives.push(pending(post, (comm, peer, tag), bytes, (posted, at)));
                self.add_bytes(call, bytes);
            }
            MessageChange::TakesPart { comm, function, .. } if starts_job(function) => {
                self.starts.add(comm, process, call);
            }
            MessageChange::TakesPart { comm, sequence, root, function, bytes, nonblocking } => {
                let row = self.communication.participations.len() as u32;
                self.add_bytes(call, bytes);
                // An operation between members known only later is reported at its end.
                let begun = self.communication.calls.get(call as usize).map_or(at, |call| call.start.min(at));
                // Ranks of roots become processes when all are known.
                let root = ProcessIndex(root);
                self.communication.participations.push(Participation {
                    comm,
                    sequence,
                    thread,
                    begun,
                    completer: thread,
                    completed: NO_TIME,
                    call,
                    root,
                    function,
                    bytes,
                });
                if nonblocking {
                    // The call that begins an operation may wait for others all the same.
                    self.begins.push((row, call));
                    self.communication.participations[row as usize].call = NONE;
                    self.open_parts.insert((process, comm, sequence), row);
                }
            }
            MessageChange::Completed { comm, sequence } => {
                if let Some(row) = self.open_parts.remove(&(process, comm, sequence)) {
                    let part = &mut self.communication.participations[row as usize];
                    (part.completed, part.completer, part.call) = (at, thread, call);
                    let own = self.completions.entry(thread.0).or_default();
                    own.push_back(Completion::Participation(row));
                }
            }
            MessageChange::ProgramSends { domain, id, bytes } => {
                self.reported.entry((domain, id)).or_default().sends.push((thread, at, bytes));
            }
            MessageChange::ProgramReceives { domain, id } => {
                self.reported.entry((domain, id)).or_default().receipts.push((thread, at));
            }
            MessageChange::Fulfils { task } => {
                // A thread fulfils tasks in the order in which its last call completed their requests.
                let own = self.completions.get_mut(&thread.0);
                if let Some(completion) = own.and_then(|own| own.pop_front()) {
                    self.fulfilled.push((task, at, completion));
                }
            }
        }
    }

    /// The sites of calls.
    pub fn call_sites(&self) -> impl Iterator<Item = SiteIndex> {
        self.communication.calls.iter().filter_map(|call| match call.place.kind() {
            PlaceKind::Site(site) => Some(site),
            _ => None,
        })
    }

    /// Pairs everything. `process_of` returns a thread's process, `last` the time of a process's last event.
    pub fn finish(
        mut self,
        process_of: impl Fn(ThreadIndex) -> ProcessIndex + Copy,
        last: impl Fn(ThreadIndex) -> u64,
    ) -> Communication {
        for members in self.communication.members.values_mut() {
            members.processes.sort_unstable();
            members.processes.dedup();
        }
        self.leave_out_unsure_starts();
        self.find_awaited();
        for call in self.communication.calls.iter_mut().filter(|call| call.end == NO_TIME) {
            call.end = last(call.thread).max(call.start);
        }
        let by_rank: FxHashMap<(u64, u32), ProcessIndex> = (self.communication.ranks.iter())
            .map(|(process, rank)| ((rank.job, rank.rank), ProcessIndex(*process)))
            .collect();
        self.resolve_roots(&by_rank, process_of);
        let row_of = self.pair(&by_rank);
        for (task, at, completion) in std::mem::take(&mut self.fulfilled) {
            let (message, participation) = match completion {
                Completion::Receive(row) => (row_of.get(&row).copied().unwrap_or(NONE), NONE),
                Completion::Participation(row) => (NONE, row),
            };
            self.communication.fulfilments.push(Fulfilment { task, at, message, participation });
        }
        self.find_collective_waits(process_of);
        self.find_waits_at_starts();
        self.find_waits_for_ranks(&by_rank);
        self.share_waits_at_ports(process_of);
        self.find_waits_of_open_calls(process_of);
        self.note_waits();
        self.communication
    }

    fn awaits_nothing(&mut self, thread: ThreadIndex) {
        if let Some(awaits) = self.awaits.get_mut(&thread.0) {
            awaits.clear();
        }
    }

    fn add_bytes(&mut self, call: u32, bytes: u64) {
        if let Some(call) = self.communication.calls.get_mut(call as usize) {
            call.bytes = call.bytes.saturating_add(bytes);
        }
    }

    fn resolve_roots(
        &mut self,
        by_rank: &FxHashMap<(u64, u32), ProcessIndex>,
        process_of: impl Fn(ThreadIndex) -> ProcessIndex,
    ) {
        let Communication { participations, ranks, calls, .. } = &mut self.communication;
        for part in participations {
            let job = ranks.get(&process_of(part.thread).0).map(|rank| rank.job);
            let root = (part.root.0 != NO_RANK).then_some(part.root.0);
            part.root = (job.zip(root).and_then(|(job, root)| by_rank.get(&(job, root)).copied()))
                .unwrap_or(ProcessIndex::NONE);
            if let Some(call) = calls.get(part.call as usize).filter(|_| part.completed == NO_TIME) {
                part.completed = call.end;
            }
        }
    }
}
