//! The tasks that run at an instant, and the waiting charged to them.

use super::contexts::Contexts;
use crate::turns::turns_of;
use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, NO_TIME, TaskIndex, ThreadIndex};
use taskscope_profile::{Frame, Marker, Metric, ROOT, Tree};

/// Begin, end, task.
pub type Life = (u64, u64, TaskIndex);

/// Times in which tasks ran, by the thread that ran them.
#[derive(Default)]
pub struct Running {
    threads: FxHashMap<ThreadIndex, Lives>,
}

#[derive(Default)]
struct Lives {
    /// Lifetimes by begin.
    lives: Vec<Life>,
    /// The latest end of this one and all before.
    latest: Vec<u64>,
}

impl Running {
    /// The lives of these tasks.
    pub fn of(execution: &Execution, tasks: impl IntoIterator<Item = TaskIndex>) -> Running {
        let of = &execution.tasks;
        let begun = tasks.into_iter().filter(|task| of.began[task.index()] != NO_TIME);
        let mut lives: Vec<Life> =
            begun.map(|task| (of.began[task.index()], of.ended[task.index()], task)).collect();
        lives.sort_unstable();
        let mut running = Running::default();
        lives.into_iter().for_each(|life| running.push(of.runner[life.2.index()], life));
        running
    }

    /// Adds a life; those of one thread come by begin.
    pub fn push(&mut self, thread: ThreadIndex, life: Life) {
        let row = self.threads.entry(thread).or_default();
        row.latest.push(row.latest.last().copied().unwrap_or(0).max(life.1));
        row.lives.push(life);
    }

    /// The lifetimes that overlap a time, by begin. A thread runs one task at a time, except nested ones, so
    /// few are examined.
    pub fn during(&self, start: u64, end: u64) -> Vec<Life> {
        let mut found = Vec::new();
        for row in self.threads.values() {
            let first = row.latest.partition_point(|latest| *latest <= start);
            let own = row.lives[first..].iter().take_while(|(began, ..)| *began < end);
            found.extend(own.filter(|(_, ended, _)| *ended > start));
        }
        found.sort_unstable();
        found
    }
}

/// Charges the part's nanoseconds of a wait, in turns, to the tasks that run then; none if none runs.
pub fn give_to_running(
    contexts: &mut Contexts<'_>,
    tree: &mut Tree,
    marker: Marker,
    (start, end): (u64, u64),
    running: &Running,
) {
    let Some((start, end)) = contexts.part.within(start, end) else { return };
    let running = running.during(start, end);
    let mut borders: Vec<u64> = running.iter().flat_map(|(from, to, _)| [*from, *to]).collect();
    borders.extend([start, end]);
    borders.retain(|at| (start..=end).contains(at));
    borders.sort_unstable();
    borders.dedup();
    // Those that run, by begin: few of a wait with many tasks at a time.
    let (mut coming, mut now) = (running.into_iter().peekable(), Vec::<Life>::new());
    for pair in borders.windows(2) {
        while let Some(life) = coming.next_if(|(from, ..)| *from <= pair[0]) {
            now.push(life);
        }
        now.retain(|(_, to, _)| *to >= pair[1]);
        let length = pair[1] - pair[0];
        if now.is_empty() {
            let nobody = tree.child(ROOT, Frame::state(Marker::Nobody));
            tree.add(nobody, Metric::given(marker), length);
            continue;
        }
        let count = now.len() as u64;
        for (number, (.., task)) in now.iter().enumerate() {
            let part = turns_of(number as u64, count, pair[0], pair[1]);
            let context = contexts.created_at(tree, *task);
            let body = contexts.body(tree, context);
            tree.add(body, Metric::given(marker), part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_overlap_a_time_are_found() {
        let mut running = Running::default();
        let task = TaskIndex;
        running.push(ThreadIndex(0), (0, 100, task(0)));
        running.push(ThreadIndex(0), (10, 20, task(1)));
        running.push(ThreadIndex(1), (30, 40, task(2)));
        let found = |start, end| running.during(start, end).iter().map(|life| life.2.0).collect::<Vec<_>>();
        assert_eq!(found(15, 35), [0, 1, 2]);
        assert_eq!(found(20, 30), [0]);
        assert_eq!(found(100, 110), [0; 0]);
    }
}
