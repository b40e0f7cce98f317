//! Partners of calls that have not ended.

use super::{Concern, MessagesBuilder, NO_RANK, PendingMessage};
use crate::message_change::MessageChange;
use crate::messages::{Awaited, OpenCalls, Owed, PeerWaitKind};
use crate::{NO_TIME, ProcessIndex, ThreadIndex};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::messages::{FUNCTIONS, function_number};

const WIN_POST: u32 = function_number("Win_post");
const WIN_START: u32 = function_number("Win_start");
const WIN_COMPLETE: u32 = function_number("Win_complete");
const WIN_WAIT: u32 = function_number("Win_wait");
const WIN_LOCK: u32 = function_number("Win_lock");
const WIN_UNLOCK: u32 = function_number("Win_unlock");
const COMM_CREATE_GROUP: u32 = function_number("Comm_create_group");
const COMM_CREATE_FROM_GROUP: u32 = function_number("Comm_create_from_group");
const COMM_ACCEPT: u32 = function_number("Comm_accept");
const COMM_CONNECT: u32 = function_number("Comm_connect");

impl MessagesBuilder {
    /// Notes the partners of calls that have not ended.
    pub(super) fn find_awaited(&mut self) {
        let awaits = std::mem::take(&mut self.awaits);
        let is_open = |row: u32| self.communication.calls.get(row as usize).is_some_and(|c| c.end == NO_TIME);
        let mut open: Vec<(u32, u32)> = self
            .last_call
            .iter()
            .map(|(thread, row)| (*row, *thread))
            .filter(|(row, _)| is_open(*row))
            .collect();
        if open.is_empty() {
            return;
        }
        open.sort_unstable();
        let posts: FxHashMap<(ProcessIndex, u64), &PendingMessage> =
            self.sends.iter().map(|half| ((half.process, half.post), half)).collect();
        let receiver =
            |half: &PendingMessage| Awaited::Receiver { rank: half.peer, tag: half.tag, bytes: half.bytes };
        let mut awaited: Vec<(u32, Awaited)> = Vec::new();
        for (row, thread) in &open {
            let process = self.threads_of.get(&ThreadIndex(*thread)).copied().unwrap_or(ProcessIndex::NONE);
            let own = awaits.get(thread).into_iter().flatten().filter_map(|change| match change {
                MessageChange::Awaits(awaited) => Some(*awaited),
                MessageChange::AwaitsSent { post } => posts.get(&(process, *post)).map(|half| receiver(half)),
                _ => None,
            });
            awaited.extend(own.map(|own| (*row, own)));
        }
        let rows: FxHashSet<u32> = open.into_iter().map(|(row, _)| row).collect();
        let sends = self.sends.iter().filter(|half| rows.contains(&half.call));
        awaited.extend(sends.map(|half| (half.call, receiver(half))));
        let parts = self.communication.participations.iter().filter(|part| rows.contains(&part.call));
        awaited.extend(
            parts.map(|part| (part.call, Awaited::Operation { comm: part.comm, sequence: part.sequence })),
        );
        awaited.extend(self.missing_at_start(|call| rows.contains(&call)));
        let mut known = FxHashSet::default();
        for concern in self.concerns.iter().filter(|concern| rows.contains(&concern.call)) {
            if known.insert(concern.call) {
                awaited.extend(self.accesses(concern).into_iter().map(|access| (concern.call, access)));
            }
        }
        awaited.sort_by_key(|(row, _)| *row);
        self.communication.awaited = awaited;
    }

    /// Charges calls that have not ended to the rank at the end of their chain of waits: one that is in no such call
    /// itself. Ranks that wait for each other are not charged.
    pub(super) fn find_waits_of_open_calls(
        &mut self,
        process_of: impl Fn(ThreadIndex) -> ProcessIndex + Copy,
    ) {
        let open = OpenCalls::of(&self.communication, process_of);
        let mut rows: Vec<u32> = self.communication.awaited.iter().map(|(row, _)| *row).collect();
        rows.dedup();
        let mut late: Vec<(u32, PeerWaitKind, ProcessIndex)> = Vec::new();
        let mut waits_for: FxHashMap<ProcessIndex, Option<ProcessIndex>> = FxHashMap::default();
        for row in rows {
            let Some(call) = self.communication.calls.get(row as usize) else { continue };
            let partners = open.partners(row, call);
            let is_known = !partners.any || partners.needs.len() == 1;
            let found = partners.needs.into_iter().filter(|_| is_known).find_map(|partner| {
                let is_sent = |comm, tag: Option<i32>| {
                    self.communication.unreceived.iter().any(|row| {
                        Some(row.sender) == partner.process
                            && row.receiver == process_of(call.thread)
                            && row.comm == comm
                            && tag.is_none_or(|tag| row.tag == tag)
                    })
                };
                let kind = match partner.owes {
                    Owed::Message { comm, tag, .. } if !is_sent(comm, tag) => PeerWaitKind::LateSender,
                    Owed::Receipt { .. } => PeerWaitKind::LateReceiver,
                    Owed::Part { .. } => PeerWaitKind::LateMember,
                    Owed::Access("Win_unlock") => PeerWaitKind::LockHolder,
                    Owed::Access(_) => PeerWaitKind::LateMember,
                    Owed::Message { .. } | Owed::SamePart { .. } => return None,
                };
                Some((kind, partner.process?))
            });
            waits_for.insert(process_of(call.thread), found.map(|(_, process)| process));
            late.extend(found.map(|(kind, process)| (row, kind, process)));
        }
        for (row, kind, mut culprit) in late {
            let mut steps = 0;
            let computes = loop {
                match waits_for.get(&culprit) {
                    None => break true,
                    Some(Some(next)) if steps < waits_for.len() => culprit = *next,
                    Some(_) => break false,
                }
                steps += 1;
            };
            let end = self.communication.calls[row as usize].end;
            if computes {
                self.wait(row, kind, culprit, end);
            }
        }
    }

    fn function(&self, concern: &Concern) -> u32 {
        self.communication.calls.get(concern.call as usize).map_or(u32::MAX, |call| call.function)
    }

    /// The one-sided calls of other ranks that an open call waits for.
    fn accesses(&self, open: &Concern) -> Vec<Awaited> {
        let function = self.function(open);
        let is_lock =
            |number: u32| FUNCTIONS.get(number as usize).is_some_and(|name| name.starts_with("Win_lock"));
        let same_object = || self.concerns.iter().filter(|other| other.comm == open.comm);
        let calls = |process: ProcessIndex, function: u32, peer: u32| {
            let process_concerns = same_object().filter(|other| other.process == process);
            process_concerns.filter(|other| self.function(other) == function && other.peer == peer).count()
        };
        let rank = |process: ProcessIndex| self.communication.ranks.get(&process.0).map(|rank| rank.rank);
        let Some(own) = rank(open.process) else { return Vec::new() };
        let process_of = |peer: u32| self.communication.process_of_rank(open.process, peer);
        let group = |function: u32| {
            let last = same_object()
                .filter(|other| other.process == open.process && self.function(other) == function)
                .map(|other| other.call)
                .max();
            let call_concerns = same_object().filter(move |other| Some(other.call) == last);
            call_concerns.map(|other| other.peer).filter(|peer| *peer != NO_RANK).collect::<Vec<u32>>()
        };
        match function {
            // The n-th access epoch on a target waits for the n-th exposure epoch of it.
            WIN_START | WIN_COMPLETE => group(WIN_START)
                .into_iter()
                .filter(|peer| {
                    let begun = calls(open.process, WIN_START, *peer);
                    process_of(*peer).is_none_or(|process| calls(process, WIN_POST, own) < begun)
                })
                .map(|rank| Awaited::Access { rank, function: WIN_POST })
                .collect(),
            WIN_WAIT => group(WIN_POST)
                .into_iter()
                .filter(|peer| {
                    let posted = calls(open.process, WIN_POST, *peer);
                    process_of(*peer)
                        .is_none_or(|process| self.completed_epochs(open.comm, process, own) < posted)
                })
                .map(|rank| Awaited::Access { rank, function: WIN_COMPLETE })
                .collect(),
            // Each member of the group makes the call as often as the others.
            COMM_CREATE_GROUP | COMM_CREATE_FROM_GROUP => group(function)
                .into_iter()
                .filter(|peer| *peer != own)
                .filter(|peer| {
                    let begun = calls(open.process, function, own);
                    process_of(*peer).is_none_or(|process| calls(process, function, own) < begun)
                })
                .map(|rank| Awaited::Access { rank, function })
                .collect(),
            // Any process may come to a port.
            COMM_ACCEPT => vec![Awaited::Access { rank: NO_RANK, function: COMM_CONNECT }],
            COMM_CONNECT => vec![Awaited::Access { rank: NO_RANK, function: COMM_ACCEPT }],
            _ if is_lock(function) => {
                let holds = |process: &ProcessIndex| {
                    let has_got = |other: &&Concern| {
                        let call = self.communication.calls.get(other.call as usize);
                        call.is_some_and(|call| call.end != NO_TIME)
                    };
                    let locks =
                        same_object().filter(|other| other.process == *process && other.peer == open.peer);
                    let got = locks.filter(has_got).filter(|other| self.function(other) == WIN_LOCK).count();
                    got > calls(*process, WIN_UNLOCK, open.peer)
                };
                let mut others: Vec<ProcessIndex> = same_object()
                    .map(|other| other.process)
                    .filter(|process| *process != open.process)
                    .collect();
                others.sort_unstable();
                others.dedup();
                let holders =
                    others.iter().filter(|process| holds(process)).filter_map(|process| rank(*process));
                holders.map(|rank| Awaited::Access { rank, function: WIN_UNLOCK }).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Access epochs of a process on the rank's window that it has completed.
    fn completed_epochs(&self, comm: u64, process: ProcessIndex, rank: u32) -> usize {
        let (mut open, mut completed, mut last) = (0, 0, u32::MAX);
        for concern in self.concerns.iter().filter(|row| row.comm == comm && row.process == process) {
            match self.function(concern) {
                WIN_START => open += usize::from(concern.peer == rank),
                WIN_COMPLETE if concern.call != last => {
                    completed += open;
                    (open, last) = (0, concern.call);
                }
                _ => {}
            }
        }
        completed
    }
}
