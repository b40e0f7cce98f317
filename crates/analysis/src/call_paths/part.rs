//! The selected part of a run, and its shares of amounts of the whole run.
//!
//! A run is analysed as a whole, then cut: an amount of nanoseconds, such as all time of a thread in one state at one place, is
//! divided among shares (samples, say) by their weights, and the part has its nanoseconds of each share.
//!
//! ```text
//! nanoseconds of the amount   0 ┄┄ before ┄┄ before + ns ┄┄ all
//! shares in order             |  first   |    second    |third|     each nanosecond has one share
//! shares in turns             |first second third first second┄     the first nanoseconds have all shares in proportion
//! ```
//!
//! Both divisions depend on the number of a nanosecond alone. So those of consecutive parts sum to that of the whole.

use taskscope_execution::{Execution, ThreadIndex};

/// Some of the time, and some of the threads, of a run.
#[derive(Clone, Copy)]
pub struct Part<'a> {
    /// The part as an execution of its own, with its own numbers of tasks and regions.
    pub execution: &'a Execution,
    begin: u64,
    end: u64,
}

impl<'a> Part<'a> {
    /// The part of the whole run that an execution is.
    pub fn of(execution: &'a Execution) -> Part<'a> {
        let (begin, end) = execution.part_of_time();
        Part { execution, begin, end }
    }

    /// Whether it has all the time of the run.
    pub fn is_whole(&self) -> bool {
        (self.begin, self.end) == (0, u64::MAX)
    }

    /// Whether the time of this thread is selected.
    pub fn has_thread(&self, thread: ThreadIndex) -> bool {
        self.execution.is_selected(thread)
    }

    /// The selected workers, in the order of threads.
    pub fn workers(&self) -> impl Iterator<Item = ThreadIndex> + use<'a> {
        self.execution.selected_workers().map(|(thread, _)| thread)
    }

    /// Whether a thread is one of them.
    pub fn is_worker(&self, thread: ThreadIndex) -> bool {
        self.execution.threads.get(thread.index()).is_some_and(|row| row.worker && row.selected)
    }

    /// Whether this instant is in it.
    pub fn has(&self, at: u64) -> bool {
        (self.begin..self.end).contains(&at)
    }

    /// Its borders inside of the run.
    pub fn borders(&self) -> impl Iterator<Item = u64> + use<> {
        [self.begin, self.end].into_iter().filter(|border| ![0, u64::MAX].contains(border))
    }

    /// The part of an interval in it; `None` if it is empty.
    pub fn within(&self, start: u64, end: u64) -> Option<(u64, u64)> {
        let (start, end) = (start.max(self.begin), end.min(self.end));
        (start < end).then_some((start, end))
    }

    /// Nanoseconds of an interval in it.
    pub fn ns_of(&self, start: u64, end: u64) -> u64 {
        self.within(start, end).map_or(0, |(start, end)| end - start)
    }

    /// Adds an interval to an amount.
    pub fn add(&self, amount: &mut Amount, start: u64, end: u64) {
        amount.before += end.min(self.begin).saturating_sub(start);
        amount.ns += self.ns_of(start, end);
        amount.all += end.saturating_sub(start);
    }
}

/// Nanoseconds of the whole run, and those of a part of it.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Amount {
    /// Those before the part.
    pub before: u64,
    /// Those of the part.
    pub ns: u64,
    /// All of the run.
    pub all: u64,
}

impl Amount {
    /// The part's nanoseconds of each share if each nanosecond belongs to one share, in the order of the shares. Without any weight
    /// all belong to the last one.
    pub fn in_order(self, weights: &[u64]) -> Vec<u64> {
        let total: u128 = weights.iter().map(|weight| u128::from(*weight)).sum();
        let (from, until) = (self.before, self.before + self.ns);
        let (mut running, mut begin) = (0_u128, 0_u64);
        let mut parts: Vec<u64> = weights
            .iter()
            .map(|weight| {
                running += u128::from(*weight);
                // Neither is more than 64 bits, so the product is not more than 128.
                let (running, total) = (running.min(u64::MAX.into()), total.clamp(1, u64::MAX.into()));
                let end = (running * u128::from(self.all) / total) as u64;
                let own = end.min(until).saturating_sub(begin.max(from));
                begin = end;
                own
            })
            .collect();
        if let Some(last) = parts.last_mut() {
            *last += until.saturating_sub(begin.max(from));
        }
        parts
    }

    /// The part's nanoseconds of each share if the shares take turns, in proportion to their weights.
    pub fn in_turns(self, weights: &[u128]) -> Vec<u64> {
        let mut parts = in_turns(self.before + self.ns, weights);
        let before = in_turns(self.before, weights);
        parts.iter_mut().zip(before).for_each(|(part, before)| *part -= before);
        parts
    }

    /// Its division among classes that take turns by their weights: an amount for each.
    pub fn classes(self, weights: &[u128]) -> Vec<Amount> {
        let before = in_turns(self.before, weights);
        let until = in_turns(self.before + self.ns, weights);
        let all = in_turns(self.all, weights);
        let of = |class: usize| Amount {
            before: before[class],
            ns: until[class] - before[class],
            all: all[class],
        };
        (0..weights.len()).map(of).collect()
    }
}

/// The first `ns` nanoseconds, divided among shares. Each has its proportion of the nanoseconds that those before it leave, so one
/// nanosecond more is added to one of them. Without any weight all belong to the last one.
fn in_turns(ns: u64, weights: &[u128]) -> Vec<u64> {
    let total = weights.iter().fold(0, |sum: u128, weight| sum.saturating_add(*weight));
    // Keeps products within 128 bits.
    let spare = (128 - total.leading_zeros()).saturating_sub(63);
    let weight_of = |weight: &u128| weight >> spare;
    let (mut left_ns, mut left) = (ns, weights.iter().map(weight_of).sum::<u128>());
    let mut parts: Vec<u64> = weights
        .iter()
        .map(|weight| {
            let weight = weight_of(weight);
            let own = (u128::from(left_ns) * weight).checked_div(left).unwrap_or(0) as u64;
            left_ns -= own;
            left -= weight;
            own
        })
        .collect();
    if let Some(last) = parts.last_mut() {
        *last += left_ns;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTS: [[u64; 4]; 6] =
        [[10, 1, 21, 0], [1, 1, 1, 1], [0, 7, 0, 2], [13, 0, 19, 5], [0, 0, 0, 3], [0; 4]];

    /// Two consecutive parts, cut anywhere, and each nanosecond alone.
    #[test]
    fn divisions_of_parts_sum_to_that_of_the_whole() {
        let all = 50;
        for weights in WEIGHTS {
            let wide = weights.map(u128::from);
            let part = |before, ns| Amount { before, ns, all };
            type Division<'d> = &'d dyn Fn(Amount) -> Vec<u64>;
            let divisions: [Division<'_>; 2] =
                [&|part| part.in_order(&weights), &|part| part.in_turns(&wide)];
            for divide in divisions {
                let whole = divide(part(0, all));
                assert_eq!(whole.iter().sum::<u64>(), all, "{weights:?}");
                let mut sums = vec![0; weights.len()];
                for at in 0..all {
                    let one = divide(part(at, 1));
                    assert_eq!(one.iter().sum::<u64>(), 1, "{weights:?} {at}");
                    sums.iter_mut().zip(one).for_each(|(sum, ns)| *sum += ns);
                    let two = divide(part(0, at)).into_iter().zip(divide(part(at, all - at)));
                    assert_eq!(two.map(|(a, b)| a + b).collect::<Vec<_>>(), whole, "{weights:?} {at}");
                }
                assert_eq!(sums, whole, "{weights:?}");
            }
            let ns: u64 = part(7, 20).classes(&wide).iter().map(|class| class.ns).sum();
            assert_eq!(ns, 20);
        }
    }

    #[test]
    fn weights_are_proportions() {
        let whole = Amount { before: 0, ns: 32, all: 32 };
        assert_eq!(whole.in_order(&[10, 1, 21]), [10, 1, 21]);
        assert_eq!(whole.in_turns(&[10, 1, 21]), [10, 1, 21]);
        assert_eq!(Amount { before: 9, ns: 3, all: 32 }.in_order(&[10, 1, 21]), [1, 1, 1]);
        let huge = Amount { before: 0, ns: u64::MAX, all: u64::MAX };
        assert_eq!(huge.in_order(&[u64::MAX, u64::MAX]).iter().sum::<u64>(), u64::MAX);
        assert_eq!(huge.in_turns(&[u128::MAX / 2, u128::MAX / 2]).iter().sum::<u64>(), u64::MAX);
    }
}
