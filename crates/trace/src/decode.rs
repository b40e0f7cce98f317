//! Events out of the bytes of a stream file, without copying.

use crate::survey::Window;
use taskscope_event::Code;
use taskscope_event::framing::{EVENT_HEADER_BYTES, JUMBO_FLAG, JUMBO_HEADER_BYTES, payload_bytes};

/// An event in its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// Nanoseconds of the host's clock, corrected by its offset. Never lower than the clock of the
    /// event before it (in [`ReadOrder::Repaired`](crate::ReadOrder::Repaired)).
    pub clock_ns: i64,
    /// Which event it is.
    pub code: Code,
    /// Whether the payload is jumbo data.
    pub is_jumbo: bool,
    /// Its payload; of a jumbo event the data without the size word.
    pub payload: &'a [u8],
    /// Byte offset in the file.
    pub offset: u64,
}

/// The first twelve bytes of an event, and where it ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventHead {
    pub(crate) code: Code,
    pub(crate) is_jumbo: bool,
    pub(crate) raw_clock: u64,
    /// Byte after the event; may lie beyond the end of the file.
    pub(crate) end: usize,
}

impl EventHead {
    /// Reads the head at `position`; `None` where fewer bytes are left than it takes.
    #[inline]
    pub(crate) fn read(bytes: &[u8], position: usize) -> Option<EventHead> {
        let head: &[u8; EVENT_HEADER_BYTES] = bytes.get(position..)?.first_chunk()?;
        let clock =
            u64::from_le_bytes([head[4], head[5], head[6], head[7], head[8], head[9], head[10], head[11]]);
        let is_jumbo = head[0] & JUMBO_FLAG != 0;
        let end = if is_jumbo {
            let size = bytes[position + EVENT_HEADER_BYTES..].first_chunk::<4>()?;
            position.checked_add(JUMBO_HEADER_BYTES + u32::from_le_bytes(*size) as usize)?
        } else {
            position + EVENT_HEADER_BYTES + payload_bytes(head[0])
        };
        Some(EventHead { code: Code([head[1], head[2], head[3]]), is_jumbo, raw_clock: clock, end })
    }
}

/// A stored clock as a signed number; the highest bit would be 292 years of uptime.
#[inline]
pub(crate) fn clock_of(raw: u64) -> i64 {
    i64::try_from(raw).unwrap_or(i64::MAX)
}

/// The events of one stream file, one after the other.
#[derive(Clone)]
pub struct Decoder<'a> {
    bytes: &'a [u8],
    position: usize,
    end: usize,
    offset_ns: i64,
    /// Clocks below this are raised to it; `None` leaves them as they are stored.
    floor: Option<i64>,
    /// Windows not yet left; the first may be the one that is being read.
    windows: &'a [Window],
    /// Next position in the order of the first window, when within it.
    in_window: usize,
}

impl<'a> Decoder<'a> {
    /// Decodes `bytes[begin..end]`, which a survey found to be whole events.
    pub(crate) fn new(
        bytes: &'a [u8],
        begin: usize,
        end: usize,
        offset_ns: i64,
        windows: &'a [Window],
        raise_clocks: bool,
    ) -> Self {
        let floor = raise_clocks.then_some(i64::MIN);
        Decoder { bytes, position: begin, end, offset_ns, floor, windows, in_window: 0 }
    }

    #[cold]
    fn step_in_window(&mut self) -> usize {
        let window = &self.windows[0];
        let offset = window.order[self.in_window];
        self.in_window += 1;
        if self.in_window == window.order.len() {
            self.position = window.end;
            self.windows = &self.windows[1..];
            self.in_window = 0;
        }
        offset
    }
}

impl<'a> Iterator for Decoder<'a> {
    type Item = Event<'a>;

    #[inline]
    fn next(&mut self) -> Option<Event<'a>> {
        if self.position >= self.end {
            return None;
        }
        let reordered = self.windows.first().is_some_and(|window| self.position == window.begin);
        let offset = if reordered { self.step_in_window() } else { self.position };
        let head = EventHead::read(self.bytes, offset)?;
        if !reordered {
            self.position = head.end;
        }
        let header = if head.is_jumbo { JUMBO_HEADER_BYTES } else { EVENT_HEADER_BYTES };
        let payload = self.bytes.get(offset + header..head.end)?;
        let mut clock_ns = clock_of(head.raw_clock).saturating_add(self.offset_ns);
        if let Some(floor) = &mut self.floor {
            clock_ns = clock_ns.max(*floor);
            *floor = clock_ns;
        }
        Some(Event { clock_ns, code: head.code, is_jumbo: head.is_jumbo, payload, offset: offset as u64 })
    }
}
