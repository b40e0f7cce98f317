//! What calls of a communication library need: the ranks that have to call it too.

use super::ends::Ends;
use super::{Needed, Owed};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::messages::FUNCTIONS;
use taskscope_execution::messages::{
    Awaited, Call, Members, Participation, Unreceived, is_among_neighbours, is_from_root, is_to_root,
};
use taskscope_execution::{ProcessIndex, State, ThreadIndex};

/// Ranks of which all, or one, end a wait.
#[derive(Default)]
pub(super) struct Partners {
    pub needs: Vec<Needed>,
    /// Whether one of them is enough.
    pub any: bool,
}

/// What a call awaits: everything, or one of it.
struct Choice {
    partners: Partners,
    /// Whether there is no further one that would do.
    is_complete: bool,
}

impl<'e> Ends<'e> {
    /// The call in which each thread is, and its row.
    pub fn last_calls(&self) -> FxHashMap<ThreadIndex, (u32, &'e Call)> {
        let mut calls: FxHashMap<ThreadIndex, (u32, &Call)> = FxHashMap::default();
        for (row, call) in (0..).zip(&self.execution.communication.calls) {
            let is_open = self.end(call.thread).is_some_and(|end| {
                end.span.section.state == State::Communication
                    && call.end >= end.span.end
                    && call.start <= end.span.start
            });
            if is_open {
                calls.insert(call.thread, (row, call));
            }
        }
        calls
    }

    /// The ranks that the call needs.
    pub fn partners(&self, waiter: ThreadIndex, (row, call): (u32, &Call)) -> Partners {
        let awaited = &self.execution.communication.awaited;
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
        let own = self.process(waiter);
        let sent = self.execution.communication.unreceived.iter().filter(|row| row.receiver == own);
        let mut left: Vec<(Unreceived, u64)> = sent.map(|row| (*row, row.messages)).collect();
        let mut is_missing = |choice: &Choice| {
            let [Needed::Rank { process, owes: Owed::Message { comm, tag, .. }, .. }] =
                &choice.partners.needs[..]
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
        let (communication, own) = (&self.execution.communication, self.process(waiter));
        let of_rank = |rank: u32, owes: Owed| {
            let process = communication.process_of_rank(own, rank);
            let needs = vec![Needed::Rank { process, rank: Some(rank), owes }];
            Choice { partners: Partners { needs, any: false }, is_complete: true }
        };
        match awaited {
            Awaited::Message { comm, source: Some(rank), tag } => {
                of_rank(rank, Owed::Message { comm, tag, of_any: false })
            }
            Awaited::Message { comm, source: None, tag } => {
                let members = communication.members.get(&comm);
                let mut others = members.map_or_else(Vec::new, |members| members.processes.clone());
                others.retain(|process| *process != own);
                let is_complete = members.is_some_and(Members::is_complete);
                let needs = self.of_processes(others, Owed::Message { comm, tag, of_any: true });
                // An unknown member may send, too.
                let needs = if is_complete { needs } else { Vec::new() };
                Choice { partners: Partners { needs, any: true }, is_complete }
            }
            Awaited::Receiver { rank, tag, bytes } => of_rank(rank, Owed::Receipt { tag, bytes }),
            Awaited::Access { rank, function } => {
                of_rank(rank, Owed::Access(FUNCTIONS.get(function as usize).copied().unwrap_or("")))
            }
            Awaited::Operation { comm, sequence } => self.of_operation(own, comm, sequence),
        }
    }

    fn of_processes(&self, mut processes: Vec<ProcessIndex>, owes: Owed) -> Vec<Needed> {
        let ranks = &self.execution.communication.ranks;
        let rank_of = |process: ProcessIndex| ranks.get(&process.0).map(|rank| rank.rank);
        processes.sort_unstable_by_key(|process| (rank_of(*process), *process));
        let need = |process| Needed::Rank { process: Some(process), rank: rank_of(process), owes };
        processes.into_iter().map(need).collect()
    }

    /// Members that have not taken part in a collective operation, or that have called another one.
    fn of_operation(&self, own: ProcessIndex, comm: u64, sequence: u64) -> Choice {
        let members = self.execution.communication.members.get(&comm);
        let parts = self.parts.get(&(comm, sequence)).map_or(&[][..], Vec::as_slice);
        let is_own = |part: &&&Participation| self.process(part.thread) == own;
        let Some(part) = parts.iter().find(is_own) else {
            return Choice { partners: Partners::default(), is_complete: false };
        };
        let function = FUNCTIONS.get(part.function as usize).copied().unwrap_or("");
        let is_complete = members.is_some_and(Members::is_complete);
        let came: FxHashSet<ProcessIndex> = parts.iter().map(|part| self.process(part.thread)).collect();
        let all = members.map_or(&[][..], |members| &members.processes);
        let missing: Vec<ProcessIndex> =
            all.iter().copied().filter(|process| !came.contains(process)).collect();
        let plain = |function: u32| {
            let name = FUNCTIONS.get(function as usize).copied().unwrap_or("");
            name.strip_suffix("_c").unwrap_or(name)
        };
        let others = parts.iter().filter(|other| plain(other.function) != plain(part.function));
        let wrong: Vec<Needed> = others
            .flat_map(|other| {
                let called = FUNCTIONS.get(other.function as usize).copied().unwrap_or("");
                self.of_processes(vec![self.process(other.thread)], Owed::SamePart { called })
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
        let mut needs = self.of_processes(missing, Owed::Part { function });
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
