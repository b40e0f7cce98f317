//! Dependences of tasks, derived from their declared accesses.
//!
//! Per scope (the tasks of one parent) and address, accesses form generations: one task that writes, any
//! number that only read, any number that may run in any order but not at once (mutexinoutset), or any
//! number that may write at once (inoutset). A task waits for all tasks of the generation before its own
//! (OpenMP 5.2, section 15.9.5). Addresses are compared as they are: partial overlaps are not known.

use crate::{TaskIndex, Tasks};
use rustc_hash::FxHashMap;

/// The kind of a task's access to an address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Access {
    /// Reads.
    Read,
    /// Writes, or reads and writes.
    Write,
    /// Reads and writes in any order with its like, one at a time.
    Commutative,
    /// Writes at the same time as its like.
    Concurrent,
    /// Writes everything that its siblings may touch.
    WriteAll,
}

impl Access {
    /// The access that OMPT calls `kind` (`ompt_dependence_type_t`); `None` for doacross dependences.
    pub fn from_ompt(kind: u32) -> Option<Access> {
        match kind {
            1 => Some(Access::Read),
            2 | 3 => Some(Access::Write),
            4 => Some(Access::Commutative),
            7 => Some(Access::Concurrent),
            34 | 35 => Some(Access::WriteAll),
            _ => None,
        }
    }
}

#[derive(Clone)]
struct Generations {
    before: Vec<u32>,
    kind: Access,
    now: Vec<u32>,
    /// The largest value of a task of the generation before, and that of another one; for [`DeclaredGraph::largest`].
    largest: [(u64, u32); 2],
}

/// Derives the declared graph, access by access in the order of creation.
#[derive(Default)]
pub struct DeclaredGraph {
    scopes: FxHashMap<(u64, u64), FxHashMap<u64, Generations>>,
    /// The task that wrote everything last, by scope.
    all: FxHashMap<(u64, u64), u32>,
}

impl DeclaredGraph {
    /// The scope of a task's accesses: siblings are ordered among themselves only.
    pub fn scope(tasks: &Tasks, task: TaskIndex) -> (u64, u64) {
        let row = task.index();
        match tasks.parent[row] {
            TaskIndex::NONE => (1 << 32 | u64::from(tasks.creator[row].0), u64::from(tasks.region[row].0)),
            parent => (u64::from(parent.0), 0),
        }
    }

    /// `task` accesses `address` in `scope`; every task that it must wait for is handed to `waits_for`,
    /// maybe more than once.
    pub fn access(
        &mut self,
        scope: (u64, u64),
        task: u32,
        address: u64,
        access: Access,
        mut waits_for: impl FnMut(u32),
    ) {
        let mut wait =
            |list: &[u32]| list.iter().filter(|other| **other != task).for_each(|other| waits_for(*other));
        if access == Access::WriteAll {
            let addresses = self.scopes.entry(scope).or_default();
            for generations in addresses.values() {
                wait(&generations.now);
            }
            // Later accesses, at any address, wait for this task.
            addresses.clear();
            if let Some(before) = self.all.insert(scope, task) {
                wait(&[before]);
            }
            return;
        }
        let (generations, _) = self.generations(scope, address, access);
        wait(&generations.before);
        generations.now.push(task);
    }

    /// As [`DeclaredGraph::access`]: the largest value of a task that `task` must wait for, 0 without one. Takes constant time per
    /// access, on average. The values of tasks do not change.
    pub fn largest(
        &mut self,
        scope: (u64, u64),
        task: u32,
        address: u64,
        access: Access,
        value: impl Fn(u32) -> u64,
    ) -> u64 {
        if access == Access::WriteAll {
            let mut largest = 0;
            self.access(scope, task, address, access, |before| largest = largest.max(value(before)));
            return largest;
        }
        let (generations, is_next) = self.generations(scope, address, access);
        if is_next {
            generations.largest = largest_two(&generations.before, value);
        }
        generations.now.push(task);
        let [first, second] = generations.largest;
        if first.1 == task { second.0 } else { first.0 }
    }

    /// The generations of an address, and whether the access begins the next one.
    fn generations(&mut self, scope: (u64, u64), address: u64, access: Access) -> (&mut Generations, bool) {
        let all = self.all.get(&scope).copied();
        let addresses = self.scopes.entry(scope).or_default();
        let generations = addresses.entry(address).or_insert_with(|| Generations {
            before: Vec::new(),
            kind: Access::Write,
            now: all.into_iter().collect(),
            largest: [(0, u32::MAX); 2],
        });
        let is_next = access != generations.kind || access == Access::Write;
        if is_next {
            generations.before = std::mem::take(&mut generations.now);
            generations.kind = access;
        }
        (generations, is_next)
    }
}

/// The largest value of one of these tasks, and of another one.
fn largest_two(tasks: &[u32], value: impl Fn(u32) -> u64) -> [(u64, u32); 2] {
    let mut two = [(0, u32::MAX); 2];
    for task in tasks {
        let own = (value(*task), *task);
        match two {
            [first, _] if first.1 == own.1 => {}
            [first, _] if own.0 > first.0 => two = [own, first],
            [_, second] if own.0 > second.0 => two[1] = own,
            _ => {}
        }
    }
    two
}

#[cfg(test)]
mod tests {
    use super::*;
    use Access::*;

    fn edges(accesses: &[(u32, u64, Access)]) -> Vec<(u32, u32)> {
        let mut graph = DeclaredGraph::default();
        let mut edges = Vec::new();
        for (task, address, access) in accesses {
            graph.access((0, 0), *task, *address, *access, |before| edges.push((before, *task)));
        }
        edges
    }

    #[test]
    fn readers_wait_for_the_writer_and_the_next_writer_for_them() {
        let found = edges(&[(1, 8, Write), (2, 8, Read), (3, 8, Read), (4, 8, Write), (5, 8, Write)]);
        assert_eq!(found, [(1, 2), (1, 3), (2, 4), (3, 4), (4, 5)]);
        assert_eq!(edges(&[(1, 8, Write), (2, 16, Read)]), []);
    }

    #[test]
    fn set_members_wait_for_predecessors_and_not_for_each_other() {
        for set in [Commutative, Concurrent] {
            let found = edges(&[(1, 8, Write), (2, 8, set), (3, 8, set), (4, 8, Read)]);
            assert_eq!(found, [(1, 2), (1, 3), (2, 4), (3, 4)]);
        }
    }

    #[test]
    fn a_task_never_waits_for_itself() {
        assert_eq!(edges(&[(1, 8, Write), (2, 8, Read), (2, 8, Write), (3, 8, Read)]), [(1, 2), (2, 3)]);
    }

    #[test]
    fn the_largest_value_is_that_of_the_tasks_that_are_waited_for() {
        let all = [Write, Read, Read, Concurrent, Concurrent, Commutative, WriteAll, Read, Write, Write];
        // Every second task has two accesses.
        let accesses: Vec<(u32, u64, Access)> = (0..60_u32)
            .map(|row| (row * 2 / 3, 8 * u64::from(row % 2), all[row as usize * 7 % 10]))
            .collect();
        let value = |task: u32| u64::from(task * 37 % 50);
        let (mut edges, mut values) = (DeclaredGraph::default(), DeclaredGraph::default());
        for (task, address, access) in accesses {
            let mut expected = 0;
            edges.access((0, 0), task, address, access, |before| expected = expected.max(value(before)));
            assert_eq!(values.largest((0, 0), task, address, access, value), expected, "{task}");
        }
    }

    #[test]
    fn all_memory_is_a_wall() {
        let found = edges(&[(1, 8, Write), (2, 16, Write), (3, 0, WriteAll), (4, 8, Read), (5, 24, Read)]);
        assert_eq!(found.len(), 4);
        assert!(found.contains(&(1, 3)) && found.contains(&(2, 3)));
        assert!(found.contains(&(3, 4)) && found.contains(&(3, 5)));
    }
}
