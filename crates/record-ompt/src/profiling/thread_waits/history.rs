//! The past waits of a thread, by the thread that each part was charged to: chains of waits are followed through it.
//!
//! It holds a limited number of parts. The older half is compressed when it is full: its parts are summed by charged code and laid
//! out one after the other in the same stretch of time. So the sums over a long stretch stay exact, and the order within is lost.

use taskscope_profile::WaitEnd;

use super::ring::RecordedCall;

/// Parts that a thread's history holds.
const MAX_PARTS: usize = 512;
/// Parts that remain of the older half.
const MAX_COMPRESSED: usize = 16;

/// Relation of a thread to the thread that waits for it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum Tie {
    /// Held the lock, taken at the site; the path is that of the release.
    Holds(RecordedCall),
    /// Woke the waiting thread in this call.
    Wakes(RecordedCall),
    /// Was joined: its routine, and one of its paths.
    IsJoined(RecordedCall),
}

/// The party that a part of a wait is charged to: a chain of threads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Blame {
    /// The end of the chain.
    pub end: WaitEnd,
    /// The thread waited for; `None` without one.
    pub first: Option<Tie>,
    /// The last thread of the chain.
    pub last: Option<Tie>,
    /// Kind and call of the sleep or I/O at the end of the chain.
    pub blocked: Option<(u32, RecordedCall)>,
    /// Threads in the chain.
    pub length: u32,
}

impl Blame {
    /// A part without another thread.
    pub const fn of(end: WaitEnd) -> Blame {
        Blame { end, first: None, last: None, blocked: None, length: 0 }
    }

    /// A part in which the thread of this tie was not waiting itself.
    pub const fn ran(tie: Tie) -> Blame {
        Blame { end: WaitEnd::Ran, first: Some(tie), last: Some(tie), blocked: None, length: 1 }
    }

    /// The same as seen by a thread that waits for the one that this was a part of.
    pub fn seen_through(self, tie: Tie) -> Blame {
        Blame {
            first: Some(tie),
            last: self.last.or(Some(tie)),
            length: self.length.saturating_add(1),
            ..self
        }
    }
}

/// A part of a wait in time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// First nanosecond.
    pub from: u64,
    /// First nanosecond after it.
    pub until: u64,
    /// The charged party.
    pub blame: Blame,
}

/// The parts, by time; none of them overlap.
#[derive(Default)]
pub struct History(Vec<Part>);

impl History {
    /// Adds a part, the latest.
    pub fn push(&mut self, part: Part) {
        if part.until <= part.from {
            return;
        }
        if self.0.len() >= MAX_PARTS {
            self.compress();
        }
        self.0.push(part);
    }

    /// Hands over the time from `from` until `until`: parts of waits, and between them `None`, in the order of time.
    pub fn over(&self, from: u64, until: u64, mut take: impl FnMut(u64, u64, Option<Blame>)) {
        let mut at = from;
        let first = self.0.partition_point(|part| part.until <= from);
        for part in self.0.get(first..).unwrap_or_default() {
            if part.from >= until {
                break;
            }
            let (start, end) = (part.from.max(at), part.until.min(until));
            if start > at {
                take(at, start, None);
            }
            take(start, end, Some(part.blame));
            at = end;
        }
        if until > at {
            take(at, until, None);
        }
    }

    fn compress(&mut self) {
        let count = MAX_PARTS / 2;
        let Some((mut at, end)) = self.0.first().zip(self.0.get(count - 1)).map(|(a, b)| (a.from, b.until))
        else {
            return;
        };
        let mut sums: Vec<(Blame, u64)> = Vec::new();
        for part in self.0.drain(..count) {
            let ns = part.until - part.from;
            match sums.iter_mut().find(|(blame, _)| *blame == part.blame) {
                Some((_, sum)) => *sum += ns,
                None => sums.push((part.blame, ns)),
            }
        }
        sums.sort_by_key(|(_, ns)| core::cmp::Reverse(*ns));
        let rest: u64 = sums.iter().skip(MAX_COMPRESSED).map(|(_, ns)| ns).sum();
        sums.truncate(MAX_COMPRESSED);
        sums.push((Blame::of(WaitEnd::NotKnown), rest));
        let compressed = sums.into_iter().filter(|(_, ns)| *ns > 0).map(|(blame, ns)| {
            let from = at;
            at = (at + ns).min(end);
            Part { from, until: at, blame }
        });
        let compressed: Vec<Part> = compressed.collect();
        self.0.splice(0..0, compressed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blame(site: u64) -> Blame {
        Blame::ran(Tie::Wakes(RecordedCall { site, path: 1, context: 0 }))
    }

    fn sums(history: &History, from: u64, until: u64) -> Vec<(Option<u64>, u64)> {
        let mut sums: Vec<(Option<u64>, u64)> = Vec::new();
        history.over(from, until, |from, until, blame| {
            let site = blame.map(|blame| match blame.first {
                Some(Tie::Wakes(call)) => call.site,
                _ => 0,
            });
            match sums.iter_mut().find(|(known, _)| *known == site) {
                Some((_, ns)) => *ns += until - from,
                None => sums.push((site, until - from)),
            }
        });
        sums.sort_unstable();
        sums
    }

    #[test]
    fn time_between_parts_is_handed_over_too() {
        let mut history = History::default();
        history.push(Part { from: 10, until: 20, blame: blame(1) });
        history.push(Part { from: 20, until: 20, blame: blame(3) });
        history.push(Part { from: 30, until: 50, blame: blame(2) });
        assert_eq!(sums(&history, 0, 60), [(None, 30), (Some(1), 10), (Some(2), 20)]);
        assert_eq!(sums(&history, 15, 40), [(None, 10), (Some(1), 5), (Some(2), 10)]);
        assert_eq!(sums(&history, 60, 61), [(None, 1)]);
    }

    #[test]
    fn sums_over_compressed_parts_stay_exact() {
        let mut history = History::default();
        for number in 0..100_000 {
            history.push(Part { from: 10 * number, until: 10 * number + 4, blame: blame(number % 3) });
        }
        assert!(history.0.len() <= MAX_PARTS);
        let all = sums(&history, 0, 1_000_000);
        assert_eq!(all, [(None, 600_000), (Some(0), 133_336), (Some(1), 133_332), (Some(2), 133_332)]);
    }

    #[test]
    fn more_charged_places_than_there_is_room_for_are_not_known() {
        let mut history = History::default();
        (0..2000).for_each(|number| {
            history.push(Part { from: number, until: number + 1, blame: blame(number + 1) })
        });
        let all = sums(&history, 0, 2000);
        assert_eq!(all.iter().map(|(_, ns)| ns).sum::<u64>(), 2000);
        assert!(history.0.len() <= MAX_PARTS);
        assert!(all.contains(&(Some(2000), 1)));
    }
}
