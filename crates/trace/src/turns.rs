//! Order among streams for the events with the [`Scope`](taskscope_event::spec::Scope) of the trace.
//!
//! A heap would move once for each turn, by an unpredictable distance. Instead the clocks of each stream's next turns
//! are read ahead, and those up to the time up to which all streams are known are sorted, digit by digit.

use crate::stream::{Stream, ThreadEvents};
use crate::turn_clocks::{ThreadCodes, thread_codes};

/// Turns of all streams together that are read ahead, about: their events are still in a cache when they are played.
const READ_AHEAD: usize = 1 << 14;
/// Turns of one stream that are read ahead, to begin with.
const MIN_PER_STREAM: usize = 16;
const MAX_PER_STREAM: usize = 1024;

/// Iterator over the streams by turns: at its turn a stream replays its events up to and including the next one with
/// the [`Scope`](taskscope_event::spec::Scope) of the trace. A stream's first event has a turn, too. After the last
/// turn each stream replays the rest.
///
/// Turns are ordered by the clocks of their last events; the order of equal ones is not specified, but always the same.
pub struct Turns<'a> {
    lanes: Vec<Lane<'a>>,
    turns_per_lane: usize,
    /// Turns in their order: times since the round's begin, and the lanes' numbers.
    round: Vec<(u32, u32)>,
    taken: usize,
}

/// A stream, with clocks of its next turns.
struct Lane<'a> {
    later: Later<'a>,
    ahead: Vec<i64>,
    taken: usize,
    /// Number of events read ahead: more while the others wait for this stream, as each round asks all
    /// streams.
    count: usize,
    ended: bool,
}

impl Lane<'_> {
    fn ahead(&self) -> &[i64] {
        &self.ahead[self.taken..]
    }

    /// Reads ahead until `count` clocks are known.
    fn read(&mut self) {
        self.ahead.drain(..self.taken);
        self.taken = 0;
        let Lane { later, ahead, count, .. } = self;
        let wanted = count.saturating_sub(ahead.len());
        let before = ahead.len();
        match later {
            Later::Known(clocks) => ahead.extend(clocks.by_ref().take(wanted)),
            Later::Passed(passed) => ahead.extend(passed.take(wanted)),
        }
        self.ended = self.ahead.len() - before < wanted;
    }
}

/// Clocks of the turns that were not read.
enum Later<'a> {
    /// Known since the trace was opened.
    Known(Box<dyn Iterator<Item = i64> + Send + 'a>),
    /// Found by passing over events.
    Passed(PassedTurns<'a>),
}

struct PassedTurns<'a> {
    events: ThreadEvents<'a>,
    thread_codes: &'static ThreadCodes,
    /// Whether all events have a turn.
    all: bool,
    last: i64,
}

impl Iterator for PassedTurns<'_> {
    type Item = i64;

    fn next(&mut self) -> Option<i64> {
        // A stream's clocks do not fall if its events are read in order.
        self.last = self.events.peek_clock_ns()?.max(self.last);
        self.events.next();
        if !self.all {
            self.events.pass_until(|code| self.thread_codes.get(code).is_none());
        }
        Some(self.last)
    }
}

impl<'a> Turns<'a> {
    pub(crate) fn new(streams: &'a [Stream], all: impl Fn(usize) -> bool) -> Self {
        let count = (READ_AHEAD / streams.len().max(1)).clamp(MIN_PER_STREAM, MAX_PER_STREAM);
        let lane = |(number, stream): (usize, &'a Stream)| {
            let all = all(number);
            let later = match stream.turn_clocks().filter(|_| !all) {
                Some(clocks) => Later::Known(clocks),
                None => {
                    let (events, thread_codes) = (stream.events(), thread_codes());
                    Later::Passed(PassedTurns { events, thread_codes, all, last: i64::MIN })
                }
            };
            Lane { later, ahead: Vec::new(), taken: 0, count, ended: false }
        };
        let lanes: Vec<_> = streams.iter().enumerate().map(lane).collect();
        Turns { turns_per_lane: count, lanes, round: Vec::new(), taken: 0 }
    }

    /// Orders the turns up to the time up to which all streams are known.
    #[inline(never)]
    fn order(&mut self) {
        self.round.clear();
        self.taken = 0;
        for lane in &mut self.lanes {
            if !lane.ended && lane.ahead().len() <= lane.count / 2 {
                lane.read();
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
                false => (lane.count / 2).max(self.turns_per_lane),
            };
        }
        radsort::sort_by_key(&mut self.round, |(since, _)| *since);
    }
}

impl Iterator for Turns<'_> {
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
