//! The needs of open waits: holders of locks, members of teams, tasks; ranks are in [`super::ranks`].

use super::ends::{End, Ends, is_wait};
use super::thread_locks::{open_wait, open_waits};
use super::{Needed, OpenWait};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::messages::OpenCalls;
use taskscope_execution::{
    Group, Hold, NO_TIME, ObjectIndex, RegionIndex, Section, Span, State, TaskIndex, TaskStatus, ThreadIndex,
};

/// Maximum listed tasks per wait.
const MAX_TASKS: usize = 16;

impl Ends<'_> {
    pub fn find_waits(&mut self) {
        let holders = self.holders();
        let running = self.running();
        let open: Vec<(ThreadIndex, Span)> = (self.all())
            .filter(|(_, end)| !end.gone && is_wait(end.span.section.state))
            .map(|(thread, end)| (thread, end.span))
            .collect();
        let calls = self.last_calls();
        let execution = self.execution;
        let process_of = |thread: ThreadIndex| execution.threads[thread.index()].process;
        let open_calls = OpenCalls::of(&execution.whole().communication, process_of);
        let tasks = &self.execution.tasks;
        for (thread, span) in open {
            let Section { state, region, task, object, .. } = span.section;
            let call = calls.get(&thread).copied();
            let function = call.and_then(|(_, call)| call.function_name());
            let mut any = false;
            let needs = match state {
                _ if state.group() == Group::Mutex => holders.get(&object).copied().into_iter().collect(),
                // Workers stay in a region's last barrier until the next region needs them.
                State::JoinBarrier if self.has_ended(region) => continue,
                State::Barrier | State::JoinBarrier => {
                    let missing = self.missing(thread, state, region);
                    // A barrier waits for the team's tasks, too.
                    if missing.is_empty() {
                        self.unfinished(&running, |row| tasks.region[row] == region)
                    } else {
                        missing
                    }
                }
                State::Taskwait | State::Taskgroup | State::TaskwaitDepend => {
                    self.unfinished(&running, |row| {
                        let is_explicit = task.is_some();
                        let is_own = tasks.creator[row] == thread && tasks.region[row] == region;
                        tasks.parent[row] == task && (is_explicit || is_own)
                    })
                }
                State::Communication | State::MpiStart => {
                    let partners = call.map(|(row, call)| open_calls.partners(row, call)).unwrap_or_default();
                    any = partners.any;
                    partners.needs.into_iter().map(Needed::from).collect()
                }
                _ => Vec::new(),
            };
            // If all have come, or that is not known, the library is at work.
            if state.group() == Group::Start && needs.is_empty() {
                continue;
            }
            self.waits.insert(thread, OpenWait { thread, span, function, needs, any });
        }
    }

    /// Adds the waits of threads for locks.
    pub fn find_waits_for_locks(&mut self) {
        for wait in open_waits(self.execution) {
            let is_alive = self.end(wait.thread).is_some_and(|end| !end.gone);
            if is_alive && !self.waits.contains_key(&wait.thread) {
                self.waits.insert(wait.thread, open_wait(self.execution, wait));
            }
        }
    }

    pub fn has_ended(&self, region: RegionIndex) -> bool {
        self.execution.regions.get(region.index()).is_some_and(|region| region.end != NO_TIME)
    }

    /// The holder of each lock at the end.
    fn holders(&self) -> FxHashMap<ObjectIndex, Needed> {
        let mut holders: FxHashMap<ObjectIndex, Needed> = FxHashMap::default();
        let wanted: FxHashSet<ObjectIndex> = (self.all())
            .filter(|(_, end)| !end.gone && end.span.section.state.group() == Group::Mutex)
            .map(|(_, end)| end.span.section.object)
            .filter(|object| object.is_some())
            .collect();
        if wanted.is_empty() {
            return holders;
        }
        let is_open = |hold: &&Hold| {
            let end = self.execution.threads.get(hold.thread.index()).map(|thread| thread.track.end());
            wanted.contains(&hold.object) && end.is_some_and(|end| hold.end >= end)
        };
        for hold in self.execution.holds.iter().filter(is_open) {
            holders.insert(
                hold.object,
                Needed::Holder { thread: hold.thread, since: hold.start, site: hold.site },
            );
        }
        holders
    }

    /// The executing thread of each task.
    fn running(&self) -> FxHashMap<TaskIndex, ThreadIndex> {
        let in_tasks = self.all().filter(|(_, end)| end.span.section.task.is_some());
        in_tasks.map(|(thread, end)| (end.span.section.task, thread)).collect()
    }

    /// Members of the team that have not reached a barrier.
    fn missing(&self, waiter: ThreadIndex, state: State, region: RegionIndex) -> Vec<Needed> {
        if !region.is_some() {
            return Vec::new();
        }
        let is_in = |mut inner: RegionIndex| {
            // Regions are numbered from the outside to the inside; a damaged trace may not.
            for _ in 0..64 {
                match self.execution.regions.get(inner.index()) {
                    _ if inner == region => return true,
                    Some(row) => inner = row.parent,
                    None => return false,
                }
            }
            false
        };
        let has_come =
            |end: &End| end.span.section.state == state && end.span.section.region == region && !end.gone;
        let others = self
            .all()
            .filter(|(thread, end)| *thread != waiter && !has_come(end) && is_in(end.span.section.region));
        others.map(|(thread, _)| Needed::Member(thread)).collect()
    }

    /// Tasks of these rows that have not ended.
    fn unfinished(
        &self,
        running: &FxHashMap<TaskIndex, ThreadIndex>,
        is_meant: impl Fn(usize) -> bool,
    ) -> Vec<Needed> {
        let tasks = &self.execution.tasks;
        let is_open = |row: &usize| {
            !matches!(tasks.status[*row], TaskStatus::Ended | TaskStatus::Cancelled) && is_meant(*row)
        };
        let open = (0..tasks.len()).filter(is_open).map(TaskIndex::of).take(MAX_TASKS);
        open.map(|task| Needed::Task(task, running.get(&task).copied().unwrap_or(ThreadIndex::NONE)))
            .collect()
    }
}
