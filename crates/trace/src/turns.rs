//! Whose turn it is, where only some events need an order among streams.
//!
//! A heap would move once for each turn, and how far is never known before: so the clocks of each stream's next turns are
//! read ahead, and those up to where all streams are known are sorted, digit by digit.

use crate::stream::{Stream, ThreadEvents};
use taskscope_event::Code;

/// Turns of all streams together that are read ahead, about: their events are still in a cache when they are played.
const READ_AHEAD: usize = 1 << 14;
/// Turns of one stream that are read ahead, to begin with.
const FEWEST_OF_STREAM: usize = 16;
const MOST_OF_STREAM: usize = 1024;

/// Iterator over whose turn it is, where only some events need an order among streams: at its turn a stream plays its
/// events up to the next one that needs the order, that one included. A stream's first event does. After the last
/// turn each stream plays what it has left.
///
/// Turns come by the clocks of the events that end them; which of equal ones comes first is not said, but always the same.
pub struct Turns<'a, N> {
    lanes: Vec<Lane<'a>>,
    needs_order: N,
    of_lane: usize,
    /// Turns whose order is known: times since the round's begin, and the lanes' numbers.
    round: Vec<(u32, u32)>,
    taken: usize,
}

/// A stream, with clocks of its next turns; its events up to these were passed over.
struct Lane<'a> {
    events: ThreadEvents<'a>,
    ahead: Vec<i64>,
    taken: usize,
    /// So many are read ahead: more while the others wait for this stream, as each round asks all streams.
    count: usize,
    ended: bool,
}

impl Lane<'_> {
    fn ahead(&self) -> &[i64] {
        &self.ahead[self.taken..]
    }

    /// Reads until `count` clocks lie ahead.
    fn read(&mut self, needs_order: impl Fn(Code) -> bool) {
        self.ahead.drain(..self.taken);
        self.taken = 0;
        while self.ahead.len() < self.count {
            let Some(clock_ns) = self.events.peek_clock_ns() else {
                self.ended = true;
                return;
            };
            // A stream's clocks do not fall where its events are read in order.
            let clock_ns = self.ahead.last().map_or(clock_ns, |last| clock_ns.max(*last));
            self.ahead.push(clock_ns);
            self.events.next();
            self.events.pass_until(&needs_order);
        }
    }
}

impl<'a, N: Fn(u32, Code) -> bool> Turns<'a, N> {
    pub(crate) fn new(streams: &'a [Stream], needs_order: N) -> Self {
        let count = (READ_AHEAD / streams.len().max(1)).clamp(FEWEST_OF_STREAM, MOST_OF_STREAM);
        let lane = |stream: &'a Stream| {
            let (events, ahead) = (stream.events(), Vec::new());
            Lane { events, ahead, taken: 0, count, ended: false }
        };
        let lanes: Vec<_> = streams.iter().map(lane).collect();
        Turns { of_lane: count, lanes, needs_order, round: Vec::new(), taken: 0 }
    }

    /// Orders the turns up to where all streams are known.
    #[inline(never)]
    fn order(&mut self) {
        self.round.clear();
        self.taken = 0;
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            if !lane.ended && lane.ahead().len() <= lane.count / 2 {
                lane.read(|code| (self.needs_order)(number as u32, code));
            }
        }
        let Some(begin) = self.lanes.iter().filter_map(|lane| lane.ahead().first().copied()).min() else {
            return;
        };
        let going_on = self.lanes.iter().filter(|lane| !lane.ended);
        let known = going_on.filter_map(|lane| lane.ahead().last().copied()).min();
        let until = known.unwrap_or(i64::MAX).min(begin.saturating_add(i64::from(u32::MAX)));
        for (number, lane) in self.lanes.iter_mut().enumerate() {
            let before = self.round.len();
            let round = lane.ahead.iter().skip(lane.taken).take_while(|clock_ns| **clock_ns <= until);
            self.round.extend(round.map(|clock_ns| ((clock_ns - begin) as u32, number as u32)));
            lane.taken += self.round.len() - before;
            let is_waited_for = !lane.ended && lane.taken == lane.ahead.len();
            lane.count = match is_waited_for {
                true => (2 * lane.count).min(READ_AHEAD),
                false => (lane.count / 2).max(self.of_lane),
            };
        }
        radsort::sort_by_key(&mut self.round, |(since, _)| *since);
    }
}

impl<N: Fn(u32, Code) -> bool> Iterator for Turns<'_, N> {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.taken == self.round.len() {
            self.order();
        }
        let (_, lane) = self.round.get(self.taken)?;
        self.taken += 1;
        Some(*lane)
    }
}
