//! A sum over the time of a run, known at the ends of windows: linear in each of them.
//!
//! Its memory is bounded: of too many windows, pairs are joined.

/// Windows that are kept.
const MAX_WINDOWS: usize = 128;

/// The sum so far, nanoseconds, at the ends of windows.
pub(super) struct Elapsed {
    began: u64,
    /// End of each window, and the sum until then.
    ends: [(u64, u64); MAX_WINDOWS],
    used: usize,
}

impl Elapsed {
    /// Begins at 0.
    pub fn new(began: u64) -> Elapsed {
        Elapsed { began, ends: [(0, 0); MAX_WINDOWS], used: 0 }
    }

    fn ends(&self) -> &[(u64, u64)] {
        self.ends.get(..self.used).unwrap_or_default()
    }

    /// Adds `ns` in a window that ends at `now`. Async-signal-safe.
    pub fn add(&mut self, now: u64, ns: u64) {
        let before = self.ends().last().map_or(0, |end| end.1);
        if self.used == MAX_WINDOWS {
            for joined in 0..MAX_WINDOWS / 2 {
                self.ends.copy_within(2 * joined + 1..2 * joined + 2, joined);
            }
            self.used = MAX_WINDOWS / 2;
        }
        if let Some(end) = self.ends.get_mut(self.used) {
            *end = (now, before + ns);
            self.used += 1;
        }
    }

    /// Adds `ns`, spread evenly over a span that ends in the next window. Returns the part in that window, which is not added.
    /// Async-signal-safe.
    pub fn add_early(&mut self, (from, until): (u64, u64), ns: u64) -> u64 {
        let all = until.saturating_sub(from);
        let part = |end: u64| {
            let length = end.saturating_sub(from).min(all);
            (u128::from(ns) * u128::from(length) / u128::from(all.max(1))) as u64
        };
        let mut added = 0;
        for (end, sum) in self.ends.iter_mut().take(self.used) {
            added = part(*end);
            *sum += added;
        }
        ns - added
    }

    /// The sum until `at`; after the last window, that until its end.
    pub fn until(&self, at: u64) -> u64 {
        let ends = self.ends();
        let next = ends.partition_point(|end| end.0 <= at);
        let (since, sum) =
            next.checked_sub(1).and_then(|last| ends.get(last)).copied().unwrap_or((self.began, 0));
        let Some((end, all)) = ends.get(next).copied().filter(|_| at > since) else { return sum };
        let part = u128::from(all - sum) * u128::from(at - since) / u128::from(end - since);
        sum + part as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_is_linear_in_each_window() {
        let mut elapsed = Elapsed::new(100);
        assert_eq!(elapsed.until(500), 0);
        elapsed.add(200, 90);
        elapsed.add(300, 10);
        let found = [0, 100, 150, 200, 250, 300, 900].map(|at| elapsed.until(at));
        assert_eq!(found, [0, 0, 45, 90, 95, 100, 100]);
    }

    #[test]
    fn what_is_known_late_is_spread_over_its_time() {
        let mut elapsed = Elapsed::new(0);
        elapsed.add(100, 0);
        elapsed.add(200, 0);
        assert_eq!(elapsed.add_early((50, 250), 100), 25);
        elapsed.add(300, 25);
        assert_eq!([50, 100, 150, 200, 300].map(|at| elapsed.until(at)), [12, 25, 50, 75, 100]);
        assert_eq!(Elapsed::new(7).add_early((7, 7), 0), 0);
    }

    #[test]
    fn long_runs_have_longer_windows() {
        let mut elapsed = Elapsed::new(0);
        for window in 1..=10_000 {
            elapsed.add(100 * window, if window % 2 == 0 { 100 } else { 0 });
        }
        assert!(elapsed.used <= MAX_WINDOWS);
        for at in (0..=1_000_000).step_by(10_000) {
            assert!(elapsed.until(at).abs_diff(at / 2) <= 10_000, "{at}: {}", elapsed.until(at));
        }
        assert_eq!(elapsed.until(1_000_000), 500_000);
    }
}
