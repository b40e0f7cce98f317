//! Dependences between tasks, from the addresses that they declared, as in the task graph.
//!
//! Among the tasks of one parent, the accesses to an address form generations: a task that writes; any number that
//! read; any number that run in any order, one at a time (`mutexinoutset`) or at once (`inoutset`). A task waits for the
//! generation before its own (OpenMP 5.2, 15.9.5). Generations are kept, not pairs of tasks, which may be many more.

use rustc_hash::FxHashMap;
use taskscope_execution::graph::Access;
use taskscope_execution::{Execution, NO_TIME, TaskIndex};

/// Declared dependences, ready for questions about single tasks.
#[derive(Debug, Default)]
pub struct Dependences {
    chains: Vec<Chain>,
    /// The generations that a task is in: number of the chain, number in it.
    places: FxHashMap<TaskIndex, Vec<(u32, u32)>>,
}

/// Accesses of siblings to one address.
#[derive(Debug)]
struct Chain {
    address: u64,
    generations: Vec<Generation>,
}

#[derive(Debug)]
struct Generation {
    access: Access,
    tasks: Vec<TaskIndex>,
}

/// A task that had to end first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predecessor {
    /// The task.
    pub task: TaskIndex,
    /// The address of both; 0 if one of them declared all memory.
    pub address: u64,
}

/// The chains of siblings.
#[derive(Default)]
struct Scope {
    /// Chains since the last task that declared all memory.
    by_address: FxHashMap<u64, u32>,
    /// That task.
    all: Option<TaskIndex>,
    /// The chain of such tasks.
    walls: Option<u32>,
}

impl Dependences {
    /// Sorts the declared dependences of an execution's tasks.
    pub fn of(execution: &Execution) -> Dependences {
        let mut found = Dependences::default();
        let mut scopes: FxHashMap<(u64, u64), Scope> = FxHashMap::default();
        for dependence in &execution.dependences {
            let task = dependence.task;
            let (Some(access), Some(key)) = (Access::from_ompt(dependence.kind), scope_of(execution, task))
            else {
                continue;
            };
            let scope = scopes.entry(key).or_default();
            if access == Access::WriteAll {
                // It ends every existing chain, and begins each later one.
                let walls = *scope.walls.get_or_insert_with(|| found.new_chain(0, None));
                found.add(walls, Access::Write, task);
                for (_, chain) in scope.by_address.drain() {
                    found.add(chain, Access::Write, task);
                }
                scope.all = Some(task);
                continue;
            }
            let all = scope.all;
            let address = dependence.address;
            let chain = *scope.by_address.entry(address).or_insert_with(|| found.new_chain(address, all));
            found.add(chain, access, task);
        }
        found
    }

    fn new_chain(&mut self, address: u64, first: Option<TaskIndex>) -> u32 {
        let chain = self.chains.len() as u32;
        self.chains.push(Chain { address, generations: Vec::new() });
        if let Some(task) = first {
            self.add(chain, Access::Write, task);
        }
        chain
    }

    fn add(&mut self, chain: u32, access: Access, task: TaskIndex) {
        let generations = &mut self.chains[chain as usize].generations;
        match generations.last_mut() {
            Some(now) if now.access == access && access != Access::Write => now.tasks.push(task),
            _ => generations.push(Generation { access, tasks: vec![task] }),
        }
        let place = (chain, generations.len() as u32 - 1);
        self.places.entry(task).or_default().push(place);
    }

    /// Tasks that had to end before `task`.
    pub fn predecessors(&self, task: TaskIndex) -> Vec<Predecessor> {
        self.edges(task, |generation| generation.checked_sub(1))
    }

    /// Tasks that had to wait for `task`.
    pub fn successors(&self, task: TaskIndex) -> Vec<Predecessor> {
        self.edges(task, |generation| generation.checked_add(1))
    }

    fn edges(&self, task: TaskIndex, other: impl Fn(usize) -> Option<usize>) -> Vec<Predecessor> {
        let mut found: Vec<Predecessor> = Vec::new();
        for (chain, generation) in self.places.get(&task).into_iter().flatten() {
            let chain = &self.chains[*chain as usize];
            let others = other(*generation as usize).and_then(|number| chain.generations.get(number));
            let others =
                others.iter().flat_map(|generation| &generation.tasks).filter(|other| **other != task);
            found.extend(others.map(|other| Predecessor { task: *other, address: chain.address }));
        }
        found.sort_by_key(|edge| edge.task);
        found.dedup_by_key(|edge| edge.task);
        found
    }

    /// The predecessor that ended last: the one that released the task.
    pub fn critical_predecessor(&self, execution: &Execution, task: TaskIndex) -> Option<Predecessor> {
        let ended = |edge: &Predecessor| execution.tasks.ended.get(edge.task.index()).copied();
        let known = self.predecessors(task).into_iter().filter(|e| ended(e) != Some(NO_TIME));
        known.max_by_key(|edge| (ended(edge), edge.task))
    }
}

/// Siblings are ordered among themselves only: the tasks of one parent, or, of implicit tasks, those that one
/// thread created in a region.
fn scope_of(execution: &Execution, task: TaskIndex) -> Option<(u64, u64)> {
    let tasks = &execution.tasks;
    let row = task.index();
    Some(match *tasks.parent.get(row)? {
        TaskIndex::NONE => {
            (1 << 32 | u64::from(tasks.creator.get(row)?.0), u64::from(tasks.region.get(row)?.0))
        }
        parent => (u64::from(parent.0), 0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::graph::DeclaredGraph;
    use taskscope_execution::{Dependence, Execution, ThreadIndex};

    /// Tasks of one parent that declare these accesses.
    fn execution(declared: &[(u32, u64, u32)], tasks: usize) -> Execution {
        let mut execution = Execution::default();
        execution.tasks.parent = vec![TaskIndex::NONE; tasks].into();
        execution.tasks.creator = vec![ThreadIndex(0); tasks].into();
        execution.tasks.region = vec![taskscope_execution::RegionIndex::NONE; tasks].into();
        execution.tasks.ended = (0..tasks as u64).map(|at| 100 + at).collect::<Vec<_>>().into();
        let rows = declared.iter().map(|(task, address, kind)| Dependence {
            address: *address,
            task: TaskIndex(*task),
            kind: *kind,
        });
        execution.dependences = rows.collect::<Vec<_>>().into();
        execution
    }

    #[test]
    fn members_of_a_set_do_not_wait_for_each_other() {
        // out; three inoutset; in. Kinds as in `ompt_dependence_type_t`.
        for set in [4, 7] {
            let execution = execution(&[(0, 8, 2), (1, 8, set), (2, 8, set), (3, 8, set), (4, 8, 1)], 5);
            let found = Dependences::of(&execution);
            let tasks = |edges: Vec<Predecessor>| edges.iter().map(|edge| edge.task.0).collect::<Vec<_>>();
            assert_eq!(tasks(found.predecessors(TaskIndex(2))), [0]);
            assert_eq!(tasks(found.successors(TaskIndex(2))), [4]);
            assert_eq!(tasks(found.predecessors(TaskIndex(4))), [1, 2, 3]);
            assert_eq!(found.critical_predecessor(&execution, TaskIndex(4)).unwrap().task.0, 3);
        }
    }

    #[test]
    fn edges_are_those_of_the_task_graph() {
        let mut state = 5_u64;
        let mut next = move |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..50 {
            let kinds = [1, 1, 2, 3, 4, 7, 5, 35];
            let declared: Vec<(u32, u64, u32)> = (0..60)
                .map(|i| {
                    let rare = if next(20) == 0 { 8 } else { 7 };
                    (i / 2, 8 * (1 + next(4)), kinds[next(rare) as usize])
                })
                .collect();
            let execution = execution(&declared, 30);
            let mut graph = DeclaredGraph::default();
            let mut expected: Vec<(u32, u32)> = Vec::new();
            for (task, address, kind) in &declared {
                if let Some(access) = Access::from_ompt(*kind) {
                    graph.access((0, 0), *task, *address, access, |before| expected.push((before, *task)));
                }
            }
            expected.sort_unstable();
            expected.dedup();
            let found = Dependences::of(&execution);
            let pairs = |edges: &dyn Fn(TaskIndex) -> Vec<Predecessor>, turn: bool| {
                let of = |task: u32| {
                    let others = edges(TaskIndex(task)).into_iter().map(|edge| edge.task.0);
                    others
                        .map(move |other| if turn { (task, other) } else { (other, task) })
                        .collect::<Vec<_>>()
                };
                let mut pairs: Vec<(u32, u32)> = (0..30).flat_map(of).collect();
                pairs.sort_unstable();
                pairs
            };
            assert_eq!(pairs(&|task| found.predecessors(task), false), expected, "{declared:?}");
            assert_eq!(pairs(&|task| found.successors(task), true), expected, "{declared:?}");
        }
    }
}
