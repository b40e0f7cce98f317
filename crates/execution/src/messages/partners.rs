//! Partners of calls that have not ended: the ranks that must call the library too.

use super::{
    Awaited, Communication, Members, MpiCall, Participation, Unreceived, is_among_neighbours, is_from_root,
    is_to_root,
};
use crate::{ProcessIndex, ThreadIndex};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::messages::FUNCTIONS;

/// The call of a rank that would end another one's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owed {
    /// Send a message.
    Message {
        /// Number of the communicator.
        comm: u64,
        /// Required tag; `None` for any.
        tag: Option<i32>,
        /// Whether a message of any other rank will do, too.
        accepts_any: bool,
    },
    /// Receive a message.
    Receipt {
        /// Its tag.
        tag: i32,
        /// Payload size in bytes; `u64::MAX` if unknown.
        bytes: u64,
    },
    /// Take part in a collective operation.
    Part {
        /// The function by which the waiting rank takes part, without the library's prefix.
        function: &'static str,
    },
    /// Take part in a collective operation by a call of the same function; it has called another one.
    SamePart {
        /// The one that it has called, without the library's prefix.
        called: &'static str,
    },
    /// Call this function of one-sided communication, without the library's prefix.
    Access(&'static str),
}

/// A rank that has not called the library so as to end another one's call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Partner {
    /// Its process, if it is in the trace.
    pub process: Option<ProcessIndex>,
    /// Its number, if known.
    pub rank: Option<u32>,
    /// Its missing call.
    pub owes: Owed,
}

/// Ranks of which all, or one, end a call.
#[derive(Clone, Debug, Default)]
pub struct Partners {
    /// The ranks; empty if they are not known.
    pub needs: Vec<Partner>,
    /// Whether one of them is enough.
    pub any: bool,
}

/// The partners that a call awaits: all, or one of them.
struct Choice {
    partners: Partners,
    /// Whether no other one would do.
    is_complete: bool,
}

/// The calls that had not ended, with their partners.
pub struct OpenCalls<'e, P> {
    communication: &'e Communication,
    /// Parts in the collective operations that are awaited, by communicator and number.
    parts: FxHashMap<(u64, u64), Vec<&'e Participation>>,
    process_of: P,
}

impl<'e, P: Fn(ThreadIndex) -> ProcessIndex> OpenCalls<'e, P> {
    /// The open calls of a trace; `process_of` returns the process of a thread.
    pub fn of(communication: &'e Communication, process_of: P) -> OpenCalls<'e, P> {
        let operations = communication.awaited.iter().filter_map(|(_, awaited)| match awaited {
            Awaited::Operation { comm, sequence } => Some(((*comm, *sequence), Vec::new())),
            _ => None,
        });
        let mut parts: FxHashMap<(u64, u64), Vec<&Participation>> = operations.collect();
        if !parts.is_empty() {
            for part in &communication.participations {
                if let Some(parts) = parts.get_mut(&(part.comm, part.sequence)) {
                    parts.push(part);
                }
            }
        }
        OpenCalls { communication, parts, process_of }
    }

    /// The ranks that the call of this row needs.
    pub fn partners(&self, row: u32, call: &MpiCall) -> Partners {
        let (awaited, waiter) = (&self.communication.awaited, call.thread);
        let first = awaited.partition_point(|(of, _)| *of < row);
        let own = awaited[first..].iter().take_while(|(of, _)| *of == row);
        let mut choices: Vec<Choice> = own.map(|(_, awaited)| self.choice(waiter, *awaited)).collect();
        if matches!(call.function_name(), Some("Waitany" | "Waitsome")) {
            if !choices.iter().all(|choice| choice.is_complete) {
                return Partners::default();
            }
            let needs = choices.into_iter().flat_map(|choice| choice.partners.needs).collect();
            return Partners { needs, any: true };
        }
        if choices.len() > 1 {
            self.drop_sent(waiter, &mut choices);
            // All of them are needed: those that have alternatives decide nothing.
            choices.retain(|choice| !choice.partners.any);
        }
        match choices.len() {
            1 => choices.remove(0).partners,
            _ => Partners {
                needs: choices.into_iter().flat_map(|choice| choice.partners.needs).collect(),
                any: false,
            },
        }
    }

    /// Drops messages of several that have been sent: they have come, or need nothing more from their senders.
    fn drop_sent(&self, waiter: ThreadIndex, choices: &mut Vec<Choice>) {
        let own = (self.process_of)(waiter);
        let sent = self.communication.unreceived.iter().filter(|row| row.receiver == own);
        let mut left: Vec<(Unreceived, u64)> = sent.map(|row| (*row, row.messages)).collect();
        let mut is_missing = |choice: &Choice| {
            let [Partner { process, owes: Owed::Message { comm, tag, .. }, .. }] = &choice.partners.needs[..]
            else {
                return true;
            };
            let found = left.iter_mut().find(|(row, left)| {
                *left > 0
                    && Some(row.sender) == *process
                    && row.comm == *comm
                    && tag.is_none_or(|tag| tag == row.tag)
            });
            match found {
                Some((_, left)) => *left -= 1,
                None => return true,
            }
            false
        };
        let missing: Vec<bool> = choices.iter().map(&mut is_missing).collect();
        if missing.contains(&true) {
            let mut missing = missing.into_iter();
            choices.retain(|_| missing.next() == Some(true));
        }
    }

    fn choice(&self, waiter: ThreadIndex, awaited: Awaited) -> Choice {
        let (communication, own) = (self.communication, (self.process_of)(waiter));
        let rank_choice = |rank: u32, owes: Owed| {
            let rank = (rank != u32::MAX).then_some(rank);
            let process = rank.and_then(|rank| communication.process_of_rank(own, rank));
            let needs = vec![Partner { process, rank, owes }];
            Choice { partners: Partners { needs, any: false }, is_complete: true }
        };
        match awaited {
            Awaited::Message { comm, source: Some(rank), tag } => {
                rank_choice(rank, Owed::Message { comm, tag, accepts_any: false })
            }
            Awaited::Message { comm, source: None, tag } => {
                let members = communication.members.get(&comm);
                let mut others = members.map_or_else(Vec::new, |members| members.processes.clone());
                others.retain(|process| *process != own);
                let is_complete = members.is_some_and(Members::is_complete);
                let needs = self.process_partners(others, Owed::Message { comm, tag, accepts_any: true });
                // An unknown member may send, too.
                let needs = if is_complete { needs } else { Vec::new() };
                Choice { partners: Partners { needs, any: true }, is_complete }
            }
            Awaited::Receiver { rank, tag, bytes } => rank_choice(rank, Owed::Receipt { tag, bytes }),
            Awaited::Access { rank, function } => {
                rank_choice(rank, Owed::Access(FUNCTIONS.get(function as usize).copied().unwrap_or("")))
            }
            Awaited::Operation { comm, sequence } => self.operation_partners(own, comm, sequence),
        }
    }

    fn process_partners(&self, mut processes: Vec<ProcessIndex>, owes: Owed) -> Vec<Partner> {
        let ranks = &self.communication.ranks;
        let rank_of = |process: ProcessIndex| ranks.get(&process.0).map(|rank| rank.rank);
        processes.sort_unstable_by_key(|process| (rank_of(*process), *process));
        let need = |process| Partner { process: Some(process), rank: rank_of(process), owes };
        processes.into_iter().map(need).collect()
    }

    /// Members that have not taken part in a collective operation, or that have called another one.
    fn operation_partners(&self, own: ProcessIndex, comm: u64, sequence: u64) -> Choice {
        let members = self.communication.members.get(&comm);
        let parts = self.parts.get(&(comm, sequence)).map_or(&[][..], Vec::as_slice);
        let is_own = |part: &&&Participation| (self.process_of)(part.thread) == own;
        let Some(part) = parts.iter().find(is_own) else {
            return Choice { partners: Partners::default(), is_complete: false };
        };
        let function = FUNCTIONS.get(part.function as usize).copied().unwrap_or("");
        let is_complete = members.is_some_and(Members::is_complete);
        let came: FxHashSet<ProcessIndex> = parts.iter().map(|part| (self.process_of)(part.thread)).collect();
        let all = members.map_or(&[][..], |members| &members.processes);
        let missing: Vec<ProcessIndex> =
            all.iter().copied().filter(|process| !came.contains(process)).collect();
        let plain = |function: u32| {
            let name = FUNCTIONS.get(function as usize).copied().unwrap_or("");
            name.strip_suffix("_c").unwrap_or(name)
        };
        let others = parts.iter().filter(|other| plain(other.function) != plain(part.function));
        let wrong: Vec<Partner> = others
            .flat_map(|other| {
                let called = FUNCTIONS.get(other.function as usize).copied().unwrap_or("");
                self.process_partners(vec![(self.process_of)(other.thread)], Owed::SamePart { called })
            })
            .collect();
        let root = Some(part.root).filter(|root| *root != ProcessIndex::NONE);
        // Data may come by way of any other member.
        let is_indirect =
            is_from_root(function) && root != Some(own) && root.is_some_and(|root| came.contains(&root))
                || is_to_root(function) && root != Some(own)
                || ["Scan", "Exscan"].iter().any(|name| plain(part.function).eq_ignore_ascii_case(name))
                || is_among_neighbours(function);
        let awaits_root = is_from_root(function) && root.is_some_and(|root| missing.contains(&root));
        let missing = match root {
            Some(root) if awaits_root => vec![root],
            _ => missing,
        };
        let mut needs = self.process_partners(missing, Owed::Part { function });
        if needs.is_empty() {
            needs = wrong;
        }
        let any = is_indirect && needs.len() > 1;
        if is_indirect && !is_complete {
            needs.clear();
        }
        Choice { partners: Partners { needs, any }, is_complete: !is_indirect || is_complete }
    }
}
