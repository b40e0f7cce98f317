//! Ranks in the metadata of streams, which callers of libovni set (`ovni_proc_set_rank`). Ranks that the MPI wrapper recorded
//! take precedence.

use taskscope_execution::messages::Rank;
use taskscope_execution::{Execution, ProcessIndex, ThreadIndex};
use taskscope_trace::Trace;

/// Adds the ranks of processes, and of the CPUs of looms with processes of one rank only. `threads` are those of the
/// streams.
pub(crate) fn add_ranks(trace: &Trace, threads: &[ThreadIndex], execution: &mut Execution) {
    if !execution.communication.ranks.is_empty() {
        return;
    }
    for (stream, thread) in trace.streams().iter().zip(threads) {
        let small = |number: Option<i64>| number.and_then(|number| u32::try_from(number).ok());
        if let (Some(rank), Some(ranks)) = (small(stream.metadata.rank), small(stream.metadata.nranks)) {
            let process = execution.threads[thread.index()].process;
            execution.communication.ranks.entry(process.0).or_insert(Rank { job: 0, rank, ranks });
        }
    }
    for holder in (0..execution.processes.len()).map(ProcessIndex::of) {
        let processes = &execution.processes;
        let row = &processes[holder.index()];
        let neighbours =
            processes.iter().enumerate().filter(|(_, other)| !other.has_cpus && other.loom == row.loom);
        let mut ranks =
            neighbours.map(|(index, _)| execution.communication.ranks.get(&(index as u32)).copied());
        let first = ranks.next().flatten();
        if let Some(rank) = first.filter(|_| row.has_cpus && ranks.all(|other| other == first)) {
            execution.communication.ranks.insert(holder.0, rank);
        }
    }
}
