//! Waits that can never be over, and the circle of those that need each other.

use super::ends::{End, Ends, is_idle};
use super::{Hang, Needed, OpenWait};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use taskscope_execution::{Group, ProcessIndex, Section, State, ThreadIndex};

/// A shorter wait in a barrier or for a rank may be over although the thread has not left it yet.
const MIN_WAIT_NS: u64 = 100_000_000;
/// Threads from which circles are looked for.
const MAX_STARTS: usize = 64;

impl Ends<'_> {
    /// Threads with waits that can never end: threads that do not need such a thread or one that has exited
    /// are removed one by one.
    pub fn stuck(&self) -> FxHashSet<ThreadIndex> {
        let is_sure = |wait: &OpenWait| match wait.span.section.state.group() {
            Group::Mutex => true,
            _ => !self.proper[self.process(wait.thread).index()] && wait.span.nanos() >= MIN_WAIT_NS,
        };
        let mut stuck: FxHashSet<ThreadIndex> =
            self.waits.values().filter(|wait| is_sure(wait)).map(|wait| wait.thread).collect();
        let mut by_process = vec![Vec::new(); self.proper.len()];
        for (thread, _) in self.all() {
            by_process[self.process(thread).index()].push(thread);
        }
        loop {
            let is_free = |thread: &&ThreadIndex| {
                let OpenWait { needs, any, .. } = &self.waits[*thread];
                let mut never = needs.iter().map(|needed| self.never_comes(*needed, &stuck, &by_process));
                needs.is_empty() || if *any { never.any(|never| !never) } else { !never.any(|never| never) }
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

    fn never_comes(
        &self,
        needed: Needed,
        stuck: &FxHashSet<ThreadIndex>,
        by_process: &[Vec<ThreadIndex>],
    ) -> bool {
        let is_out =
            |thread: ThreadIndex| stuck.contains(&thread) || self.end(thread).is_some_and(|end| end.gone);
        match needed {
            Needed::Holder { thread, .. } | Needed::Member(thread) => is_out(thread),
            Needed::Task(_, thread) => thread.is_some() && is_out(thread),
            Needed::Rank { process, .. } => process.is_some_and(|process| {
                let own = by_process.get(process.index()).map_or(&[][..], Vec::as_slice);
                let has_no_work = |thread| self.end(thread).is_some_and(|end| self.has_no_work(end));
                let is_over = |thread: &ThreadIndex| is_out(*thread) || has_no_work(*thread);
                !own.is_empty() && (self.proper[process.index()] || own.iter().all(is_over))
            }),
        }
    }

    /// Whether a thread waits for work that another thread of its process would have to give it.
    fn has_no_work(&self, end: &End) -> bool {
        let Section { state, region, .. } = end.span.section;
        is_idle(state) || state == State::JoinBarrier && self.has_ended(region)
    }

    pub fn deadlock(&self, stuck: &FxHashSet<ThreadIndex>) -> Hang {
        let circle = self.circle(stuck);
        let begins = circle.iter().map(|thread| self.waits[thread].span.start);
        let since =
            begins.max().unwrap_or_else(|| stuck.iter().map(|t| self.waits[t].span.start).min().unwrap_or(0));
        self.hang(true, &circle, stuck.iter().copied(), since)
    }

    /// The shortest list of threads that need each other in a circle, from the one that got into it last.
    fn circle(&self, stuck: &FxHashSet<ThreadIndex>) -> Vec<ThreadIndex> {
        let mut starts: Vec<ThreadIndex> = stuck.iter().copied().collect();
        starts.sort_unstable();
        let next: FxHashMap<ThreadIndex, Vec<ThreadIndex>> =
            starts.iter().map(|thread| (*thread, self.needed_threads(*thread, stuck))).collect();
        let circles = starts.iter().take(MAX_STARTS).filter_map(|start| circle_of(*start, &next));
        let Some(mut circle) = circles.min_by_key(Vec::len) else { return Vec::new() };
        let last = (0..circle.len()).max_by_key(|row| self.waits[&circle[*row]].span.start).unwrap_or(0);
        circle.rotate_left(last);
        circle
    }

    /// The threads of the set that a thread of the set needs; one per process.
    fn needed_threads(&self, thread: ThreadIndex, stuck: &FxHashSet<ThreadIndex>) -> Vec<ThreadIndex> {
        let nearest_in_process = |process: ProcessIndex| {
            let own = stuck.iter().copied().filter(|thread| self.process(*thread) == process);
            // All of them are stuck; one in a call of the library is the nearest to ending the wait.
            own.min_by_key(|thread| (self.waits[thread].span.section.state != State::Communication, *thread))
        };
        let threads = self.waits[&thread].needs.iter().filter_map(|needed| match *needed {
            Needed::Holder { thread, .. } | Needed::Member(thread) | Needed::Task(_, thread) => Some(thread),
            Needed::Rank { process, .. } => nearest_in_process(process?),
        });
        threads.filter(|thread| stuck.contains(thread)).collect()
    }
}

/// The shortest way from a thread to itself.
fn circle_of(
    start: ThreadIndex,
    next: &FxHashMap<ThreadIndex, Vec<ThreadIndex>>,
) -> Option<Vec<ThreadIndex>> {
    let mut from: FxHashMap<ThreadIndex, ThreadIndex> = FxHashMap::default();
    let mut ahead = VecDeque::from([start]);
    while let Some(thread) = ahead.pop_front() {
        for needed in next.get(&thread).into_iter().flatten() {
            if *needed == start {
                let mut circle = vec![thread];
                while let Some(before) = from.get(circle.last()?).filter(|_| circle.last() != Some(&start)) {
                    circle.push(*before);
                }
                circle.reverse();
                return Some(circle);
            }
            if *needed != start && !from.contains_key(needed) {
                from.insert(*needed, thread);
                ahead.push_back(*needed);
            }
        }
    }
    None
}
