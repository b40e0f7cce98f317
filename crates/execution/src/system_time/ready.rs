//! Ready tasks over time: the tasks that a waiting worker without a CPU would have taken with one.
//!
//! A task of OpenMP is *ready* from its creation, or from the end of the last task that its declared accesses order
//! before it, until it starts. Which ready tasks a waiting worker may take depends on its wait (OpenMP 5.2, section 12.9:
//! a thread that has suspended a tied task outside of a barrier starts only descendants of it). The ready tasks that
//! waits of one kind may take are a *pool*:
//!
//! | wait | pool |
//! | --- | --- |
//! | barrier of a team | tasks of the team's region |
//! | taskwait, taskgroup, taskyield in a task | its descendants |
//! | the same in a thread's own part of a region | descendants of that part |
//!
//! Pools are nested: that of a task is in that of each of its ancestors, all are in that of the team. So of two pools one contains
//! the other, or they have no task in common; who takes a task takes it from all pools around.
//!
//! Data flow: waits without a CPU → their pools and times → ready times of the tasks in these → numbers of ready tasks
//! of each pool over time. Nothing is computed of a run in which no waiting worker lacks a CPU.
//!
//! Invariants:
//! - Not known is not ready. Left out are tasks of other runtimes, target and undeferred tasks, tasks that never started,
//!   those with an access of unknown kind or one that excludes others (mutexinoutset), those after a task whose end is not
//!   known (a detached one ends with an event that is not recorded as its end), and all of a process with lost events. Module
//!   `unsure` has the time that this may concern.
//! - Within the times in which a worker waits without a CPU, numbers are exact up to the number of workers, which is as
//!   many as can take one.

use super::member::Member;
use crate::accesses::{Access, DeclaredGraph};
use crate::intervals::{Times, join_intervals};
use crate::{
    Execution, NO_TIME, ProcessIndex, RegionIndex, Section, State, TaskIndex, TaskStatus, ThreadIndex,
    TypeKind,
};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::OnceCell;

/// Number of a pool.
pub(super) type PoolNumber = u32;

/// The wait that decides which tasks may be taken.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum PoolKey {
    /// A barrier of a team; the team's region.
    Team(RegionIndex),
    /// A wait in an explicit task.
    Task(TaskIndex),
    /// A wait in a thread's own part of a region.
    Implicit(ThreadIndex, RegionIndex),
}

impl PoolKey {
    /// The pool of a wait of a thread; `None` if no task is taken in it.
    pub fn of(thread: ThreadIndex, section: &Section) -> Option<PoolKey> {
        if !section.region.is_some() {
            return None;
        }
        match section.state {
            State::Barrier | State::JoinBarrier => Some(PoolKey::Team(section.region)),
            State::Taskwait | State::TaskwaitDepend | State::Taskgroup | State::Taskyield => {
                Some(match section.task.is_some() {
                    true => PoolKey::Task(section.task),
                    false => PoolKey::Implicit(thread, section.region),
                })
            }
            _ => None,
        }
    }
}

/// Numbers of ready tasks over time.
#[derive(Default)]
pub(super) struct ReadyTasks {
    numbers: FxHashMap<PoolKey, PoolNumber>,
    /// By pool: the smallest one around it; none around that of a team.
    around: Vec<Option<PoolNumber>>,
    /// By pool: the region of its team.
    regions: Vec<RegionIndex>,
    /// Time, pool, and the number of ready tasks in it from then on; by time.
    pub changes: Vec<(u64, PoolNumber, u32)>,
}

/// The facts of all tasks of a run that decide when they are ready.
pub(super) struct TaskFacts {
    /// By process: the tasks whose times are known, of its threads.
    by_process: Vec<Vec<TaskIndex>>,
    /// As of [`ends_before`].
    after: Vec<u64>,
    /// As of [`takeable_types`].
    takeable: Vec<bool>,
    /// Processes with lost events.
    pub lossy: FxHashSet<ProcessIndex>,
}

impl TaskFacts {
    pub fn of(execution: &Execution) -> TaskFacts {
        let tasks = &execution.tasks;
        let takeable = takeable_types(execution);
        let lossy = lossy_processes(execution);
        let mut by_process = vec![Vec::new(); execution.processes.len()];
        for (row, (creator, ty)) in tasks.creator.iter().zip(&tasks.ty).enumerate() {
            let process = execution.threads.get(creator.index()).map(|thread| thread.process);
            let process = process.filter(|process| !lossy.contains(process));
            if let Some(own) = process.and_then(|process| by_process.get_mut(process.index()))
                && takeable.get(ty.index()).copied().unwrap_or(false)
            {
                own.push(TaskIndex::of(row));
            }
        }
        TaskFacts { by_process, after: ends_before(execution), takeable, lossy }
    }

    /// Whether it is not known when a task of OpenMP was ready, although it waited for a worker.
    pub fn is_unsure(&self, execution: &Execution, task: TaskIndex) -> bool {
        let (row, tasks) = (task.index(), &execution.tasks);
        let is_takeable = self.takeable.get(tasks.ty[row].index()).copied().unwrap_or(false);
        is_takeable && (tasks.began[row] == NO_TIME || self.after.get(row) == Some(&NO_TIME))
    }
}

impl ReadyTasks {
    /// The ready tasks at the times in which one of these workers waits without a CPU; they are all of these processes. `facts`
    /// are computed once for all processes, if they are needed.
    pub fn of(
        execution: &Execution,
        members: &[Member],
        processes: &[ProcessIndex],
        facts: &OnceCell<TaskFacts>,
    ) -> ReadyTasks {
        let mut ready = ReadyTasks::default();
        if !execution.tasks.is_empty() {
            let asked = ready.add_pools(execution, members);
            if !asked.is_empty() {
                ready.nest(execution);
                let facts = facts.get_or_init(|| TaskFacts::of(execution));
                ready.count(execution, (facts, processes), &asked, members.len());
            }
        }
        ready
    }

    /// The pool of a thread's section, if it is the one of a wait without a CPU.
    pub fn pool(&self, thread: ThreadIndex, section: &Section) -> Option<PoolNumber> {
        if self.changes.is_empty() {
            return None;
        }
        PoolKey::of(thread, section).and_then(|key| self.numbers.get(&key)).copied()
    }

    /// Number of pools.
    pub fn pools(&self) -> usize {
        self.around.len()
    }

    /// A pool and those around it, the smallest first.
    pub fn with_those_around(&self, pool: PoolNumber) -> impl Iterator<Item = usize> + '_ {
        let first = Some(pool);
        std::iter::successors(first, |pool| self.around[*pool as usize]).map(|pool| pool as usize)
    }

    /// Adds the pool of a wait in a region, and that of its team.
    fn add(&mut self, key: PoolKey, region: RegionIndex) {
        for key in [PoolKey::Team(region), key] {
            let next = self.regions.len() as PoolNumber;
            if *self.numbers.entry(key).or_insert(next) == next {
                self.regions.push(region);
            }
        }
    }

    /// Finds the pool around each one.
    fn nest(&mut self, execution: &Execution) {
        self.around = vec![None; self.regions.len()];
        for (key, pool) in &self.numbers {
            let team = self.numbers.get(&PoolKey::Team(self.regions[*pool as usize])).copied();
            self.around[*pool as usize] = match key {
                PoolKey::Team(_) => None,
                PoolKey::Implicit(..) => team,
                PoolKey::Task(task) => self.around_task(execution, *task, *pool).or(team),
            };
        }
    }

    /// The smallest pool of an ancestor around the one of a task.
    fn around_task(&self, execution: &Execution, task: TaskIndex, pool: PoolNumber) -> Option<PoolNumber> {
        let mut found = None;
        for_each_ancestor(execution, task, |key| {
            let number = self.numbers.get(&key).copied().filter(|number| {
                // In a damaged trace a task may be its own ancestor.
                let is_older = !matches!(key, PoolKey::Task(ancestor) if ancestor >= task);
                is_older && self.regions[*number as usize] == self.regions[pool as usize]
            });
            found = found.or(number);
            found.is_none()
        });
        found
    }

    /// Adds the pools of waits without a CPU; returns the times of these waits.
    fn add_pools(&mut self, execution: &Execution, members: &[Member]) -> Vec<(u64, u64)> {
        let mut asked = Vec::new();
        for member in members.iter().filter(|member| member.worker) {
            let track = &execution.threads[member.thread.index()].track;
            let mut last = None;
            for (start, end) in &member.off {
                let first =
                    if *start < track.start() { 0 } else { track.row_at(*start).unwrap_or(track.len()) };
                for span in track.spans_of(first..track.len()).take_while(|span| span.start < *end) {
                    let (from, to) = (span.start.max(*start), span.end.min(*end));
                    let Some(key) = PoolKey::of(member.thread, &span.section).filter(|_| from < to) else {
                        continue;
                    };
                    asked.push((from, to));
                    if last.replace(key) != Some(key) {
                        self.add(key, span.section.region);
                    }
                }
            }
        }
        join_intervals(&mut asked);
        asked
    }

    /// Counts the ready tasks of each pool at these times, up to a limit.
    fn count(
        &mut self,
        execution: &Execution,
        (facts, processes): (&TaskFacts, &[ProcessIndex]),
        asked: &Times,
        limit: usize,
    ) {
        let tasks = &execution.tasks;
        let mut times: Vec<PoolTimes> = vec![PoolTimes::default(); self.pools()];
        let own = processes.iter().filter_map(|process| facts.by_process.get(process.index()));
        for task in own.flatten().copied() {
            let row = task.index();
            let (created, began) = (tasks.created[row], tasks.began[row]);
            if created >= began || began == NO_TIME || !overlaps(asked, created, began) {
                continue;
            }
            let ready = created.max(facts.after.get(row).copied().unwrap_or(0));
            if ready >= began {
                continue;
            }
            self.for_each_pool(execution, task, |pool| {
                let PoolTimes { ready: from, began: to } = &mut times[pool as usize];
                from.push(ready);
                to.push(began);
            });
        }
        for (pool, times) in times.into_iter().enumerate() {
            times.add_changes(pool as PoolNumber, limit, &mut self.changes);
        }
        self.changes.sort_unstable();
    }

    /// Passes the pools with a task to `take`: those of its team and of its ancestors in it.
    fn for_each_pool(&self, execution: &Execution, task: TaskIndex, mut take: impl FnMut(PoolNumber)) {
        let region = execution.tasks.region[task.index()];
        let mut take = |key: PoolKey| {
            let number = self.numbers.get(&key).copied();
            number.filter(|number| self.regions[*number as usize] == region).into_iter().for_each(&mut take);
        };
        take(PoolKey::Team(region));
        for_each_ancestor(execution, task, |key| {
            take(key);
            true
        });
    }
}

/// Passes the ancestors of a task to `go_on`, the nearest first, until it returns false.
fn for_each_ancestor(execution: &Execution, task: TaskIndex, mut go_on: impl FnMut(PoolKey) -> bool) {
    let tasks = &execution.tasks;
    let mut child = task.index();
    for _ in 0..MAX_DEPTH {
        if child >= tasks.len() {
            return;
        }
        let parent = tasks.parent[child];
        if !parent.is_some() {
            go_on(PoolKey::Implicit(tasks.creator[child], tasks.region[child]));
            return;
        }
        if !go_on(PoolKey::Task(parent)) {
            return;
        }
        child = parent.index();
    }
}

/// Maximum length of a followed chain of tasks, each the parent of the one before.
const MAX_DEPTH: usize = 64;

/// When tasks of a pool become ready, and start.
#[derive(Clone, Default)]
struct PoolTimes {
    ready: Vec<u64>,
    began: Vec<u64>,
}

impl PoolTimes {
    /// Adds the changes of the number of ready tasks, of which more than `limit` are not distinguished.
    fn add_changes(mut self, pool: PoolNumber, limit: usize, changes: &mut Vec<(u64, PoolNumber, u32)>) {
        self.ready.sort_unstable();
        self.began.sort_unstable();
        let (mut ready, mut began) = (self.ready.as_slice(), self.began.as_slice());
        let (mut count, mut shown) = (0_usize, 0);
        // Each is ready before it begins, so the last to come is a begin.
        while let Some(at) = began.first().map(|at| ready.first().map_or(*at, |ready| *ready.min(at))) {
            let until = |times: &[u64]| times.iter().take_while(|time| **time == at).count();
            let (come, go) = (until(ready), until(began));
            (ready, began) = (&ready[come..], &began[go..]);
            count = count + come - go;
            let now = count.min(limit) as u32;
            if now != shown {
                changes.push((at, pool, now));
                shown = now;
            }
        }
    }
}

/// Whether one of the times, which are in order and apart, is partly between `from` and `to`.
fn overlaps(times: &Times, from: u64, to: u64) -> bool {
    times.get(times.partition_point(|time| time.1 <= from)).is_some_and(|time| time.0 < to)
}

/// By type: whether its tasks wait in a queue of the OpenMP runtime for any worker of the team.
fn takeable_types(execution: &Execution) -> Vec<bool> {
    // OMPT's ompt_task_flag_t.
    const EXPLICIT: u32 = 0x4;
    const TARGET_TASKWAIT_UNDEFERRED_MERGED: u32 = 0x8 | 0x10 | 0x0800_0000 | 0x8000_0000;
    let types = execution.catalog.types.iter();
    let is_takeable = |flags: u32| flags & EXPLICIT != 0 && flags & TARGET_TASKWAIT_UNDEFERRED_MERGED == 0;
    types.map(|ty| matches!(ty.kind, Some(TypeKind::Task { flags }) if is_takeable(flags))).collect()
}

/// Processes with lost events: a creation, a start or a declared access may be among them.
fn lossy_processes(execution: &Execution) -> FxHashSet<ProcessIndex> {
    let losing_threads = execution.losses.iter().map(|loss| loss.thread);
    losing_threads.filter_map(|thread| Some(execution.threads.get(thread.index())?.process)).collect()
}

/// By task: the end of the last task that is ordered before it; [`NO_TIME`] if that is not known, 0 without one. Empty
/// if no task declares an access.
fn ends_before(execution: &Execution) -> Vec<u64> {
    let tasks = &execution.tasks;
    if execution.dependences.is_empty() {
        return Vec::new();
    }
    let detached: FxHashSet<TaskIndex> = execution.detached.iter().copied().collect();
    let end_of = |task: usize| match tasks.status.get(task) {
        Some(TaskStatus::Ended) if !detached.contains(&TaskIndex(task as u32)) => tasks.ended[task],
        _ => NO_TIME,
    };
    let mut ends = vec![0; tasks.len()];
    let mut declared = DeclaredGraph::default();
    for dependence in &execution.dependences {
        let row = dependence.task.index();
        if row >= ends.len() {
            continue;
        }
        let Some(access) = Access::from_ompt(dependence.kind) else {
            ends[row] = NO_TIME;
            continue;
        };
        let until = if access == Access::Commutative { NO_TIME } else { 0 };
        let scope = DeclaredGraph::scope(tasks, dependence.task);
        let last = declared
            .largest(scope, dependence.task.0, dependence.address, access, |before| end_of(before as usize));
        ends[row] = ends[row].max(until).max(last);
    }
    ends
}
