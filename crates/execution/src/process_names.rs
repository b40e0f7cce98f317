//! Names of processes and of their tasks.

use crate::Execution;
use crate::ids::{ProcessIndex, TaskIndex};
use rustc_hash::FxHashMap;

/// Names of the processes of an execution. Creating it takes a look at all processes, a name does not.
#[derive(Clone, Debug)]
pub struct ProcessNames<'e> {
    execution: &'e Execution,
    /// Processes by their ids, without the holders of CPUs.
    same_pid: FxHashMap<i64, usize>,
    same_rank: FxHashMap<u32, usize>,
    has_several: bool,
}

impl<'e> ProcessNames<'e> {
    /// Counts the processes with the same id, and with the same rank.
    pub fn of(execution: &'e Execution) -> ProcessNames<'e> {
        let mut same_pid: FxHashMap<i64, usize> = FxHashMap::default();
        for process in execution.processes.iter().filter(|process| !process.has_cpus) {
            *same_pid.entry(process.pid).or_default() += 1;
        }
        let mut same_rank: FxHashMap<u32, usize> = FxHashMap::default();
        for rank in execution.communication.ranks.values() {
            *same_rank.entry(rank.rank).or_default() += 1;
        }
        ProcessNames { execution, same_pid, same_rank, has_several: execution.process_count() > 1 }
    }

    /// A process by its rank, else by its id, with its loom if necessary; `None` for a single process.
    pub fn process(&self, process: ProcessIndex) -> Option<String> {
        let row = self.execution.processes.get(process.index()).filter(|_| self.has_several)?;
        if let Some(rank) = self.execution.communication.ranks.get(&process.0)
            && self.same_rank.get(&rank.rank) == Some(&1)
        {
            return Some(format!("rank {}", rank.rank));
        }
        Some(match self.same_pid.get(&row.pid) {
            None | Some(1) => format!("process {}", row.pid),
            _ => format!("process {} of {}", row.pid, row.loom),
        })
    }

    /// A task in words: by its number, and its process if there are several.
    pub fn task(&self, task: TaskIndex) -> String {
        let number = self.execution.tasks.number(task);
        let number = number.map_or("a task without number".to_string(), |number| format!("task {number}"));
        match self.execution.process_of_task(task).and_then(|process| self.process(process)) {
            Some(process) => format!("{number} of {process}"),
            None => number,
        }
    }
}

impl Execution {
    /// A process in words; `None` for a single one. See [`ProcessNames`] for the names of many.
    pub fn process_name(&self, process: ProcessIndex) -> Option<String> {
        ProcessNames::of(self).process(process)
    }

    /// A task in words. See [`ProcessNames`] for the names of many.
    pub fn task_name(&self, task: TaskIndex) -> String {
        ProcessNames::of(self).task(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExecutionBuilder;
    use crate::messages::Rank;

    fn names(processes: &[(&str, i64)], ranks: &[(u32, u32)]) -> Vec<Option<String>> {
        let mut builder = ExecutionBuilder::new();
        for (loom, pid) in processes {
            builder.add_process(loom, *pid);
        }
        builder.add_cpus_of("a");
        let mut execution = builder.finish();
        let rank = |(process, rank): &(u32, u32)| (*process, Rank { job: 0, rank: *rank, ranks: 9 });
        execution.communication.ranks = ranks.iter().map(rank).collect();
        let names = ProcessNames::of(&execution);
        let all: Vec<_> = (0..processes.len()).map(|row| names.process(ProcessIndex::of(row))).collect();
        assert!((0..processes.len()).all(|row| execution.process_name(ProcessIndex::of(row)) == all[row]));
        assert_eq!(names.process(ProcessIndex::NONE), None);
        all
    }

    #[test]
    fn names_are_as_long_as_needed() {
        let some = |names: &[&str]| names.iter().map(|name| Some((*name).to_owned())).collect::<Vec<_>>();
        assert_eq!(names(&[("a", 7)], &[(0, 3)]), [None]);
        assert_eq!(names(&[("a", 7), ("a", 8)], &[]), some(&["process 7", "process 8"]));
        assert_eq!(
            names(&[("a", 7), ("b", 7), ("a", 8)], &[]),
            some(&["process 7 of a", "process 7 of b", "process 8"])
        );
        // Two jobs have a rank 0.
        assert_eq!(
            names(&[("a", 7), ("a", 8), ("a", 9)], &[(0, 0), (1, 1), (2, 0)]),
            some(&["process 7", "rank 1", "process 9"])
        );
    }
}
