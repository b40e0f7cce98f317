//! Time in fractions of a nanosecond with exact sums.

use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub};

/// Fractions of a nanosecond have this many bits.
const BITS: u32 = 60;

/// A time in units of 2⁻⁶⁰ ns.
///
/// For runtime work at unknown positions inside a task, a share of each of the task's nanoseconds counts as
/// overhead. Shares are kept as multiples of 2⁻⁶⁰, so every product of a share and a whole number of
/// nanoseconds is exact, and sums do not depend on their order or on the division of time into windows.
/// Rounding a share once errs by less than 10⁻⁶ ns in ten days of execution.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct FineNanos(i128);

impl FineNanos {
    /// Zero.
    pub const ZERO: FineNanos = FineNanos(0);

    /// A whole number of nanoseconds.
    pub fn from_nanos(ns: i64) -> FineNanos {
        FineNanos((ns as i128) << BITS)
    }

    /// Creates it from units of 2⁻⁶⁰ ns.
    pub(crate) fn from_raw(raw: i128) -> FineNanos {
        FineNanos(raw)
    }

    /// The value in units of 2⁻⁶⁰ ns.
    pub fn raw(self) -> i128 {
        self.0
    }

    /// The number of nanoseconds if it is whole.
    pub fn whole_nanos(self) -> Option<i64> {
        (self.0 & ((1 << BITS) - 1) == 0).then_some((self.0 >> BITS) as i64)
    }

    /// The nearest whole number of nanoseconds; halves go up.
    pub fn rounded(self) -> i64 {
        ((self.0 + (1 << (BITS - 1))) >> BITS) as i64
    }

    /// Nanoseconds, to six decimals.
    pub fn to_six_decimals(self) -> f64 {
        // Apart, as a product of all with a million may be more than 128 bits.
        let (whole, part) = (self.0 >> BITS, self.0 & ((1 << BITS) - 1));
        let millionths = (part * 1_000_000 + (1 << (BITS - 1))) >> BITS;
        (whole * 1_000_000 + millionths) as f64 / 1e6
    }
}

impl Add for FineNanos {
    type Output = FineNanos;
    fn add(self, other: FineNanos) -> FineNanos {
        FineNanos(self.0 + other.0)
    }
}

impl Sub for FineNanos {
    type Output = FineNanos;
    fn sub(self, other: FineNanos) -> FineNanos {
        FineNanos(self.0 - other.0)
    }
}

impl AddAssign for FineNanos {
    fn add_assign(&mut self, other: FineNanos) {
        self.0 += other.0;
    }
}

impl Sum for FineNanos {
    fn sum<I: Iterator<Item = FineNanos>>(times: I) -> FineNanos {
        times.fold(FineNanos::ZERO, Add::add)
    }
}

/// A part of a whole, at most 1, in multiples of 2⁻⁶⁰.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(crate) struct Share(u64);

impl Share {
    /// Nothing of it.
    pub const ZERO: Share = Share(0);

    /// `part / whole`, at most 1; 1 if `whole` is 0.
    pub fn of(part: u64, whole: u64) -> Share {
        if part >= whole {
            return Share(1 << BITS);
        }
        let whole = whole as u128;
        Share(((((part as u128) << BITS) + whole / 2) / whole) as u64)
    }

    /// This share of `ns` nanoseconds, in units of 2⁻⁶⁰ ns.
    pub fn scale_nanos(self, ns: u64) -> i128 {
        self.0 as i128 * ns as i128
    }

    /// The nanoseconds from `from` to `to` that are of this share, one by one: nanosecond `t` is if the share of
    /// the time until its end has more whole nanoseconds than that until its begin.
    pub fn turns_between(self, from: u64, to: u64) -> u64 {
        let until = |at: u64| (u128::from(self.0) * u128::from(at)) >> BITS;
        (until(to) - until(from)) as u64
    }

    /// Whether it is nothing.
    pub fn is_zero(self) -> bool {
        self.0 == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_capped_and_nearest() {
        assert_eq!(Share::of(7, 3), Share(1 << BITS));
        assert_eq!(Share::of(0, 0), Share(1 << BITS));
        let third = FineNanos(Share::of(1, 3).scale_nanos(3_000_000_000));
        assert_eq!(third.to_six_decimals(), 1e9);
        assert_eq!(FineNanos(Share::of(1, 3).scale_nanos(1)).to_six_decimals(), 0.333333);
        assert_eq!(FineNanos(Share::of(2, 3).scale_nanos(1)).to_six_decimals(), 0.666667);
        // Two weeks of a thousand workers.
        let long = 1_209_600_000_000_000_000;
        assert_eq!(FineNanos::from_nanos(long).to_six_decimals(), long as f64);
        assert_eq!(FineNanos::from_nanos(-3).to_six_decimals(), -3.0);
    }

    #[test]
    fn whole_numbers_are_recognised() {
        assert_eq!(FineNanos::from_nanos(-3).whole_nanos(), Some(-3));
        assert_eq!(FineNanos(1).whole_nanos(), None);
        assert_eq!(FineNanos(1 << 59).rounded(), 1);
    }
}
