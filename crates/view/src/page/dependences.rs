//! Which task had to wait for which, from the addresses that tasks declared (OpenMP 5.2, 15.9.5).

use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, NO_TIME, ProcessIndex, TaskIndex};

/// OMPT's `ompt_dependence_type_t`.
const IN: u32 = 1;

/// Declared dependences, ready for questions about single tasks.
#[derive(Debug, Default)]
pub struct Dependences {
    /// For each task with dependences: its rows in `execution.dependences`.
    rows: FxHashMap<TaskIndex, Vec<u32>>,
    /// For each address of a process, among the children of one task: who declared it how, by
    /// creation.
    by_address: FxHashMap<(ProcessIndex, TaskIndex, u64), Vec<(TaskIndex, u32)>>,
}

/// A task that had to end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// The task.
    pub task: TaskIndex,
    /// The address of both.
    pub address: u64,
}

impl Dependences {
    /// Sorts what an execution's tasks declared.
    pub fn of(execution: &Execution) -> Dependences {
        let mut found = Dependences::default();
        for (row, dependence) in execution.dependences.iter().enumerate() {
            let Some(scope) = scope(execution, dependence.task) else { continue };
            found.rows.entry(dependence.task).or_default().push(row as u32);
            let list = found.by_address.entry((scope.0, scope.1, dependence.address)).or_default();
            list.push((dependence.task, dependence.kind));
        }
        for list in found.by_address.values_mut() {
            list.sort_by_key(|(task, _)| *task);
        }
        found
    }

    /// Tasks that had to end before `task`: the last writer of what it reads, and the readers since
    /// then of what it writes.
    pub fn predecessors(&self, execution: &Execution, task: TaskIndex) -> Vec<Predecessor> {
        self.edges(execution, task, |list, at, kind| {
            let before = &list[..at];
            let writer = before.iter().rposition(|(_, kind)| *kind != IN);
            let readers = &before[writer.map_or(0, |row| row + 1)..];
            if kind != IN && !readers.is_empty() {
                readers.iter().map(|(task, _)| *task).collect()
            } else {
                writer.map(|row| before[row].0).into_iter().collect()
            }
        })
    }

    /// Tasks that had to wait for `task`.
    pub fn successors(&self, execution: &Execution, task: TaskIndex) -> Vec<Predecessor> {
        self.edges(execution, task, |list, at, kind| {
            let after = list[at..].iter().skip_while(|(other, _)| *other == task).copied();
            let mut found = Vec::new();
            for (other, other_kind) in after {
                if other_kind != IN {
                    // A writer waits for the readers before it, else for the writer.
                    if kind == IN || found.is_empty() {
                        found.push(other);
                    }
                    break;
                }
                if kind != IN {
                    found.push(other);
                }
            }
            found
        })
    }

    fn edges(
        &self,
        execution: &Execution,
        task: TaskIndex,
        others: impl Fn(&[(TaskIndex, u32)], usize, u32) -> Vec<TaskIndex>,
    ) -> Vec<Predecessor> {
        let Some(scope) = scope(execution, task) else { return Vec::new() };
        let mut found: Vec<Predecessor> = Vec::new();
        for row in self.rows.get(&task).into_iter().flatten() {
            let dependence = execution.dependences[*row as usize];
            let key = (scope.0, scope.1, dependence.address);
            let Some(list) = self.by_address.get(&key) else { continue };
            let at = list.partition_point(|(other, _)| *other < task);
            for other in others(list, at, dependence.kind) {
                if other != task && found.iter().all(|edge| edge.task != other) {
                    found.push(Predecessor { task: other, address: dependence.address });
                }
            }
        }
        found.sort_by_key(|edge| edge.task);
        found
    }

    /// The predecessor that ended last: what the task waited for.
    pub fn critical_predecessor(&self, execution: &Execution, task: TaskIndex) -> Option<Predecessor> {
        let ended = |edge: &Predecessor| execution.tasks.ended.get(edge.task.index()).copied();
        let known = self.predecessors(execution, task).into_iter().filter(|e| ended(e) != Some(NO_TIME));
        known.max_by_key(|edge| (ended(edge), edge.task))
    }
}

/// Dependences hold between the children of one task in one process.
fn scope(execution: &Execution, task: TaskIndex) -> Option<(ProcessIndex, TaskIndex)> {
    let creator = execution.tasks.creator.get(task.index())?;
    let process = execution.threads.get(creator.index())?.process;
    Some((process, execution.tasks.parent[task.index()]))
}
