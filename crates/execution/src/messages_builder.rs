//! Pairs what the threads of several processes tell of their messages.

use crate::messages::{
    Call, Communication, Fulfilment, Message, Participation, PeerWait, PeerWaitKind, Rank,
};
use crate::{NO_TIME, ProcessIndex, TaskIndex, ThreadIndex};
use rustc_hash::FxHashMap;

/// No row.
const NONE: u32 = u32::MAX;
/// No rank.
const NO_RANK: u32 = u32::MAX;

/// Something that a thread tells of messages.
#[derive(Clone, Copy, Debug)]
pub enum MessageChange {
    /// The thread's process has this rank.
    IsRank(Rank),
    /// Enters a function of the library.
    CallBegins {
        /// Its number.
        function: u32,
    },
    /// Leaves it.
    CallEnds,
    /// Posts a send.
    Sends {
        /// The process's number of what it posts.
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
    /// A nonblocking operation has completed.
    Completed {
        /// The communicator.
        comm: u64,
        /// Number of the operation in it.
        sequence: u64,
    },
    /// The program tells that it sends a message of its own.
    TellsSend {
        /// Who may receive it: the number of its domain in the trace.
        domain: u32,
        /// Its id there.
        id: u64,
        /// Size; `u64::MAX` where not known.
        bytes: u64,
    },
    /// The program tells that it has received one.
    TellsReceipt {
        /// As of the sender.
        domain: u32,
        /// As of the sender.
        id: u64,
    },
    /// Ends a task whose body has ended before.
    Fulfils {
        /// The task.
        task: TaskIndex,
    },
}

#[derive(Clone, Copy, Debug)]
struct Half {
    thread: ThreadIndex,
    process: ProcessIndex,
    post: u64,
    comm: u64,
    peer: u32,
    tag: i32,
    bytes: u64,
    /// Of a send: when. Of a receive: when it was posted.
    at: u64,
    received: u64,
    call: u32,
}

/// What a completed receive or operation has not been claimed by yet.
#[derive(Clone, Copy, Debug)]
enum Completion {
    Receive(usize),
    Participation(u32),
}

/// Collects [`MessageChange`]s.
#[derive(Debug, Default)]
pub(crate) struct MessagesBuilder {
    communication: Communication,
    /// Of each thread, by its number: row of its last call.
    last_call: FxHashMap<u32, u32>,
    sends: Vec<Half>,
    receives: Vec<Half>,
    /// Calls in which sends end, by process and post.
    send_ends: FxHashMap<(ProcessIndex, u64), u32>,
    /// Nonblocking parts that have not completed.
    open_parts: FxHashMap<(ProcessIndex, u64, u64), u32>,
    /// What completed in the last call of a thread, in order.
    completions: FxHashMap<u32, std::collections::VecDeque<Completion>>,
    fulfilled: Vec<(TaskIndex, u64, Completion)>,
    /// Halves that the program told, by domain and id.
    told: FxHashMap<(u32, u64), Told>,
}

/// Halves of messages with one domain and id, by time.
#[derive(Debug, Default)]
struct Told {
    /// Who sent, when, how much.
    sends: Vec<(ThreadIndex, u64, u64)>,
    /// Who received, and when.
    receipts: Vec<(ThreadIndex, u64)>,
}

impl MessagesBuilder {
    pub fn change(&mut self, thread: ThreadIndex, process: ProcessIndex, at: u64, change: MessageChange) {
        let call = self.last_call.get(&thread.0).copied().unwrap_or(NONE);
        match change {
            MessageChange::IsRank(rank) => drop(self.communication.ranks.insert(process.0, rank)),
            MessageChange::CallBegins { function } => {
                self.last_call.insert(thread.0, self.communication.calls.len() as u32);
                self.communication.calls.push(Call { thread, function, start: at, end: NO_TIME, wait: None });
                self.completions.remove(&thread.0);
            }
            MessageChange::CallEnds => {
                if let Some(call) = self.communication.calls.get_mut(call as usize) {
                    call.end = at;
                }
            }
            MessageChange::Sends { post, comm, peer, tag, bytes } => {
                let half =
                    Half { thread, process, post, comm, peer, tag, bytes, at, received: NO_TIME, call };
                self.sends.push(half);
                self.send_ends.insert((process, post), call);
            }
            MessageChange::Sent { post } => drop(self.send_ends.insert((process, post), call)),
            MessageChange::Received { post, age, comm, peer, tag, bytes } => {
                let row = self.receives.len();
                self.completions.entry(thread.0).or_default().push_back(Completion::Receive(row));
                let posted = at.saturating_sub(age);
                let half =
                    Half { thread, process, post, comm, peer, tag, bytes, at: posted, received: at, call };
                self.receives.push(half);
            }
            MessageChange::TakesPart { comm, sequence, root, function, bytes, nonblocking } => {
                let row = self.communication.participations.len() as u32;
                // Ranks of roots become processes when all are known.
                let root = ProcessIndex(root);
                self.communication.participations.push(Participation {
                    comm,
                    sequence,
                    thread,
                    begun: at,
                    completer: thread,
                    completed: NO_TIME,
                    call,
                    root,
                    function,
                    bytes,
                });
                if nonblocking {
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
            MessageChange::TellsSend { domain, id, bytes } => {
                self.told.entry((domain, id)).or_default().sends.push((thread, at, bytes));
            }
            MessageChange::TellsReceipt { domain, id } => {
                self.told.entry((domain, id)).or_default().receipts.push((thread, at));
            }
            MessageChange::Fulfils { task } => {
                // A thread fulfils tasks in the order in which its last call completed what they wait for.
                let own = self.completions.get_mut(&thread.0);
                if let Some(completion) = own.and_then(|own| own.pop_front()) {
                    self.fulfilled.push((task, at, completion));
                }
            }
        }
    }

    /// Pairs everything. `process_of` tells a thread's process, `last` the time of a process's last event.
    pub fn finish(
        mut self,
        process_of: impl Fn(ThreadIndex) -> ProcessIndex + Copy,
        last: impl Fn(ThreadIndex) -> u64,
    ) -> Communication {
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
        self.communication
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
        let peer_of = |half: &Half| {
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
        let mut pairs = Vec::new();
        for (key, mut own) in receives {
            own.sort_unstable_by_key(|row| self.receives[*row].post);
            let mut others = sends.remove(&key).unwrap_or_default();
            others.sort_unstable_by_key(|row| self.sends[*row].post);
            pairs.extend(others.into_iter().zip(own));
        }
        self.communication.unmatched_sends = (self.sends.len() - pairs.len()) as u64;
        self.communication.unmatched_receives = (self.receives.len() - pairs.len()) as u64;
        pairs.sort_unstable_by_key(|(_, receive)| *receive);
        let told = self.pair_told();
        let mut told = told.into_iter().peekable();
        let mut row_of = FxHashMap::default();
        for (send, receive) in pairs {
            let (sent, got) = (self.sends[send], self.receives[receive]);
            while let Some(message) = told.next_if(|message| message.received < got.received) {
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
        self.communication.messages.extend(told);
        row_of
    }

    /// Messages that the program told, by the time they were received: of one domain and id the n-th send belongs to
    /// the n-th receipt.
    fn pair_told(&mut self) -> Vec<Message> {
        let mut messages = Vec::new();
        for told in std::mem::take(&mut self.told).into_values() {
            let pairs = told.sends.len().min(told.receipts.len());
            self.communication.unmatched_sends += (told.sends.len() - pairs) as u64;
            self.communication.unmatched_receives += (told.receipts.len() - pairs) as u64;
            for ((sender, sent, bytes), (receiver, received)) in told.sends.into_iter().zip(told.receipts) {
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
        for part in &self.communication.participations {
            let others = self.communication.awaited(&operations, part, process_of);
            if let Some(latest) = others.max_by_key(|other| other.begun) {
                waits.push((part.call, process_of(latest.thread), latest.begun));
            }
        }
        for (call, culprit, until) in waits {
            self.wait(call, PeerWaitKind::LateMember, culprit, until);
        }
    }

    /// A call waited until then, if it lasted so long; of several the last one counts.
    fn wait(&mut self, call: u32, kind: PeerWaitKind, culprit: ProcessIndex, until: u64) {
        if let Some(call) = self.communication.calls.get_mut(call as usize)
            && call.start < until
            && until <= call.end
            && call.wait.is_none_or(|wait| wait.until < until)
        {
            call.wait = Some(PeerWait { kind, culprit, until });
        }
    }
}
