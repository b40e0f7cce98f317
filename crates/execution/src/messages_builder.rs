//! Pairs the message records of threads of several processes.

use crate::messages::{
    Awaited, Call, Communication, Fulfilment, Message, Participation, PeerWait, PeerWaitKind, Rank,
    Unreceived,
};
use crate::{NO_TIME, Place, PlaceKind, ProcessIndex, SiteIndex, TaskIndex, ThreadIndex};
use rustc_hash::FxHashMap;
use taskscope_event::models::messages::{FUNCTIONS, polls};

mod open_calls;

/// No row.
const NONE: u32 = u32::MAX;
/// No rank.
const NO_RANK: u32 = u32::MAX;

/// A thread's record of messages.
#[derive(Clone, Copy, Debug)]
pub enum MessageChange {
    /// The thread's process has this rank.
    IsRank(Rank),
    /// The thread's process is a member of this communicator, window or file.
    IsMember {
        /// Its number.
        comm: u64,
        /// Number of members.
        size: u32,
    },
    /// Enters a function of the library.
    CallBegins {
        /// Its number.
        function: u32,
        /// The place in the code.
        place: Place,
    },
    /// The call that has begun just now is at this place.
    CallIsAt(Place),
    /// The last call has been repeated, and continues.
    CallRepeats,
    /// The supposed repetition of the last call is a new call, which begins next.
    CallRepeatsNot,
    /// Leaves it.
    CallEnds,
    /// Posts a send.
    Sends {
        /// The process's number of the posted operation.
        post: u64,
        /// The communicator, as all its members know it.
        comm: u64,
        /// Rank of the receiver.
        peer: u32,
        /// Tag.
        tag: i32,
        /// Size.
        bytes: u64,
    },
    /// A send that it posted is over.
    Sent {
        /// Its number.
        post: u64,
    },
    /// Has received a message.
    Received {
        /// The number of the receive.
        post: u64,
        /// Nanoseconds since that was posted.
        age: u64,
        /// The communicator.
        comm: u64,
        /// Rank of the sender.
        peer: u32,
        /// Tag.
        tag: i32,
        /// Size.
        bytes: u64,
    },
    /// Begins its part in a collective operation.
    TakesPart {
        /// The communicator.
        comm: u64,
        /// Number of the operation in it.
        sequence: u64,
        /// The root's rank.
        root: u32,
        /// Number of the function.
        function: u32,
        /// Bytes of its own.
        bytes: u64,
        /// Whether the call ends before the operation does.
        nonblocking: bool,
    },
    /// The call concerns a rank of a window, a file or a port.
    Concerns {
        /// The object's number, equal for all its members.
        comm: u64,
        /// The rank; `u32::MAX` for none or all.
        peer: u32,
        /// Bytes that it accesses.
        bytes: u64,
    },
    /// The call does not end before this has come.
    Awaits(Awaited),
    /// The call does not end before a message that it, or a call before it, sent has been received or copied.
    AwaitsSent {
        /// The process's number of the send.
        post: u64,
    },
    /// Has found a message that it has not received yet.
    Probed {
        /// The communicator.
        comm: u64,
        /// Rank of the sender.
        peer: u32,
        /// Tag.
        tag: i32,
    },
    /// A nonblocking operation has completed.
    Completed {
        /// The communicator.
        comm: u64,
        /// Number of the operation in it.
        sequence: u64,
    },
    /// The program records that it sends a message of its own.
    ProgramSends {
        /// Number of its domain in the trace, which decides the receivers.
        domain: u32,
        /// Its id there.
        id: u64,
        /// Size; `u64::MAX` if not known.
        bytes: u64,
    },
    /// The program records that it has received one.
    ProgramReceives {
        /// Domain number of the sender.
        domain: u32,
        /// Id of the sender.
        id: u64,
    },
    /// Ends a task after its body has ended.
    Fulfils {
        /// The task.
        task: TaskIndex,
    },
}

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
        match change {
            MessageChange::IsRank(rank) => drop(self.communication.ranks.insert(process.0, rank)),
            MessageChange::CallBegins { function, place } => {
                self.last_call.insert(thread.0, self.communication.calls.len() as u32);
                let (start, end, count, bytes) = (at, NO_TIME, 1, 0);
                self.threads_of.insert(thread, process);
                let call = Call { thread, function, place, start, end, count, bytes, wait: None };
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
                let half = PendingMessage {
                    thread,
                    process,
                    post,
                    comm,
                    peer,
                    tag,
                    bytes,
                    at,
                    received: NO_TIME,
                    call,
                };
                self.sends.push(half);
                self.add_bytes(call, bytes);
                self.send_ends.insert((process, post), call);
            }
            MessageChange::Sent { post } => drop(self.send_ends.insert((process, post), call)),
            MessageChange::Received { post, age, comm, peer, tag, bytes } => {
                let row = self.receives.len();
                self.completions.entry(thread.0).or_default().push_back(Completion::Receive(row));
                let posted = at.saturating_sub(age);
                let half = PendingMessage {
                    thread,
                    process,
                    post,
                    comm,
                    peer,
                    tag,
                    bytes,
                    at: posted,
                    received: at,
                    call,
                };
                self.receives.push(half);
                self.add_bytes(call, bytes);
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

    /// Pairs sends and receives; returns the message of each receive.
    fn pair(&mut self, by_rank: &FxHashMap<(u64, u32), ProcessIndex>) -> FxHashMap<usize, u32> {
        type Key = (u64, ProcessIndex, ProcessIndex, i32);
        let ranks = &self.communication.ranks;
        let peer_of = |half: &PendingMessage| {
            let rank = ranks.get(&half.process.0)?;
            by_rank.get(&(rank.job, half.peer)).copied()
        };
        let mut sends: FxHashMap<Key, Vec<usize>> = FxHashMap::default();
        for (row, half) in self.sends.iter().enumerate() {
            if let Some(peer) = peer_of(half) {
                sends.entry((half.comm, half.process, peer, half.tag)).or_default().push(row);
            }
        }
        let mut receives: FxHashMap<Key, Vec<usize>> = FxHashMap::default();
        for (row, half) in self.receives.iter().enumerate() {
            if let Some(peer) = peer_of(half) {
                receives.entry((half.comm, peer, half.process, half.tag)).or_default().push(row);
            }
        }
        let mut probes: FxHashMap<Key, Vec<Probe>> = FxHashMap::default();
        for probe in std::mem::take(&mut self.probes) {
            let rank = self.communication.ranks.get(&probe.process.0);
            if let Some(peer) = rank.and_then(|rank| by_rank.get(&(rank.job, probe.peer)).copied()) {
                probes.entry((probe.comm, peer, probe.process, probe.tag)).or_default().push(probe);
            }
        }
        let mut pairs: Vec<(usize, usize)> = Vec::new();
        for (key, mut own) in receives {
            own.sort_unstable_by_key(|row| self.receives[*row].post);
            let mut others = sends.remove(&key).unwrap_or_default();
            others.sort_unstable_by_key(|row| self.sends[*row].post);
            let first = pairs.len();
            let rest = others.split_off(own.len().min(others.len()));
            pairs.extend(others.into_iter().zip(own));
            if !rest.is_empty() {
                sends.insert(key, rest);
            }
            // The message that a probe found is the first one requested after it.
            for probe in probes.remove(&key).unwrap_or_default() {
                let own = &pairs[first..];
                let next = own.partition_point(|(_, receive)| self.receives[*receive].at < probe.since);
                if let Some((send, _)) = own.get(next) {
                    let sent = self.sends[*send];
                    self.wait(probe.call, PeerWaitKind::LateSender, sent.process, sent.at);
                }
            }
        }
        let left = sends.into_iter().filter(|(_, rows)| !rows.is_empty());
        let mut unreceived: Vec<Unreceived> = left
            .map(|((comm, sender, receiver, tag), rows)| {
                let messages = rows.len() as u64;
                Unreceived { sender, receiver, comm, tag, messages }
            })
            .collect();
        unreceived.sort_by_key(|row| (row.receiver, row.sender, row.comm, row.tag));
        self.communication.unreceived = unreceived;
        self.communication.unmatched_sends = (self.sends.len() - pairs.len()) as u64;
        self.communication.unmatched_receives = (self.receives.len() - pairs.len()) as u64;
        pairs.sort_unstable_by_key(|(_, receive)| *receive);
        let reported = self.pair_reported();
        let mut reported = reported.into_iter().peekable();
        let mut row_of = FxHashMap::default();
        for (send, receive) in pairs {
            let (sent, got) = (self.sends[send], self.receives[receive]);
            while let Some(message) = reported.next_if(|message| message.received < got.received) {
                self.communication.messages.push(message);
            }
            row_of.insert(receive, self.communication.messages.len() as u32);
            self.communication.messages.push(Message {
                sender: sent.thread,
                sent: sent.at,
                receiver: got.thread,
                posted: got.at,
                received: got.received,
                call: got.call,
                bytes: sent.bytes,
            });
            self.wait(got.call, PeerWaitKind::LateSender, sent.process, sent.at);
            let ends = self.send_ends.get(&(sent.process, sent.post)).copied().unwrap_or(NONE);
            self.wait(ends, PeerWaitKind::LateReceiver, got.process, got.at);
        }
        self.communication.messages.extend(reported);
        row_of
    }

    /// Messages recorded by the program, in the order of receipt: of one domain and id the n-th send belongs to the
    /// n-th receipt.
    fn pair_reported(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        for reported in std::mem::take(&mut self.reported).into_values() {
            let pairs = reported.sends.len().min(reported.receipts.len());
            self.communication.unmatched_sends += (reported.sends.len() - pairs) as u64;
            self.communication.unmatched_receives += (reported.receipts.len() - pairs) as u64;
            for ((sender, sent, bytes), (receiver, received)) in
                reported.sends.into_iter().zip(reported.receipts)
            {
                let (posted, call) = (received, NONE);
                messages.push(Message { sender, sent, receiver, posted, received, call, bytes });
            }
        }
        messages.sort_unstable_by_key(|message| {
            (message.received, message.sent, message.sender, message.receiver)
        });
        messages
    }

    fn find_collective_waits(&mut self, process_of: impl Fn(ThreadIndex) -> ProcessIndex + Copy) {
        let operations = self.communication.operations();
        let mut waits = Vec::new();
        let parts = &self.communication.participations;
        let ends = parts.iter().map(|part| (part, part.call));
        let begins = self.begins.iter().map(|(row, call)| (&parts[*row as usize], *call));
        for (part, row) in ends.chain(begins) {
            let Some(call) = self.communication.calls.get(row as usize) else { continue };
            // For an operation that need not wait for all, members that arrived before its end count.
            let others = self.communication.awaited(&operations, part, process_of);
            let latest = others.filter(|other| other.begun <= call.end).max_by_key(|other| other.begun);
            if let Some(latest) = latest {
                waits.push((row, process_of(latest.thread), latest.begun));
            }
        }
        for (call, culprit, until) in waits {
            self.wait(call, PeerWaitKind::LateMember, culprit, until);
        }
    }

    /// Calls that wait for calls of other ranks on the same window or port.
    fn find_waits_for_ranks(&mut self, by_rank: &FxHashMap<(u64, u32), ProcessIndex>) {
        let mut concerns: FxHashMap<u64, Vec<Concern>> = FxHashMap::default();
        for concern in std::mem::take(&mut self.concerns) {
            if (concern.call as usize) < self.communication.calls.len() {
                concerns.entry(concern.comm).or_default().push(concern);
            }
        }
        let waits: Vec<_> = (concerns.into_values())
            .flat_map(|mut concerns| {
                concerns.sort_by_key(|concern| self.communication.calls[concern.call as usize].start);
                self.waits_on_one(&concerns, by_rank)
            })
            .collect();
        for (call, kind, culprit, until) in waits {
            self.wait(call, kind, culprit, until);
        }
    }

    /// The same for one window or port; its relevant calls are given by their begins.
    fn waits_on_one(
        &self,
        concerns: &[Concern],
        by_rank: &FxHashMap<(u64, u32), ProcessIndex>,
    ) -> Vec<(u32, PeerWaitKind, ProcessIndex, u64)> {
        let calls = &self.communication.calls;
        let start = |concern: &Concern| calls[concern.call as usize].start;
        let name = |concern: &Concern| {
            let function = calls[concern.call as usize].function;
            FUNCTIONS.get(function as usize).copied().unwrap_or("")
        };
        let process_of_peer = |concern: &Concern| {
            let rank = self.communication.ranks.get(&concern.process.0)?;
            by_rank.get(&(rank.job, concern.peer)).copied()
        };
        // The requests of a function's calls, by the functions of others' calls.
        let mut of_function: FxHashMap<&str, Vec<&Concern>> = FxHashMap::default();
        for concern in concerns {
            of_function.entry(name(concern)).or_default().push(concern);
        }
        let last_of = |functions: &[&str], call: &Call, counts: &dyn Fn(&Concern) -> bool| {
            let found = functions.iter().filter_map(|function| {
                let rows = of_function.get(function)?;
                let end = rows.partition_point(|row| start(row) <= call.end);
                let mut rows = rows[..end].iter().rev().take_while(|row| start(row) > call.start);
                rows.find(|row| counts(row)).copied()
            });
            found.max_by_key(|found| start(found))
        };
        // Per process: its last groups, with the calls that gave them.
        let mut groups: FxHashMap<(ProcessIndex, &str), (u32, Vec<ProcessIndex>)> = FxHashMap::default();
        let mut waits = Vec::new();
        let mut calls_of: FxHashMap<ProcessIndex, Vec<u32>> = FxHashMap::default();
        for concern in concerns {
            let (own, function) = (concern.process, name(concern));
            let call = &calls[concern.call as usize];
            if matches!(function, "Win_start" | "Win_post") {
                let group = groups.entry((own, function)).or_default();
                if group.0 != concern.call {
                    *group = (concern.call, Vec::new());
                }
                group.1.extend(process_of_peer(concern));
            }
            let in_group = |given_in: &str, other: &Concern| {
                other.process != own
                    && groups.get(&(own, given_in)).is_none_or(|(_, group)| group.contains(&other.process))
            };
            let found = match function {
                "Win_start" | "Win_complete" => {
                    last_of(&["Win_post"], call, &|other| in_group("Win_start", other))
                        .map(|found| (PeerWaitKind::LateMember, found.process, start(found)))
                }
                "Win_wait" | "Win_test" => {
                    last_of(&["Win_complete"], call, &|other| in_group("Win_post", other))
                        .map(|found| (PeerWaitKind::LateMember, found.process, start(found)))
                }
                "Comm_accept" => last_of(&["Comm_connect"], call, &|other| other.process != own)
                    .map(|found| (PeerWaitKind::LateMember, found.process, start(found))),
                "Comm_connect" => last_of(&["Comm_accept"], call, &|other| other.process != own)
                    .map(|found| (PeerWaitKind::LateMember, found.process, start(found))),
                _ => last_of(&["Win_unlock", "Win_unlock_all"], call, &|other| {
                    let same = [concern.peer, other.peer].contains(&NO_RANK) || concern.peer == other.peer;
                    other.process != own && same
                })
                .map(|found| (PeerWaitKind::LockHolder, found.process, start(found))),
            };
            let target = process_of_peer(concern).filter(|target| *target != own);
            let found = found.or_else(|| {
                // Without one that holds the lock: whether the target called MPI.
                let target = target.filter(|_| !matches!(function, "Win_start" | "Win_post"))?;
                let rows = calls_of.entry(target).or_insert_with(|| self.calls_of_process(target));
                let next = rows.partition_point(|row| calls[*row as usize].start <= call.start);
                let inside = rows[..next].last().is_some_and(|row| calls[*row as usize].end > call.start);
                let until = calls[*rows.get(next)? as usize].start;
                (!inside && until <= call.end).then_some((PeerWaitKind::LateTarget, target, until))
            });
            waits.extend(found.map(|(kind, culprit, until)| (concern.call, kind, culprit, until)));
        }
        waits
    }

    /// Calls of a process by their begins, of all of its threads that have a rank's events.
    fn calls_of_process(&self, process: ProcessIndex) -> Vec<u32> {
        let threads: rustc_hash::FxHashSet<ThreadIndex> =
            self.threads_of.iter().filter(|(_, of)| **of == process).map(|(thread, _)| *thread).collect();
        let calls = self.communication.calls.iter().enumerate();
        let mut rows: Vec<u32> =
            calls.filter(|(_, call)| threads.contains(&call.thread)).map(|(row, _)| row as u32).collect();
        rows.sort_by_key(|row| self.communication.calls[*row as usize].start);
        rows
    }

    /// Extends the wait of the process at a port to the other processes of its communicator.
    fn share_waits_at_ports(&mut self, process_of: impl Fn(ThreadIndex) -> ProcessIndex) {
        let is_meeting = |function: u32| {
            matches!(FUNCTIONS.get(function as usize), Some(&("Comm_accept" | "Comm_connect")))
        };
        let parts = &self.communication.participations;
        let mut latest: FxHashMap<(u64, u64), PeerWait> = FxHashMap::default();
        for part in parts.iter().filter(|part| is_meeting(part.function)) {
            if let Some(wait) = self.came.get(&part.call) {
                let known = latest.entry((part.comm, part.sequence)).or_insert(*wait);
                if known.until < wait.until {
                    *known = *wait;
                }
            }
        }
        let shared: Vec<_> = (parts.iter().filter(|part| is_meeting(part.function)))
            .filter_map(|part| Some((part, latest.get(&(part.comm, part.sequence))?)))
            .filter(|(part, wait)| process_of(part.thread) != wait.culprit)
            .map(|(part, wait)| (part.call, *wait))
            .collect();
        for (call, PeerWait { kind, culprit, until }) in shared {
            self.wait(call, kind, culprit, until);
        }
    }

    /// A process that a call needed arrived at this time, if the call lasted so long; of several the last one
    /// counts.
    fn wait(&mut self, call: u32, kind: PeerWaitKind, culprit: ProcessIndex, until: u64) {
        if let Some(row) = self.communication.calls.get(call as usize)
            && until <= row.end
            && self.came.get(&call).is_none_or(|wait| wait.until < until)
        {
            self.came.insert(call, PeerWait { kind, culprit, until });
        }
    }

    /// Writes the last arrival into the calls that waited for it, and into earlier polls.
    fn note_waits(&mut self) {
        let came = std::mem::take(&mut self.came);
        let mut polled: FxHashMap<ThreadIndex, Vec<usize>> = FxHashMap::default();
        let calls = &mut self.communication.calls;
        for row in 0..calls.len() {
            let call = calls[row];
            let Some(wait) = came.get(&(row as u32)) else {
                let name = FUNCTIONS.get(call.function as usize).copied().unwrap_or("");
                if polls(name) {
                    polled.entry(call.thread).or_default().push(row);
                } else if let Some(rows) = polled.get_mut(&call.thread) {
                    rows.clear();
                }
                continue;
            };
            if call.start < wait.until {
                calls[row].wait = Some(*wait);
            }
            for before in polled.get_mut(&call.thread).map(std::mem::take).unwrap_or_default() {
                let poll = &mut calls[before];
                let until = wait.until.min(poll.end);
                if until > poll.start {
                    poll.wait = Some(PeerWait { until, ..*wait });
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::messages::function_number;

    const RANKS: [(ThreadIndex, ProcessIndex); 3] = [
        (ThreadIndex(0), ProcessIndex(0)),
        (ThreadIndex(1), ProcessIndex(1)),
        (ThreadIndex(2), ProcessIndex(2)),
    ];

    fn builder() -> MessagesBuilder {
        let mut builder = MessagesBuilder::default();
        for (rank, (thread, process)) in (0..).zip(RANKS) {
            let ranks = RANKS.len() as u32;
            builder.change(thread, process, 0, MessageChange::IsRank(Rank { job: 1, rank, ranks }));
        }
        builder
    }

    /// A call of rank `rank` from `start` to `end`, with its contents.
    fn call(
        builder: &mut MessagesBuilder,
        rank: usize,
        name: &str,
        (start, end): (u64, u64),
        does: &[MessageChange],
    ) {
        let (thread, process) = RANKS[rank];
        let (function, place) = (function_number(name), Place::UNKNOWN);
        builder.change(thread, process, start, MessageChange::CallBegins { function, place });
        does.iter().for_each(|change| builder.change(thread, process, end, *change));
        builder.change(thread, process, end, MessageChange::CallEnds);
    }

    /// Function, duration and awaited process of each waiting call.
    fn waits(builder: MessagesBuilder) -> Vec<(&'static str, u64, u32)> {
        let communication = builder.finish(|thread| ProcessIndex(thread.0), |_| 1000);
        let waits = communication.calls.iter().filter_map(|call| {
            let wait = call.wait?;
            Some((call.function_name()?, wait.until - call.start, wait.culprit.0))
        });
        waits.collect()
    }

    #[test]
    fn failed_polls_wait_for_the_message_found_in_the_end() {
        let mut builder = builder();
        let (comm, tag, bytes) = (7, 1, 8);
        call(&mut builder, 0, "Test", (10, 20), &[]);
        call(&mut builder, 0, "Test", (30, 40), &[]);
        let received = MessageChange::Received { post: 0, age: 60, comm, peer: 1, tag, bytes };
        call(&mut builder, 0, "Test", (50, 70), &[received]);
        call(&mut builder, 0, "Test", (80, 90), &[]);
        let (thread, process) = RANKS[1];
        let sends = MessageChange::Sends { post: 0, comm, peer: 0, tag, bytes };
        builder.change(thread, process, 55, sends);
        assert_eq!(waits(builder), [("Test", 10, 1), ("Test", 10, 1), ("Test", 5, 1)]);
    }

    #[test]
    fn an_operation_waits_for_the_last_member_that_came_before_its_end() {
        let mut builder = builder();
        let part = |function| MessageChange::TakesPart {
            comm: 7,
            sequence: 0,
            root: NO_RANK,
            function: function_number(function),
            bytes: 0,
            nonblocking: false,
        };
        // Rank 0 is not a neighbour of rank 2, which arrives after its exit.
        call(&mut builder, 0, "Neighbor_allgather", (10, 50), &[part("Neighbor_allgather")]);
        call(&mut builder, 1, "Neighbor_allgather", (40, 95), &[part("Neighbor_allgather")]);
        call(&mut builder, 2, "Neighbor_allgather", (90, 95), &[part("Neighbor_allgather")]);
        assert_eq!(waits(builder), [("Neighbor_allgather", 30, 1), ("Neighbor_allgather", 50, 2)]);
    }

    #[test]
    fn one_sided_calls_wait_for_lock_holders_and_groups() {
        let mut builder = builder();
        let on = |peer| MessageChange::Concerns { comm: 9, peer, bytes: 0 };
        call(&mut builder, 0, "Win_start", (10, 12), &[on(1)]);
        call(&mut builder, 0, "Win_complete", (13, 40), &[on(NO_RANK)]);
        call(&mut builder, 2, "Win_post", (38, 39), &[on(0)]);
        call(&mut builder, 1, "Win_post", (30, 31), &[on(0)]);
        call(&mut builder, 1, "Win_wait", (32, 60), &[on(NO_RANK)]);
        call(&mut builder, 2, "Win_unlock", (80, 81), &[on(1)]);
        call(&mut builder, 0, "Win_lock", (70, 90), &[on(1)]);
        // Rank 2 is in no group of rank 0.
        assert_eq!(waits(builder), [("Win_complete", 17, 1), ("Win_lock", 10, 2)]);
    }
}
