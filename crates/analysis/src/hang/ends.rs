//! The sections of all threads at the end of the trace.

use super::facts::{Hang, LastSeen, Needed, OpenWait};
use super::thread_locks::open_waits;
use crate::by_state::ByState;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::{Execution, Group, ProcessIndex, Span, State, Thread, ThreadIndex, ThreadKind};

/// The last section of a thread.
pub(super) struct End {
    pub span: Span,
    /// Whether it ended before its process did.
    pub gone: bool,
}

/// The sections of all threads at the end.
pub(super) struct Ends<'e> {
    pub execution: &'e Execution,
    /// `None` for threads without known facts, for CPUs, and for processes that continue after the selected
    /// part.
    pub thread_ends: Vec<Option<End>>,
    pub waits: FxHashMap<ThreadIndex, OpenWait>,
    /// Processes in which every thread recorded its end: they ended properly.
    pub proper: Vec<bool>,
}

pub(super) fn is_wait(state: State) -> bool {
    match state.group() {
        Group::Mutex | Group::Device | Group::Start => true,
        Group::Sync => state != State::Taskyield,
        _ => false,
    }
}

/// Whether nothing is to be done by a thread in this state.
pub(super) fn is_idle(state: State) -> bool {
    state.group() == Group::Idle
}

impl<'e> Ends<'e> {
    /// Collects the open waits; `None` without any: the usual case, which examines nothing else.
    pub fn of(execution: &'e Execution) -> Option<Ends<'e>> {
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
        let thread_ends: Vec<Option<End>> = execution.threads.iter().map(end_of).collect();
        let waits_at_end = |end: &End| !end.gone && is_wait(end.span.section.state);
        let waits_for_lock = open_waits(execution).next().is_some();
        if !waits_for_lock && !thread_ends.iter().flatten().any(waits_at_end) {
            return None;
        }
        let mut ends = Ends { execution, thread_ends, waits: FxHashMap::default(), proper };
        ends.find_waits();
        ends.find_waits_for_locks();
        Some(ends)
    }

    pub fn process(&self, thread: ThreadIndex) -> ProcessIndex {
        self.execution.threads[thread.index()].process
    }

    pub fn end(&self, thread: ThreadIndex) -> Option<&End> {
        self.thread_ends.get(thread.index())?.as_ref()
    }

    pub fn all(&self) -> impl Iterator<Item = (ThreadIndex, &End)> {
        let all = self.thread_ends.iter().enumerate();
        all.filter_map(|(row, end)| Some((ThreadIndex::of(row), end.as_ref()?)))
    }

    pub fn hangs(&self) -> Vec<Hang> {
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

    /// Processes that may wait for each other: those of a job together.
    fn jobs(&self) -> Vec<Vec<ProcessIndex>> {
        let mut jobs: Vec<Vec<ProcessIndex>> = Vec::new();
        let mut rows: FxHashMap<u64, usize> = FxHashMap::default();
        for process in (0..self.execution.processes.len()).map(ProcessIndex::of) {
            let rank = self.execution.communication.ranks.get(&process.0);
            let row = rank.map_or(jobs.len(), |rank| *rows.entry(rank.job).or_insert(jobs.len()));
            match jobs.get_mut(row) {
                Some(processes) => processes.push(process),
                None => jobs.push(vec![process]),
            }
        }
        jobs
    }

    pub fn hang(
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
                Needed::Rank { process, .. } => {
                    process.and_then(|process| self.initial_thread(process)).into_iter().collect()
                }
            };
            for thread in threads {
                if waiting.contains(&thread) || needed.iter().any(|known| known.thread == thread) {
                    continue;
                }
                if let Some(end) = self.end(thread) {
                    let asleep_since = self.execution.threads[thread.index()].asleep_since;
                    let gone = end.gone || self.proper[self.process(thread).index()];
                    needed.push(LastSeen { thread, span: end.span, gone, asleep_since });
                }
            }
        }
        let end = waits.iter().map(|wait| wait.span.end).max().unwrap_or(since);
        Hang { is_deadlock, circle: circle.len(), waits, needed, since, end, victims }
    }

    /// The thread that represents a process: its initial one, or its first.
    fn initial_thread(&self, process: ProcessIndex) -> Option<ThreadIndex> {
        let own = || self.all().map(|(thread, _)| thread).filter(|thread| self.process(*thread) == process);
        own()
            .find(|thread| self.execution.threads[thread.index()].kind == ThreadKind::Initial)
            .or_else(|| own().next())
    }
}
