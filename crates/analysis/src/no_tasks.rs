//! Times without a task that a worker could start: the program creates none, and all existing ones have begun.
//!
//! ```text
//! tasks      ┌created┐begun   ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄   ┌created┐begun
//! no task    ┤       │         1 ms or more      │       ├      also: before the first begins, after the last one ends
//! ```
//! The processes of a loom of the runtime share their tasks and CPUs.

use crate::state_places::process_of;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::{
    Activities, Execution, Group, NO_TIME, Place, ProcessIndex, State, TakesActivities, ThreadIndex,
    ThreadKind, TypeKind, join_intervals,
};

/// Shorter times without a task may be the cost of a task: a worker wakes up, or the creator continues.
const MIN_GAP_NS: u64 = 1_000_000;

type Times = Vec<(u64, u64)>;
/// Whether a time is between tasks, not before the first or after the last one.
type IsBetween = bool;

/// Activities of workers in times without a task.
#[derive(Default)]
pub(crate) struct NoTasks {
    /// Times without a task, of all processes.
    times: Times,
    /// Idle time of CPUs that are workers, while none of their loom runs anything.
    idle_ns: u64,
    /// Time in the scheduler, and in waits while no worker runs anything, between the tasks of a process.
    lost: FxHashMap<ProcessIndex, u64>,
    /// Time in the scheduler between tasks, by state and place.
    runtime: FxHashMap<(State, Place), u64>,
}

impl NoTasks {
    pub fn of(execution: &Execution) -> NoTasks {
        let mut all = NoTasks::default();
        let known = |at: &u64| *at != NO_TIME;
        let first = execution.tasks.began.iter().copied().filter(known).min();
        let last = execution.tasks.ended.iter().copied().filter(known).max();
        let (Some(first), Some(last)) = (first, last) else { return all };
        let groups = groups(execution);
        let gaps = gaps(execution, &groups, (first, last));
        let mut members: Vec<Vec<ThreadIndex>> = vec![Vec::new(); gaps.len()];
        for (thread, row) in execution.workers() {
            members[groups[row.process.index()]].push(thread);
        }
        let are_cpus = execution.workers().all(|(_, row)| row.kind == ThreadKind::Cpu);
        for (workers, gaps) in members.iter().zip(gaps) {
            let mut times: Vec<(u64, u64, IsBetween)> =
                gaps.iter().map(|(start, end)| (*start, *end, true)).collect();
            // Only CPUs are idle before the first task and after the last one.
            if are_cpus {
                times.insert(0, (0, first, false));
                times.push((last, u64::MAX, false));
            }
            all.add(execution, workers, &times, are_cpus);
            all.times.extend(gaps);
            all.times.extend([(0, first), (last, u64::MAX)]);
        }
        join_intervals(&mut all.times);
        all
    }

    /// Adds activities of workers in times without a task, which are in order and apart.
    fn add(
        &mut self,
        execution: &Execution,
        workers: &[ThreadIndex],
        times: &[(u64, u64, IsBetween)],
        are_cpus: bool,
    ) {
        let mut found = Found::default();
        let states = (0..=u16::MAX).map_while(|number| execution.activities.get(number));
        let doing = states.map(|(state, _)| Doing::of(state)).collect();
        let mut reading = Reading {
            activities: &execution.activities,
            doing,
            times,
            next: 0,
            since: 0,
            now: NOTHING,
            found: &mut found,
        };
        for thread in workers {
            (reading.next, reading.since) = (0, 0);
            execution.shown_spans_of_run(*thread).hand_over_activities(&mut reading);
            // Behind the end of its track it is not there.
            let end = execution.threads[thread.index()].track.end().max(reading.since);
            reading.begins(end, NOTHING);
        }
        let Found { idle, waits, mut busy, looks } = found;
        join_intervals(&mut busy);
        let alone = |(start, end): (u64, u64)| end - start - overlap(&busy, start, end);
        for (start, end, place) in waits {
            *self.lost.entry(process_of(execution, place)).or_default() += alone((start, end));
        }
        for ((state, place), ns) in looks {
            *self.runtime.entry((state, place)).or_default() += ns;
            *self.lost.entry(process_of(execution, place)).or_default() += ns;
        }
        if are_cpus {
            self.idle_ns += idle.into_iter().map(alone).sum::<u64>();
        }
    }

    /// Whether more than half of the idle time of CPUs, during which no code ran, is for lack of a task; the given part of the run must
    /// contain times without a task.
    pub fn explain_idle(&self, nobodys_idle_ns: u64, (begin, end): (u64, u64)) -> bool {
        let next = self.times.partition_point(|time| time.1 <= begin);
        let is_inside = self.times.get(next).is_some_and(|time| time.0 < end);
        self.idle_ns > nobodys_idle_ns / 2 && is_inside
    }

    /// Whether more than half of the time in a section of the runtime passes without a task.
    pub fn explain_runtime(&self, section: (State, Place), ns: u64) -> bool {
        self.runtime.get(&section).is_some_and(|without| *without > ns / 2)
    }

    /// Time of the scheduler and of waits that does not count as the cost of a process's tasks.
    pub fn lost_of(&self, process: ProcessIndex) -> u64 {
        self.lost.get(&process).copied().unwrap_or(0)
    }
}

/// What a worker does, as far as it matters here.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Doing {
    Idle,
    Waits,
    /// It is in the scheduler, where alone a worker looks for a task.
    Looks,
    Other,
    /// It is not there.
    Nothing,
}

const NOTHING: (Doing, State, Place) = (Doing::Nothing, State::Unknown, Place::UNKNOWN);

impl Doing {
    fn of(state: State) -> Doing {
        match state.group() {
            Group::Idle => Doing::Idle,
            Group::Sync => Doing::Waits,
            _ if matches!(state, State::Scheduling | State::Runtime) => Doing::Looks,
            _ => Doing::Other,
        }
    }
}

/// Parts of the times without a task.
#[derive(Default)]
struct Found {
    idle: Times,
    /// Between tasks.
    waits: Vec<(u64, u64, Place)>,
    busy: Times,
    /// Between tasks, by state and place.
    looks: FxHashMap<(State, Place), u64>,
}

/// Reads the activities of workers, one worker after the other.
struct Reading<'a> {
    activities: &'a Activities,
    /// By number of an activity.
    doing: Vec<Doing>,
    times: &'a [(u64, u64, IsBetween)],
    /// The first time that does not end before `since`.
    next: usize,
    /// The begin of what the worker does now.
    since: u64,
    now: (Doing, State, Place),
    found: &'a mut Found,
}

impl Reading<'_> {
    /// The worker does something else from `start` on.
    fn begins(&mut self, start: u64, now: (Doing, State, Place)) {
        let (done, state, place) = std::mem::replace(&mut self.now, now);
        let since = std::mem::replace(&mut self.since, start);
        while self.times.get(self.next).is_some_and(|time| time.1 <= since) {
            self.next += 1;
        }
        for (from, until, is_between) in self.times[self.next..].iter().take_while(|time| time.0 < start) {
            let (from, to) = (since.max(*from), start.min(*until));
            if from >= to {
                continue;
            }
            match done {
                Doing::Idle => self.found.idle.push((from, to)),
                Doing::Nothing => {}
                Doing::Waits if *is_between => self.found.waits.push((from, to, place)),
                Doing::Looks if *is_between => {
                    *self.found.looks.entry((state, place)).or_default() += to - from;
                    self.found.busy.push((from, to));
                }
                _ => self.found.busy.push((from, to)),
            }
        }
    }
}

impl TakesActivities for Reading<'_> {
    #[inline(always)]
    fn numbered(&mut self, start: u64, number: u16) -> bool {
        let doing = self.doing.get(usize::from(number)).copied().unwrap_or(Doing::Other);
        if doing != Doing::Other || self.now.0 != Doing::Other {
            let (state, place) = self.activities.get(number).unwrap_or((State::Unknown, Place::UNKNOWN));
            self.begins(start, (doing, state, place));
        }
        true
    }

    fn other(&mut self, start: u64, state: State, place: Place) -> bool {
        self.begins(start, (Doing::of(state), state, place));
        true
    }
}

/// By process, the number of its loom's group; processes without CPUs of a runtime are groups of their own.
fn groups(execution: &Execution) -> Vec<usize> {
    let mut of_loom: FxHashMap<&str, usize> = FxHashMap::default();
    for (number, row) in execution.processes.iter().enumerate().filter(|(_, row)| row.has_cpus) {
        of_loom.entry(row.loom.as_str()).or_insert(number);
    }
    let processes = execution.processes.iter().enumerate();
    processes.map(|(number, row)| of_loom.get(row.loom.as_str()).copied().unwrap_or(number)).collect()
}

/// By group: the times between the first begin and the last end of a task in which none is to be started.
fn gaps(execution: &Execution, groups: &[usize], (first, last): (u64, u64)) -> Vec<Times> {
    let mut there: Vec<Times> = vec![Vec::new(); execution.processes.len()];
    let tasks = &execution.tasks;
    for (row, creator) in tasks.creator.iter().enumerate() {
        let ty = tasks.ty.get(row).and_then(|ty| execution.catalog.types.get(ty.index()));
        if matches!(ty.and_then(|ty| ty.kind), Some(TypeKind::Work { .. })) {
            continue;
        }
        let created = if tasks.created[row] == NO_TIME { 0 } else { tasks.created[row] };
        let time = (created, tasks.began[row].min(tasks.ended[row]));
        match execution.threads.get(creator.index()) {
            Some(thread) => there[groups[thread.process.index()]].push(time),
            None => there.iter_mut().for_each(|times| times.push(time)),
        }
    }
    let lossy: FxHashSet<usize> = (execution.losses.iter())
        .filter_map(|loss| Some(groups[execution.threads.get(loss.thread.index())?.process.index()]))
        .collect();
    let of_group = |(group, mut times): (usize, Times)| {
        let mut gaps = Vec::new();
        if times.is_empty() || lossy.contains(&group) {
            return gaps;
        }
        times.retain(|(created, began)| created < began);
        join_intervals(&mut times);
        let mut at = first;
        for (created, began) in times {
            gaps.push((at, created.min(last)));
            at = at.max(began);
        }
        gaps.push((at, last));
        gaps.retain(|(start, end)| start.saturating_add(MIN_GAP_NS) <= *end);
        gaps
    };
    there.into_iter().enumerate().map(of_group).collect()
}

/// Nanoseconds from `start` to `end` that are in these intervals, which are in order and apart.
fn overlap(intervals: &[(u64, u64)], start: u64, end: u64) -> u64 {
    let from = intervals.partition_point(|interval| interval.1 <= start);
    let inside = intervals[from..].iter().take_while(|interval| interval.0 < end);
    inside.map(|interval| interval.1.min(end) - interval.0.max(start)).sum()
}

#[cfg(test)]
mod tests {
    use crate::{Finding, analyse};
    use taskscope_execution::{
        Cause, Change, Definition, Execution, ExecutionBuilder, Observer, Pattern, Place, RegionIndex,
        Section, State, TaskIndex, ThreadIndex, ThreadKind, TypeIndex,
    };

    const MS: u64 = 1_000_000;

    /// 200 tasks of 1 µs, each created when the one before has ended, on a worker of two; the second half 98 ms later. `meanwhile` is
    /// the state of both workers without a task. The tasks of the second half may exist before.
    fn two_bursts(kind: ThreadKind, meanwhile: State, exist_before: bool) -> Execution {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        for thread in 0..2 {
            builder.add_thread(process, thread);
        }
        let (ty, parent, region) = (TypeIndex(0), TaskIndex::NONE, RegionIndex::NONE);
        builder.define(Definition::Type { ty, process, label: "small" });
        let (worker, other) = (ThreadIndex(0), ThreadIndex(1));
        for thread in [worker, other] {
            builder.event(thread, 0);
            builder.change(thread, 0, Change::ThreadIs(kind));
            builder.change(thread, 0, Change::ThreadWorks);
            builder.change(thread, 0, Change::Becomes(Section::of(meanwhile)));
        }
        let mut created = 0;
        let mut create = |builder: &mut ExecutionBuilder, at| {
            let task = TaskIndex(created);
            created += 1;
            builder.change(worker, at, Change::TaskCreated { task, ty, parent, region });
        };
        for number in 0..200 {
            let begin =
                if number < 100 { 2_000 * u64::from(number) } else { 98 * MS + 2_000 * u64::from(number) };
            builder.event(worker, begin);
            match number {
                0..100 => create(&mut builder, begin),
                100 if !exist_before => (100..200).for_each(|_| create(&mut builder, begin)),
                _ => {}
            }
            if number == 99 && exist_before {
                (100..200).for_each(|_| create(&mut builder, begin));
            }
            let (task, place) = (TaskIndex(number), Place::task_type(ty));
            builder.change(
                worker,
                begin,
                Change::Becomes(Section { task, place, ..Section::of(State::Task) }),
            );
            builder.change(worker, begin, Change::TaskStarts { task });
            builder.event(worker, begin + 1_000);
            builder.change(worker, begin + 1_000, Change::TaskEnds { task });
            builder.change(worker, begin + 1_000, Change::Becomes(Section::of(meanwhile)));
        }
        for thread in [worker, other] {
            builder.event(thread, 98 * MS + 400_000);
            builder.change(thread, 98 * MS + 400_000, Change::ThreadEnds);
        }
        builder.finish()
    }

    fn largest(execution: &Execution) -> (Cause, Option<Pattern>) {
        let (analysis, _) = analyse(execution);
        let largest: &Finding = &analysis.findings[0];
        (largest.cause, largest.pattern)
    }

    #[test]
    fn idle_cpus_between_tasks_have_no_task() {
        let of = |exist_before| largest(&two_bursts(ThreadKind::Cpu, State::Idle, exist_before));
        assert_eq!(of(false), (Cause::Wait, Some(Pattern::NoTasks)));
        assert_eq!(of(true), (Cause::Wait, None), "tasks wait to be started");
    }

    #[test]
    fn a_scheduler_between_tasks_has_none_to_start() {
        let of = |exist_before| largest(&two_bursts(ThreadKind::Worker, State::Scheduling, exist_before));
        assert_eq!(of(false), (Cause::RuntimeSchedule, Some(Pattern::NoTasks)));
        assert_eq!(of(true), (Cause::RuntimeSchedule, None));
    }
    #[test]
    fn waits_without_tasks_are_not_the_cost_of_small_ones() {
        let of = |exist_before| largest(&two_bursts(ThreadKind::Worker, State::Taskwait, exist_before));
        assert_eq!(of(false).1, None);
        assert_eq!(of(true), (Cause::Wait, Some(Pattern::TooFine)));
    }
}
