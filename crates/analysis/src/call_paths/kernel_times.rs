//! Time of threads without recorded states: the kernel has its activity, samples its place.
//!
//! ```text
//! kernel       | runs      | blocked             | runs | no CPU  | runs |
//! samples            a     b                     c           d        e
//! their times  |--a--|--b--|----------c----------|-----d-----|---e----|++|
//! booked       a: runs       c: blocked            d: runs, no CPU
//! ```
//! A thread that runs for less than the time between samples, between waits, is seen in few of its runs: their time has the path of its next
//! sample on a CPU, and blocked time that of its next sample in a wait, so that each path has its share of each activity.
//!
//! A sample represents the time before it, as long as its weight. Time that none represents has the next sample, or the one before, at
//! a distance of its weight at most (`++`); other time has no known path. Each nanosecond has one activity and one path, whatever the
//! part of the run: so parts add up, and the sums of activities are those of the threads' table.

use super::contexts::Contexts;
use super::sampled::Placed;
use crate::cpu_time::{ThreadActivities, ThreadActivity};
use taskscope_event::models::samples::flag;
use taskscope_execution::samples::Sample;
use taskscope_execution::{OsSource, ThreadIndex};
use taskscope_profile::{Marker, Metric, NodeId, Tree};

/// A part of a thread's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    /// First nanosecond after it; it begins at the end of the one before.
    until: u64,
    /// The sample that represents it, by its number in the run; `None` if none does.
    sample: Option<usize>,
}

/// The samples of a thread by time, and the activities of its life.
pub struct KernelTimes {
    windows: Vec<Window>,
    /// Numbers of the samples that were taken on a CPU, and of those in waits; in the order of time, which is that of the numbers.
    running: Vec<usize>,
    blocked: Vec<usize>,
    activities: Vec<(u64, u64, ThreadActivity)>,
    /// Whether the kernel's times are recorded of the thread.
    is_known: bool,
}

impl KernelTimes {
    /// Those of a thread of the whole run, with these of its samples: numbers in the run, in the order of time.
    pub fn of(
        contexts: &Contexts<'_>,
        activities: &ThreadActivities<'_>,
        thread: ThreadIndex,
        samples: impl Iterator<Item = usize>,
    ) -> KernelTimes {
        let execution = contexts.execution;
        let mut own = Vec::new();
        activities.each(thread, &mut |from, until, activity| own.push((from, until, activity)));
        let (mut running, mut blocked) = (Vec::new(), Vec::new());
        let times = samples.map(|number| {
            let sample = &execution.samples.rows[number];
            match is_in_wait(sample, &own) {
                Some(true) => blocked.push(number),
                Some(false) => running.push(number),
                None => {}
            }
            (number, sample.at, sample.weight_ns)
        });
        let windows = windows(&times.collect::<Vec<_>>());
        let is_known = execution.threads[thread.index()].os_source != OsSource::Unknown;
        KernelTimes { windows, running, blocked, activities: own, is_known }
    }

    /// Adds the part's time of a thread from `start` to `end`. Time without a path is at a node, or is left out. Returns the
    /// nanoseconds that were added.
    pub fn add(
        &self,
        contexts: &Contexts<'_>,
        tree: &mut Tree,
        placed: &[Placed],
        (start, end): (u64, u64),
        without_path: Option<NodeId>,
    ) -> u64 {
        let Some((start, end)) = contexts.part.within(start, end) else { return 0 };
        let mut added = 0;
        let first = self.activities.partition_point(|(_, until, _)| *until <= start);
        let mut window = self.windows.partition_point(|window| window.until <= start);
        let mut at = start;
        for (from, until, activity) in &self.activities[first..] {
            if *from >= end {
                break;
            }
            at = at.max(*from);
            let until = (*until).min(end);
            while at < until {
                let now = self.windows.get(window).copied();
                let now = now.unwrap_or(Window { until: u64::MAX, sample: None });
                let next = now.until.min(until);
                let sample = now.sample.map(|number| placed[self.with_activity(number, *activity)]);
                if let Some(node) = sample.map(|placed| placed.node).or(without_path) {
                    add(
                        tree,
                        node,
                        self.metric(*activity, sample.and_then(|placed| placed.state)),
                        next - at,
                    );
                    added += next - at;
                }
                at = next;
                window += usize::from(now.until <= at);
            }
        }
        added
    }

    /// The sample whose path time with this activity has, of the time that sample `number` represents.
    fn with_activity(&self, number: usize, activity: ThreadActivity) -> usize {
        let alike = match activity {
            ThreadActivity::Runs => &self.running,
            ThreadActivity::IsBlocked | ThreadActivity::Waits(_) => &self.blocked,
            ThreadActivity::HasNoCpu | ThreadActivity::NotKnown => return number,
        };
        let next = alike.partition_point(|other| *other < number);
        alike.get(next).or(alike.last()).copied().unwrap_or(number)
    }

    /// The metric of an activity in a sampled state.
    fn metric(&self, activity: ThreadActivity, state: Option<(Marker, NodeId)>) -> Option<Metric> {
        match activity {
            ThreadActivity::HasNoCpu => Some(Metric::OUT_OF_CPU),
            ThreadActivity::IsBlocked | ThreadActivity::Waits(_) => Some(Metric::BLOCKED),
            // A process that was killed has lost its newest records.
            ThreadActivity::NotKnown if self.is_known => None,
            ThreadActivity::Runs | ThreadActivity::NotKnown if state.is_some() => Some(Metric::RUNTIME),
            ThreadActivity::Runs | ThreadActivity::NotKnown => Some(Metric::WORK),
        }
    }
}

/// Adds time that is also that of a metric.
pub fn add(tree: &mut Tree, node: NodeId, metric: Option<Metric>, ns: u64) {
    if ns > 0 {
        tree.add(node, Metric::TIME, ns);
        if let Some(metric) = metric {
            tree.add(node, metric, ns);
        }
    }
}

/// Whether a sample was taken in a wait of its thread, which its signal may have woken; `None` if that is not known.
fn is_in_wait(sample: &Sample, activities: &[(u64, u64, ThreadActivity)]) -> Option<bool> {
    if sample.flags & (flag::AFTER_BLOCKING | flag::IN_SYSTEM_CALL) != 0 {
        return Some(true);
    }
    let row = activities.partition_point(|(_, until, _)| *until < sample.at);
    match activities.get(row)?.2 {
        ThreadActivity::Runs => Some(false),
        ThreadActivity::IsBlocked | ThreadActivity::Waits(_) => Some(true),
        ThreadActivity::HasNoCpu | ThreadActivity::NotKnown => None,
    }
}

/// The windows of samples with numbers, times and weights, in the order of time.
fn windows(samples: &[(usize, u64, u64)]) -> Vec<Window> {
    let mut windows = Vec::with_capacity(samples.len() + 2);
    let push = |windows: &mut Vec<Window>, until: u64, sample: Option<usize>| {
        let from = windows.last().map_or(0, |window| window.until);
        match windows.last_mut() {
            _ if until <= from => {}
            Some(last) if last.sample == sample => last.until = until,
            _ => windows.push(Window { until, sample }),
        }
    };
    let mut before: Option<(usize, u64, u64)> = None;
    for (row, (number, at, weight)) in samples.iter().copied().enumerate() {
        let begin = at.saturating_sub(weight).max(before.map_or(0, |(_, at, _)| at));
        // A call that delays its sample is all that the sample represents: the time before the call belongs to the next one.
        let later = samples.get(row + 1).map(|(number, at, weight)| (*number, at.saturating_sub(*weight)));
        let later = later.filter(|(_, from)| *from < begin);
        if let Some((number, at, weight)) = before {
            let end = later.map_or(begin, |(_, from)| from);
            push(&mut windows, at.saturating_add(weight).min(end), Some(number));
        }
        let (from, next) =
            later.map_or((begin.saturating_sub(weight), number), |(number, from)| (from, number));
        push(&mut windows, from, None);
        push(&mut windows, begin, Some(next));
        push(&mut windows, at, Some(number));
        before = Some((number, at, weight));
    }
    if let Some((number, at, weight)) = before {
        push(&mut windows, at.saturating_add(weight), Some(number));
    }
    windows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(samples: &[(usize, u64, u64)]) -> Vec<(u64, Option<usize>)> {
        windows(samples).into_iter().map(|window| (window.until, window.sample)).collect()
    }

    #[test]
    fn runs_between_waits_have_the_paths_of_samples_on_a_cpu() {
        // Sample 1 is in a wait, and represents a run before it; sample 3 is on a CPU.
        let times = KernelTimes {
            windows: Vec::new(),
            running: vec![3, 7],
            blocked: vec![1, 2, 5],
            activities: Vec::new(),
            is_known: true,
        };
        let of = |number, activity| times.with_activity(number, activity);
        assert_eq!((of(1, ThreadActivity::Runs), of(1, ThreadActivity::IsBlocked)), (3, 1));
        assert_eq!((of(3, ThreadActivity::Waits(0)), of(3, ThreadActivity::HasNoCpu)), (5, 3));
        // No later one is alike: the last before.
        assert_eq!((of(9, ThreadActivity::Runs), of(7, ThreadActivity::IsBlocked)), (7, 5));
        let blind = KernelTimes { running: Vec::new(), ..times };
        assert_eq!(blind.with_activity(1, ThreadActivity::Runs), 1);
    }

    #[test]
    fn samples_represent_the_time_before_them() {
        assert_eq!(of(&[]), []);
        // The last one as long again.
        assert_eq!(of(&[(4, 100, 100), (5, 200, 100)]), [(100, Some(4)), (300, Some(5))]);
    }

    #[test]
    fn time_without_a_sample_is_that_of_its_neighbours_or_of_none() {
        let far_apart = [(0, 100, 10), (1, 500, 50)];
        assert_eq!(of(&far_apart), [(80, None), (110, Some(0)), (400, None), (550, Some(1))]);
        // Without a weight they represent none.
        assert_eq!(of(&[(0, 100, 0)]), [(100, None)]);
    }

    #[test]
    fn the_time_before_a_delayed_call_belongs_to_the_next_sample() {
        // The call began at 190; the sample after it represents 110 to 190, too.
        let delayed = [(0, 100, 100), (1, 200, 10), (2, 220, 110)];
        assert_eq!(of(&delayed), [(110, Some(0)), (190, Some(2)), (200, Some(1)), (330, Some(2))]);
    }
}
