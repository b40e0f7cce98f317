//! Turns: each nanosecond that is charged to working members belongs to one of them.
//!
//! While `n` members take turns, nanosecond `t` of the trace's clock belongs to the member of rank `t mod n`, in
//! the order of their numbers. So charges are whole nanoseconds that depend on nothing but the time and the
//! members: they sum to what is charged, and those of consecutive parts of a run, or of waiting threads one by
//! one, sum to those of the whole.
//!
//! ```text
//! t mod 3        0 1 2 0 1 2 0 1     an interval of 8 ns from a multiple of 3, members 0, 2 and 5
//! belongs to     0 2 5 0 2 5 0 2     two to each; one more to the members from 0 to before 5
//! ```
//!
//! An interval costs two divisions, whatever its length, and not more for many members, but for the ranges that
//! have one nanosecond more ([`Received::add`]).

use std::ops::Range;

/// The members that take turns.
#[derive(Clone, Default)]
pub(crate) struct Turns {
    /// One bit for each member.
    words: Vec<u64>,
    count: u64,
}

/// The division of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dealt {
    /// Nanoseconds of each member.
    each: u64,
    /// The members that have one more. The ranges also contain numbers that take no turns.
    more: [Range<usize>; 2],
}

impl Turns {
    /// Creates turns of members with numbers below `members`; none takes part.
    pub fn new(members: usize) -> Turns {
        Turns { words: vec![0; members.div_ceil(64)], count: 0 }
    }

    /// Adds or removes a member.
    #[inline]
    pub fn set(&mut self, member: usize, takes_part: bool) {
        let bit = 1 << (member % 64);
        let Some(word) = self.words.get_mut(member / 64) else { return };
        let did = *word & bit != 0;
        if did != takes_part {
            *word ^= bit;
            self.count = if takes_part { self.count + 1 } else { self.count - 1 };
        }
    }

    /// Number of members that take part.
    #[inline]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Divides the time from `from` to `to`; no member has any of it if none takes part.
    #[inline]
    pub fn deal(&self, from: u64, to: u64) -> Dealt {
        let (passed, count) = (to - from, self.count);
        if count <= 1 {
            return Dealt { each: passed * count, more: [0..0, 0..0] };
        }
        let (each, rest) = (passed / count, passed % count);
        if rest == 0 {
            return Dealt { each, more: [0..0, 0..0] };
        }
        let first = from % count;
        let end = first + rest;
        let more = match end.checked_sub(count) {
            None => [self.member(first)..self.member(end), 0..0],
            Some(wrapped) => [self.member(first)..usize::MAX, 0..self.member(wrapped)],
        };
        Dealt { each, more }
    }

    /// The number of the member of a rank.
    fn member(&self, mut rank: u64) -> usize {
        for (index, word) in self.words.iter().enumerate() {
            let here = u64::from(word.count_ones());
            if rank < here {
                let mut word = *word;
                for _ in 0..rank {
                    word &= word - 1;
                }
                return 64 * index + word.trailing_zeros() as usize;
            }
            rank -= here;
        }
        usize::MAX
    }
}

/// Nanoseconds charged to each member so far. Those of a member while it took part are the difference of two
/// readings.
#[derive(Clone, Default)]
pub(crate) struct Received {
    each: u64,
    more: Vec<u64>,
}

impl Received {
    /// Creates sums for members with numbers below `members`.
    pub fn new(members: usize) -> Received {
        Received { each: 0, more: vec![0; members] }
    }

    /// Adds an interval in which `weight` waiting threads were charged.
    #[inline]
    pub fn add(&mut self, dealt: &Dealt, weight: u64) {
        self.each += weight * dealt.each;
        for range in &dealt.more {
            let end = range.end.min(self.more.len());
            for more in self.more.get_mut(range.start..end).unwrap_or_default() {
                *more += weight;
            }
        }
    }

    /// The reading of a member.
    #[inline]
    pub fn of(&self, member: usize) -> u64 {
        self.each + self.more.get(member).copied().unwrap_or(0)
    }
}

/// The nanoseconds from `from` to `to` that belong to a rank among `count`.
pub(crate) fn turns_of(rank: u64, count: u64, from: u64, to: u64) -> u64 {
    let until = |at: u64| at / count + u64::from(at % count > rank);
    until(to) - until(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_dealt_by_turns() {
        let mut state = 1_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let members = 1 + random(200) as usize;
            let mut turns = Turns::new(members);
            let mut part = vec![false; members];
            for _ in 0..random(300) {
                let (member, takes) = (random(members as u64) as usize, random(3) > 0);
                turns.set(member, takes);
                part[member] = takes;
            }
            let those: Vec<usize> = (0..members).filter(|member| part[*member]).collect();
            assert_eq!(turns.count(), those.len() as u64);
            let from = random(1000);
            let to = from + random(500);
            let mut received = Received::new(members);
            received.add(&turns.deal(from, to), 3);
            for (rank, member) in those.iter().enumerate() {
                let own = (from..to).filter(|at| at % those.len() as u64 == rank as u64).count() as u64;
                assert_eq!(received.of(*member), 3 * own, "{from}..{to}, {rank} of {}", those.len());
                assert_eq!(turns_of(rank as u64, those.len() as u64, from, to), own);
            }
        }
    }

    #[test]
    fn without_members_no_time_is_dealt() {
        assert_eq!(Turns::new(3).deal(5, 9), Dealt::default());
        assert_eq!(Turns::new(0).deal(5, 9), Dealt::default());
    }
}
