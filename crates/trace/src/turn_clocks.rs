//! Clocks of the events of a file that have a turn of their own, kept while the file is surveyed: to find them again
//! costs as much as the survey.

use std::sync::LazyLock;
use taskscope_event::models::MODELS;
use taskscope_event::spec::Scope;
use taskscope_event::{Code, CodeMap};

/// Codes of the events with the scope of their thread: all others have a turn.
pub(crate) type ThreadCodes = CodeMap<()>;

/// The codes of all such events.
pub(crate) fn thread_codes() -> &'static ThreadCodes {
    static CODES: LazyLock<Box<ThreadCodes>> = LazyLock::new(|| {
        let events = MODELS.iter().flat_map(|model| model.events);
        let thread_codes = events.filter(|event| event.scope == Scope::Thread);
        Box::new(CodeMap::new((), thread_codes.map(|event| (event.code, ()))))
    });
    &CODES
}

/// The clocks of one file, uncorrected.
#[derive(Debug)]
pub(crate) struct TurnClocks {
    thread_codes: &'static ThreadCodes,
    /// Clocks of the first event, and of those that have a turn.
    clocks: RisingClocks,
    /// Whether the first event is here for being the first only.
    first_has_no_turn: bool,
}

impl TurnClocks {
    /// Creates the clocks of a file of so many bytes.
    pub(crate) fn new(file_bytes: usize) -> TurnClocks {
        let mut clocks = RisingClocks::default();
        // Twice the space needed if every fourth event has a turn. Unused space costs nothing; moving the
        // clocks while they grow does.
        let _ = clocks.bytes.try_reserve_exact(file_bytes / 16);
        TurnClocks { thread_codes: thread_codes(), clocks, first_has_no_turn: false }
    }

    /// Takes the first event.
    pub(crate) fn first(&mut self, code: Code, clock: i64) {
        self.first_has_no_turn = self.thread_codes.get(code).is_some();
        self.clocks.push(clock);
    }

    /// Takes a later event.
    #[inline(always)]
    pub(crate) fn later(&mut self, code: Code, clock: i64) {
        if self.thread_codes.get(code).is_none() {
            self.clocks.push(clock);
        }
    }

    /// The clock of the first event.
    pub(crate) fn first_clock(&self) -> Option<i64> {
        self.clocks.iter().next()
    }

    /// The clocks. A file that another one begins before has no turn for being the first.
    pub(crate) fn iter(&self, is_first_file: bool) -> RisingClocksIter<'_> {
        let mut clocks = self.clocks.iter();
        if self.first_has_no_turn && !is_first_file {
            clocks.next();
        }
        clocks
    }
}

/// Numbers that do not fall: their differences, seven bits a byte, lowest first; the highest bit says that more follow.
#[derive(Debug, Default)]
struct RisingClocks {
    bytes: Vec<u8>,
    last: i64,
}

const LOW: u64 = 0x7f;
const MORE: u8 = 0x80;

impl RisingClocks {
    fn push(&mut self, clock: i64) {
        let mut rest = clock.wrapping_sub(self.last) as u64;
        self.last = clock;
        while rest > LOW {
            self.bytes.push(rest as u8 | MORE);
            rest >>= LOW.count_ones();
        }
        self.bytes.push(rest as u8);
    }

    fn iter(&self) -> RisingClocksIter<'_> {
        RisingClocksIter { bytes: &self.bytes, last: 0 }
    }
}

#[derive(Clone)]
pub(crate) struct RisingClocksIter<'a> {
    bytes: &'a [u8],
    last: i64,
}

impl Iterator for RisingClocksIter<'_> {
    type Item = i64;

    #[inline]
    fn next(&mut self) -> Option<i64> {
        let mut difference = 0;
        let mut shift = 0;
        loop {
            let (byte, rest) = self.bytes.split_first()?;
            self.bytes = rest;
            difference |= (u64::from(*byte) & LOW) << shift;
            shift += LOW.count_ones();
            if *byte & MORE == 0 {
                self.last = self.last.wrapping_add(difference as i64);
                return Some(self.last);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_are_returned_unchanged() {
        let clocks = [0, 0, 1, 127, 255, 256, 1 << 14, (1 << 14) + 1, 1 << 40, i64::MAX, i64::MAX];
        let mut kept = RisingClocks::default();
        clocks.into_iter().for_each(|clock| kept.push(clock));
        assert!(kept.iter().eq(clocks));
        assert!(kept.bytes.len() < 8 * clocks.len());
    }
}
