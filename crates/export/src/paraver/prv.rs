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
/// No record is longer: prefix, four numbers of at most 20 characters, separators.
const LONGEST_RECORD_BYTES: usize = 128;

pub(crate) struct PrvFile {
    out: Output,
    block: Vec<u8>,
    /// `:<time>:` of the last record, as most records come in groups of equal time.
    time_text: Vec<u8>,
    time_ns: i64,
}

enum Output {
    Plain(File),
    Gzip(GzEncoder<File>),
}

impl PrvFile {
    pub(crate) fn create(path: &Path, rows: usize, end_ns: i64, gzip: bool) -> io::Result<PrvFile> {
        let file = File::create(path)?;
        let out =
            if gzip { Output::Gzip(GzEncoder::new(file, Compression::fast())) } else { Output::Plain(file) };
        let mut prv = PrvFile {
            out,
            block: Vec::with_capacity(BLOCK_BYTES + LONGEST_RECORD_BYTES),
            time_text: b":0:".to_vec(),
            time_ns: 0,
        };
        writeln!(prv.block, "#Paraver (19/01/38 at 03:14):{end_ns:020}_ns:0:1:1({rows}:1)")?;
        Ok(prv)
    }

    pub(crate) fn write(&mut self, changes: &[ViewChange]) -> io::Result<()> {
        for change in changes {
            if change.time_ns != self.time_ns {
                self.time_ns = change.time_ns;
                self.time_text.clear();
                self.time_text.push(b':');
                push_number(&mut self.time_text, change.time_ns);
                self.time_text.push(b':');
            }
            self.block.extend_from_slice(b"2:0:1:1:");
            push_number(&mut self.block, i64::from(change.row) + 1);
            self.block.extend_from_slice(&self.time_text);
            push_number(&mut self.block, i64::from(change.view_type));
            self.block.push(b':');
            push_number(&mut self.block, change.value);
            self.block.push(b'\n');
            if self.block.len() >= BLOCK_BYTES {
                self.flush_block()?;
            }
        }
        Ok(())
    }

    fn flush_block(&mut self) -> io::Result<()> {
        match &mut self.out {
            Output::Plain(file) => file.write_all(&self.block)?,
            Output::Gzip(encoder) => encoder.write_all(&self.block)?,
        }
        self.block.clear();
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

/// Appends a number in decimal.
#[inline]
fn push_number(out: &mut Vec<u8>, number: i64) {
    if (0..10).contains(&number) {
        return out.push(b'0' + number as u8);
    }
    let mut digits = [0u8; 20];
    let mut begin = digits.len();
    let mut rest = number.unsigned_abs();
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
    if number < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[begin..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_as_the_standard_library_does() {
        for number in [0, 7, 10, 99, 100, 12_345, -1, -5, i64::MAX, i64::MIN, 1_099_511_627_776] {
            let mut text = Vec::new();
            push_number(&mut text, number);
            assert_eq!(String::from_utf8(text).unwrap(), number.to_string());
        }
    }
}
