//! Whole nanoseconds of shares: of a run, and of every part of it.
//!
//! Working threads are charged fractions of nanoseconds while others wait. For a whole run they are rounded
//! so that they sum to the waiting time ([`apportion`]). The charges of a part of a run are those of the
//! whole until its end minus those until its begin, so consecutive parts add up ([`Division`]). For this, the
//! rounded shares until an instant depend only on the whole run and that instant, never fall as time passes,
//! and sum to the waiting time until then: the run is halved until the instant is reached, and the shares
//! until each half's end are rounded between those at both neighbours.
//!
//! ```text
//! first ───────────────── 1 ───────────────── last     1: between none at `first` and all at `last`
//! first ─────── 2 ─────── 1                            2: between none at `first` and those until 1
//!               2 ── at ─ 1                            the instant: between those until 2 and until 1
//! ```

use std::cmp::Reverse;
use std::ops::Range;

/// Divides `owed` in proportion to `shares`, in whole numbers that sum to it: each part is truncated, and the
/// remainder goes one by one to the largest remainders. All zeros if all shares are zero.
pub(crate) fn apportion(shares: &[u128], owed: u64) -> Vec<u64> {
    if shares.iter().all(|share| *share == 0) {
        return vec![0; shares.len()];
    }
    between(shares, owed, &vec![0; shares.len()], &vec![owed; shares.len()])
}

/// A run, divided so that the shares in a part of it can be rounded: stretches of time, as far as shares must be known.
pub(crate) struct Division {
    run: (u64, u64),
    part: (u64, u64),
    instants: Vec<u64>,
}

impl Division {
    /// Divides a run for one part of it; both have a first nanosecond and a first one after it.
    pub fn of(run: (u64, u64), part: (u64, u64)) -> Division {
        let begin = part.0.clamp(run.0, run.1);
        let part = (begin, part.1.clamp(begin, run.1));
        let mut instants = halvings(run, part.0);
        instants.extend(halvings(run, part.1));
        instants.sort_unstable();
        instants.dedup();
        Division { run, part, instants }
    }

    /// The instants between stretches, in order, strictly within the run.
    pub fn instants(&self) -> &[u64] {
        &self.instants
    }

    /// The stretches of the part.
    pub fn part(&self) -> Range<usize> {
        self.before(self.part.0)..self.before(self.part.1)
    }

    /// The number of stretches before a border of the part, the run, or between stretches.
    fn before(&self, at: u64) -> usize {
        match at {
            at if at <= self.run.0 => 0,
            at => 1 + self.instants.partition_point(|instant| *instant < at),
        }
    }

    /// The rounded shares of the part. `known` returns the shares in so many first intervals, and their
    /// rounded sum.
    pub fn rounded(&self, mut known: impl FnMut(usize) -> (Vec<u128>, u64)) -> Vec<u64> {
        let (begin, end) = self.part;
        let begin = self.until(begin, &mut known);
        let end = self.until(end, &mut known);
        end.into_iter().zip(begin).map(|(end, begin)| end - begin).collect()
    }

    fn until(&self, at: u64, mut known: impl FnMut(usize) -> (Vec<u128>, u64)) -> Vec<u64> {
        let (first, last) = self.run;
        let (shares, owed) = known(self.before(last));
        let mut low = vec![0; shares.len()];
        if at <= first {
            return low;
        }
        let mut high = apportion(&shares, owed);
        if at >= last {
            return high;
        }
        for middle in halvings(self.run, at) {
            let (shares, owed) = known(self.before(middle));
            let now = between(&shares, owed, &low, &high);
            *(if at < middle { &mut high } else { &mut low }) = now;
        }
        low
    }
}

/// Instants strictly within a run at which shares must be known for those until `at`, which is the last of
/// them. Empty if `at` is not within the run.
fn halvings((mut first, mut last): (u64, u64), at: u64) -> Vec<u64> {
    let mut instants = Vec::new();
    while first < at && at < last {
        let middle = first + (last - first) / 2;
        instants.push(middle);
        if middle == at {
            break;
        }
        *(if at < middle { &mut last } else { &mut first }) = middle;
    }
    instants
}

/// Divides `owed` in proportion to `shares`, in whole numbers from `low` to `high` that sum to it. It must be
/// at least the sum of the former, and at most that of the latter.
fn between(shares: &[u128], owed: u64, low: &[u64], high: &[u64]) -> Vec<u64> {
    let total: u128 = shares.iter().sum();
    // Keeps the products below within 128 bits; the truncation error is far below a nanosecond per year.
    let spare = (128 - total.leading_zeros()).saturating_sub(63);
    let shares: Vec<u128> = shares.iter().map(|share| share >> spare).collect();
    let total = shares.iter().sum::<u128>().max(1);
    let exact = |share: u128| (share * u128::from(owed) / total, share * u128::from(owed) % total);
    let bounds = || low.iter().copied().zip(high.iter().copied());
    let whole = shares.iter().zip(bounds());
    let mut given: Vec<u64> =
        whole.map(|(share, (low, high))| exact(*share).0.clamp(low.into(), high.into()) as u64).collect();
    let sum: u128 = given.iter().map(|ns| u128::from(*ns)).sum();
    let owed = u128::from(owed);
    let (mut missing, mut spare) = (owed.saturating_sub(sum), sum.saturating_sub(owed));
    if missing == 0 && spare == 0 {
        return given;
    }
    let mut order: Vec<usize> = (0..shares.len()).collect();
    order.sort_by_key(|row| Reverse(exact(shares[*row]).1));
    // One for each, the largest remainders first. Bounds may leave more to few.
    let mut most = 1;
    while missing > 0 || spare > 0 {
        for row in order.iter().copied() {
            let more = missing.min(u128::from(high[row] - given[row])).min(most);
            given[row] += more as u64;
            missing -= more;
        }
        for row in order.iter().rev().copied() {
            let less = spare.min(u128::from(given[row] - low[row])).min(most);
            given[row] -= less as u64;
            spare -= less;
        }
        if most == u128::MAX {
            break;
        }
        most = if most == 1 { 2 } else { u128::MAX };
    }
    given
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_sum_to_what_is_owed() {
        assert_eq!(apportion(&[1, 1, 1], 10), [4, 3, 3]);
        assert_eq!(apportion(&[0, 5, 0], 7), [0, 7, 0]);
        assert_eq!(apportion(&[0, 0], 7), [0, 0]);
        assert_eq!(apportion(&[1 << 100, 1 << 100], u64::MAX), [1 << 63, (1 << 63) - 1]);
        assert_eq!(apportion(&[1 << 70, 3 << 70], 1 << 40), [1 << 38, 3 << 38]);
    }

    #[test]
    fn halvings_reach_the_instant() {
        assert_eq!(halvings((0, 16), 5), [8, 4, 6, 5]);
        assert_eq!(halvings((10, 12), 11), [11]);
        for outside in [0, 10, 12, 20] {
            assert!(halvings((10, 12), outside).is_empty());
        }
        assert!(halvings((0, u64::MAX), 1).len() <= 64);
    }

    /// Three that share each nanosecond equally, but for some in which only one has a share.
    #[test]
    fn consecutive_parts_add_up() {
        let run = (100, 1100);
        let share = |at: u64| match at % 7 {
            0 => std::array::from_fn(|row| u128::from(at % 3 == row as u64) * 6),
            _ => [2_u128; 3],
        };
        let in_part = |part: (u64, u64)| -> Vec<u64> {
            let division = Division::of(run, part);
            let mut borders = vec![run.0];
            borders.extend(division.instants());
            borders.push(run.1);
            division.rounded(|stretches| {
                let mut shares = vec![0; 3];
                for at in run.0..borders[stretches] {
                    shares.iter_mut().zip(share(at)).for_each(|(sum, share)| *sum += share);
                }
                (shares, borders[stretches] - run.0)
            })
        };
        let whole = in_part((0, u64::MAX));
        assert_eq!(whole.iter().sum::<u64>(), 1000);
        let mut random = 1_u64;
        for case in 0..300 {
            let mut cuts: Vec<u64> = (0..4)
                .map(|_| {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    90 + (random >> 33) % 1020
                })
                .collect();
            cuts.extend([0, u64::MAX]);
            cuts.sort_unstable();
            let mut sum = vec![0; 3];
            for part in cuts.windows(2).map(|pair| (pair[0], pair[1])) {
                let rounded = in_part(part);
                let (begin, end) = (part.0.clamp(run.0, run.1), part.1.clamp(run.0, run.1));
                assert_eq!(rounded.iter().sum::<u64>(), end - begin, "case {case}: {part:?}");
                for (row, ns) in rounded.iter().enumerate() {
                    let exact: u128 = (begin..end).map(|at| share(at)[row]).sum();
                    let distance = (*ns as f64 - exact as f64 / 6.0).abs();
                    assert!(distance < 3.0, "case {case}: {part:?}, {row}: {ns}");
                    sum[row] += ns;
                }
            }
            assert_eq!(sum, whole, "case {case}: {cuts:?}");
        }
    }
}
