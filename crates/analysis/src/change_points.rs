//! Changes of level in a series of runs.
//!
//! A series is split where the ranks of the values before and after differ most: the largest standardised rank sum of F. Wilcoxon
//! (Biometrics Bulletin 1, 1945) over all splits, as in A. N. Pettitt's test (Applied Statistics 28, 1979). Ranks make one slow run harmless. The
//! probability of such a split in a series without a change is estimated by permutations of the series, always the same ones. A split is kept if
//! that probability is at most [`MAX_CHANCE`] and the medians differ by the given floor. Both parts are then searched in turn.

/// The probability below which a change is not taken for chance.
pub const MAX_CHANCE: f64 = 0.01;
/// Values on each side of a change, at least.
const MIN_SIDE: usize = 3;
/// Values of a series in which a change can be found: of fewer, no order is rare enough.
pub const MIN_VALUES: usize = 10;
/// Permutations, by which a probability is known to a fifth of [`MAX_CHANCE`].
const PERMUTATIONS: usize = 2000;

/// A change of level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level, by its place in the series.
    pub at: usize,
    /// Median of the values since the change before.
    pub before: f64,
    /// Median of the values up to the next change.
    pub after: f64,
    /// Probability of such a split without a change.
    pub chance: f64,
}

/// The changes of a series, in order. Medians must differ by `floor` at least.
pub fn change_points(values: &[f64], floor: f64) -> Vec<ChangePoint> {
    let mut found: Vec<(usize, f64)> = Vec::new();
    let mut parts = vec![(0, values.len())];
    while let Some((begin, end)) = parts.pop() {
        let part = &values[begin..end];
        let Some((split, chance)) = best_split(part) else { continue };
        let is_large = (median(&part[..split]) - median(&part[split..])).abs() >= floor;
        if chance <= MAX_CHANCE && is_large {
            found.push((begin + split, chance));
            parts.extend([(begin, begin + split), (begin + split, end)]);
        }
    }
    found.sort_by_key(|(at, _)| *at);
    let borders: Vec<usize> =
        [0].into_iter().chain(found.iter().map(|(at, _)| *at)).chain([values.len()]).collect();
    let level = |row: usize| median(&values[borders[row]..borders[row + 1]]);
    let change = |(row, (at, chance)): (usize, &(usize, f64))| ChangePoint {
        at: *at,
        before: level(row),
        after: level(row + 1),
        chance: *chance,
    };
    found.iter().enumerate().map(change).collect()
}

/// The split of a series with the largest difference of ranks, and the probability of one as large by chance.
fn best_split(values: &[f64]) -> Option<(usize, f64)> {
    if values.len() < MIN_VALUES {
        return None;
    }
    let mut ranks = ranks(values);
    let (split, size) = largest(&ranks);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut as_large = 1;
    for _ in 0..PERMUTATIONS {
        random.shuffle(&mut ranks);
        // Sums of the same ranks in another order may differ in their last bits.
        as_large += usize::from(largest(&ranks).1 >= size * (1.0 - 1e-9));
    }
    Some((split, as_large as f64 / (PERMUTATIONS + 1) as f64))
}

/// The split with the largest standardised rank sum, up to a factor that all orders of the ranks share.
fn largest(ranks: &[f64]) -> (usize, f64) {
    let count = ranks.len();
    let mean = (count as f64 + 1.0) / 2.0;
    let (mut sum, mut best) = (0.0, (0, 0.0));
    for (row, rank) in ranks.iter().enumerate() {
        sum += rank - mean;
        let split = row + 1;
        if split >= MIN_SIDE && count - split >= MIN_SIDE {
            let size = sum.abs() / (split as f64 * (count - split) as f64).sqrt();
            if size > best.1 {
                best = (split, size);
            }
        }
    }
    best
}

/// Ranks from 1 on; equal values share the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    while first < order.len() {
        let equal = order[first..].iter().take_while(|row| values[**row] == values[order[first]]).count();
        for row in &order[first..first + equal] {
            ranks[*row] = first as f64 + (equal as f64 + 1.0) / 2.0;
        }
        first += equal;
    }
    ranks
}

/// The median; of an even number of values the mean of the middle two. 0 of none.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match (sorted.len(), sorted.len() / 2) {
        (0, _) => 0.0,
        (count, middle) if count % 2 == 1 => sorted[middle],
        (_, middle) => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Marsaglia's xorshift (Journal of Statistical Software 8, 2003): the same numbers each time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Fisher and Yates' shuffle.
    fn shuffle(&mut self, values: &mut [f64]) {
        for last in (1..values.len()).rev() {
            let other = ((u128::from(self.next()) * (last as u128 + 1)) >> 64) as usize;
            values.swap(last, other);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A level with a small, regular unrest.
    fn level(mean: f64, count: usize) -> impl Iterator<Item = f64> {
        (0..count).map(move |row| mean + [0.0, 0.4, -0.3, 0.2, -0.1][row % 5])
    }

    #[test]
    fn a_step_is_found_where_it_is() {
        let values: Vec<f64> = level(100.0, 8).chain(level(110.0, 7)).collect();
        let found = change_points(&values, 1.0);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].at, 8);
        assert!((found[0].before - 100.0).abs() < 0.5 && (found[0].after - 110.0).abs() < 0.5, "{found:?}");
        assert!(found[0].chance < MAX_CHANCE);
        assert_eq!(found, change_points(&values, 1.0), "the same each time");
        assert_eq!(change_points(&values, 20.0), [], "a change below the floor");
    }

    #[test]
    fn two_steps_are_two_changes() {
        let values: Vec<f64> = level(100.0, 12).chain(level(130.0, 12)).chain(level(90.0, 12)).collect();
        let found: Vec<usize> = change_points(&values, 1.0).iter().map(|change| change.at).collect();
        assert_eq!(found, [12, 24]);
    }

    #[test]
    fn one_slow_run_and_few_runs_are_no_change() {
        let mut values: Vec<f64> = level(100.0, 20).collect();
        values[13] = 900.0;
        assert_eq!(change_points(&values, 1.0), []);
        let few: Vec<f64> = level(100.0, 4).chain(level(200.0, 4)).collect();
        assert_eq!(change_points(&few, 1.0), []);
        assert_eq!(change_points(&[], 1.0), []);
    }

    #[test]
    fn series_without_a_change_seldom_seem_to_have_one() {
        let mut random = Random(7);
        let mut series = || (0..20).map(|_| (random.next() >> 40) as f64).collect::<Vec<f64>>();
        let wrong = (0..200).filter(|_| !change_points(&series(), 0.0).is_empty()).count();
        // 1 % of 200 are 2.
        assert!(wrong <= 7, "{wrong} of 200");
    }

    #[test]
    fn equal_values_share_a_rank() {
        assert_eq!(ranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
        assert_eq!((median(&[3.0, 1.0]), median(&[5.0, 1.0, 3.0]), median(&[])), (2.0, 3.0, 0.0));
    }
}
