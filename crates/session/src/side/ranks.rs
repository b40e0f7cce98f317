//! Ranks in the metadata of streams, which the launcher's variables or callers of libovni set (`ovni_proc_set_rank`). Ranks that the
//! MPI wrapper recorded take precedence: the others of that job are processes that have not called MPI.

use rustc_hash::FxHashMap;
use taskscope_execution::messages::Rank;
use taskscope_execution::{Execution, ThreadIndex};
use taskscope_trace::Trace;

/// Adds the ranks of processes, and of the CPUs of looms with processes of one rank only. `threads` are those of the
/// streams.
pub(crate) fn add_ranks(trace: &Trace, threads: &[ThreadIndex], execution: &mut Execution) {
    let mut launched: FxHashMap<u32, Rank> = FxHashMap::default();
    for (stream, thread) in trace.streams().iter().zip(threads) {
        let small = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        if let (Some(rank), Some(ranks)) = (small(stream.metadata.rank), small(stream.metadata.nranks)) {
            let process = execution.threads[thread.index()].process;
            launched.entry(process.0).or_insert(Rank { job: 0, rank, ranks });
        }
    }
    if !execution.communication.ranks.is_empty() {
        let others = others_of_job(&execution.communication.ranks, launched);
        execution.communication.ranks.extend(others);
        return;
    }
    execution.communication.ranks.extend(launched);
    // The rank that all processes of a loom have, if they have one.
    let mut ranks_of_looms: FxHashMap<&str, Option<Rank>> = FxHashMap::default();
    for (index, process) in execution.processes.iter().enumerate().filter(|(_, row)| !row.has_cpus) {
        let rank = execution.communication.ranks.get(&(index as u32)).copied();
        let of_loom = ranks_of_looms.entry(&process.loom).or_insert(rank);
        *of_loom = of_loom.filter(|known| Some(*known) == rank);
    }
    for (holder, process) in execution.processes.iter().enumerate().filter(|(_, row)| row.has_cpus) {
        if let Some(Some(rank)) = ranks_of_looms.get(process.loom.as_str()) {
            execution.communication.ranks.insert(holder as u32, *rank);
        }
    }
}

/// The places of processes without a recorded rank in the job of those that have one, as the launcher has them. There are none if
/// that is not sure: recorded ranks are of several jobs, the launcher's job has another size, or the rank is that of another
/// process, too, such as one that a rank started.
fn others_of_job(recorded: &FxHashMap<u32, Rank>, launched: FxHashMap<u32, Rank>) -> Vec<(u32, Rank)> {
    let mut jobs = recorded.values().map(|rank| (rank.job, rank.ranks));
    let Some((job, ranks)) = jobs.next() else { return Vec::new() };
    if jobs.any(|other| other != (job, ranks)) {
        return Vec::new();
    }
    let mut held: FxHashMap<u32, u32> = FxHashMap::default();
    for rank in recorded.values() {
        *held.entry(rank.rank).or_default() += 1;
    }
    let others = launched.into_iter().filter(|(process, _)| !recorded.contains_key(process));
    let mut others: Vec<(u32, Rank)> =
        others.map(|(process, rank)| (process, Rank { job, ..rank })).collect();
    for (_, rank) in &others {
        *held.entry(rank.rank).or_default() += 1;
    }
    others.retain(|(_, rank)| rank.ranks == ranks && rank.rank < ranks && held[&rank.rank] == 1);
    others
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded ranks by job, and those of the launcher, of which processes from 10 on have no recorded one.
    fn others(recorded: &[(u64, u32, u32)], launched: &[(u32, u32, u32)]) -> Vec<(u32, u64, u32)> {
        let recorded = recorded.iter().enumerate();
        let recorded = recorded.map(|(process, (job, rank, ranks))| {
            (process as u32, Rank { job: *job, rank: *rank, ranks: *ranks })
        });
        let launched = launched
            .iter()
            .map(|(process, rank, ranks)| (*process, Rank { job: 0, rank: *rank, ranks: *ranks }));
        let mut others: Vec<_> = others_of_job(&recorded.collect(), launched.collect())
            .into_iter()
            .map(|(process, rank)| (process, rank.job, rank.rank))
            .collect();
        others.sort_unstable();
        others
    }

    #[test]
    fn processes_that_have_not_called_mpi_have_the_launchers_ranks() {
        assert_eq!(others(&[(7, 0, 3)], &[(0, 0, 3), (10, 1, 3), (11, 2, 3)]), [(10, 7, 1), (11, 7, 2)]);
    }

    #[test]
    fn ranks_that_are_not_sure_are_not_given() {
        // A rank starts a process, or two of them share one.
        assert_eq!(others(&[(7, 0, 2)], &[(10, 0, 2)]), []);
        assert_eq!(others(&[(7, 0, 2)], &[(10, 1, 2), (11, 1, 2)]), []);
        // Another job.
        assert_eq!(others(&[(7, 0, 2)], &[(10, 1, 4)]), []);
        assert_eq!(others(&[(7, 0, 2)], &[(10, 5, 2)]), []);
        assert_eq!(others(&[(7, 0, 2), (8, 0, 2)], &[(10, 1, 2)]), []);
    }
}
