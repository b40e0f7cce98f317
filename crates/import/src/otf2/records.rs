//! Records of the files of an archive, with the bytes at which they are.
//!
//! A file is a sequence of chunks: a header (0x03, byte order, numbers of the first and last event), records, zeros. A
//! record is its kind and, but for Enter and Leave, its length and content. Numbers are a byte with their length and that
//! many bytes, lowest first; 0 and the largest number are that byte alone.

use taskscope_otf2::{CHUNK_HEADER, CHUNK_HEADER_BYTES, END_OF_CHUNK, END_OF_FILE, LITTLE_ENDIAN, MAGIC};

/// The byte of an error, and a sentence.
pub(super) type Error = (usize, String);

/// Format of traces that is read, at most.
const NEWEST: u8 = 3;
const NO_END: &str = "the file ends without its end mark";
const NO_COMPRESSION: [u8; 2] = [0, 1];

/// Facts of an anchor.
pub(super) struct Anchor {
    /// Bytes of a chunk of events.
    pub event_chunk: u64,
    /// Bytes of a chunk of definitions.
    pub definition_chunk: u64,
}

impl Anchor {
    /// Reads an anchor.
    pub fn parse(bytes: &[u8]) -> Result<Anchor, Error> {
        let mut cursor = Cursor { bytes, at: 0 };
        let head = cursor.take(2)?;
        if head[1] != LITTLE_ENDIAN {
            return Err((1, "the archive is big-endian; these are not read".to_owned()));
        }
        if cursor.take(5)? != MAGIC {
            return Err((2, "this is not the anchor of an archive".to_owned()));
        }
        let version = cursor.take(5)?;
        if !(1..=NEWEST).contains(&version[0]) {
            let text =
                format!("the archive has version {} of the format; this reads 1 to {NEWEST}", version[0]);
            return Err((7, text));
        }
        let event_chunk = cursor.fixed_u64()?;
        let definition_chunk = cursor.fixed_u64()?;
        let compression = cursor.take(2)?[1];
        if !NO_COMPRESSION.contains(&compression) {
            return Err((29, "the archive is compressed; these are not read".to_owned()));
        }
        for size in [event_chunk, definition_chunk] {
            if size <= CHUNK_HEADER_BYTES as u64 {
                return Err((12, format!("chunks of {size} bytes have no room for a record")));
            }
        }
        Ok(Anchor { event_chunk, definition_chunk })
    }
}

/// A file in chunks.
pub(super) struct Chunked<'a> {
    bytes: &'a [u8],
    chunk: usize,
}

/// The shape of a record's content.
pub(super) enum Shape {
    /// Its length comes first.
    WithLength,
    /// One number.
    Number,
    /// Eight bytes.
    EightBytes,
}

/// A record.
pub(super) struct Record<'a> {
    pub kind: u8,
    /// Its place in the file.
    pub at: usize,
    pub fields: Cursor<'a>,
}

impl<'a> Chunked<'a> {
    pub fn new(bytes: &'a [u8], chunk: u64) -> Chunked<'a> {
        Chunked { bytes, chunk: usize::try_from(chunk).unwrap_or(usize::MAX) }
    }

    /// Hands over each record, of the shape that its kind has.
    pub fn records(
        &self,
        shape: impl Fn(u8) -> Shape,
        mut take: impl FnMut(Record<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut begin = 0;
        while begin < self.bytes.len() {
            let end = self.bytes.len().min(begin.saturating_add(self.chunk));
            let mut cursor = Cursor { bytes: &self.bytes[..end], at: begin };
            let head = cursor.take(CHUNK_HEADER_BYTES)?;
            if head[0] != CHUNK_HEADER || head[1] != LITTLE_ENDIAN {
                return Err((begin, "there is no header of a chunk".to_owned()));
            }
            loop {
                // A full chunk may end without a mark.
                if cursor.at == end && end == begin.saturating_add(self.chunk) {
                    break;
                }
                if cursor.at == end {
                    return Err((end, NO_END.to_owned()));
                }
                let at = cursor.at;
                let kind = cursor.byte()?;
                match kind {
                    END_OF_FILE => return Ok(()),
                    0 | END_OF_CHUNK => break,
                    _ => {}
                }
                let start = match shape(kind) {
                    Shape::Number => {
                        let start = cursor.at;
                        cursor.u64()?;
                        start
                    }
                    Shape::EightBytes => {
                        let start = cursor.at;
                        cursor.take(8)?;
                        start
                    }
                    Shape::WithLength => {
                        let length = match cursor.byte()? {
                            u8::MAX => cursor.fixed_u64()?,
                            short => short.into(),
                        };
                        let start = cursor.at;
                        cursor.take(usize::try_from(length).unwrap_or(usize::MAX))?;
                        start
                    }
                };
                take(Record { kind, at, fields: Cursor { bytes: &self.bytes[..cursor.at], at: start } })?;
            }
            begin = begin.saturating_add(self.chunk);
        }
        if self.bytes.is_empty() {
            return Ok(());
        }
        Err((self.bytes.len(), NO_END.to_owned()))
    }
}

/// Reads the fields of a record.
#[derive(Clone, Copy)]
pub(super) struct Cursor<'a> {
    pub bytes: &'a [u8],
    pub at: usize,
}

impl<'a> Cursor<'a> {
    pub fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        let end =
            end.ok_or_else(|| (self.at, format!("it ends in a record, {length} bytes were expected")))?;
        let taken = &self.bytes[self.at..end];
        self.at = end;
        Ok(taken)
    }

    pub fn byte(&mut self) -> Result<u8, Error> {
        Ok(self.take(1)?[0])
    }

    pub fn fixed_u64(&mut self) -> Result<u64, Error> {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.take(8)?);
        Ok(u64::from_le_bytes(bytes))
    }

    /// A number. The largest of 32 bits is that of 64 bits, too.
    pub fn u64(&mut self) -> Result<u64, Error> {
        let at = self.at;
        match self.byte()? {
            0 => Ok(0),
            u8::MAX => Ok(u64::MAX),
            length @ 1..=8 => {
                let mut bytes = [0; 8];
                bytes[..length as usize].copy_from_slice(self.take(length.into())?);
                Ok(u64::from_le_bytes(bytes))
            }
            length => Err((at, format!("a number cannot have {length} bytes"))),
        }
    }

    /// A number of 32 bits.
    pub fn u32(&mut self) -> Result<u32, Error> {
        let at = self.at;
        match self.u64()? {
            u64::MAX => Ok(u32::MAX),
            value => u32::try_from(value).map_err(|_| (at, format!("{value} is too large for a reference"))),
        }
    }

    /// A text up to its zero byte. Bytes that are not UTF-8 are replaced.
    pub fn text(&mut self) -> Result<String, Error> {
        let rest = &self.bytes[self.at..];
        let length = rest.iter().position(|byte| *byte == 0);
        let length = length.ok_or_else(|| (self.at, "a text has no end".to_owned()))?;
        let text = String::from_utf8_lossy(&rest[..length]).into_owned();
        self.at += length + 1;
        Ok(text)
    }

    pub fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }
}
