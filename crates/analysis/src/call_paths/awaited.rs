//! The tasks awaited by a `taskwait depend`: its predecessors in the order of its dependences, and their predecessors.

use super::contexts::Contexts;
use super::creator::{Creator, creator_of};
use super::running::Running;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::graph::{Access, DeclaredGraph};
use taskscope_execution::{Execution, NO_TIME, Section, State, TaskIndex, WaitDependence};

/// The tasks awaited by each creator's waits, by the time of declaration.
#[derive(Default)]
pub struct Awaited(FxHashMap<Creator, Vec<(u64, Running)>>);

impl Awaited {
    pub fn of(contexts: &Contexts<'_>) -> Awaited {
        let waits = waits_of(contexts);
        let before = order(contexts.execution, &waits);
        let mut awaited = Awaited::default();
        for (number, wait) in waits.iter().enumerate() {
            let tasks = tasks_before(contexts.execution, number_of(number), wait.at, &before);
            // If no task is known, its addresses may overlap those of tasks in part.
            if !tasks.is_empty() {
                let running = Running::of(contexts.execution, tasks);
                awaited.0.entry(wait.creator).or_default().push((wait.at, running));
            }
        }
        awaited
    }

    /// The tasks awaited by a creator in a wait, or a part of one, that ends at `end`.
    pub fn until(&self, creator: Creator, end: u64) -> Option<&Running> {
        let waits = self.0.get(&creator)?;
        let last = waits.partition_point(|(at, _)| *at < end).checked_sub(1)?;
        Some(&waits[last].1)
    }
}

/// A wait and its dependences, which are declared at once.
struct Wait<'e> {
    creator: Creator,
    at: u64,
    dependences: &'e [WaitDependence],
}

/// The waits in order of time.
fn waits_of<'e>(contexts: &Contexts<'e>) -> Vec<Wait<'e>> {
    let is_same =
        |one: &WaitDependence, other: &WaitDependence| (one.thread, one.at) == (other.thread, other.at);
    let wait = |dependences: &'e [WaitDependence]| {
        let WaitDependence { thread, at, .. } = *dependences.first()?;
        let Section { state, task, region, .. } = contexts.section_at(thread, at);
        let creator = creator_of(task, thread, region);
        (state == State::TaskwaitDepend).then_some(Wait { creator, at, dependences })
    };
    let mut waits: Vec<Wait<'e>> =
        contexts.execution.wait_dependences.chunk_by(is_same).filter_map(wait).collect();
    waits.sort_by_key(|wait| wait.at);
    waits
}

/// The row of a wait in the order of tasks, beyond those of tasks.
fn number_of(wait: usize) -> u32 {
    u32::MAX - 1 - wait as u32
}

/// The predecessors of each task, or wait, of these creators.
fn order(execution: &Execution, waits: &[Wait<'_>]) -> FxHashMap<u32, Vec<u32>> {
    let mut scopes: FxHashMap<Creator, u64> = FxHashMap::default();
    for wait in waits {
        let next = scopes.len() as u64;
        scopes.entry(wait.creator).or_insert(next);
    }
    // When, after a task of that time or not, scope, number, address, kind.
    let mut accesses = Vec::new();
    let tasks = &execution.tasks;
    for dependence in execution.dependences.iter().filter(|_| !waits.is_empty()) {
        let row = dependence.task.index();
        if row >= tasks.len() {
            continue;
        }
        let creator = creator_of(tasks.parent[row], tasks.creator[row], tasks.region[row]);
        if let Some(scope) = scopes.get(&creator) {
            let access = (dependence.address, dependence.kind);
            accesses.push((tasks.created[row], false, *scope, dependence.task.0, access));
        }
    }
    for (number, wait) in waits.iter().enumerate() {
        for dependence in wait.dependences {
            let access = (dependence.address, dependence.kind);
            accesses.push((wait.at, true, scopes[&wait.creator], number_of(number), access));
        }
    }
    accesses.sort_by_key(|(at, is_wait, ..)| (*at, *is_wait));
    let mut graph = DeclaredGraph::default();
    let mut before: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (_, _, scope, number, (address, kind)) in accesses {
        if let Some(access) = Access::from_ompt(kind) {
            let found = before.entry(number).or_default();
            graph.access((scope, 0), number, address, access, |other| found.push(other));
        }
    }
    before
}

/// The tasks that had not ended at a time and come before a wait, directly or not.
fn tasks_before(
    execution: &Execution,
    wait: u32,
    at: u64,
    before: &FxHashMap<u32, Vec<u32>>,
) -> FxHashSet<TaskIndex> {
    let mut found = FxHashSet::default();
    let mut open = vec![wait];
    while let Some(number) = open.pop() {
        for other in before.get(&number).into_iter().flatten() {
            let ended = execution.tasks.ended.get(*other as usize).copied().unwrap_or(0);
            if (ended == NO_TIME || ended > at) && found.insert(TaskIndex(*other)) {
                open.push(*other);
            }
        }
    }
    found
}
