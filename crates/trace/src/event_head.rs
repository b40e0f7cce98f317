//! The head of a stored event.

use taskscope_event::Code;
use taskscope_event::framing::{EVENT_HEADER_BYTES, JUMBO_FLAG, JUMBO_HEADER_BYTES, payload_bytes};

/// Offset of an event's clock in its head.
pub(crate) const CLOCK_OFFSET: usize = 4;

/// The first twelve bytes of an event, and its end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventHead {
    pub(crate) code: Code,
    pub(crate) is_jumbo: bool,
    pub(crate) raw_clock: u64,
    /// Byte after the event; may be beyond the end of the file.
    pub(crate) end: usize,
}

impl EventHead {
    /// Reads the head at `position`; `None` if fewer bytes are left.
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
        // Copied as one piece, so that reading it as one does not wait for three stores.
        let code = Code(*head[1..].first_chunk()?);
        Some(EventHead { code, is_jumbo, raw_clock: clock, end })
    }

    /// The payload of the event that begins at `position`; of a jumbo event the data without the size word.
    #[inline(always)]
    pub(crate) fn payload<'a>(&self, bytes: &'a [u8], position: usize) -> Option<&'a [u8]> {
        let header = if self.is_jumbo { JUMBO_HEADER_BYTES } else { EVENT_HEADER_BYTES };
        bytes.get(position + header..self.end)
    }
}

/// A stored clock as a signed number; the highest bit would be 292 years of uptime.
#[inline]
pub(crate) fn clock_of(raw: u64) -> i64 {
    i64::try_from(raw).unwrap_or(i64::MAX)
}
