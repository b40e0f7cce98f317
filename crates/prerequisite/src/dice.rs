//! Reproducible random numbers.

use std::ops::Range;

/// Seeds of a test of random executions: so many as usual, or as the environment variable `TASKSCOPE_CASES` says
/// (`make test-properties`: 10,000). Larger numbers begin with the same seeds.
pub fn seeds(usual: u64) -> Range<u64> {
    0..std::env::var("TASKSCOPE_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(usual)
}

/// The generator xorshift64* (Vigna 2016): small, and the same on every machine.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Equal seeds give equal numbers.
    pub fn new(seed: u64) -> Dice {
        let mut dice = Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        dice.next();
        dice
    }

    /// The next 64 bits.
    #[allow(
        clippy::should_implement_trait,
        reason = "it never ends, and an iterator's Option would be in the way"
    )]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `limit`; 0 if `limit` is 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(limit)) >> 64) as u64
    }

    /// A number from `low` to `high`, both included.
    pub fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// True `percent` times in a hundred.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
