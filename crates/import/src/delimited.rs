//! Records of CSV and TSV texts, split by `csv-core`.
//!
//! Quotes are those of RFC 4180: one at the start of a field opens it, a doubled one within is a quote. A quoted field
//! may have line breaks. One that is not closed within 64 KiB ends with its line, so that a stray quote costs one
//! record and no memory; [`Record::unclosed`] names it.

use csv_core::{ReadRecordResult, Reader, ReaderBuilder, Terminator};
use std::ops::Range;

/// Longest record with line breaks, in bytes; a single line may be longer.
const MAX_BROKEN_BYTES: usize = 64 << 10;

/// The separator of fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// This ASCII character. Fields may be quoted unless it is a tab.
    Character(u8),
    /// Any number of blanks.
    Blanks,
}

/// Reads the records of a text one after the other.
pub(crate) struct Records<'t> {
    text: &'t str,
    at: usize,
    /// The line at `at`, from 1.
    line: usize,
    separator: Separator,
    has_comments: bool,
    reader: Reader,
    /// Values of the current record, one after the other.
    values: Vec<u8>,
    value_bytes: usize,
    /// The end of each value.
    ends: Vec<usize>,
    fields: usize,
}

/// The current record.
pub(crate) struct Record<'r> {
    /// Its first line, from 1.
    pub line: usize,
    /// Its place in the text, without the line end.
    pub bytes: Range<usize>,
    /// The field with an unclosed quote.
    pub unclosed: Option<usize>,
    values: &'r str,
    ends: &'r [usize],
}

impl<'t> Records<'t> {
    /// Reads from the start of a text; lines with a `#` first are skipped if `has_comments`.
    pub fn new(text: &'t str, separator: Separator, has_comments: bool) -> Records<'t> {
        let mut builder = ReaderBuilder::new();
        builder.terminator(Terminator::Any(b'\n'));
        if let Separator::Character(character) = separator {
            builder.delimiter(character).quoting(character != b'\t');
        }
        Records {
            text,
            at: 0,
            line: 1,
            separator,
            has_comments,
            reader: builder.build(),
            values: vec![0; 256],
            value_bytes: 0,
            ends: vec![0; 16],
            fields: 0,
        }
    }

    /// Resumes at a byte, the start of a line.
    pub fn starting_at(mut self, at: usize) -> Records<'t> {
        self.line = 1 + self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        self.at = at;
        self
    }

    /// Returns the next record; blank lines are none.
    pub fn read(&mut self) -> Option<Record<'_>> {
        let first_end = loop {
            if self.at >= self.text.len() {
                return None;
            }
            let end = self.text[self.at..].find('\n').map_or(self.text.len(), |end| self.at + end);
            let line = &self.text[self.at..end];
            let is_comment = self.has_comments && line.starts_with('#');
            if !line.trim().is_empty() && !is_comment {
                break end;
            }
            self.at = end + 1;
            self.line += 1;
        };
        let (begin, line) = (self.at, self.line);
        let (end, is_closed) = match self.separator {
            Separator::Blanks => {
                self.split_at_blanks(begin..first_end);
                (first_end, true)
            }
            Separator::Character(_) => self.split(begin, first_end),
        };
        self.at = end + 1;
        self.line += 1 + self.text.as_bytes()[begin..end].iter().filter(|byte| **byte == b'\n').count();
        let values = &self.values[..self.value_bytes];
        Some(Record {
            line,
            bytes: begin..end,
            unclosed: (!is_closed).then(|| self.fields.saturating_sub(1)),
            // Quotes and separators are ASCII, so whole characters are left.
            values: std::str::from_utf8(values).unwrap_or_default(),
            ends: &self.ends[..self.fields],
        })
    }

    /// Splits the record at `begin`, with its first line ending at `first_end`. Returns its end, and whether
    /// all quotes are closed.
    fn split(&mut self, begin: usize, first_end: usize) -> (usize, bool) {
        let bytes = self.text.as_bytes();
        let limit = (begin + MAX_BROKEN_BYTES).max(first_end + 1).min(bytes.len());
        self.clear();
        let mut length = self.feed(&bytes[begin..limit]).map(|length| length - 1);
        if length.is_none() && limit == bytes.len() && self.feed(b"\n").is_some() {
            length = Some(limit - begin);
        }
        let is_closed = length.is_some();
        let end = begin + length.unwrap_or(first_end - begin);
        if !is_closed {
            self.clear();
            self.feed(&bytes[begin..first_end]);
            self.finish();
        }
        // The other half of the line end.
        if bytes[begin..end].ends_with(b"\r") && self.values[..self.value_bytes].ends_with(b"\r") {
            self.value_bytes -= 1;
            if let Some(last) = self.ends[..self.fields].last_mut() {
                *last -= 1;
            }
        }
        (end, is_closed)
    }

    fn split_at_blanks(&mut self, line: Range<usize>) {
        self.values.clear();
        self.ends.clear();
        for field in self.text[line].split_whitespace() {
            self.values.extend_from_slice(field.as_bytes());
            self.ends.push(self.values.len());
        }
        (self.value_bytes, self.fields) = (self.values.len(), self.ends.len());
    }

    fn clear(&mut self) {
        self.reader.reset();
        (self.value_bytes, self.fields) = (0, 0);
    }

    /// Splits further bytes. Returns how many belong to the record, with its line end, if it ends in them.
    fn feed(&mut self, mut input: &[u8]) -> Option<usize> {
        let before = input.len();
        while !input.is_empty() {
            let (result, read) = self.step(input);
            input = &input[read..];
            if result == ReadRecordResult::Record {
                return Some(before - input.len());
            }
        }
        None
    }

    /// Ends the record.
    fn finish(&mut self) {
        while !matches!(self.step(b"").0, ReadRecordResult::Record | ReadRecordResult::End) {}
    }

    fn step(&mut self, input: &[u8]) -> (ReadRecordResult, usize) {
        let (result, read, written, ended) = self.reader.read_record(
            input,
            &mut self.values[self.value_bytes..],
            &mut self.ends[self.fields..],
        );
        self.value_bytes += written;
        self.fields += ended;
        match result {
            ReadRecordResult::OutputFull => self.values.resize(self.values.len() * 2, 0),
            ReadRecordResult::OutputEndsFull => self.ends.resize(self.ends.len() * 2, 0),
            _ => {}
        }
        (result, read)
    }
}

impl<'r> Record<'r> {
    /// Number of its fields.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// A field's value; empty beyond the last.
    pub fn field(&self, index: usize) -> &'r str {
        let Some(end) = self.ends.get(index) else { return "" };
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.values.get(start..*end).unwrap_or_default()
    }

    /// All values.
    pub fn fields(&self) -> impl Iterator<Item = &'r str> + '_ {
        (0..self.len()).map(|index| self.field(index))
    }

    /// The first line of a field.
    pub fn line_of(&self, index: usize) -> usize {
        let breaks = (0..index).map(|index| self.field(index).matches('\n').count());
        self.line + breaks.sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMA: Separator = Separator::Character(b',');

    /// Records as their lines, fields and the unclosed one.
    fn all(text: &str, separator: Separator) -> Vec<(usize, Vec<String>, Option<usize>)> {
        let mut records = Records::new(text, separator, true);
        let mut all = Vec::new();
        while let Some(record) = records.read() {
            assert_eq!(record.fields().count(), record.len());
            all.push((record.line, record.fields().map(str::to_owned).collect(), record.unclosed));
        }
        all
    }

    fn fields(text: &str, separator: Separator) -> Vec<String> {
        all(text, separator).remove(0).1
    }

    #[test]
    fn fields_are_split_as_written() {
        assert_eq!(fields("a\t\tb\r\n", Separator::Character(b'\t')), ["a", "", "b"]);
        assert_eq!(fields("a\t\"b\tc\"", Separator::Character(b'\t')), ["a", "\"b", "c\""]);
        assert_eq!(fields("\"a,\"\"b\"\"\",c,", COMMA), ["a,\"b\"", "c", ""]);
        assert_eq!(fields("a;\"b\"\r\n", Separator::Character(b';')), ["a", "b"]);
        assert_eq!(fields("a  b c ", Separator::Blanks), ["a", "b", "c"]);
        assert_eq!(fields("日本,\"é\nß\",🙂", COMMA), ["日本", "é\nß", "🙂"]);
    }

    #[test]
    fn quoted_fields_may_have_line_breaks() {
        let text = "a,\"b\r\nc\",\"d\n\n\"\r\n\n# a comment, \"with a quote\n1,2,3\n";
        let records = all(text, COMMA);
        assert_eq!(records[0], (1, vec!["a".into(), "b\r\nc".into(), "d\n\n".into()], None));
        assert_eq!(records[1], (7, vec!["1".into(), "2".into(), "3".into()], None));
        let mut reader = Records::new(text, COMMA, true);
        let record = reader.read().unwrap();
        assert_eq!([0, 1, 2, 3].map(|field| record.line_of(field)), [1, 1, 2, 4]);
        assert_eq!(&text[record.bytes], "a,\"b\r\nc\",\"d\n\n\"\r");
        // At the end of the text, with and without a line end.
        assert_eq!(all("\"b\n\"", COMMA), [(1, vec!["b\n".into()], None)]);
        assert_eq!(all("\"b\n\"\n", COMMA), [(1, vec!["b\n".into()], None)]);
    }

    #[test]
    fn a_quote_that_is_not_closed_ends_with_its_line() {
        let next = (2, vec!["c".to_owned(), "d".to_owned()], None);
        assert_eq!(all("a,\"b\nc,d\n", COMMA), [(1, vec!["a".into(), "b".into()], Some(1)), next.clone()]);
        assert_eq!(
            all("a,b\"x\nc,d", COMMA)[0],
            (1, vec!["a".into(), "b\"x".into()], None),
            "within a field"
        );
        let far = format!("\"a\nc,d\n{}\"\n", "e\n".repeat(MAX_BROKEN_BYTES / 2));
        let records = all(&far, COMMA);
        assert_eq!((&records[0], &records[1]), (&(1, vec!["a".into()], Some(0)), &next));
        assert_eq!(records.len(), 3 + MAX_BROKEN_BYTES / 2);
        assert_eq!(all("\"", COMMA), [(1, vec!["".into()], Some(0))]);
    }

    #[test]
    fn long_lines_and_many_fields_are_read_whole() {
        let long = "x".repeat(3 * MAX_BROKEN_BYTES);
        assert_eq!(fields(&format!("\"{long}\",y\n"), COMMA), [long.as_str(), "y"]);
        assert_eq!(fields(&",".repeat(5000), COMMA).len(), 5001);
        for length in 250..=260 {
            let value = "v".repeat(length);
            assert_eq!(all(&value, COMMA), [(1, vec![value], None)]);
        }
    }
}
