//! Records in chunks, as all files of an archive but the anchor have them.
//!
//! A chunk has a fixed size, of which only the last one may be shorter: a header (0x03, byte order, number of its first
//! event from 1, number of its last event), records, zeros. A record of an event is preceded by its time (0x05, 8
//! bytes) if that changed, and always at the begin of a chunk. Numbers are a byte with their length and that many
//! bytes, lowest first; 0 and the largest number are that byte alone. A record with a length has it in one byte, or
//! 0xff and 8 bytes.

use crate::folder::Folder;
use std::io;
use taskscope_otf2::{CHUNK_HEADER, CHUNK_HEADER_BYTES, END_OF_CHUNK, END_OF_FILE, LITTLE_ENDIAN, event};

pub(super) const EVENT_CHUNK: u64 = 256 << 10;
pub(super) const DEFINITION_CHUNK: u64 = 4 << 20;
/// Chunk header and byte order.
pub(super) const HEAD: [u8; 2] = [CHUNK_HEADER, LITTLE_ENDIAN];
/// End of the file, and of the buffer.
pub(super) const END: [u8; 2] = [END_OF_FILE, END_OF_CHUNK];

/// The content of a record.
#[derive(Default)]
pub(super) struct Fields(Vec<u8>);

impl Fields {
    pub(super) fn byte(mut self, value: u8) -> Fields {
        self.0.push(value);
        self
    }

    pub(super) fn u32(mut self, value: u32) -> Fields {
        match value {
            0 | u32::MAX => self.0.push(value as u8),
            _ => self.sized(value.into()),
        }
        self
    }

    pub(super) fn u64(mut self, value: u64) -> Fields {
        match value {
            0 | u64::MAX => self.0.push(value as u8),
            _ => self.sized(value),
        }
        self
    }

    /// Text up to its first zero byte, which ends it.
    pub(super) fn text(mut self, text: &str) -> Fields {
        self.0.extend(text.bytes().take_while(|byte| *byte != 0));
        self.0.push(0);
        self
    }

    fn sized(&mut self, value: u64) {
        let bytes = 8 - value.leading_zeros() as usize / 8;
        self.0.push(bytes as u8);
        self.0.extend(&value.to_le_bytes()[..bytes]);
    }

    /// A record of this kind without a length.
    pub(super) fn bare(self, kind: u8) -> Vec<u8> {
        let mut record = vec![kind];
        record.extend(self.0);
        record
    }

    /// A record of this kind, with its length.
    pub(super) fn record(self, kind: u8) -> Vec<u8> {
        let mut record = vec![kind];
        match u8::try_from(self.0.len()) {
            Ok(length) if length < u8::MAX => record.push(length),
            _ => {
                record.push(u8::MAX);
                record.extend((self.0.len() as u64).to_le_bytes());
            }
        }
        record.extend(self.0);
        record
    }
}

/// A file in chunks.
pub(super) struct Chunks {
    path: String,
    size: usize,
    bytes: Vec<u8>,
    time: Option<u64>,
    /// Number of events so far.
    pub(super) events: u64,
}

impl Chunks {
    pub(super) fn new(path: String, size: u64) -> Chunks {
        let mut chunks = Chunks { path, size: size as usize, bytes: Vec::new(), time: None, events: 0 };
        chunks.begin();
        chunks
    }

    fn begin(&mut self) {
        self.bytes.extend(HEAD);
        self.bytes.extend((self.events + 1).to_le_bytes());
        self.bytes.extend([0; 8]);
        self.time = None;
    }

    /// Writes the number of the last event into the header.
    fn close(&mut self) {
        self.bytes[CHUNK_HEADER_BYTES - 8..CHUNK_HEADER_BYTES].copy_from_slice(&self.events.to_le_bytes());
    }

    /// Adds an event.
    pub(super) fn event(&mut self, at: u64, record: &[u8], folder: &mut dyn Folder) -> io::Result<()> {
        self.make_room(record.len() + 9, folder)?;
        if self.time != Some(at) {
            self.time = Some(at);
            self.bytes.push(event::TIMESTAMP);
            self.bytes.extend(at.to_le_bytes());
        }
        self.bytes.extend(record);
        self.events += 1;
        Ok(())
    }

    /// Adds a definition.
    pub(super) fn definition(&mut self, record: &[u8], folder: &mut dyn Folder) -> io::Result<()> {
        self.make_room(record.len(), folder)?;
        self.bytes.extend(record);
        Ok(())
    }

    fn make_room(&mut self, length: usize, folder: &mut dyn Folder) -> io::Result<()> {
        // The end of a chunk, or of the file, follows.
        if self.bytes.len() + length + END.len() <= self.size {
            return Ok(());
        }
        if CHUNK_HEADER_BYTES + length + END.len() > self.size {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a name is too long for OTF2"));
        }
        self.close();
        self.bytes.resize(self.size, 0);
        folder.append(&self.path, &self.bytes)?;
        self.bytes.clear();
        self.begin();
        Ok(())
    }

    /// Writes the end of the file.
    pub(super) fn finish(&mut self, folder: &mut dyn Folder) -> io::Result<()> {
        self.close();
        self.bytes.extend(END);
        folder.append(&self.path, &self.bytes)?;
        self.bytes = Vec::new();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn numbers_have_their_lengths() {
        let bytes = Fields::default().u32(0).u32(u32::MAX).u32(0x1234).u64(u64::MAX).u64(1 << 40).bare(0x0c);
        assert_eq!(bytes, [0x0c, 0, 0xff, 2, 0x34, 0x12, 0xff, 6, 0, 0, 0, 0, 0, 1]);
        assert_eq!(Fields::default().text("a\0b").record(7), [7, 2, b'a', 0]);
        let long = Fields::default().text(&"x".repeat(254)).record(7);
        assert_eq!(long[..10], [7, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn chunks_are_full_and_begin_with_a_time() {
        let mut files: BTreeMap<String, Vec<u8>> = BTreeMap::new();
        let mut chunks = Chunks::new("0.evt".into(), 64);
        for _ in 0..12 {
            chunks.event(7, &[0x0c, 1, 5], &mut files).unwrap();
        }
        chunks.finish(&mut files).unwrap();
        let bytes = &files["0.evt"];
        // Header 18, time 9, then 8 events of 3 bytes each: room for a time is kept.
        assert_eq!((bytes[2], bytes[10]), (1, 8));
        assert_eq!(bytes[64..68], [0x03, 0x42, 9, 0]);
        assert_eq!((bytes[64 + 10], bytes[64 + 18]), (12, 0x05));
        assert_eq!(bytes[bytes.len() - 2..], END);
    }
}
