//! The order of stretches: which one waits for which.

use super::{Awaited, Maker, NamedAddress, Names, Stretch};
use crate::accesses::{Access, DeclaredGraph};
use crate::graph::NONE;
use crate::{Execution, ProcessIndex, RegionIndex, State, TaskIndex};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use std::cmp::Reverse;

/// Maximum members of a team for all arrivals; a barrier of a larger team has its last arrival only.
const MAX_ARRIVALS: usize = 32;

/// A stretch of each task, [`NONE`] if it has none: tasks are numbered without gaps.
pub(in crate::graph) struct OfTasks(Vec<u32>);

impl OfTasks {
    fn none(stretches: &[Stretch]) -> OfTasks {
        let tasks = stretches.iter().filter(|s| s.task.is_some()).map(|s| s.task.index() + 1);
        OfTasks(vec![NONE; tasks.max().unwrap_or(0)])
    }

    pub fn get(&self, task: TaskIndex) -> Option<u32> {
        self.0.get(task.index()).copied().filter(|stretch| *stretch != NONE)
    }

    fn iter(&self) -> impl Iterator<Item = (TaskIndex, u32)> + '_ {
        let rows = self.0.iter().enumerate().filter(|(_, stretch)| **stretch != NONE);
        rows.map(|(task, stretch)| (TaskIndex::of(task), *stretch))
    }

    /// Keeps a stretch of its task if it `is_better` than the kept one.
    fn keep(&mut self, number: u32, stretches: &[Stretch], is_better: impl Fn(&Stretch, &Stretch) -> bool) {
        let stretch = &stretches[number as usize];
        if stretch.task.is_some() {
            let kept = &mut self.0[stretch.task.index()];
            if *kept == NONE || is_better(stretch, &stretches[*kept as usize]) {
                *kept = number;
            }
        }
    }
}

impl Maker<'_> {
    /// Program order, taskwaits, barriers, begins of regions.
    pub(in crate::graph) fn order_stretches(&mut self, last: &OfTasks) {
        let starts = self.stretches.iter().map(|stretch| stretch.start);
        let mut order: Vec<(u64, u32)> = starts.zip(0..).collect();
        order.par_sort_unstable();
        let mut children = self.children(last);
        let mut unawaited = self.tasks_of_regions(last);
        let mut last_of_task = OfTasks::none(&self.stretches);
        let mut last_implicit: Vec<Option<u32>> = vec![None; self.by_worker.len()];
        let mut members: FxHashMap<RegionIndex, Vec<u32>> = FxHashMap::default();
        for (_, number) in order {
            let stretch = &self.stretches[number as usize];
            let (worker, task, region) = (stretch.worker, stretch.task, stretch.region);
            let (start, after) = (stretch.start, stretch.after);
            let before = if task.is_some() {
                let before = last_of_task.get(task);
                last_of_task.0[task.index()] = number;
                before
            } else {
                last_implicit[worker as usize].replace(number)
            };
            if let Some(before) = before {
                self.wait_for(number, before, false);
            }
            if region.is_some() {
                let team = members.entry(region).or_default();
                if !team.contains(&worker) {
                    team.push(worker);
                }
            }
            let previous_region = before.map_or(RegionIndex::NONE, |b| self.stretches[b as usize].region);
            match after {
                Some(State::Taskwait | State::Taskgroup | State::TaskwaitDepend) if before.is_some() => {
                    let parent =
                        if task.is_some() { (task, 0, RegionIndex::NONE) } else { (task, worker, region) };
                    let awaited = children.get_mut(&parent).map_or(Vec::new(), |list| {
                        let first = first_ended(&self.stretches, list, start);
                        list.split_off(first)
                    });
                    for child in awaited {
                        unawaited.done(child);
                        self.wait_for(number, child, true);
                    }
                }
                Some(State::Barrier | State::JoinBarrier) if task == TaskIndex::NONE => {
                    let team = members.get(&previous_region).cloned().unwrap_or_default();
                    self.wait_for_team(number, start, &team);
                    let of = if region == previous_region { std::slice::from_ref(&worker) } else { &team };
                    for done in unawaited.take(&self.stretches, previous_region, of, start) {
                        self.wait_for(number, done, true);
                    }
                }
                _ if task == TaskIndex::NONE && region.is_some() && previous_region != region => {
                    let begun = self.execution.regions.get(region.index());
                    let master = begun.and_then(|r| self.worker_of.get(&r.master.0)).copied();
                    if let Some(master) = master.filter(|master| *master != worker)
                        && let Some(last) =
                            self.last_before(master as usize, start.min(begun.map_or(start, |r| r.begin)))
                    {
                        self.wait_for(number, last, true);
                    }
                }
                _ if task == TaskIndex::NONE && previous_region.is_some() && previous_region != region => {
                    let team = members.get(&previous_region).cloned().unwrap_or_default();
                    self.wait_for_team(number, start, &team);
                    for done in unawaited.take(&self.stretches, previous_region, &team, start) {
                        self.wait_for(number, done, true);
                    }
                }
                _ => {}
            }
        }
    }

    fn wait_for_team(&mut self, number: u32, at: u64, team: &[u32]) {
        let own = self.stretches[number as usize].worker;
        let others = team.iter().filter(|worker| **worker != own);
        let mut arrivals: Vec<u32> =
            others.filter_map(|worker| self.last_before(*worker as usize, at)).collect();
        arrivals.sort_by_key(|other| Reverse(self.stretches[*other as usize].end));
        if arrivals.len() > MAX_ARRIVALS {
            arrivals.truncate(1);
        }
        for other in arrivals {
            self.wait_for(number, other, true);
        }
    }

    /// Last stretches of explicit tasks by their creators, those that ended last first.
    fn children(&self, last: &OfTasks) -> FxHashMap<(TaskIndex, u32, RegionIndex), Vec<u32>> {
        let tasks = &self.execution.tasks;
        let mut children: FxHashMap<_, Vec<u32>> = FxHashMap::default();
        for (task, last) in last.iter() {
            let row = task.index();
            let parent = match tasks.parent[row] {
                TaskIndex::NONE => {
                    let Some(worker) = self.worker_of.get(&tasks.creator[row].0) else { continue };
                    (TaskIndex::NONE, *worker, tasks.region[row])
                }
                parent => (parent, 0, RegionIndex::NONE),
            };
            children.entry(parent).or_default().push(last);
        }
        for list in children.values_mut() {
            list.sort_by_cached_key(|number| Reverse(self.stretches[*number as usize].end));
        }
        children
    }

    /// Last stretches of explicit tasks by their region and the thread that ended them.
    fn tasks_of_regions(&self, last: &OfTasks) -> Unawaited {
        let mut tasks =
            Unawaited { by_worker: FxHashMap::default(), done: vec![false; self.stretches.len()] };
        for (task, last) in last.iter() {
            let key = (self.execution.tasks.region[task.index()], self.stretches[last as usize].worker);
            tasks.by_worker.entry(key).or_default().push(last);
        }
        for list in tasks.by_worker.values_mut() {
            list.sort_by_cached_key(|number| Reverse((self.stretches[*number as usize].end, *number)));
        }
        tasks
    }

    /// The last stretch of each explicit task.
    pub(in crate::graph) fn last_stretches(&self) -> OfTasks {
        let mut last = OfTasks::none(&self.stretches);
        for number in 0..self.stretches.len() as u32 {
            last.keep(number, &self.stretches, |stretch, kept| stretch.end > kept.end);
        }
        last.0.truncate(self.execution.tasks.len());
        last
    }

    /// The order that declared accesses ask for.
    pub(in crate::graph) fn order_tasks(&mut self, last: &OfTasks, names: &mut dyn Names) {
        if self.execution.dependences.is_empty() {
            return;
        }
        let mut first = OfTasks::none(&self.stretches);
        for number in 0..self.stretches.len() as u32 {
            first.keep(number, &self.stretches, |stretch, kept| stretch.start < kept.start);
        }
        let tasks = &self.execution.tasks;
        let mut declared = DeclaredGraph::default();
        let mut addresses = Addresses::of(self.execution);
        // Task, the one before it, the number of the address.
        let mut found = Vec::new();
        for dependence in &self.execution.dependences {
            let (Some(access), row) = (Access::from_ompt(dependence.kind), dependence.task.index()) else {
                continue;
            };
            if row >= tasks.len() {
                continue;
            }
            let scope = DeclaredGraph::scope(tasks, dependence.task);
            let creator = self.execution.threads.get(tasks.creator[row].index());
            let number = addresses.number(NamedAddress {
                process: creator.map_or(ProcessIndex::NONE, |thread| thread.process),
                address: dependence.address,
                at: tasks.created[row],
                ty: tasks.ty[row],
            });
            declared.access(scope, dependence.task.0, dependence.address, access, |before| {
                found.push((dependence.task, TaskIndex(before), number));
            });
        }
        found.sort_unstable();
        found.dedup();
        let rows: Vec<u32> =
            names.data(&addresses.all).iter().map(|name| self.builder.add_name(name)).collect();
        for (task, before, number) in found {
            if let (Some(stretch), Some(before)) = (first.get(task), last.get(before)) {
                let name = rows.get(number as usize).copied().unwrap_or(NONE);
                self.wait_for_data(stretch, Awaited { synchronises: false, before, name });
            }
        }
    }
}

/// Where those that ended by a time begin in a list of stretches, of which those that ended last are first: what is taken
/// from the end of a list moves no others.
fn first_ended(stretches: &[Stretch], list: &[u32], by: u64) -> usize {
    list.partition_point(|number| stretches[*number as usize].end > by)
}

/// Explicit tasks that no barrier has waited for yet.
struct Unawaited {
    /// Their last stretches, those that ended last first.
    by_worker: FxHashMap<(RegionIndex, u32), Vec<u32>>,
    /// Per stretch: whether a taskwait has waited for it.
    done: Vec<bool>,
}

impl Unawaited {
    fn done(&mut self, stretch: u32) {
        self.done[stretch as usize] = true;
    }

    /// Takes those of a region that these workers had ended by a time.
    fn take(&mut self, stretches: &[Stretch], region: RegionIndex, workers: &[u32], by: u64) -> Vec<u32> {
        let mut taken = Vec::new();
        for worker in workers {
            let Some(list) = self.by_worker.get_mut(&(region, *worker)) else { continue };
            let first = first_ended(stretches, list, by);
            taken.extend(list.drain(first..).filter(|number| !self.done[*number as usize]));
        }
        taken
    }
}

/// The addresses that tasks declared, each once between two changes of names.
#[derive(Default)]
struct Addresses {
    /// Times at which the program named data.
    renamed: Vec<u64>,
    numbers: FxHashMap<(ProcessIndex, u64, usize), u32>,
    all: Vec<NamedAddress>,
}

impl Addresses {
    fn of(execution: &Execution) -> Addresses {
        let mut renamed: Vec<u64> = execution.catalog.data.iter().map(|data| data.at).collect();
        renamed.sort_unstable();
        Addresses { renamed, ..Addresses::default() }
    }

    fn number(&mut self, address: NamedAddress) -> u32 {
        let names = self.renamed.partition_point(|at| *at <= address.at);
        let next = self.all.len() as u32;
        let number = *self.numbers.entry((address.process, address.address, names)).or_insert(next);
        if number == next {
            self.all.push(address);
        }
        number
    }
}
