//! Ended tasks, as ranges of their numbers: numbers are assigned consecutively and most tasks end, so memory
//! does not grow with the number of tasks.

use std::collections::BTreeMap;

/// Numbers of tasks of processes.
#[derive(Default)]
pub(crate) struct Ended {
    /// First and last of each range; no two of a process touch.
    ranges: BTreeMap<(u32, u64), u64>,
}

impl Ended {
    /// The range that holds the number, or ends right before it.
    fn range_up_to(&self, process: u32, task: u64) -> Option<(u64, u64)> {
        let (&(_, first), &last) = self.ranges.range((process, 0)..=(process, task)).next_back()?;
        (last >= task || last + 1 == task).then_some((first, last))
    }

    pub fn insert(&mut self, process: u32, task: u64) {
        let first = match self.range_up_to(process, task) {
            Some((_, last)) if last >= task => return,
            Some((first, _)) => first,
            None => task,
        };
        let next = task.checked_add(1).and_then(|next| self.ranges.remove(&(process, next)));
        self.ranges.insert((process, first), next.unwrap_or(task));
    }

    /// Returns whether it was there.
    pub fn remove(&mut self, process: u32, task: u64) -> bool {
        let Some((first, last)) = self.range_up_to(process, task).filter(|(_, last)| *last >= task) else {
            return false;
        };
        self.ranges.remove(&(process, first));
        if first < task {
            self.ranges.insert((process, first), task - 1);
        }
        if task < last {
            self.ranges.insert((process, task + 1), last);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ended_tasks_are_a_set_that_merges_neighbours() {
        let (mut ended, mut naive) = (Ended::default(), HashSet::new());
        let mut dice = 1_u64;
        for _ in 0..20_000 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (process, task) = ((dice >> 60) as u32 % 2, u64::MAX - (dice >> 33) % 60);
            if dice >> 40 & 3 > 0 {
                ended.insert(process, task);
                naive.insert((process, task));
            } else {
                assert_eq!(ended.remove(process, task), naive.remove(&(process, task)));
            }
            let ranges: Vec<_> = ended.ranges.iter().map(|(&(p, first), &last)| (p, first, last)).collect();
            assert!(
                ranges.windows(2).all(|two| two[0].0 != two[1].0 || two[0].2 + 1 < two[1].1),
                "{ranges:?}"
            );
            let held: u64 = ranges.iter().map(|(_, first, last)| last - first + 1).sum();
            assert_eq!(held, naive.len() as u64);
        }
        let mut all = Ended::default();
        (0..100_000).rev().for_each(|task| all.insert(3, task));
        assert_eq!(all.ranges.len(), 1);
    }
}
