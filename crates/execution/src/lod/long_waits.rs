//! Waits that are long for their kind.
//!
//! A mark leads the eye to a wait, so few have one: of each state the longest waits, if they are exceptional and so large that they
//! matter.
//!
//! ```text
//!   waits of a state, longest first   L1 ≥ L2 ≥ … ≥ Lk ≥ Lk+1 ≥ …
//!   typical                           half of the state's time is in waits that are shorter
//!   marked                            L1 … Lk, k largest: an eighth of the waits and 16 at most; together half of the state's time or less
//!                                     (L1 alone may be more); each a thousandth of the run or more;
//!                                     and each four times the typical one, or twice as long as Lk+1
//! ```
//! Many short waits beside longer ones, as of polling, are little time, so they do not make the longer ones exceptional. Of waits that are
//! alike none is marked, and one that is most of the time is, though it is itself typical of the time.

use super::steps::CLASSES;
use crate::{Execution, Group, State, Thread};
use rayon::prelude::*;

/// Marked waits of a state at most, and one of so many.
const MOST: usize = 16;
const ONE_OF: u64 = 8;
/// Times the typical length.
const TIMES_TYPICAL: u64 = 4;
/// Least part of the run.
pub(super) const PART_OF_RUN: u64 = 1_000;

/// Lengths of the waits of a state.
#[derive(Clone, Debug)]
struct Lengths {
    /// The longest, longest first: one more than may be marked.
    longest: Vec<u64>,
    /// Nanoseconds by the number of bits of the length.
    by_bits: [u64; 65],
    count: u64,
}

impl Lengths {
    const NONE: Lengths = Lengths { longest: Vec::new(), by_bits: [0; 65], count: 0 };

    fn add(&mut self, ns: u64) {
        self.count += 1;
        let sum = &mut self.by_bits[bits_of(ns)];
        *sum = sum.saturating_add(ns);
        self.keep(ns);
    }

    fn keep(&mut self, ns: u64) {
        if self.longest.len() > MOST {
            if self.longest[MOST] >= ns {
                return;
            }
            self.longest.pop();
        }
        let at = self.longest.partition_point(|longer| *longer >= ns);
        self.longest.insert(at, ns);
    }

    /// Waits that may be marked.
    fn most(&self) -> usize {
        (self.count / ONE_OF).clamp(1, MOST as u64) as usize
    }

    fn join(&mut self, other: &Lengths) {
        self.count += other.count;
        self.by_bits.iter_mut().zip(other.by_bits).for_each(|(sum, ns)| *sum = sum.saturating_add(ns));
        other.longest.iter().for_each(|ns| self.keep(*ns));
    }

    fn all_ns(&self) -> u64 {
        self.by_bits.iter().fold(0_u64, |sum, ns| sum.saturating_add(*ns))
    }

    /// The length of which half of the time is in shorter waits, down to a power of two.
    fn typical(&self) -> u64 {
        let half = self.all_ns().div_ceil(2);
        let mut below = 0_u64;
        let middle = self.by_bits.iter().position(|ns| {
            below = below.saturating_add(*ns);
            below > 0 && below >= half
        });
        middle.map_or(0, |bits| 1 << bits.saturating_sub(1))
    }

    /// The length from which on waits are marked; `None` if none is.
    fn long_from(&self, run_ns: u64) -> Option<u64> {
        let (half, least) = (self.all_ns() / 2, (run_ns / PART_OF_RUN).max(1));
        let exceptional = self.typical().saturating_mul(TIMES_TYPICAL);
        let (mut sum, mut long) = (0_u64, None);
        let pairs = self.longest.iter().zip(self.longest.iter().skip(1)).take(self.most());
        for (number, (ns, next)) in pairs.enumerate() {
            sum = sum.saturating_add(*ns);
            if *ns < least || (number > 0 && sum > half) {
                break;
            }
            // Of equal ones all are marked or none.
            if (*ns >= exceptional && next < ns) || *next <= ns / 2 {
                long = Some(*ns);
            }
        }
        long
    }
}

fn bits_of(ns: u64) -> usize {
    (u64::BITS - ns.leading_zeros()) as usize
}

/// A state in which a thread waits for something.
fn is_wait(state: State) -> bool {
    matches!(state.group(), Group::Sync | Group::Device | Group::Mutex)
}

/// The length from which on waits of each state are long in a run; `u64::MAX` if none is.
pub(super) fn long_waits(execution: &Execution) -> [u64; CLASSES] {
    let none = || vec![Lengths::NONE; State::ALL.len()];
    let lengths_of = |thread: &Thread| {
        let mut lengths = none();
        thread.track.for_each_in(
            |state, _| is_wait(state),
            |wait| lengths[wait.section.state as usize].add(wait.nanos()),
        );
        lengths
    };
    let lengths = execution.threads.par_iter().map(lengths_of).reduce(none, |mut left, right| {
        left.iter_mut().zip(&right).for_each(|(left, right)| left.join(right));
        left
    });
    let (first, last) = execution.range();
    let mut long_ns = [u64::MAX; CLASSES];
    for (state, lengths) in lengths.iter().enumerate() {
        long_ns[state] = lengths.long_from(last - first).unwrap_or(u64::MAX);
    }
    long_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    fn long_from(waits: impl IntoIterator<Item = u64>, run_ns: u64) -> Option<u64> {
        let (mut even, mut odd) = (Lengths::NONE, Lengths::NONE);
        for (number, ns) in waits.into_iter().enumerate() {
            if number % 2 == 0 { even.add(ns) } else { odd.add(ns) }
        }
        even.join(&odd);
        even.long_from(run_ns)
    }

    #[test]
    fn waits_that_are_alike_have_no_mark() {
        let run = 1_000_000;
        assert_eq!(long_from([5000; 4], run), None);
        assert_eq!(long_from([5000, 5010, 5020, 5030], run), None);
        assert_eq!(long_from((0..100).map(|k| 5000 + k), run), None);
        // Polls between them change nothing.
        let polls = std::iter::repeat_n(2, 10_000);
        assert_eq!(long_from((0..100).map(|k| 5000 + k).chain(polls), run), None);
        assert_eq!(long_from([], run), None);
    }

    #[test]
    fn exceptional_waits_have_a_mark_up_to_half_of_the_time() {
        let run = 1_000_000;
        // A fifth of all time in three waits.
        let usual = || (0..400).map(|k| 900 + k % 100);
        assert_eq!(long_from(usual().chain([20_000, 30_000, 40_000]), run), Some(20_000));
        // The longest one alone is more than half.
        assert_eq!(long_from([900_000, 20_000, 1000, 1000], run), Some(900_000));
        // Sixteen at most, and of equal ones all or none.
        let many = |count: u64| usual().map(|ns| ns * 10).chain((0..count).map(|k| 70_000 + k));
        assert_eq!(long_from(many(16), run), Some(70_000));
        assert_eq!(long_from(usual().map(|ns| ns * 10).chain([70_000; 17]), run), None);
        // Those that differ little from the next ones are no exception, whatever there is besides.
        assert_eq!(long_from((0..27).map(|k| 70_000 + 300 * k).chain((0..900).map(|k| k % 900)), run), None);
        // Less than a thousandth of the run.
        assert_eq!(long_from([1, 1, 1, 1, 1, 900], run), None);
    }
}
