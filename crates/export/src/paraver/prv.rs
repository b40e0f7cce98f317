//! A `.prv` file: a header and event records.
//!
//! ```text
//! #Paraver (19/01/38 at 03:14):<end, 20 digits>_ns:0:1:1(<rows>:1)
//! 2:0:1:1:<row from 1>:<time>:<type>:<value>
//! ```
//!
//! The date is fixed, so that equal traces give equal files. The length of the header does not depend on the end. In a
//! compressed file it is a member of its own that is only stored. So it can be rewritten if the file ends earlier than
//! announced ([`move_end`]).

use super::long_file::{BLOCK_BYTES, Block, LongFile};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use taskscope_execution::view::ViewChange;
use taskscope_files::NewFile;

/// No part of a record is longer; parts are copied with this fixed size, which needs no call.
const PART_BYTES: usize = 32;
/// The last digits of a time, which differ from record to record, are made apart from those before.
const LAST_DIGITS: i64 = 10_000;
/// Type and value repeat: their text is kept in a table of this size.
const KEPT_TAILS: usize = 512;

pub(crate) struct PrvFile {
    out: Output,
    block: Block,
    used: usize,
    /// `2:0:1:1:<row>` of each row.
    rows: Vec<Part>,
    time: TimeText,
    /// `<type>:<value>` and line end, found by a hash of both.
    tails: Vec<(u32, i64, Part)>,
}

enum Output {
    Plain(LongFile),
    Gzip(GzEncoder<NewFile>),
}

/// The text `:<time>:` of the last record, as most records come in groups of equal time and are close to
/// the one before.
struct TimeText {
    time_ns: i64,
    /// The time without its last four digits, and its text with the colon before it.
    high: i64,
    high_text: Part,
    /// The last digits and the colon behind them; a number, so that it is stored in one piece.
    low_text: u64,
    low_length: usize,
}

impl TimeText {
    fn zero() -> TimeText {
        let low_text = u64::from_le_bytes(*b"0:\0\0\0\0\0\0");
        TimeText { time_ns: 0, high: 0, high_text: Part::EMPTY.text(b":"), low_text, low_length: 2 }
    }

    #[inline]
    fn set(&mut self, time_ns: i64) {
        self.time_ns = time_ns;
        if time_ns < 0 {
            // Traces have no such times; they are written unchanged.
            self.high = time_ns;
            self.high_text = Part::EMPTY.text(b":").number(time_ns);
            (self.low_text, self.low_length) = (u64::from(b':'), 1);
            return;
        }
        let (high, low) = (time_ns / LAST_DIGITS, time_ns % LAST_DIGITS);
        if high != self.high {
            self.high = high;
            let colon = Part::EMPTY.text(b":");
            self.high_text = if high == 0 { colon } else { colon.number(high) };
        }
        let pair = |number: i64| [PAIRS[2 * number as usize], PAIRS[2 * number as usize + 1]];
        let ([a, b], [c, d]) = (pair(low / 100), pair(low % 100));
        self.low_text = u64::from_le_bytes([a, b, c, d, b':', 0, 0, 0]);
        self.low_length = 5;
        if high == 0 {
            let zeros = 3 - low.max(1).ilog10() as usize;
            self.low_text >>= 8 * zeros;
            self.low_length -= zeros;
        }
    }
}

/// A piece of text of a record.
#[derive(Clone, Copy)]
struct Part {
    bytes: [u8; PART_BYTES],
    length: u8,
}

impl Part {
    const EMPTY: Part = Part { bytes: [0; PART_BYTES], length: 0 };

    fn text(mut self, text: &[u8]) -> Part {
        let begin = usize::from(self.length);
        self.bytes[begin..begin + text.len()].copy_from_slice(text);
        self.length += text.len() as u8;
        self
    }

    fn number(self, number: i64) -> Part {
        let mut digits = [0; 20];
        let begin = write_digits(&mut digits, number.unsigned_abs());
        let signed = if number < 0 { self.text(b"-") } else { self };
        signed.text(&digits[begin..])
    }
}

impl PrvFile {
    pub(crate) fn begin(mut file: NewFile, rows: usize, end_ns: i64, gzip: bool) -> io::Result<PrvFile> {
        let header = header(rows, end_ns, gzip)?;
        let mut block = Block::with_room(4 * PART_BYTES);
        let (out, used) = if gzip {
            file.write_all(&header)?;
            (Output::Gzip(GzEncoder::new(file, Compression::fast())), 0)
        } else {
            block[..header.len()].copy_from_slice(&header);
            (Output::Plain(LongFile::new(file)), header.len())
        };
        Ok(PrvFile {
            out,
            block,
            used,
            rows: (1..=rows as i64).map(|row| Part::EMPTY.text(b"2:0:1:1:").number(row)).collect(),
            time: TimeText::zero(),
            tails: vec![(0, 0, Part::EMPTY.text(b"0:0\n")); KEPT_TAILS],
        })
    }

    pub(crate) fn write(&mut self, changes: &[ViewChange]) -> io::Result<()> {
        for change in changes {
            if change.time_ns != self.time.time_ns {
                self.time.set(change.time_ns);
            }
            let block = &mut self.block[..];
            let mut at = copy_part(block, self.used, &self.rows[change.row as usize]);
            at = copy_part(block, at, &self.time.high_text);
            block[at..at + 8].copy_from_slice(&self.time.low_text.to_le_bytes());
            at += self.time.low_length;
            self.used = copy_part(block, at, tail(&mut self.tails, change.view_type, change.value));
            if self.used >= BLOCK_BYTES {
                self.flush_block()?;
            }
        }
        Ok(())
    }

    /// Writes a whole block; the rest begins the next one.
    fn flush_block(&mut self) -> io::Result<()> {
        match &mut self.out {
            Output::Plain(file) => file.write_block(&self.block)?,
            Output::Gzip(encoder) => encoder.write_all(&self.block[..BLOCK_BYTES])?,
        }
        self.block.copy_within(BLOCK_BYTES..self.used, 0);
        self.used -= BLOCK_BYTES;
        Ok(())
    }

    /// Writes the rest, and returns the file, which has no name yet.
    pub(crate) fn finish(self) -> io::Result<NewFile> {
        let text = &self.block[..self.used];
        match self.out {
            Output::Plain(file) => file.write_end(text),
            Output::Gzip(mut encoder) => {
                encoder.write_all(text)?;
                encoder.finish()
            }
        }
    }
}

/// The header as it is in the file.
fn header(rows: usize, end_ns: i64, gzip: bool) -> io::Result<Vec<u8>> {
    let text = format!("#Paraver (19/01/38 at 03:14):{end_ns:020}_ns:0:1:1({rows}:1)\n").into_bytes();
    if !gzip {
        return Ok(text);
    }
    let mut member = GzEncoder::new(Vec::new(), Compression::none());
    member.write_all(&text)?;
    member.finish()
}

/// Rewrites the header of a finished file with another end. Data in a pipe cannot be changed.
pub(crate) fn move_end(file: &NewFile, rows: usize, end_ns: i64, gzip: bool) -> io::Result<()> {
    if file.is_pipe() {
        return Ok(());
    }
    file.file().write_all_at(&header(rows, end_ns, gzip)?, 0)
}

/// The text of a type and a value.
#[inline]
fn tail(tails: &mut [(u32, i64, Part)], view_type: u32, value: i64) -> &Part {
    let hash = (value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 ^ u64::from(view_type);
    let kept = &mut tails[hash as usize % KEPT_TAILS];
    if (kept.0, kept.1) != (view_type, value) {
        let text = Part::EMPTY.number(i64::from(view_type)).text(b":").number(value).text(b"\n");
        *kept = (view_type, value, text);
    }
    &kept.2
}

/// Copies a part to `at`, with the bytes after its text, and returns the end of the text.
#[inline]
fn copy_part(block: &mut [u8], at: usize, part: &Part) -> usize {
    block[at..at + PART_BYTES].copy_from_slice(&part.bytes);
    at + usize::from(part.length)
}

/// All pairs of digits, so that two digits cost one division.
static PAIRS: [u8; 200] = {
    let mut pairs = [0; 200];
    let mut number = 0;
    while number < 100 {
        pairs[2 * number] = b'0' + (number / 10) as u8;
        pairs[2 * number + 1] = b'0' + (number % 10) as u8;
        number += 1;
    }
    pairs
};

/// Writes a number in decimal to the end of `digits`, and returns its begin.
#[inline]
fn write_digits(digits: &mut [u8; 20], mut rest: u64) -> usize {
    let mut begin = digits.len();
    while rest >= 100 {
        begin -= 2;
        let pair = 2 * (rest % 100) as usize;
        digits[begin..begin + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
        rest /= 100;
    }
    if rest >= 10 {
        begin -= 2;
        let pair = 2 * rest as usize;
        digits[begin..begin + 2].copy_from_slice(&PAIRS[pair..pair + 2]);
    } else {
        begin -= 1;
        digits[begin] = b'0' + rest as u8;
    }
    begin
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_standard_library_does() {
        let mut text = TimeText::zero();
        for time in
            [0, 1, 9, 10, 99, 100, 1234, -5, 9999, 10_000, -20_001, 10_001, 10_100, 123_456_789, 5, i64::MAX]
        {
            text.set(time);
            let mut written = text.high_text.bytes[..usize::from(text.high_text.length)].to_vec();
            written.extend(&text.low_text.to_le_bytes()[..text.low_length]);
            assert_eq!(String::from_utf8(written).unwrap(), format!(":{time}:"));
        }
    }

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        for number in [0, 7, 10, 99, 100, 12_345, -1, -5, i64::MAX, i64::MIN, 1_099_511_627_776] {
            let part = Part::EMPTY.number(number);
            let text = std::str::from_utf8(&part.bytes[..usize::from(part.length)]).unwrap();
            assert_eq!(text, number.to_string());
        }
    }
}
