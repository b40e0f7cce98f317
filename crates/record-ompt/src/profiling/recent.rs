//! What a thread was sampled in since its last synchronisation (a barrier; in a team, a long wait for tasks): a few
//! samples that stand for all.
//!
//! Time is parted into windows of equally many samples, of each of which one is kept that might be any (reservoir sampling,
//! Vitter 1985). Where there are too many windows, each two become one, of whose two samples either is kept.

/// Windows that are told apart; the last of them may not be full.
const KEPT: usize = 16;
/// User frames of each, innermost first.
const DEEPEST: usize = 64;

/// The samples.
#[derive(Clone, Copy)]
pub struct Recent {
    samples: [Stack; KEPT],
    /// Windows, with the last one.
    used: usize,
    /// Samples in a full window.
    window: u32,
    /// Samples in the last one.
    in_last: u32,
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
        Recent { samples: [empty; KEPT], used: 0, window: 1, in_last: 0, random: 0x9e37_79b9 }
    }
}

impl Recent {
    /// Forgets all: a synchronisation is over.
    #[inline(always)]
    pub fn clear(&mut self) {
        (self.used, self.window, self.in_last) = (0, 1, 0);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.used == 0
    }

    /// A sample, whose innermost frame is a return address, too, if it `calls` what works for it. Async-signal-safe.
    pub fn add(&mut self, sample: Sampled<'_>, calls: bool) {
        if self.used == 0 || self.in_last == self.window {
            if self.used == KEPT {
                self.join_windows();
            }
            self.used += 1;
            self.in_last = 0;
        }
        self.in_last += 1;
        if self.next_random().is_multiple_of(self.in_last) {
            self.keep(sample, calls);
        }
    }

    fn join_windows(&mut self) {
        let coins = self.next_random();
        for joined in 0..KEPT / 2 {
            let kept = joined * 2 + (coins >> joined & 1) as usize;
            self.samples.copy_within(kept..=kept, joined);
        }
        self.used = KEPT / 2;
        self.window = self.window.saturating_mul(2);
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

    /// The kept ones, and how much of the whole each stands for.
    pub fn parts(&self) -> impl Iterator<Item = (Sampled<'_>, Part)> {
        let weight = |at: usize| u64::from(if at + 1 == self.used { self.in_last } else { self.window });
        let mut left: u64 = (0..self.used).map(weight).sum();
        let used = self.samples.get(..self.used).unwrap_or_default();
        used.iter().enumerate().map(move |(at, stack)| {
            let part = Part { weight: weight(at), of: left };
            left -= part.weight;
            let addresses = stack.addresses.get(..stack.length).unwrap_or_default();
            (Sampled { context: stack.context, addresses, is_cut: stack.is_cut }, part)
        })
    }

    /// Copies the samples of `other`, and no more than those.
    pub fn copy(&mut self, other: &Recent) {
        (self.used, self.window, self.in_last) = (other.used, other.window, other.in_last);
        for (to, from) in self.samples.iter_mut().zip(&other.samples).take(other.used) {
            *to = *from;
        }
    }
}

/// A part of what is left: parts taken one after the other leave nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    weight: u64,
    of: u64,
}

impl Part {
    /// Takes it from `left`.
    pub fn take_from(self, left: &mut u64) -> u64 {
        let part = u128::from(*left) * u128::from(self.weight) / u128::from(self.of.max(1));
        *left -= part as u64;
        part as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn add(recent: &mut Recent, address: u64) {
        recent.add(Sampled { context: 1, addresses: &[address, 7], is_cut: false }, false);
    }

    /// Of a time parted in two at any place, each side gets its share: on average exactly, and never wrong by more than two
    /// windows.
    #[test]
    fn the_kept_ones_stand_for_all() {
        let mut recent = Recent::default();
        for (first, second) in [(1, 1), (3, 1), (30, 10), (10, 30), (300, 100), (77, 1000)] {
            let (mut sum, rounds) = (0, 400);
            for _ in 0..rounds {
                recent.clear();
                (0..first).for_each(|_| add(&mut recent, 1));
                (0..second).for_each(|_| add(&mut recent, 2));
                let mut left = 1_000_000;
                let parts: Vec<(u64, u64)> =
                    recent.parts().map(|(s, part)| (s.addresses[0], part.take_from(&mut left))).collect();
                assert_eq!((left, parts.iter().map(|part| part.1).sum::<u64>()), (0, 1_000_000));
                let of_first: u64 = parts.iter().filter(|part| part.0 == 1).map(|part| part.1).sum();
                let exact = 1_000_000 * first / (first + second);
                assert!(of_first.abs_diff(exact) <= 250_000, "{first} {second}: {of_first}");
                sum += of_first;
            }
            let exact = 1_000_000 * first / (first + second);
            assert!((sum / rounds).abs_diff(exact) < 10_000, "{first} {second}: {}", sum / rounds);
        }
    }

    #[test]
    fn deep_stacks_are_cut_and_say_so() {
        let mut recent = Recent::default();
        recent.add(Sampled { context: 3, addresses: &[9; DEEPEST + 1], is_cut: false }, true);
        let (sampled, _) = recent.parts().next().unwrap();
        assert_eq!((sampled.context, sampled.addresses.len(), sampled.is_cut), (3, DEEPEST, true));
        assert_eq!(sampled.addresses[..2], [8, 9], "inside the call");
    }
}
