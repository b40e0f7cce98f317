//! Threads by the ids that side streams name them with.

use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, ProcessIndex, ThreadIndex};

/// Threads by their processes and ids, in order; ids may be used again.
pub(super) fn threads_by_id(execution: &Execution) -> FxHashMap<(ProcessIndex, i64), Vec<ThreadIndex>> {
    let mut threads: FxHashMap<_, Vec<ThreadIndex>> = FxHashMap::default();
    for (row, thread) in execution.threads.iter().enumerate() {
        threads.entry((thread.process, thread.tid)).or_default().push(ThreadIndex::of(row));
    }
    threads
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::ExecutionBuilder;

    #[test]
    fn threads_are_found_by_process_and_id() {
        let mut builder = ExecutionBuilder::new();
        let [one, other] = [1, 2].map(|pid| builder.add_process("host", pid));
        let threads =
            [(one, 7), (other, 7), (one, 8), (one, 7)].map(|(process, tid)| builder.add_thread(process, tid));
        let found = threads_by_id(&builder.finish());
        assert_eq!(found[&(one, 7)], [threads[0], threads[3]]);
        assert_eq!(found[&(other, 7)], [threads[1]]);
        assert_eq!(found.get(&(other, 8)), None);
    }
}
