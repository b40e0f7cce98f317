//! Reads the fields of a payload: little endian, unaligned, never past its end.

/// The `u32` at byte `offset`.
pub fn u32_at(payload: &[u8], offset: usize) -> Option<u32> {
    let bytes = payload.get(offset..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

/// The `u64` at byte `offset`.
pub fn u64_at(payload: &[u8], offset: usize) -> Option<u64> {
    let bytes = payload.get(offset..)?.first_chunk::<8>()?;
    Some(u64::from_le_bytes(*bytes))
}

/// The text at the start of `payload`, up to its NUL or the end, and what follows the NUL. Bytes that
/// are no UTF-8 are replaced.
pub fn text(payload: &[u8]) -> (std::borrow::Cow<'_, str>, &[u8]) {
    let end = payload.iter().position(|byte| *byte == 0).unwrap_or(payload.len());
    (String::from_utf8_lossy(&payload[..end]), payload.get(end + 1..).unwrap_or_default())
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
        assert_eq!(readable(b"a\xff\x1b[31m\n\xe2\x98\x83"), "a\\xff\\x1b[31m\\x0a\u{2603}");
    }
}
