//! A `.prv` file: a header and event records.
//!
//! ```text
//! #Paraver (19/01/38 at 03:14):<end, 20 digits>_ns:0:1:1(<rows>:1)
//! 2:0:1:1:<row from 1>:<time>:<type>:<value>
//! ```
//!
//! The date is fixed, so that equal traces give equal files.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use taskscope_execution::view::ViewChange;

/// Written at once.
const BLOCK_BYTES: usize = 256 * 1024;
/// No part of a record is longer; parts are copied with this fixed size, which needs no call.
const PART_BYTES: usize = 48;
/// Type and value repeat: their text is kept in a table of this size.
const KEPT_TAILS: usize = 512;

pub(crate) struct PrvFile {
    out: Output,
    block: Vec<u8>,
    used: usize,
    /// `2:0:1:1:<row>` of each row.
    rows: Vec<Part>,
    /// `:<time>:` of the last record, as most records come in groups of equal time.
    time: Part,
    time_ns: i64,
    /// `<type>:<value>` and line end, found by a hash of both.
    tails: Vec<(u32, i64, Part)>,
}

enum Output {
    Plain(File),
    Gzip(GzEncoder<File>),
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
    pub(crate) fn create(path: &Path, rows: usize, end_ns: i64, gzip: bool) -> io::Result<PrvFile> {
        let file = File::create(path)?;
        let out =
            if gzip { Output::Gzip(GzEncoder::new(file, Compression::fast())) } else { Output::Plain(file) };
        let header = format!("#Paraver (19/01/38 at 03:14):{end_ns:020}_ns:0:1:1({rows}:1)\n");
        let mut prv = PrvFile {
            out,
            block: vec![0; BLOCK_BYTES + 4 * PART_BYTES],
            used: header.len(),
            rows: (1..=rows as i64).map(|row| Part::EMPTY.text(b"2:0:1:1:").number(row)).collect(),
            time: Part::EMPTY.text(b":0:"),
            time_ns: 0,
            tails: vec![(0, 0, Part::EMPTY.text(b"0:0\n")); KEPT_TAILS],
        };
        prv.block[..header.len()].copy_from_slice(header.as_bytes());
        Ok(prv)
    }

    pub(crate) fn write(&mut self, changes: &[ViewChange]) -> io::Result<()> {
        for change in changes {
            if change.time_ns != self.time_ns {
                self.time_ns = change.time_ns;
                self.time = Part::EMPTY.text(b":").number(change.time_ns).text(b":");
            }
            let tail = self.tail(change.view_type, change.value);
            let row = self.rows[change.row as usize];
            self.used = copy_part(&mut self.block, self.used, &row);
            self.used = copy_part(&mut self.block, self.used, &self.time);
            self.used = copy_part(&mut self.block, self.used, &tail);
            if self.used >= BLOCK_BYTES {
                self.flush_block()?;
            }
        }
        Ok(())
    }

    #[inline]
    fn tail(&mut self, view_type: u32, value: i64) -> Part {
        let hash = (value as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40 ^ u64::from(view_type);
        let kept = &mut self.tails[hash as usize % KEPT_TAILS];
        if (kept.0, kept.1) != (view_type, value) {
            let text = Part::EMPTY.number(i64::from(view_type)).text(b":").number(value).text(b"\n");
            *kept = (view_type, value, text);
        }
        kept.2
    }

    fn flush_block(&mut self) -> io::Result<()> {
        let text = &self.block[..self.used];
        match &mut self.out {
            Output::Plain(file) => file.write_all(text)?,
            Output::Gzip(encoder) => encoder.write_all(text)?,
        }
        self.used = 0;
        Ok(())
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush_block()?;
        if let Output::Gzip(encoder) = self.out {
            encoder.finish()?;
        }
        Ok(())
    }
}

/// Copies a part to `at`, with whatever follows its text, and returns where the text ends.
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

/// Writes a number in decimal to the end of `digits`, and returns where it begins.
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
    fn numbers_are_written_as_the_standard_library_does() {
        for number in [0, 7, 10, 99, 100, 12_345, -1, -5, i64::MAX, i64::MIN, 1_099_511_627_776] {
            let part = Part::EMPTY.number(number);
            let text = std::str::from_utf8(&part.bytes[..usize::from(part.length)]).unwrap();
            assert_eq!(text, number.to_string());
        }
    }
}
