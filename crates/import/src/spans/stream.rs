//! Bytes of an event file in memory.

use taskscope_event::Code;
use taskscope_event::framing::{JUMBO_FLAG, JUMBO_SIZE_CODE, file_header, head_word, size_code};

/// Longest text of an entry, bytes; events have room for 64 KiB.
const MAX_TEXT: usize = 32 << 10;

/// An event file under construction, in the order of time.
pub(super) struct EventFile(Vec<u8>);

impl EventFile {
    pub fn new() -> EventFile {
        EventFile(file_header().to_vec())
    }

    pub fn plain(&mut self, at: u64, code: Code, fields: &[&[u8]]) {
        let size = fields.iter().map(|field| field.len()).sum();
        self.0.extend(head_word(size_code(size), code).to_le_bytes());
        self.0.extend(at.to_le_bytes());
        fields.iter().for_each(|field| self.0.extend_from_slice(field));
    }

    pub fn jumbo(&mut self, at: u64, code: Code, fields: &[&[u8]]) {
        let size: usize = fields.iter().map(|field| field.len()).sum();
        self.0.extend(head_word(JUMBO_FLAG | JUMBO_SIZE_CODE, code).to_le_bytes());
        self.0.extend(at.to_le_bytes());
        self.0.extend((size as u32).to_le_bytes());
        fields.iter().for_each(|field| self.0.extend_from_slice(field));
    }

    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// A text with the zero byte that ends it: zero bytes in it become ␀, and long ones are cut.
pub(super) fn text(text: &str) -> Vec<u8> {
    let mut end = text.len().min(MAX_TEXT);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut bytes = text[..end].replace('\0', "␀").into_bytes();
    bytes.push(0);
    bytes
}
