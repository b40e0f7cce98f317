//! The pyramids of all threads of an execution.

use super::long_waits::{PART_OF_RUN, long_waits};
use super::steps::CLASSES;
use super::{Bucket, FlagRules, Flags, Marks, OffTimes, Pyramid, Window};
use crate::{Execution, State, ThreadIndex};
use rayon::prelude::*;
use std::sync::OnceLock;

/// An execution at any zoom.
#[derive(Clone, Debug, Default)]
pub struct Timeline {
    rules: FlagRules,
    pyramids: Vec<Pyramid>,
    marks: Vec<Vec<Marks>>,
    /// Made on first use.
    off_cpu: Vec<OnceLock<OffTimes>>,
    /// Minimum length of an off-CPU time that is never hidden, nanoseconds.
    long_off_ns: u64,
}

impl Timeline {
    /// Builds the pyramids of all threads, in parallel.
    pub fn build(execution: &Execution) -> Timeline {
        let rules = flag_rules(execution);
        let pyramids = execution.threads.par_iter().map(|t| Pyramid::build(&t.track, &rules)).collect();
        Timeline::with_marks(execution, rules, pyramids)
    }

    /// A timeline without buckets, which walks over all sections for each answer: for one or two queries of the whole
    /// run, faster than building pyramids.
    pub fn without_buckets(execution: &Execution) -> Timeline {
        let rules = flag_rules(execution);
        let pyramids = vec![Pyramid::without_buckets(&rules); execution.threads.len()];
        Timeline::with_marks(execution, rules, pyramids)
    }

    /// A timeline of stored pyramids, one for each thread, with the rules that they were built by; losses and uncertain
    /// intervals are marked as in [`build`](Self::build).
    pub fn from_pyramids(execution: &Execution, pyramids: Vec<Pyramid>) -> Option<Timeline> {
        if pyramids.len() != execution.threads.len() {
            return None;
        }
        let rules = pyramids.first().map(|pyramid| pyramid.rules().clone()).unwrap_or_default();
        Some(Timeline::with_marks(execution, rules, pyramids))
    }

    fn with_marks(execution: &Execution, rules: FlagRules, pyramids: Vec<Pyramid>) -> Timeline {
        let (first, last) = execution.range();
        let long_off_ns = ((last - first) / PART_OF_RUN).max(1);
        let off_cpu = vec![OnceLock::new(); execution.threads.len()];
        let marks = vec![Vec::new(); execution.threads.len()];
        let mut timeline = Timeline { rules, pyramids, marks, off_cpu, long_off_ns };
        timeline.mark_damage(execution);
        timeline
    }

    fn mark_damage(&mut self, execution: &Execution) {
        let losses = execution.losses.iter().map(|loss| (loss.thread, loss.start, loss.end));
        self.mark_all(Flags::LOST, losses);
        let uncertain = execution.uncertain.iter().map(|part| (part.thread, part.start, part.end));
        self.mark_all(Flags::UNCERTAIN, uncertain);
    }

    fn mark_all(&mut self, flags: Flags, all: impl Iterator<Item = (ThreadIndex, u64, u64)>) {
        let mut stretches_by_thread: Vec<Vec<(u64, u64)>> = vec![Vec::new(); self.marks.len()];
        for (thread, start, end) in all {
            if let Some(stretches) = stretches_by_thread.get_mut(thread.index()) {
                stretches.push((start, end));
            }
        }
        for (thread, stretches) in stretches_by_thread.into_iter().enumerate() {
            self.mark(ThreadIndex(thread as u32), flags, stretches);
        }
    }

    /// Whether a part of `[from, to)` of a thread's time carries the flag, as a mark.
    pub fn is_marked(&self, thread: ThreadIndex, flags: Flags, from: u64, to: u64) -> bool {
        let marks = self.marks.get(thread.index()).into_iter().flatten();
        marks.into_iter().any(|marks| marks.carry(flags) && marks.touch(from, to))
    }

    /// Nanoseconds of `[from, to)` of a thread's time that the operating system took.
    pub fn off_cpu_ns(&self, execution: &Execution, thread: ThreadIndex, from: u64, to: u64) -> u64 {
        self.off_times(execution, thread).map_or(0, |off| off.nanos(from, to))
    }

    /// The times off the CPU of a thread, if any.
    fn off_times(&self, execution: &Execution, thread: ThreadIndex) -> Option<&OffTimes> {
        let off = self.off_cpu.get(thread.index())?;
        let off = off.get_or_init(|| OffTimes::of(execution, thread, self.long_off_ns));
        Some(off).filter(|off| !off.is_empty())
    }

    /// Marks intervals of a thread's time with a flag, in addition to existing marks.
    pub fn mark(&mut self, thread: ThreadIndex, flags: Flags, stretches: Vec<(u64, u64)>) {
        if let Some(marks) = self.marks.get_mut(thread.index())
            && !stretches.is_empty()
        {
            marks.push(Marks::new(flags, stretches));
        }
    }

    /// Minimum length of a wait in `state` that is flagged as long, nanoseconds; `None` if never.
    pub fn long_wait_ns(&self, state: State) -> Option<u64> {
        Some(self.rules.long_ns[state as usize]).filter(|ns| *ns != u64::MAX)
    }

    /// The pyramid of a thread.
    pub fn pyramid(&self, thread: ThreadIndex) -> Option<&Pyramid> {
        self.pyramids.get(thread.index())
    }

    /// Memory of all pyramids, in bytes.
    pub fn bytes(&self) -> usize {
        self.pyramids.iter().map(Pyramid::bytes).sum()
    }

    /// The buckets of one thread in a window; empty for an unknown thread.
    pub fn buckets(&self, execution: &Execution, thread: ThreadIndex, window: Window) -> Vec<Bucket> {
        let mut buckets = Vec::with_capacity(window.count as usize);
        if let (Some(row), Some(pyramid)) = (execution.threads.get(thread.index()), self.pyramid(thread)) {
            pyramid.buckets(&row.track, window, |bucket| buckets.push(bucket));
            for marks in &self.marks[thread.index()] {
                marks.flag(window, &mut buckets);
            }
            if let Some(off) = self.off_times(execution, thread) {
                off.flag(window, &mut buckets);
            }
        }
        buckets
    }

    /// The buckets of several threads in a window, in parallel.
    pub fn viewport(
        &self,
        execution: &Execution,
        threads: &[ThreadIndex],
        window: Window,
    ) -> Vec<Vec<Bucket>> {
        threads.par_iter().map(|thread| self.buckets(execution, *thread, window)).collect()
    }

    /// Exact nanoseconds by state of a thread in `[from, to)`. Time without a CPU is in the state for it. Time before
    /// its first event and after its end is in none.
    pub fn sums(&self, execution: &Execution, thread: ThreadIndex, from: u64, to: u64) -> [u64; CLASSES] {
        match (execution.threads.get(thread.index()), self.pyramid(thread)) {
            (Some(row), Some(pyramid)) => {
                let mut sums = pyramid.sums(&row.track, from, to);
                if let Some(off) = self.off_times(execution, thread) {
                    off.move_sums(from, to, &mut sums);
                }
                sums
            }
            _ => [0; CLASSES],
        }
    }

    /// Thread-nanoseconds by state in every bucket of a window, summed over `threads`: `[bucket][state]`. Time taken by
    /// the operating system is in the states of its causes, as in the report. Divided by the bucket's width, it is the
    /// average number of threads in the state.
    pub fn breakdown(
        &self,
        execution: &Execution,
        threads: &[ThreadIndex],
        window: Window,
    ) -> Vec<[u64; State::ALL.len()]> {
        let zero = || vec![[0_u64; State::ALL.len()]; window.count as usize];
        let add = |mut sums: Vec<[u64; State::ALL.len()]>, thread: &ThreadIndex| {
            if let (Some(row), Some(pyramid)) = (execution.threads.get(thread.index()), self.pyramid(*thread))
            {
                pyramid.shares_of(&row.track, window, |bucket, class, ns| {
                    if let Some(sum) = sums.get_mut(bucket).and_then(|s| s.get_mut(class as usize)) {
                        *sum += ns;
                    }
                });
            }
            if let Some(off) = self.off_times(execution, *thread) {
                off.shares_of(window, |bucket, under, cause, ns| {
                    if let Some(sum) =
                        sums.get_mut(bucket).filter(|sum| sum.get(under).is_some_and(|of| *of >= ns))
                    {
                        sum[under] -= ns;
                        sum[cause.state() as usize] += ns;
                    }
                });
            }
            sums
        };
        let join = |mut left: Vec<[u64; State::ALL.len()]>, right: Vec<[u64; State::ALL.len()]>| {
            for (left, right) in left.iter_mut().flatten().zip(right.iter().flatten()) {
                *left += right;
            }
            left
        };
        threads.par_iter().fold(zero, add).reduce(zero, join)
    }
}

/// The rules for flags: waits that are long for their kind in this run. Uncertain intervals are always flagged.
fn flag_rules(execution: &Execution) -> FlagRules {
    let mut rules = FlagRules { long_ns: long_waits(execution), ..FlagRules::default() };
    rules.always[State::Unknown as usize] = Flags::UNCERTAIN;
    rules
}
