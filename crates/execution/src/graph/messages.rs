//! Messages between processes, as data of the task graph: code after a receive, and tasks that depend on
//! one that a message ended, wait for the sender's code before the send.

use super::from_execution::Maker;
use super::from_execution::order::OfTasks;
use super::{ActivityKind, NONE, NewData};
use crate::messages::{MpiCall, Participation};
use crate::{KeptBy, LatePart, NO_TIME, ProcessIndex, ThreadIndex};
use rustc_hash::FxHashMap;
use taskscope_event::models::messages::FUNCTIONS;

/// Maximum members of a collective operation for all arrivals; a larger one has its last member only.
const MAX_MEMBERS: usize = 32;

/// A remote stretch that a local one waits for, and the arrival of its data.
#[derive(Clone, Copy)]
struct Arrival {
    sender: ThreadIndex,
    sent: u64,
    arrived: u64,
    bytes: u64,
}

impl Maker<'_> {
    /// The node of a process: its rank, as memory is not shared; of others, that of their host.
    pub(super) fn node_of(&mut self, process: ProcessIndex) -> u64 {
        if let Some(known) = self.nodes.get(&process) {
            return *known;
        }
        let node = self.find_node(process);
        self.nodes.insert(process, node);
        node
    }

    fn find_node(&mut self, process: ProcessIndex) -> u64 {
        let ranks = &self.execution.communication.ranks;
        if let Some(own) = ranks.get(&process.0) {
            let one_job = ranks.values().all(|rank| rank.job == own.job);
            return if one_job { own.rank.into() } else { process.0.into() };
        }
        let host = self.execution.processes[process.index()].loom.split('.').next().unwrap_or("").to_owned();
        let first = if ranks.is_empty() { 0 } else { self.execution.processes.len() };
        let known = self.hosts.len();
        (first + *self.hosts.entry(host).or_insert(known)) as u64
    }

    /// The time in a call: waiting for the peer that was late for a reason of its own, then the rest.
    pub(super) fn add_call(&mut self, worker: u32, start: u64, end: u64, call: Option<&MpiCall>) {
        let Some(call) = call else {
            let name = self.builder.add_name("communication");
            return self.builder.add_activity(worker.into(), ActivityKind::Communication, name, start, end);
        };
        let function = FUNCTIONS.get(call.function as usize).copied().unwrap_or("call");
        let mut communicates = Vec::new();
        let mut at = start;
        if let Some(wait) = call.wait.filter(|wait| wait.until > start) {
            let parts = self.peers.parts(wait.culprit, start, wait.until.min(end));
            for LatePart { start, end, kept_by } in parts {
                at = end;
                let late = match kept_by {
                    KeptBy::Process(late) => late,
                    KeptBy::System => wait.culprit,
                    KeptBy::Transfer => {
                        communicates.push((start, end));
                        continue;
                    }
                };
                let culprit = self.process_name(late);
                let name = self.builder.add_name(&format!("MPI_{function}, {}: {culprit}", wait.kind.name()));
                self.builder.add_activity(worker.into(), ActivityKind::PeerWait, name, start, end);
            }
        }
        communicates.push((at, end));
        for (start, end) in communicates.into_iter().filter(|(start, end)| start < end) {
            let name = self.builder.add_name(&format!("MPI_{function}"));
            self.builder.add_activity(worker.into(), ActivityKind::Communication, name, start, end);
        }
    }

    fn process_name(&self, process: ProcessIndex) -> String {
        match self.execution.communication.ranks.get(&process.0) {
            Some(rank) => format!("rank {}", rank.rank),
            None => format!("process {}", self.execution.processes[process.index()].pid),
        }
    }

    /// Adds the arrivals by messages and operations: to the code after the call in which they were noticed, and to the
    /// dependents of tasks that they ended.
    pub(super) fn order_by_messages(&mut self, last: &OfTasks) {
        let communication = &self.execution.communication;
        let operations = communication.operations();
        let mut next_data = self.edge_data.len() as u64;
        for message in &communication.messages {
            // Facts recorded by the program itself are outside of calls.
            let arrived =
                communication.calls.get(message.call as usize).map_or(message.received, |call| call.end);
            let arrival =
                Arrival { sender: message.sender, sent: message.sent, arrived, bytes: message.bytes };
            if let Some(reader) = self.first_after(message.receiver.0, arrived) {
                self.read_arrival(reader, message.receiver, arrival, &mut next_data);
            }
        }
        for part in &communication.participations {
            let Some(call) = communication.calls.get(part.call as usize) else { continue };
            let Some(reader) = self.first_after(part.completer.0, call.end) else { continue };
            for arrival in self.arrivals_of(part, &operations, call.end) {
                self.read_arrival(reader, part.completer, arrival, &mut next_data);
            }
        }
        for fulfilment in &communication.fulfilments {
            let Some(stretch) = last.get(fulfilment.task) else { continue };
            let receiver = ThreadIndex(self.threads[self.stretches[stretch as usize].worker as usize]);
            let mut arrivals = Vec::new();
            if let Some(message) = communication.messages.get(fulfilment.message as usize) {
                arrivals.push(Arrival {
                    sender: message.sender,
                    sent: message.sent,
                    arrived: fulfilment.at,
                    bytes: message.bytes,
                });
            } else if let Some(part) = communication.participations.get(fulfilment.participation as usize) {
                arrivals = self.arrivals_of(part, &operations, fulfilment.at);
            }
            let data: Vec<u64> = arrivals
                .into_iter()
                .filter_map(|arrival| self.add_arrival(receiver, arrival, &mut next_data))
                .collect();
            self.ended_by.entry(stretch).or_default().extend(data.into_iter().map(|id| (id, fulfilment.at)));
        }
    }

    fn arrivals_of(
        &self,
        part: &Participation,
        operations: &FxHashMap<(u64, u64), Vec<u32>>,
        arrived: u64,
    ) -> Vec<Arrival> {
        let threads = &self.execution.threads;
        let process_of = |thread: ThreadIndex| threads[thread.index()].process;
        let awaited = self.execution.communication.awaited(operations, part, process_of);
        let mut arrivals: Vec<Arrival> = awaited
            .take(MAX_MEMBERS + 1)
            .map(|other| Arrival { sender: other.thread, sent: other.begun, arrived, bytes: other.bytes })
            .collect();
        // The last to begin is first.
        if arrivals.len() > MAX_MEMBERS {
            arrivals.truncate(1);
        }
        arrivals
    }

    /// The first stretch of a thread that starts at a time or later.
    fn first_after(&self, thread: u32, at: u64) -> Option<u32> {
        let own = &self.by_worker[*self.worker_of.get(&thread)? as usize];
        own.get(own.partition_point(|number| self.stretches[*number as usize].start < at)).copied()
    }

    fn read_arrival(&mut self, reader: u32, receiver: ThreadIndex, arrival: Arrival, next_data: &mut u64) {
        if let Some(data) = self.add_arrival(receiver, arrival, next_data) {
            self.builder.add_input(reader.into(), data);
        }
    }

    /// The data that arrived. `None` if it arrived before it was sent, by the clocks of the two nodes.
    fn add_arrival(&mut self, receiver: ThreadIndex, arrival: Arrival, next_data: &mut u64) -> Option<u64> {
        let threads = &self.execution.threads;
        let (from, to) = (threads[arrival.sender.index()].process, threads[receiver.index()].process);
        if arrival.arrived < arrival.sent {
            self.dropped += 1;
            return None;
        }
        let (home, node) = (self.node_of(from), self.node_of(to));
        let worker = self.worker_of.get(&arrival.sender.0).copied();
        let producer = worker.and_then(|worker| self.last_before(worker as usize, arrival.sent));
        let produced = producer.map_or(arrival.sent, |producer| self.stretches[producer as usize].end);
        let id = *next_data;
        *next_data += 1;
        self.builder.add_data(NewData {
            id,
            producer: producer.map(u64::from),
            produced,
            home,
            bytes: if arrival.bytes == u64::MAX { 0 } else { arrival.bytes },
            name: NONE,
            synchronises: false,
        });
        // The time of a call before the message leaves is not separated from its flight.
        let sent = if producer.is_some() { arrival.sent.max(produced) } else { NO_TIME };
        self.builder.add_copy(id, node, sent, arrival.arrived);
        Some(id)
    }
}
