//! A few representative samples of a thread since its last synchronisation (a barrier; in a team, a long wait
//! for tasks).
//!
//! Samples are weighted by the time that they represent, and divided into windows of about equal weight. Each
//! window keeps one sample, chosen in proportion to its weight (weighted reservoir sampling, Chao 1982). When
//! there are too many windows, pairs are merged, and one of the two samples is kept, again by weight.

/// Number of windows; the last one may be partial.
const KEPT: usize = 16;
/// User frames of each, innermost first.
const DEEPEST: usize = 64;

/// The samples.
#[derive(Clone, Copy)]
pub struct Recent {
    samples: [Stack; KEPT],
    /// The windows' weights, nanoseconds.
    weights: [u64; KEPT],
    /// Windows, with the last one.
    used: usize,
    /// Weight of a full window.
    full: u64,
    /// State of a generator of random numbers (xorshift).
    random: u32,
}

/// A sample of work.
#[derive(Clone, Copy)]
pub struct Sampled<'a> {
    pub context: u32,
    /// User frames, innermost first, of which all but the innermost are return addresses.
    pub addresses: &'a [u64],
    /// Whether frames further out are missing.
    pub is_cut: bool,
}

#[derive(Clone, Copy)]
struct Stack {
    context: u32,
    length: usize,
    is_cut: bool,
    addresses: [u64; DEEPEST],
}

impl Default for Recent {
    fn default() -> Self {
        let empty = Stack { context: 0, length: 0, is_cut: false, addresses: [0; DEEPEST] };
        Recent { samples: [empty; KEPT], weights: [0; KEPT], used: 0, full: 0, random: 0x9e37_79b9 }
    }
}

impl Recent {
    /// Removes all samples, after a synchronisation.
    #[inline(always)]
    pub fn clear(&mut self) {
        (self.used, self.full) = (0, 0);
    }

    /// Whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// Adds a sample of this weight. With `calls`, other code did the work that its innermost frame called,
    /// so the innermost address is a return address too. Async-signal-safe.
    pub fn add(&mut self, sample: Sampled<'_>, calls: bool, weight: u64) {
        // A coarse clock may give a weight of 0.
        let weight = weight.max(1);
        if self.used == 0 || self.weight_of(self.used - 1) >= self.full {
            if self.used == KEPT {
                self.join_windows();
            }
            self.used += 1;
            self.set_weight(self.used - 1, 0);
        }
        let last = self.used - 1;
        let all = self.weight_of(last).saturating_add(weight);
        self.set_weight(last, all);
        if self.happens(weight, all) {
            self.keep(sample, calls);
        }
    }

    fn weight_of(&self, window: usize) -> u64 {
        self.weights.get(window).copied().unwrap_or(0)
    }

    fn set_weight(&mut self, window: usize, ns: u64) {
        if let Some(weight) = self.weights.get_mut(window) {
            *weight = ns;
        }
    }

    #[cold]
    fn join_windows(&mut self) {
        for joined in 0..KEPT / 2 {
            let (first, second) = (joined * 2, joined * 2 + 1);
            let all = self.weight_of(first).saturating_add(self.weight_of(second));
            let kept = if self.happens(self.weight_of(first), all) { first } else { second };
            self.samples.copy_within(kept..=kept, joined);
            self.set_weight(joined, all);
        }
        self.used = KEPT / 2;
        self.full = (0..self.used).map(|window| self.weight_of(window) / self.used as u64).sum();
    }

    /// Returns true with the probability `part / all`.
    fn happens(&mut self, part: u64, all: u64) -> bool {
        u128::from(self.next_random()) * u128::from(all) < u128::from(part) << 32
    }

    fn keep(&mut self, Sampled { context, addresses, is_cut }: Sampled<'_>, calls: bool) {
        let Some(stack) = self.samples.get_mut(self.used.wrapping_sub(1)) else { return };
        let length = addresses.len().min(DEEPEST);
        if let (Some(to), Some(from)) = (stack.addresses.get_mut(..length), addresses.get(..length)) {
            to.copy_from_slice(from);
            if let Some(innermost) = to.first_mut().filter(|_| calls) {
                *innermost = innermost.wrapping_sub(1);
            }
        }
        (stack.context, stack.length) = (context, length);
        stack.is_cut = is_cut || length < addresses.len();
    }

    fn next_random(&mut self) -> u32 {
        let mut next = self.random;
        next ^= next << 13;
        next ^= next >> 17;
        next ^= next << 5;
        self.random = next;
        next
    }

    /// The kept samples, with the part of the whole that each represents.
    pub fn parts(&self) -> impl Iterator<Item = (Sampled<'_>, Part)> {
        let mut left: u64 = self.weights.iter().take(self.used).sum();
        let used = self.samples.get(..self.used).unwrap_or_default();
        used.iter().zip(&self.weights).map(move |(stack, weight)| {
            let part = Part { weight: *weight, of: left };
            left -= part.weight;
            let addresses = stack.addresses.get(..stack.length).unwrap_or_default();
            (Sampled { context: stack.context, addresses, is_cut: stack.is_cut }, part)
        })
    }

    /// Adds the samples of `other`, each with the weight that it represents.
    pub fn absorb(&mut self, other: &Recent) {
        for (sample, part) in other.parts() {
            self.add(sample, false, part.weight);
        }
    }

    /// Replaces the samples with those of `other`.
    pub fn copy(&mut self, other: &Recent) {
        (self.used, self.full, self.weights) = (other.used, other.full, other.weights);
        for (to, from) in self.samples.iter_mut().zip(&other.samples).take(other.used) {
            *to = *from;
        }
    }
}

/// A share of the remainder: shares that are taken one after the other leave no rest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    weight: u64,
    of: u64,
}

impl Part {
    /// Subtracts the share from `left`, and returns it.
    pub fn take_from(self, left: &mut u64) -> u64 {
        let part = u128::from(*left) * u128::from(self.weight) / u128::from(self.of.max(1));
        *left -= part as u64;
        part as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(recent: &mut Recent, address: u64, weight: u64) {
        recent.add(Sampled { context: 1, addresses: &[address, 7], is_cut: false }, false, weight);
    }

    /// Adds two kinds of samples (number, weight) in `turns`, the first one first, for each of the `rounds`.
    /// Returns the errors of the first one's share, in millionths: of the average, and the largest.
    fn shares_of(rounds: u64, turns: usize, parts: [(u64, u64); 2]) -> (u64, u64) {
        let mut recent = Recent::default();
        let (mut sum, mut most_wrong) = (0, 0);
        let [first, second] = parts.map(|(samples, weight)| samples * weight);
        let exact = 1_000_000 * first / (first + second);
        for _ in 0..rounds {
            recent.clear();
            for _ in 0..turns {
                for (address, (samples, weight)) in (1..).zip(parts) {
                    (0..samples).for_each(|_| add(&mut recent, address, weight));
                }
            }
            let mut left = 1_000_000;
            let parts: Vec<(u64, u64)> =
                recent.parts().map(|(s, part)| (s.addresses[0], part.take_from(&mut left))).collect();
            assert_eq!((left, parts.iter().map(|part| part.1).sum::<u64>()), (0, 1_000_000));
            let of_first: u64 = parts.iter().filter(|part| part.0 == 1).map(|part| part.1).sum();
            most_wrong = most_wrong.max(of_first.abs_diff(exact));
            sum += of_first;
        }
        ((sum / rounds).abs_diff(exact), most_wrong)
    }

    /// If a period is split in two at any point, each side gets its share: exact on average, and at most two
    /// windows off.
    #[test]
    fn kept_samples_represent_all() {
        for (first, second) in [(1, 1), (3, 1), (30, 10), (10, 30), (300, 100), (77, 1000)] {
            let (on_average, at_most) = shares_of(400, 1, [(first, 5), (second, 5)]);
            assert!(at_most <= 250_000 && on_average < 10_000, "{first} {second}: {on_average} {at_most}");
        }
    }

    /// As code that sleeps, of which there is one sample, at the end.
    #[test]
    fn a_sample_counts_by_its_weight() {
        for turns in [1, 7, 40] {
            let (on_average, at_most) = shares_of(1000, turns, [(6, 1_000_000), (1, 14_000_000)]);
            assert!(on_average < 15_000, "{turns} turns: {on_average}, {at_most} at most");
            assert!(turns > 2 || at_most == 0, "each has a window: {at_most}");
        }
        let (on_average, _) = shares_of(400, 1, [(1000, 1), (1, 1_000_000)]);
        assert!(on_average < 10_000, "{on_average}");
    }

    #[test]
    fn deep_stacks_are_cut_and_marked() {
        let mut recent = Recent::default();
        recent.add(Sampled { context: 3, addresses: &[9; DEEPEST + 1], is_cut: false }, true, 0);
        let (sampled, _) = recent.parts().next().unwrap();
        assert_eq!((sampled.context, sampled.addresses.len(), sampled.is_cut), (3, DEEPEST, true));
        assert_eq!(sampled.addresses[..2], [8, 9], "inside the call");
    }
}
