//! What a thread was sampled in since its last synchronisation (a barrier; in a team, a long wait for tasks): a few
//! samples, evenly spread.
//!
//! Of many samples every second, fourth, … one is kept, so that the kept ones always stand for equal
//! parts of the time.

/// Samples that are kept.
const KEPT: usize = 4;
/// User frames of each, innermost first; of deeper stacks the outermost ones are left out.
const DEEPEST: usize = 20;

/// The samples.
#[derive(Clone, Copy, Default)]
pub struct Recent {
    samples: [Stack; KEPT],
    used: usize,
    /// One in so many is kept; 0 is 1.
    stride: u32,
    passed: u32,
}

#[derive(Clone, Copy)]
struct Stack {
    context: u32,
    length: usize,
    addresses: [u64; DEEPEST],
}

impl Default for Stack {
    fn default() -> Self {
        Stack { context: 0, length: 0, addresses: [0; DEEPEST] }
    }
}

impl Recent {
    /// Forgets all: a synchronisation is over.
    #[inline(always)]
    pub fn clear(&mut self) {
        (self.used, self.stride, self.passed) = (0, 0, 0);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// A sample of work: its context, and its user frames, innermost first, of which the innermost is the
    /// program counter, unless it called what works for it (`calls`), and the others are return addresses.
    /// Async-signal-safe.
    pub fn add(&mut self, context: u32, addresses: &[u64], calls: bool) {
        self.passed += 1;
        if self.passed < self.stride.max(1) {
            return;
        }
        self.passed = 0;
        if self.used == KEPT {
            // Every second one stands for twice the time from now on.
            for kept in 0..KEPT / 2 {
                self.samples.copy_within(kept * 2 + 1..kept * 2 + 2, kept);
            }
            self.used = KEPT / 2;
            self.stride = self.stride.max(1) * 2;
            self.passed = self.stride / 2;
            return self.keep_if_due(context, addresses, calls);
        }
        self.keep(context, addresses, calls);
    }

    fn keep_if_due(&mut self, context: u32, addresses: &[u64], calls: bool) {
        if self.passed >= self.stride {
            self.passed = 0;
            self.keep(context, addresses, calls);
        }
    }

    fn keep(&mut self, context: u32, addresses: &[u64], calls: bool) {
        let Some(stack) = self.samples.get_mut(self.used) else { return };
        let length = addresses.len().min(DEEPEST);
        if let (Some(to), Some(from)) = (stack.addresses.get_mut(..length), addresses.get(..length)) {
            to.copy_from_slice(from);
            if let Some(innermost) = to.first_mut().filter(|_| calls) {
                *innermost = innermost.wrapping_sub(1);
            }
        }
        (stack.context, stack.length) = (context, length);
        self.used += 1;
    }

    /// The kept ones: context, and addresses, innermost first.
    pub fn stacks(&self) -> impl ExactSizeIterator<Item = (u32, &[u64])> {
        let used = self.samples.get(..self.used).unwrap_or_default();
        used.iter().map(|stack| (stack.context, stack.addresses.get(..stack.length).unwrap_or_default()))
    }

    /// Copies the samples of `other`, and no more than those.
    pub fn copy(&mut self, other: &Recent) {
        (self.used, self.stride, self.passed) = (other.used, other.stride, other.passed);
        for (to, from) in self.samples.iter_mut().zip(&other.samples).take(other.used) {
            *to = *from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kept_ones_are_spread_over_all() {
        let mut recent = Recent::default();
        for number in 1..=64u64 {
            recent.add(1, &[number, 7], false);
            assert!(recent.stacks().len() <= KEPT);
        }
        let kept: Vec<u64> = recent.stacks().map(|(_, addresses)| addresses[0]).collect();
        assert!(kept.len() >= 2, "{kept:?}");
        assert!(kept.windows(2).all(|pair| pair[1] - pair[0] == kept[1] - kept[0]), "evenly: {kept:?}");
        recent.clear();
        assert!(recent.is_empty());
        recent.add(3, &[9; 40], true);
        assert_eq!(recent.stacks().map(|(c, a)| (c, a.len())).collect::<Vec<_>>(), [(3, DEEPEST)]);
        assert_eq!(recent.stacks().next().map(|(_, a)| a[..2].to_vec()), Some(vec![8, 9]), "inside the call");
    }
}
