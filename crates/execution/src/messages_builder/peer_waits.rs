//! Waits of calls for other processes.

use super::{Concern, MessagesBuilder, NO_RANK};
use crate::messages::{MpiCall, PeerWait, PeerWaitKind};
use crate::{NO_TIME, ProcessIndex, ThreadIndex};
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use taskscope_event::models::messages::{FUNCTIONS, polls};

impl MessagesBuilder {
    pub(super) fn find_collective_waits(&mut self, process_of: impl Fn(ThreadIndex) -> ProcessIndex + Copy) {
        let operations = self.communication.operations();
        let mut waits = Vec::new();
        let parts = &self.communication.participations;
        let ends = parts.iter().map(|part| (part, part.call));
        let begins = self.begins.iter().map(|(row, call)| (&parts[*row as usize], *call));
        for (part, row) in ends.chain(begins) {
            let Some(call) = self.communication.calls.get(row as usize) else { continue };
            // In an operation that need not wait for all, only members that arrived before its end count. Mostly
            // the last to begin is the awaited one, so few members of large operations are examined.
            let mut others = self.communication.awaited(&operations, part, process_of);
            let awaited = others.find(|other| other.begun <= call.end);
            waits.extend(awaited.map(|latest| (row, process_of(latest.thread), latest.begun)));
            let from = awaited.map_or(call.start, |latest| latest.begun.max(call.start));
            let others = operations.get(&(part.comm, part.sequence)).into_iter().flatten();
            if let Some(latest) = others
                .map(|row| &parts[*row as usize])
                .filter(|other| process_of(other.thread) != process_of(part.thread))
                .find(|other| other.begun <= call.end)
                && call.end != NO_TIME
                && awaits_forwarder((from, latest.begun, call.end))
            {
                waits.push((row, process_of(latest.thread), latest.begun));
            }
        }
        for (call, culprit, until) in waits {
            self.wait(call, PeerWaitKind::LateMember, culprit, until);
        }
    }

    /// Finds calls that wait for calls of other ranks on the same window or port.
    pub(super) fn find_waits_for_ranks(&mut self, by_rank: &FxHashMap<(u64, u32), ProcessIndex>) {
        let mut concerns: FxHashMap<u64, Vec<Concern>> = FxHashMap::default();
        for concern in std::mem::take(&mut self.concerns) {
            if (concern.call as usize) < self.communication.calls.len() {
                concerns.entry(concern.comm).or_default().push(concern);
            }
        }
        let calls_of = OnceCell::new();
        let waits: Vec<_> = (concerns.into_values())
            .flat_map(|mut concerns| {
                concerns.sort_by_key(|concern| self.communication.calls[concern.call as usize].start);
                self.waits_on_one(&concerns, by_rank, &calls_of)
            })
            .collect();
        for (call, kind, culprit, until) in waits {
            self.wait(call, kind, culprit, until);
        }
    }

    /// Finds the waits on one window or port, from its relevant calls in the order of their begins. `calls_of` caches
    /// the calls of all processes.
    fn waits_on_one(
        &self,
        concerns: &[Concern],
        by_rank: &FxHashMap<(u64, u32), ProcessIndex>,
        calls_of: &OnceCell<FxHashMap<ProcessIndex, Vec<u32>>>,
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
        let mut concerns_by_function: FxHashMap<&str, Vec<&Concern>> = FxHashMap::default();
        for concern in concerns {
            concerns_by_function.entry(name(concern)).or_default().push(concern);
        }
        let last_of = |functions: &[&str], call: &MpiCall, counts: &dyn Fn(&Concern) -> bool| {
            let found = functions.iter().filter_map(|function| {
                let rows = concerns_by_function.get(function)?;
                let end = rows.partition_point(|row| start(row) <= call.end);
                let mut rows = rows[..end].iter().rev().take_while(|row| start(row) > call.start);
                rows.find(|row| counts(row)).copied()
            });
            found.max_by_key(|found| start(found))
        };
        // The last groups of each process, with the calls that named them.
        let mut groups: FxHashMap<(ProcessIndex, &str), (u32, Vec<ProcessIndex>)> = FxHashMap::default();
        let mut waits = Vec::new();
        for concern in concerns {
            let (own, function) = (concern.process, name(concern));
            if function.starts_with("Comm_create_") {
                // Its members are those of the new communicator.
                continue;
            }
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
                // Without a holder of the lock, the call may have waited until the target called MPI.
                let target = target.filter(|_| !matches!(function, "Win_start" | "Win_post"))?;
                let rows = calls_of.get_or_init(|| self.calls_of_processes()).get(&target)?;
                let next = rows.partition_point(|row| calls[*row as usize].start <= call.start);
                let inside = rows[..next].last().is_some_and(|row| calls[*row as usize].end > call.start);
                let until = calls[*rows.get(next)? as usize].start;
                (!inside && until <= call.end).then_some((PeerWaitKind::LateTarget, target, until))
            });
            waits.extend(found.map(|(kind, culprit, until)| (concern.call, kind, culprit, until)));
        }
        waits
    }

    /// Calls of each process in the order of their begins, from all of its threads with events of MPI.
    fn calls_of_processes(&self) -> FxHashMap<ProcessIndex, Vec<u32>> {
        let calls = &self.communication.calls;
        let mut rows_of: FxHashMap<ProcessIndex, Vec<u32>> = FxHashMap::default();
        for (row, call) in calls.iter().enumerate() {
            if let Some(process) = self.threads_of.get(&call.thread) {
                rows_of.entry(*process).or_default().push(row as u32);
            }
        }
        rows_of.values_mut().for_each(|rows| rows.sort_by_key(|row| calls[*row as usize].start));
        rows_of
    }

    /// Extends the wait of the process at a port to the other processes of its communicator.
    pub(super) fn share_waits_at_ports(&mut self, process_of: impl Fn(ThreadIndex) -> ProcessIndex) {
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

    /// Notes the arrival of a process that a call needed, unless the call ended before; the last arrival counts.
    pub(super) fn wait(&mut self, call: u32, kind: PeerWaitKind, culprit: ProcessIndex, until: u64) {
        if let Some(row) = self.communication.calls.get(call as usize)
            && until <= row.end
            && self.came.get(&call).is_none_or(|wait| wait.until < until)
        {
            self.came.insert(call, PeerWait { kind, culprit, until });
        }
    }

    /// Writes the last arrival into the calls that waited for it, and into earlier polls.
    pub(super) fn note_waits(&mut self) {
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

/// Whether a member of an operation got its data through another member, which is not recorded: libraries of MPI move data from a root
/// and to it along a tree. It did if it left the operation right after that member's arrival, before which it had waited long, from
/// the arrival of the member that it needs in any case on.
fn awaits_forwarder((from, came, left): (u64, u64, u64)) -> bool {
    from < came && left - came <= (came - from) / MIN_WAIT_PER_FORWARD
}

/// The wait before the arrival of a member that forwards data, at least, for each nanosecond after it.
const MIN_WAIT_PER_FORWARD: u64 = 10;

#[cfg(test)]
mod tests {
    use super::super::{MessageChange, MessagesBuilder, NO_RANK};
    use crate::messages::Rank;
    use crate::{Place, ProcessIndex, ThreadIndex};
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
    fn data_of_a_root_comes_through_the_member_behind_which_a_call_ends() {
        let bcast = MessageChange::TakesPart {
            comm: 7,
            sequence: 0,
            root: 0,
            function: function_number("Bcast"),
            bytes: 0,
            nonblocking: false,
        };
        // Rank 2 leaves right behind the arrival of rank 1; or long after it, by the length of the transfer.
        for (left, expected) in [(902, &[("Bcast", 890, 1)][..]), (990, &[])] {
            let mut builder = builder();
            call(&mut builder, 0, "Bcast", (5, 6), &[bcast]);
            call(&mut builder, 2, "Bcast", (10, left), &[bcast]);
            call(&mut builder, 1, "Bcast", (900, 901), &[bcast]);
            assert_eq!(waits(builder), expected);
        }
        // The root itself is late.
        let mut builder = builder();
        call(&mut builder, 1, "Bcast", (5, 903), &[bcast]);
        call(&mut builder, 2, "Bcast", (10, 904), &[bcast]);
        call(&mut builder, 0, "Bcast", (900, 901), &[bcast]);
        assert_eq!(waits(builder), [("Bcast", 895, 0), ("Bcast", 890, 0)]);
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
