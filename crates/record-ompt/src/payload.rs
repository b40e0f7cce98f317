//! Payloads of events.

/// The payload of an event with two numbers.
#[inline(always)]
pub fn two(first: u32, second: u32) -> [u8; 8] {
    (u64::from(first) | u64::from(second) << 32).to_le_bytes()
}
