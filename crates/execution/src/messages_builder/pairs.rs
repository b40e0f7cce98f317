//! Pairs of sends and receives.

use super::{MessagesBuilder, NONE, PendingMessage, Probe};
use crate::ProcessIndex;
use crate::messages::{Message, PeerWaitKind, Unreceived};
use rustc_hash::FxHashMap;

impl MessagesBuilder {
    /// Pairs sends and receives; returns the message of each receive.
    pub(super) fn pair(&mut self, by_rank: &FxHashMap<(u64, u32), ProcessIndex>) -> FxHashMap<usize, u32> {
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
                tag: Some(sent.tag),
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
                messages.push(Message { sender, sent, receiver, posted, received, call, bytes, tag: None });
            }
        }
        messages.sort_unstable_by_key(|message| {
            (message.received, message.sent, message.sender, message.receiver)
        });
        messages
    }
}
