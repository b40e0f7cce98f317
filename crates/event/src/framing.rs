//! Layout of events in a stream file (ovni stream version 1; `stream.obs` and `taskscope.obs` alike).
//!
//! ```text
//! file     8 bytes: "ovni", u32 stream version = 1; then events back to back, little endian
//!
//! event    offset size
//!          0      1    flags: low nibble = payload size code, 0x10 = jumbo
//!          1      1    model letter; stored last, so a zero here means "not written yet"
//!          2      1    category
//!          3      1    value
//!          4      8    u64 clock, nanoseconds of CLOCK_MONOTONIC
//!          12     n    payload: size code 0 → 0 bytes, v → v + 1 bytes (2 to 16)
//!
//! jumbo    payload = u32 N, then N bytes of data: 16 + N bytes in all
//! ```
//!
//! While a stream is being written, its end is in a tail file ([`crate::tail`]), zero-filled past the last
//! event: the first zero model letter at an event border ends the stream; non-zero bytes after it are one
//! torn event.

use crate::Code;

/// The first four bytes of a stream file.
pub const MAGIC: [u8; 4] = *b"ovni";
/// The version that follows the magic.
pub const STREAM_VERSION: u32 = 1;
/// Bytes before the first event.
pub const FILE_HEADER_BYTES: usize = 8;
/// Bytes of an event before its payload.
pub const EVENT_HEADER_BYTES: usize = 12;
/// Bytes of a jumbo event before its data.
pub const JUMBO_HEADER_BYTES: usize = 16;
/// The largest payload of an event that is not jumbo.
pub const MAX_PAYLOAD_BYTES: usize = 16;
/// Flag of a jumbo event.
pub const JUMBO_FLAG: u8 = 0x10;
/// Size code of the four bytes that hold a jumbo event's data size.
pub const JUMBO_SIZE_CODE: u8 = 3;

/// The file header that every stream file starts with.
pub const fn file_header() -> [u8; FILE_HEADER_BYTES] {
    let v = STREAM_VERSION.to_le_bytes();
    [MAGIC[0], MAGIC[1], MAGIC[2], MAGIC[3], v[0], v[1], v[2], v[3]]
}

/// The size code of a payload of `bytes` bytes (0 or 2 to 16; 1 cannot be expressed).
pub const fn size_code(bytes: usize) -> u8 {
    assert!(bytes != 1 && bytes <= MAX_PAYLOAD_BYTES);
    if bytes == 0 { 0 } else { (bytes - 1) as u8 }
}

/// The payload bytes that a flags byte announces, jumbo data not counted.
pub const fn payload_bytes(flags: u8) -> usize {
    let code = (flags & 0x0f) as usize;
    code + (code != 0) as usize
}

/// The first four bytes of an event as a little-endian word: flags, then the code.
/// Storing it (with release order) after everything else commits the event.
pub const fn head_word(flags: u8, code: Code) -> u32 {
    flags as u32 | code.to_u32() << 8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_codes_round_trip() {
        for bytes in (0..=MAX_PAYLOAD_BYTES).filter(|b| *b != 1) {
            assert_eq!(payload_bytes(size_code(bytes)), bytes);
        }
    }

    #[test]
    fn head_word_is_flags_then_code() {
        let word = head_word(0x13, Code::new(b"POc"));
        assert_eq!(word.to_le_bytes(), [0x13, b'P', b'O', b'c']);
    }
}
