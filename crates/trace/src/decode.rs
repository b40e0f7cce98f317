//! Events out of the bytes of a stream file, without copying.

use crate::bytes::prefetch;
use crate::clock_drift::ClockCorrection;
use crate::event_head::{CLOCK_OFFSET, EventHead, clock_of};
use crate::unsorted::Window;
use taskscope_event::Code;

/// Distance of prefetched bytes: a few events.
const PREFETCH_BYTES: usize = 128;

/// An event in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Nanoseconds of the host's clock, corrected by its offset. Never lower than the clock of the
    /// event before it (in [`ReadOrder::Repaired`](crate::ReadOrder::Repaired)).
    pub clock_ns: i64,
    /// Code of the event.
    pub code: Code,
    /// Whether the payload is jumbo data.
    pub is_jumbo: bool,
    /// Its payload; of a jumbo event the data without the size word.
    pub payload: &'a [u8],
    /// Byte offset in the file.
    pub offset: u64,
}

/// The events of one stream file, one after the other.
#[derive(Clone)]
pub struct Decoder<'a> {
    /// Bytes up to the end of the last event.
    bytes: &'a [u8],
    position: usize,
    /// Whether events are read in place, as they are in the file, with an offset added to their clocks.
    plain: bool,
    clock: ClockCorrection,
    /// Clocks below this are raised to it.
    floor: i64,
    /// Whether the floor rises with the clocks; else they stay as they are stored.
    raise_clocks: bool,
    /// Windows not yet left; the first may be the one that is being read.
    windows: &'a [Window],
    /// Begin of the first window; `usize::MAX` without one.
    window_begin: usize,
    /// Next position in the order of the first window, when within it.
    in_window: usize,
}

impl<'a> Decoder<'a> {
    /// Decodes `bytes[begin..end]`, which a survey found to be whole events.
    pub(crate) fn new(
        bytes: &'a [u8],
        begin: usize,
        end: usize,
        clock: ClockCorrection,
        windows: &'a [Window],
        raise_clocks: bool,
    ) -> Self {
        Decoder {
            bytes: bytes.get(..end).unwrap_or(bytes),
            position: begin,
            plain: windows.is_empty() && !raise_clocks && clock.drift == 0,
            clock,
            floor: i64::MIN,
            raise_clocks,
            windows,
            window_begin: begin_of_first(windows),
            in_window: 0,
        }
    }

    /// The clock of the next event, which is read again when the event is taken: a merge asks for
    /// the clocks of many streams and takes one event.
    #[inline(always)]
    pub(crate) fn peek_clock_ns(&self) -> Option<i64> {
        if self.position >= self.bytes.len() {
            return None;
        }
        let offset = if self.position == self.window_begin {
            self.windows[0].order[self.in_window]
        } else {
            self.position
        };
        let clock = self.bytes.get(offset + CLOCK_OFFSET..)?.first_chunk()?;
        Some(self.correct(u64::from_le_bytes(*clock)))
    }

    /// Skips the events before the first one with a code that `stops` accepts.
    #[inline(always)]
    pub(crate) fn pass_until(&mut self, stops: impl Fn(Code) -> bool) {
        if self.plain {
            // All that is asked of nearly all events is their codes.
            let mut plain = self.plain();
            while let Some(head) = plain.next().filter(|head| !stops(head.code)) {
                plain.pass(&head);
            }
            self.resume_at(&plain);
            return;
        }
        while self.position < self.bytes.len() {
            let reordered = self.position == self.window_begin;
            let offset = if reordered { self.windows[0].order[self.in_window] } else { self.position };
            let Some(head) = EventHead::read(self.bytes, offset).filter(|head| !stops(head.code)) else {
                return;
            };
            if reordered {
                self.step_in_window();
            } else {
                self.position = head.end;
                prefetch(self.bytes, head.end + PREFETCH_BYTES);
            }
            if self.raise_clocks {
                self.floor = self.correct(head.raw_clock);
            }
        }
    }

    /// Whether events are read in place, as they are in the file, with an offset added to their clocks.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.plain
    }

    /// A reader of such events.
    #[inline(always)]
    pub(crate) fn plain(&mut self) -> PlainEvents<'a> {
        PlainEvents { bytes: self.bytes, position: self.position, offset_ns: self.clock.offset_ns }
    }

    /// Resumes at the position of plain reading.
    #[inline(always)]
    pub(crate) fn resume_at(&mut self, plain: &PlainEvents<'_>) {
        self.position = plain.position;
    }

    /// The code of the next event.
    pub(crate) fn peek_code(&self) -> Option<Code> {
        let reordered = self.position == self.window_begin;
        let offset = if reordered { self.windows.first()?.order[self.in_window] } else { self.position };
        let head = EventHead::read(self.bytes, offset)?;
        (self.position < self.bytes.len()).then_some(head.code)
    }

    #[inline]
    fn correct(&self, raw_clock: u64) -> i64 {
        self.clock.apply(clock_of(raw_clock)).max(self.floor)
    }

    /// The next event, if some are read in another order than stored, or with repaired clocks.
    #[inline(never)]
    fn next_mended(&mut self) -> Option<Event<'a>> {
        if self.position >= self.bytes.len() {
            return None;
        }
        let reordered = self.position == self.window_begin;
        let offset = if reordered { self.step_in_window() } else { self.position };
        let head = EventHead::read(self.bytes, offset)?;
        if !reordered {
            self.position = head.end;
            prefetch(self.bytes, head.end + PREFETCH_BYTES);
        }
        let payload = head.payload(self.bytes, offset)?;
        let clock_ns = self.correct(head.raw_clock);
        if self.raise_clocks {
            self.floor = clock_ns;
        }
        Some(Event { clock_ns, code: head.code, is_jumbo: head.is_jumbo, payload, offset: offset as u64 })
    }

    #[cold]
    fn step_in_window(&mut self) -> usize {
        let window = &self.windows[0];
        let offset = window.order[self.in_window];
        self.in_window += 1;
        if self.in_window == window.order.len() {
            self.position = window.end;
            self.windows = &self.windows[1..];
            self.window_begin = begin_of_first(self.windows);
            self.in_window = 0;
        }
        offset
    }
}

/// Events that are read as stored: exceptions are checked once, not per event.
pub(crate) struct PlainEvents<'a> {
    bytes: &'a [u8],
    position: usize,
    offset_ns: i64,
}

impl PlainEvents<'_> {
    /// The head of the next event.
    #[inline(always)]
    pub(crate) fn next(&self) -> Option<EventHead> {
        EventHead::read(self.bytes, self.position)
    }

    /// Goes to the event after it.
    #[inline(always)]
    pub(crate) fn pass(&mut self, head: &EventHead) {
        self.position = head.end;
        prefetch(self.bytes, head.end + PREFETCH_BYTES);
    }

    /// Its corrected clock, nanoseconds.
    #[inline(always)]
    pub(crate) fn clock_ns(&self, head: &EventHead) -> i64 {
        clock_of(head.raw_clock).saturating_add(self.offset_ns)
    }
}

fn begin_of_first(windows: &[Window]) -> usize {
    windows.first().map_or(usize::MAX, |window| window.begin)
}

impl<'a> Iterator for Decoder<'a> {
    type Item = Event<'a>;

    #[inline(always)]
    fn next(&mut self) -> Option<Event<'a>> {
        if !self.plain {
            return self.next_mended();
        }
        let plain = self.plain();
        let head = plain.next()?;
        let payload = head.payload(self.bytes, self.position)?;
        let (clock_ns, offset) = (plain.clock_ns(&head), self.position as u64);
        self.position = head.end;
        prefetch(self.bytes, head.end + PREFETCH_BYTES);
        Some(Event { clock_ns, code: head.code, is_jumbo: head.is_jumbo, payload, offset })
    }
}
