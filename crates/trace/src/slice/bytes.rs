//! Events as bytes, in the form of a stream file.

use crate::event_head::EventHead;
use taskscope_event::Code;
use taskscope_event::framing::{
    FILE_HEADER_BYTES, JUMBO_FLAG, JUMBO_SIZE_CODE, MAX_PAYLOAD_BYTES, head_word, size_code,
};

/// Turns clocks written by [`push`] into those of a file, which has none below 0: each is later by `shift`, or 0.
/// `None` if no clock is possible.
pub(super) fn place_clocks(bytes: &mut [u8], shift: Option<i64>) {
    let Some(shift) = shift else { return };
    let mut at = FILE_HEADER_BYTES;
    while let Some(head) = EventHead::read(bytes, at) {
        let clock = (head.raw_clock as i64).saturating_add(shift).max(0);
        bytes[at + 4..at + 12].copy_from_slice(&clock.to_le_bytes());
        at = head.end;
    }
}

/// Number of events that [`push`] has written.
pub(super) fn events_in(bytes: &[u8]) -> u64 {
    let ends = std::iter::successors(Some(FILE_HEADER_BYTES), |at| Some(EventHead::read(bytes, *at)?.end));
    ends.skip(1).count() as u64
}

/// The clock of the first event that [`push`] has written.
pub(super) fn first_clock(bytes: &[u8]) -> Option<i64> {
    EventHead::read(bytes, FILE_HEADER_BYTES).map(|head| head.raw_clock as i64)
}

/// Inserts events into others; both are in the order of time. Of one clock, inserted ones come last.
pub(super) fn merge(bytes: &mut Vec<u8>, inserted: &[u8]) {
    let mut merged = Vec::with_capacity(bytes.len() + inserted.len());
    merged.extend(bytes.get(..FILE_HEADER_BYTES).unwrap_or_default());
    let (mut at, mut next) = (FILE_HEADER_BYTES, 0);
    while let Some(head) = EventHead::read(bytes, at) {
        while let Some(new) = EventHead::read(inserted, next)
            && (new.raw_clock as i64) < head.raw_clock as i64
        {
            merged.extend(inserted.get(next..new.end).unwrap_or_default());
            next = new.end;
        }
        merged.extend(bytes.get(at..head.end).unwrap_or_default());
        at = head.end;
    }
    merged.extend(inserted.get(next..).unwrap_or_default());
    *bytes = merged;
}

/// Appends an event. Clocks are corrected ones, and may be negative until [`place_clocks`].
///
/// The jumbo data of a damaged event may not fit into a plain event that repeats it: then it is truncated, or filled
/// with a zero byte.
pub(super) fn push(bytes: &mut Vec<u8>, clock_ns: i64, code: Code, is_jumbo: bool, payload: &[u8]) {
    let (payload, filling): (&[u8], &[u8]) = match payload.len() {
        _ if is_jumbo => (payload, &[]),
        1 => (payload, &[0]),
        length => (&payload[..length.min(MAX_PAYLOAD_BYTES)], &[]),
    };
    let flags =
        if is_jumbo { JUMBO_FLAG | JUMBO_SIZE_CODE } else { size_code(payload.len() + filling.len()) };
    bytes.extend(head_word(flags, code).to_le_bytes());
    bytes.extend(clock_ns.to_le_bytes());
    if is_jumbo {
        bytes.extend((payload.len() as u32).to_le_bytes());
    }
    bytes.extend(payload);
    bytes.extend(filling);
}

/// The first field of a payload; 0 if it is too short.
pub(super) fn first_u32(payload: &[u8]) -> u32 {
    payload.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}
