//! Reads the fields of a payload: little endian, unaligned, never past its end.

use std::borrow::Cow;
use taskscope_event::decode::FieldValue;

/// The `u32` at byte `offset`.
pub fn u32_at(payload: &[u8], offset: usize) -> Option<u32> {
    let bytes = payload.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// The `i32` at byte `offset`.
pub fn i32_at(payload: &[u8], offset: usize) -> Option<i32> {
    u32_at(payload, offset).map(u32::cast_signed)
}

/// The `u64` at byte `offset`.
pub fn u64_at(payload: &[u8], offset: usize) -> Option<u64> {
    let bytes = payload.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The `i64` at byte `offset`.
pub fn i64_at(payload: &[u8], offset: usize) -> Option<i64> {
    u64_at(payload, offset).map(u64::cast_signed)
}

/// Splits `payload` after its first NUL. Returns the text before it (all of it without a NUL), as [`shown`]
/// does, and the rest.
pub fn text(payload: &[u8]) -> (Cow<'_, str>, &[u8]) {
    let end = payload.iter().position(|byte| *byte == 0).unwrap_or(payload.len());
    (shown(&payload[..end]), payload.get(end + 1..).unwrap_or_default())
}

/// Bytes as text, invalid UTF-8 as `\xNN`.
pub fn shown(bytes: &[u8]) -> Cow<'_, str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => FieldValue::Text(bytes).to_string().into(),
    }
}

/// Text as it is, but bytes that are none, and controls, as `\xNN`.
pub fn readable(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            if c.is_control() {
                c.to_string().bytes().for_each(|byte| text += &format!("\\x{byte:02x}"));
            } else {
                text.push(c);
            }
        }
        chunk.invalid().iter().for_each(|byte| text += &format!("\\x{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_payloads_give_nothing() {
        assert_eq!(u32_at(&[1, 0, 0], 0), None);
        assert_eq!(u32_at(&[1, 0, 0, 0], 1), None);
        assert_eq!(u64_at(&[1, 0, 0, 0, 0, 0, 0, 0], 0), Some(1));
        assert_eq!(text(b"ab\0cd"), ("ab".into(), &b"cd"[..]));
        assert_eq!(text(b"ab"), ("ab".into(), &b""[..]));
        assert_eq!(text(b"t\xe2che\0"), ("t\\xe2che".into(), &b""[..]));
        assert_eq!(readable(b"a\xff\x1b[31m\n\xe2\x98\x83"), "a\\xff\\x1b[31m\\x0a\u{2603}");
    }
}
