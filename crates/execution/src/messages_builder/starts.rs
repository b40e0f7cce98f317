//! The start of a job: each process knows its rank from its launcher before the library tells it, and waits in `MPI_Init` for the
//! processes of its job that have not come.
//!
//! The launcher's word is not the library's. Starts of a job are left out, and nobody is blamed, if
//!
//! - the library later gives a process another rank or number of ranks,
//! - two processes have one rank (jobs of a launcher that does not name them, a program that starts another one), or
//! - their numbers of ranks differ.

use super::MessagesBuilder;
use crate::ProcessIndex;
use crate::messages::{Awaited, PeerWaitKind};
use rustc_hash::FxHashSet;

/// Maximum missing ranks that are named; with more, none is.
const MAX_MISSING: u32 = 1024;

impl MessagesBuilder {
    /// Leaves out the jobs whose ranks are not sure, and all jobs of launchers as sets of members.
    pub(super) fn leave_out_unsure_starts(&mut self) {
        let (ranks, contradicted) = (&self.communication.ranks, &self.starts.contradicted);
        for job in self.starts.by_job.keys() {
            self.communication.members.remove(job);
        }
        self.starts.by_job.retain(|_, starts| {
            let mut sizes = FxHashSet::default();
            let mut known = FxHashSet::default();
            starts.iter().all(|(process, _)| {
                let Some(rank) = ranks.get(&process.0) else { return false };
                sizes.insert(rank.ranks);
                known.insert(rank.rank) && rank.rank < rank.ranks && !contradicted.contains(process)
            }) && sizes.len() == 1
        });
    }

    /// The ranks that have not come to the start of the job in these calls, which have not ended.
    pub(super) fn missing_at_start(&self, is_open: impl Fn(u32) -> bool) -> Vec<(u32, Awaited)> {
        let mut awaited = Vec::new();
        for starts in self.starts.by_job.values() {
            let rank_of = |process: &ProcessIndex| self.communication.ranks.get(&process.0);
            let came: FxHashSet<u32> =
                starts.iter().filter_map(|(process, _)| Some(rank_of(process)?.rank)).collect();
            let all = starts.first().and_then(|(process, _)| rank_of(process)).map_or(0, |rank| rank.ranks);
            if all.saturating_sub(came.len() as u32) > MAX_MISSING {
                continue;
            }
            for (_, call) in starts.iter().filter(|(_, call)| is_open(*call)) {
                let function = self.communication.calls[*call as usize].function;
                let missing = (0..all).filter(|rank| !came.contains(rank));
                awaited.extend(missing.map(|rank| (*call, Awaited::Access { rank, function })));
            }
        }
        awaited
    }

    /// Waits for the last process that came to the start of the job.
    pub(super) fn find_waits_at_starts(&mut self) {
        let mut waits = Vec::new();
        for starts in self.starts.by_job.values() {
            let call_of = |call: u32| self.communication.calls.get(call as usize);
            let mut began: Vec<(u64, ProcessIndex)> =
                starts.iter().filter_map(|(process, call)| Some((call_of(*call)?.start, *process))).collect();
            began.sort_unstable();
            for (process, call) in starts {
                let Some(end) = call_of(*call).map(|call| call.end) else { continue };
                // A library that does not wait for all lets it go before the last one comes.
                let before = &began[..began.partition_point(|(at, _)| *at <= end)];
                if let Some((at, last)) = before.iter().rfind(|(_, other)| other != process) {
                    waits.push((*call, *last, *at));
                }
            }
        }
        for (call, last, at) in waits {
            self.wait(call, PeerWaitKind::LateMember, last, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message_change::MessageChange;
    use crate::messages::{Communication, OpenCalls, Owed, PeerWait, Rank};
    use crate::{Place, ThreadIndex};
    use taskscope_event::models::messages::function_number;

    const INIT: u32 = function_number("Init");

    /// A call of `MPI_Init`: rank and number of ranks as the launcher told them, begin; if it ended, its end and the library's rank.
    type Init = (u32, u32, u64, Option<(u64, u32)>);

    fn job(calls: &[Init]) -> Communication {
        let mut builder = MessagesBuilder::default();
        for (row, (rank, ranks, begin, end)) in (0..).zip(calls) {
            let mut change = |at, change| builder.change(ThreadIndex(row), ProcessIndex(row), at, change);
            let rank_is = |job, rank| MessageChange::IsRank(Rank { job, rank, ranks: *ranks });
            change(*begin, MessageChange::CallBegins { function: INIT, place: Place::UNKNOWN });
            change(*begin, rank_is(7, *rank));
            change(*begin, MessageChange::IsMember { comm: 9, size: *ranks });
            let (comm, sequence, root, bytes, nonblocking) = (9, 0, u32::MAX, 0, false);
            change(
                *begin,
                MessageChange::TakesPart { comm, sequence, root, function: INIT, bytes, nonblocking },
            );
            if let Some((end, rank)) = end {
                change(*end, rank_is(1, *rank));
                change(*end, MessageChange::CallEnds);
            }
        }
        builder.finish(|thread| ProcessIndex(thread.0), |_| 1000)
    }

    /// The end of each call's wait, and the process that it waits for.
    fn waits(job: &Communication) -> Vec<Option<(u64, u32)>> {
        let wait = |wait: PeerWait| (wait.until, wait.culprit.0);
        job.calls.iter().map(|call| call.wait.map(wait)).collect()
    }

    #[test]
    fn ranks_wait_in_the_start_for_the_last_one() {
        let three = job(&[(2, 3, 10, Some((90, 2))), (0, 3, 70, Some((90, 0))), (1, 3, 30, Some((90, 1)))]);
        assert_eq!(waits(&three), [Some((70, 1)), None, Some((70, 1))]);
        // It is no operation of the program.
        assert!(three.participations.is_empty() && three.members.is_empty());
        // The first one does not wait for the second one.
        let early = job(&[(0, 2, 10, Some((20, 0))), (1, 2, 50, Some((60, 1)))]);
        assert_eq!(waits(&early), [None, None]);
    }

    #[test]
    fn nobody_is_blamed_if_the_launcher_may_be_wrong() {
        let ends = |rank| Some((90, rank));
        // Two jobs of one size, of which only one has come to rank 1.
        assert_eq!(waits(&job(&[(0, 2, 10, ends(0)), (0, 2, 20, ends(0)), (1, 2, 70, ends(1))])), [None; 3]);
        // The library gives other ranks, as to a program that a rank starts.
        assert_eq!(waits(&job(&[(0, 2, 10, ends(0)), (1, 2, 70, ends(0))])), [None; 2]);
        assert_eq!(waits(&job(&[(0, 2, 10, ends(0)), (1, 3, 70, ends(1))])), [None; 2]);
        assert_eq!(waits(&job(&[(0, 2, 10, ends(0)), (2, 2, 70, ends(2))])), [None; 2]);
    }

    #[test]
    fn a_start_that_never_ends_names_the_missing_ranks() {
        let hung = job(&[(0, 4, 10, None), (2, 4, 70, None)]);
        let open = OpenCalls::of(&hung, |thread| ProcessIndex(thread.0));
        let needs = |row: u32| {
            let partners = open.partners(row, &hung.calls[row as usize]);
            assert!(!partners.any);
            partners.needs.iter().map(|need| (need.rank, need.process, need.owes)).collect::<Vec<_>>()
        };
        let expected = [(Some(1), None, Owed::Access("Init")), (Some(3), None, Owed::Access("Init"))];
        assert_eq!((needs(0), needs(1)), (expected.to_vec(), expected.to_vec()));
        // Until the last one of those that came, the first one waited for it.
        assert_eq!(waits(&hung), [Some((70, 1)), None]);
        // So many that they are not ranks of a job that was recorded.
        assert!(job(&[(0, u32::MAX, 10, None)]).awaited.is_empty());
    }
}
