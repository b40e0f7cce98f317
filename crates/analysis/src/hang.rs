//! Runs that hung: threads that waited at the end for something that could not come.
//!
//! Two kinds of evidence:
//!
//! - **Deadlock**: a set of open waits in which each needs another thread of the set, or a thread that is gone. Such waits
//!   are never over. For a lock the holder is needed, for a barrier each member of the team that has not come, for a taskwait
//!   each child that has not ended, for a collective operation each rank that has not come.
//! - **Silence**: the process did not end properly, and for a long time before its end no thread recorded anything or worked:
//!   each one waited, was idle, or slept in the kernel without using its CPU. Long is relative to the run, and to the waits
//!   before.
//!
//! A thread that computes is no evidence: others may wait for it as long as it likes.

use crate::ledger::ByState;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::messages::Call;
use taskscope_execution::{
    Execution, Group, Hold, NO_TIME, ObjectIndex, ProcessIndex, RegionIndex, Section, SiteIndex, Span, State,
    TaskIndex, TaskStatus, Thread, ThreadIndex, ThreadKind,
};

/// A shorter wait in a barrier or for a rank may be over although the thread has not left it yet.
const SHORTEST_NS: u64 = 100_000_000;
/// A silence is at least as long, nanoseconds.
const SHORTEST_SILENCE_NS: u64 = 200_000_000;
/// A silence of this length is long however long the run is.
const LONG_SILENCE_NS: u64 = 5_000_000_000;
/// Else it is at least this part of the run.
const SHARE_OF_RUN: u64 = 10;
/// And at least so many times as long as any wait before it on one of the waiting threads.
const TIMES_OF_WAITS: u64 = 3;

/// What a thread needs to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    /// The thread that holds the lock.
    Holder {
        /// Who; the waiting thread itself where it asks again for what it holds.
        thread: ThreadIndex,
        /// When it got the lock.
        since: u64,
        /// Where it asked for it.
        site: SiteIndex,
    },
    /// A member of the team that has not come to the barrier.
    Member(ThreadIndex),
    /// A task that has not ended, and the thread that runs it; none if no thread does.
    Task(TaskIndex, ThreadIndex),
    /// A rank that has not come to the collective operation.
    Rank(ProcessIndex),
}

/// An open wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenWait {
    /// The thread that waits.
    pub thread: ThreadIndex,
    /// The wait, to its end.
    pub span: Span,
    /// The function of the communication library in which it waits, without the library's prefix.
    pub function: Option<&'static str>,
    /// What it needs; empty where that is not known.
    pub needs: Vec<Needed>,
}

/// What a thread that is needed did last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LastSeen {
    /// The thread.
    pub thread: ThreadIndex,
    /// Its last section.
    pub span: Span,
    /// Whether it has ended.
    pub gone: bool,
    /// Since when it slept in the kernel, if it is known that it did.
    pub asleep_since: Option<u64>,
}

/// A run that hung.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hang {
    /// Whether the waits can never be over; else nothing was seen to go on for long.
    pub is_deadlock: bool,
    /// How many of the first waits need each other in a circle; 0 if none do.
    pub circle: usize,
    /// The open waits: the circle first, in the order of who needs whom, then the others by their begins.
    pub waits: Vec<OpenWait>,
    /// Needed threads that do not wait.
    pub needed: Vec<LastSeen>,
    /// When the last wait of the circle began, or, without one, since when nothing went on.
    pub since: u64,
    /// The end of the process, or of what is known of it.
    pub end: u64,
    /// Worker-nanoseconds of the waits from then on.
    pub victims: ByState,
}

/// All hangs, processes that wait for each other together.
pub fn hangs(execution: &Execution) -> Vec<Hang> {
    if execution.filtered {
        return Vec::new();
    }
    Ends::of(execution).map_or_else(Vec::new, |ends| ends.hangs())
}

/// The last section of a thread.
struct End {
    span: Span,
    gone: bool,
}

/// What all threads were in at the end.
struct Ends<'e> {
    execution: &'e Execution,
    /// None of threads of which nothing is known, of CPUs, and of processes that go on after the part that is asked for.
    of_threads: Vec<Option<End>>,
    waits: FxHashMap<ThreadIndex, OpenWait>,
    /// Processes of which every thread told its end: they ended properly.
    proper: Vec<bool>,
}

fn is_wait(state: State) -> bool {
    match state.group() {
        Group::Mutex | Group::Device => true,
        Group::Sync => state != State::Taskyield,
        _ => false,
    }
}

/// Whether nothing is to be done by a thread in this state.
fn is_idle(state: State) -> bool {
    state.group() == Group::Idle
}

impl<'e> Ends<'e> {
    /// `None` where no thread waited: the usual case, without a look at anything else.
    fn of(execution: &'e Execution) -> Option<Ends<'e>> {
        let goes_on: FxHashSet<ProcessIndex> = (execution.threads.iter())
            .filter(|thread| thread.last_event > execution.processes[thread.process.index()].last)
            .map(|thread| thread.process)
            .collect();
        let mut proper = vec![true; execution.processes.len()];
        for thread in
            execution.threads.iter().filter(|thread| thread.kind != ThreadKind::Cpu && !thread.ended)
        {
            proper[thread.process.index()] = false;
        }
        let end_of = |thread: &Thread| {
            let is_known = thread.kind != ThreadKind::Cpu && !thread.track.is_empty();
            if !is_known || goes_on.contains(&thread.process) {
                return None;
            }
            let span = thread.track.span(thread.track.len() - 1);
            // The threads of a process that ends properly all end with it.
            Some(End { span, gone: thread.ended && !proper[thread.process.index()] })
        };
        let of_threads: Vec<Option<End>> = execution.threads.iter().map(end_of).collect();
        let waits_at_end = |end: &End| !end.gone && is_wait(end.span.section.state);
        if !of_threads.iter().flatten().any(waits_at_end) {
            return None;
        }
        let mut ends = Ends { execution, of_threads, waits: FxHashMap::default(), proper };
        ends.find_waits();
        Some(ends)
    }

    fn process(&self, thread: ThreadIndex) -> ProcessIndex {
        self.execution.threads[thread.index()].process
    }

    fn end(&self, thread: ThreadIndex) -> Option<&End> {
        self.of_threads.get(thread.index())?.as_ref()
    }

    fn all(&self) -> impl Iterator<Item = (ThreadIndex, &End)> {
        let all = self.of_threads.iter().enumerate();
        all.filter_map(|(row, end)| Some((ThreadIndex::of(row), end.as_ref()?)))
    }

    fn find_waits(&mut self) {
        let holders = self.holders();
        let running = self.running();
        let open: Vec<(ThreadIndex, Span)> = (self.all())
            .filter(|(_, end)| !end.gone && is_wait(end.span.section.state))
            .map(|(thread, end)| (thread, end.span))
            .collect();
        let calls = self.last_calls();
        let tasks = &self.execution.tasks;
        for (thread, span) in open {
            let Section { state, region, task, object, .. } = span.section;
            let function = calls.get(&thread).and_then(|call| call.function_name());
            let needs = match state {
                _ if state.group() == Group::Mutex => holders.get(&object).copied().into_iter().collect(),
                // Workers leave a region's last barrier when they are needed again.
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
                State::Communication => self.missing_ranks(thread, &calls),
                _ => Vec::new(),
            };
            self.waits.insert(thread, OpenWait { thread, span, function, needs });
        }
    }

    fn has_ended(&self, region: RegionIndex) -> bool {
        self.execution.regions.get(region.index()).is_some_and(|region| region.end != NO_TIME)
    }

    /// Who held each lock at the end.
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

    /// Threads by the tasks that they were in.
    fn running(&self) -> FxHashMap<TaskIndex, ThreadIndex> {
        let in_tasks = self.all().filter(|(_, end)| end.span.section.task.is_some());
        in_tasks.map(|(thread, end)| (end.span.section.task, thread)).collect()
    }

    /// Members of the team that have not come to a barrier.
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

    /// The call in which each thread is.
    fn last_calls(&self) -> FxHashMap<ThreadIndex, &'e Call> {
        let mut calls: FxHashMap<ThreadIndex, &Call> = FxHashMap::default();
        for call in &self.execution.communication.calls {
            let is_open = self.end(call.thread).is_some_and(|end| {
                end.span.section.state == State::Communication
                    && call.end >= end.span.end
                    && call.start <= end.span.start
            });
            if is_open {
                calls.insert(call.thread, call);
            }
        }
        calls
    }

    /// Ranks that have not come to the collective operation in which the thread waits.
    fn missing_ranks(&self, waiter: ThreadIndex, calls: &FxHashMap<ThreadIndex, &Call>) -> Vec<Needed> {
        let communication = &self.execution.communication;
        let (own, Some(call)) = (self.process(waiter), calls.get(&waiter)) else { return Vec::new() };
        let part = communication
            .participations
            .iter()
            .rev()
            .find(|part| part.thread == waiter && part.begun >= call.start);
        let Some(part) = part else { return Vec::new() };
        // Members are those that ever took part in an operation of the communicator.
        let of_comm = || communication.participations.iter().filter(|other| other.comm == part.comm);
        let members: FxHashSet<ProcessIndex> = of_comm().map(|other| self.process(other.thread)).collect();
        let came: FxHashSet<ProcessIndex> = of_comm()
            .filter(|other| other.sequence == part.sequence)
            .map(|other| self.process(other.thread))
            .collect();
        let mut missing: Vec<ProcessIndex> =
            members.difference(&came).copied().filter(|process| *process != own).collect();
        missing.sort_unstable();
        missing.into_iter().map(Needed::Rank).collect()
    }

    fn hangs(&self) -> Vec<Hang> {
        let stuck = self.stuck();
        let mut all = Vec::new();
        if !stuck.is_empty() {
            all.push(self.deadlock(&stuck));
        }
        for job in self.jobs() {
            let has_deadlock = stuck.iter().any(|thread| job.contains(&self.process(*thread)));
            all.extend(self.silence(&job).filter(|_| !has_deadlock));
        }
        all
    }

    /// Threads whose waits can never be over: those are taken out, one after the other, that need nobody who is stuck or gone.
    fn stuck(&self) -> FxHashSet<ThreadIndex> {
        let is_sure = |wait: &OpenWait| match wait.span.section.state.group() {
            Group::Mutex => true,
            _ => !self.proper[self.process(wait.thread).index()] && wait.span.nanos() >= SHORTEST_NS,
        };
        let mut stuck: FxHashSet<ThreadIndex> =
            self.waits.values().filter(|wait| is_sure(wait)).map(|wait| wait.thread).collect();
        loop {
            let is_free = |thread: &&ThreadIndex| {
                !self.waits[*thread].needs.iter().any(|needed| self.never_comes(*needed, &stuck))
            };
            let free: Vec<ThreadIndex> = stuck.iter().filter(is_free).copied().collect();
            if free.is_empty() {
                return stuck;
            }
            for thread in free {
                stuck.remove(&thread);
            }
        }
    }

    fn never_comes(&self, needed: Needed, stuck: &FxHashSet<ThreadIndex>) -> bool {
        let is_out =
            |thread: ThreadIndex| stuck.contains(&thread) || self.end(thread).is_some_and(|end| end.gone);
        match needed {
            Needed::Holder { thread, .. } | Needed::Member(thread) => is_out(thread),
            Needed::Task(_, thread) => thread.is_some() && is_out(thread),
            Needed::Rank(process) => {
                let mut own = self.all().filter(|(thread, _)| self.process(*thread) == process).peekable();
                let is_over =
                    |(thread, end): (ThreadIndex, &End)| is_out(thread) || is_idle(end.span.section.state);
                own.peek().is_some() && (self.proper[process.index()] || own.all(is_over))
            }
        }
    }

    fn deadlock(&self, stuck: &FxHashSet<ThreadIndex>) -> Hang {
        let circle = self.circle(stuck);
        let begins = circle.iter().map(|thread| self.waits[thread].span.start);
        let since =
            begins.max().unwrap_or_else(|| stuck.iter().map(|t| self.waits[t].span.start).min().unwrap_or(0));
        self.hang(true, &circle, stuck.iter().copied(), since)
    }

    /// Threads that need each other in a circle, from the one that got into it last.
    fn circle(&self, stuck: &FxHashSet<ThreadIndex>) -> Vec<ThreadIndex> {
        let next = |thread: &ThreadIndex| {
            self.waits[thread].needs.iter().find_map(|needed| match needed {
                Needed::Holder { thread, .. } | Needed::Member(thread) | Needed::Task(_, thread) => {
                    Some(*thread).filter(|thread| stuck.contains(thread))
                }
                Needed::Rank(_) => None,
            })
        };
        let mut starts: Vec<ThreadIndex> = stuck.iter().copied().collect();
        starts.sort_unstable();
        for start in starts {
            let mut path = vec![start];
            while let Some(thread) = next(&path[path.len() - 1]) {
                if let Some(again) = path.iter().position(|known| *known == thread) {
                    let mut circle = path.split_off(again);
                    let last =
                        (0..circle.len()).max_by_key(|row| self.waits[&circle[*row]].span.start).unwrap_or(0);
                    circle.rotate_left(last);
                    return circle;
                }
                path.push(thread);
            }
        }
        Vec::new()
    }

    /// Processes that may wait for each other: those of a job together.
    fn jobs(&self) -> Vec<Vec<ProcessIndex>> {
        let mut jobs: Vec<(Option<u64>, Vec<ProcessIndex>)> = Vec::new();
        for process in (0..self.execution.processes.len()).map(ProcessIndex::of) {
            let job = self.execution.communication.ranks.get(&process.0).map(|rank| rank.job);
            match jobs.iter_mut().find(|(known, _)| job.is_some() && *known == job) {
                Some((_, processes)) => processes.push(process),
                None => jobs.push((job, vec![process])),
            }
        }
        jobs.into_iter().map(|(_, processes)| processes).collect()
    }

    /// A job in which nothing went on for long.
    fn silence(&self, job: &[ProcessIndex]) -> Option<Hang> {
        let threads = &self.execution.threads;
        let own = || self.all().filter(|(thread, _)| job.contains(&self.process(*thread)));
        let end = job.iter().map(|process| self.execution.processes[process.index()].last).max()?;
        let begin = job.iter().map(|process| self.execution.processes[process.index()].first).min()?;
        // A process that had ended is silent.
        let is_open = |thread: &ThreadIndex| !self.proper[self.process(*thread).index()];
        let alive = || own().filter(|(thread, end)| is_open(thread) && !end.gone);
        let last = own().map(|(thread, _)| threads[thread.index()].last_event).max()?;
        let silence = end.checked_sub(last)?;
        let is_long = silence >= LONG_SILENCE_NS || silence >= end.saturating_sub(begin) / SHARE_OF_RUN;
        if silence < SHORTEST_SILENCE_NS || !is_long {
            return None;
        }
        let slept = |thread: ThreadIndex| {
            threads[thread.index()].asleep_since.is_some_and(|since| end - since.min(end) >= silence / 2)
        };
        let rests = |(thread, end): (ThreadIndex, &End)| {
            let state = end.span.section.state;
            // A device, or another host, may be at work.
            let waits = self.waits.contains_key(&thread) && state != State::TargetWait;
            waits || is_idle(state) || state == State::JoinBarrier || slept(thread)
        };
        let waiting: Vec<&OpenWait> = alive()
            .filter_map(|(thread, _)| self.waits.get(&thread))
            .filter(|wait| self.is_longest(wait))
            .collect();
        if waiting.is_empty() || !alive().all(rests) || waiting.iter().any(|wait| self.is_gathering(wait)) {
            return None;
        }
        // Calls whose partners are not recorded may wait for what goes on elsewhere.
        let in_calls = |wait: &&OpenWait| wait.span.section.state == State::Communication;
        let is_whole = job
            .iter()
            .filter_map(|process| self.execution.communication.ranks.get(&process.0))
            .all(|rank| rank.ranks as usize == job.len());
        if waiting.iter().all(in_calls) && !is_whole {
            return None;
        }
        let since = last.max(waiting.iter().map(|wait| wait.span.start).min()?);
        Some(self.hang(false, &[], waiting.iter().map(|wait| wait.thread), since))
    }

    /// Whether members of the team of a barrier have not started yet.
    fn is_gathering(&self, wait: &OpenWait) -> bool {
        let Section { state, region, .. } = wait.span.section;
        let team = self.execution.regions.get(region.index());
        matches!(state, State::Barrier | State::JoinBarrier)
            && team.is_some_and(|team| team.members < team.requested)
    }

    /// Whether the wait is far longer than all waits of its thread before.
    fn is_longest(&self, wait: &OpenWait) -> bool {
        let mut longest = 0;
        self.execution.threads[wait.thread.index()].track.for_each_in(
            |state, _| is_wait(state),
            |span| {
                if span.end < wait.span.end {
                    longest = longest.max(span.nanos());
                }
            },
        );
        wait.span.nanos() / TIMES_OF_WAITS >= longest
    }

    fn hang(
        &self,
        is_deadlock: bool,
        circle: &[ThreadIndex],
        all: impl Iterator<Item = ThreadIndex>,
        since: u64,
    ) -> Hang {
        let mut others: Vec<ThreadIndex> = all.filter(|thread| !circle.contains(thread)).collect();
        others.sort_unstable_by_key(|thread| (self.waits[thread].span.start, *thread));
        let waits: Vec<OpenWait> =
            circle.iter().chain(&others).map(|thread| self.waits[thread].clone()).collect();
        let mut victims = ByState::default();
        for wait in &waits {
            let thread = &self.execution.threads[wait.thread.index()];
            if thread.worker && thread.selected {
                victims
                    .add(wait.span.section.state, wait.span.end.saturating_sub(wait.span.start.max(since)));
            }
        }
        let waiting: FxHashSet<ThreadIndex> = waits.iter().map(|wait| wait.thread).collect();
        let mut needed: Vec<LastSeen> = Vec::new();
        for need in waits.iter().flat_map(|wait| &wait.needs) {
            let threads: Vec<ThreadIndex> = match *need {
                Needed::Holder { thread, .. } | Needed::Member(thread) | Needed::Task(_, thread) => {
                    vec![thread]
                }
                Needed::Rank(process) => self.initial_thread(process).into_iter().collect(),
            };
            for thread in threads {
                if waiting.contains(&thread) || needed.iter().any(|known| known.thread == thread) {
                    continue;
                }
                if let Some(end) = self.end(thread) {
                    let asleep_since = self.execution.threads[thread.index()].asleep_since;
                    needed.push(LastSeen { thread, span: end.span, gone: end.gone, asleep_since });
                }
            }
        }
        let end = waits.iter().map(|wait| wait.span.end).max().unwrap_or(since);
        Hang { is_deadlock, circle: circle.len(), waits, needed, since, end, victims }
    }

    /// The thread that stands for a process: its initial one, or its first.
    fn initial_thread(&self, process: ProcessIndex) -> Option<ThreadIndex> {
        let own = || self.all().map(|(thread, _)| thread).filter(|thread| self.process(*thread) == process);
        own()
            .find(|thread| self.execution.threads[thread.index()].kind == ThreadKind::Initial)
            .or_else(|| own().next())
    }
}

/// Tasks that are listed of one wait.
const MAX_TASKS: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::{Change, Definition, ExecutionBuilder, Observer};

    /// A process whose threads share region 0 from time 0 on.
    struct Run(ExecutionBuilder, u32);

    const S: u64 = 1_000_000_000;

    impl Run {
        fn of(threads: u32) -> Run {
            let mut builder = ExecutionBuilder::new();
            let process = builder.add_process("host", 1);
            for tid in 0..threads {
                builder.add_thread(process, tid.into());
            }
            let mut run = Run(builder, threads);
            let master = ThreadIndex(0);
            let region = RegionIndex(0);
            run.0.change(
                master,
                0,
                Change::RegionBegins {
                    region,
                    parent: RegionIndex::NONE,
                    site: SiteIndex::NONE,
                    requested: 0,
                },
            );
            for object in 0..4 {
                let object = ObjectIndex(object);
                run.0.define(Definition::Object { object, process, id: object.0.into(), kind: 2 });
            }
            (0..threads).for_each(|thread| run.is(thread, 1, State::ImplicitTask));
            run
        }

        fn is(&mut self, thread: u32, at: u64, state: State) {
            self.waits(thread, at, state, ObjectIndex::NONE);
        }

        fn waits(&mut self, thread: u32, at: u64, state: State, object: ObjectIndex) {
            let section = Section { region: RegionIndex(0), object, ..Section::of(state) };
            self.0.event(ThreadIndex(thread), at);
            self.0.change(ThreadIndex(thread), at, Change::Becomes(section));
        }

        fn takes(&mut self, thread: u32, at: u64, object: u32) {
            let change = Change::Acquires { object: ObjectIndex(object), site: SiteIndex::NONE };
            self.0.change(ThreadIndex(thread), at, change);
        }

        /// Hangs at this end, with threads that slept from time 10 on.
        fn hangs(mut self, end: u64, asleep: &[usize]) -> Vec<Hang> {
            (0..self.1).for_each(|thread| self.0.lives_at(ThreadIndex(thread), end));
            let mut execution = self.0.finish();
            for thread in asleep {
                execution.threads[*thread].asleep_since = Some(10);
            }
            hangs(&execution)
        }
    }

    fn threads(hang: &Hang) -> Vec<u32> {
        hang.waits.iter().map(|wait| wait.thread.0).collect()
    }

    #[test]
    fn locks_in_a_circle_are_a_deadlock_from_the_first_instant() {
        let mut run = Run::of(4);
        for thread in 0..3 {
            run.takes(thread, 10, thread);
        }
        for (thread, at) in [(0, 20), (1, 40), (2, 30)] {
            run.waits(thread, at, State::LockWait, ObjectIndex((thread + 1) % 3));
        }
        run.is(3, 25, State::ImplicitTask);
        let hangs = run.hangs(50, &[]);
        assert_eq!(hangs.len(), 1);
        let hang = &hangs[0];
        // From the one that came last, in the order of who needs whom.
        assert_eq!((hang.is_deadlock, hang.circle, threads(hang)), (true, 3, vec![1, 2, 0]));
        assert_eq!((hang.since, hang.end), (40, 50));
    }

    #[test]
    fn a_lock_whose_holder_works_is_none() {
        let mut run = Run::of(2);
        run.takes(1, 10, 0);
        run.waits(0, 20, State::LockWait, ObjectIndex(0));
        assert_eq!(run.hangs(20 * S, &[]), []);
    }

    #[test]
    fn a_lock_of_a_thread_that_has_ended_never_comes() {
        let mut run = Run::of(2);
        run.takes(1, 10, 0);
        run.0.change(ThreadIndex(1), 15, Change::ThreadEnds);
        run.waits(0, 20, State::LockWait, ObjectIndex(0));
        let hangs = run.hangs(50, &[]);
        assert_eq!((hangs[0].is_deadlock, threads(&hangs[0])), (true, vec![0]));
        assert!(hangs[0].needed[0].gone && hangs[0].needed[0].thread == ThreadIndex(1));
    }

    #[test]
    fn who_waits_for_a_deadlock_belongs_to_it() {
        let mut run = Run::of(3);
        run.takes(0, 10, 0);
        run.waits(0, 20, State::LockWait, ObjectIndex(0));
        run.is(1, 30, State::Barrier);
        run.is(2, S - 1000, State::Barrier);
        let hangs = run.hangs(S, &[]);
        // A barrier that was entered a moment ago may be over.
        assert_eq!((hangs[0].circle, threads(&hangs[0])), (1, vec![0, 1]));
    }

    #[test]
    fn a_member_that_sleeps_is_silence_and_one_that_computes_is_none() {
        let barrier = |asleep: &[usize], end: u64| {
            let mut run = Run::of(2);
            run.is(0, 20, State::Barrier);
            run.hangs(end, asleep)
        };
        let hangs = barrier(&[1], 3 * S);
        assert_eq!((hangs[0].is_deadlock, threads(&hangs[0])), (false, vec![0]));
        assert_eq!(hangs[0].waits[0].needs, [Needed::Member(ThreadIndex(1))]);
        assert_eq!(hangs[0].needed[0].asleep_since, Some(10));
        assert_eq!(barrier(&[], 3 * S), []);
        assert_eq!(barrier(&[1], S / 10), []);
    }

    #[test]
    fn a_wait_no_longer_than_those_before_is_none() {
        let mut run = Run::of(2);
        run.is(0, 20, State::Barrier);
        run.is(0, S, State::ImplicitTask);
        run.is(0, S + 20, State::Barrier);
        assert_eq!(run.hangs(2 * S, &[1]), []);
    }

    #[test]
    fn threads_that_all_wait_without_a_known_reason_are_silence() {
        let mut run = Run::of(2);
        run.is(0, 20, State::Taskwait);
        run.is(1, 20, State::Idle);
        let hangs = run.hangs(S, &[]);
        assert_eq!((hangs[0].is_deadlock, threads(&hangs[0]), hangs[0].since), (false, vec![0], 20));
    }

    #[test]
    fn a_process_that_ended_properly_hung_only_in_a_circle_of_locks() {
        let mut run = Run::of(2);
        run.is(0, 20, State::Taskwait);
        run.is(1, 20, State::Barrier);
        (0..2).for_each(|thread| run.0.change(ThreadIndex(thread), 3 * S, Change::ThreadEnds));
        assert_eq!(run.hangs(3 * S, &[]), []);
        let mut run = Run::of(2);
        run.takes(0, 10, 0);
        run.waits(0, 20, State::LockWait, ObjectIndex(0));
        (0..2).for_each(|thread| run.0.change(ThreadIndex(thread), 3 * S, Change::ThreadEnds));
        assert_eq!(threads(&run.hangs(3 * S, &[])[0]), [0]);
    }
}
