//! Names of code that was generated at run time, from dumps in the form of perf's specification of jitdump, version 1.
//!
//! ```text
//!   file     magic u32, version u32, bytes of this header u32, machine u32, 0 u32, process u32, time u64, flags u64, …
//!   record   kind u32, bytes u32, time u64, then
//!     load   process u32, thread u32, address u64, address u64, bytes u64, number u64, name, 0, code
//!     move   process u32, thread u32, address u64, old address u64, address u64, bytes u64, number u64
//! ```
//! Words have the order of bytes of the machine, as the magic shows. Other records are skipped: lines of functions are
//! not read, as compilers disagree about what their addresses are relative to.

use crate::run_time_code::CodeNames;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// `JiTD`.
const MAGIC: u32 = 0x4a69_5444;
const VERSION: u32 = 1;
/// Bytes before the fields that the header may gain, and of the header of a record.
const FILE_HEADER: usize = 40;
const RECORD_HEADER: usize = 16;
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// Longer names are cut, bytes.
const MAX_NAME: usize = 4096;

/// The functions of a dump, those before a damaged record; none of a file in another form.
pub(crate) fn parse(dump: &[u8]) -> CodeNames {
    CodeNames::of(functions(dump))
}

/// Start, end and name of each function, in the order of time.
fn functions(dump: &[u8]) -> Vec<(u64, u64, Arc<str>)> {
    let mut found = Vec::new();
    let Some((words, mut at)) = header(dump) else { return found };
    // The name of each function by its number.
    let mut names: FxHashMap<u64, Arc<str>> = FxHashMap::default();
    while let Some((kind, bytes)) = words.u32(dump, at).zip(words.u32(dump, at + 4)) {
        let end = at.saturating_add(bytes as usize);
        let Some(fields) = dump.get(at + RECORD_HEADER..end) else { break };
        let word = |number: usize| words.u64(fields, 8 * number);
        match kind {
            LOAD => {
                let name = fields.get(40..).and_then(|rest| rest.split(|byte| *byte == 0).next());
                if let (Some(start), Some(size), Some(number), Some(name)) = (word(1), word(3), word(4), name)
                {
                    let name: Arc<str> = String::from_utf8_lossy(&name[..name.len().min(MAX_NAME)]).into();
                    found.extend(range(start, size).map(|(start, end)| (start, end, name.clone())));
                    names.insert(number, name);
                }
            }
            MOVE => {
                let name = word(5).and_then(|number| names.get(&number));
                let range = word(1).zip(word(4)).and_then(|(start, size)| range(start, size));
                found.extend(name.zip(range).map(|(name, (start, end))| (start, end, name.clone())));
            }
            _ => {}
        }
        at = end;
    }
    found.retain(|(.., name)| !name.is_empty());
    found
}

fn range(start: u64, size: u64) -> Option<(u64, u64)> {
    Some((start, start.checked_add(size.max(1))?))
}

/// The order of bytes, and the offset of the first record.
fn header(dump: &[u8]) -> Option<(Words, usize)> {
    let words = [Words { is_swapped: false }, Words { is_swapped: true }];
    let words = words.into_iter().find(|words| words.u32(dump, 0) == Some(MAGIC))?;
    let bytes = words.u32(dump, 8)? as usize;
    (words.u32(dump, 4)? == VERSION && bytes >= FILE_HEADER && bytes <= dump.len()).then_some((words, bytes))
}

#[derive(Clone, Copy)]
struct Words {
    /// Big endian.
    is_swapped: bool,
}

impl Words {
    fn u32(self, from: &[u8], at: usize) -> Option<u32> {
        let bytes = *from.get(at..)?.first_chunk()?;
        Some(if self.is_swapped { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    fn u64(self, from: &[u8], at: usize) -> Option<u64> {
        let bytes = *from.get(at..)?.first_chunk()?;
        Some(if self.is_swapped { u64::from_be_bytes(bytes) } else { u64::from_le_bytes(bytes) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields of a word each, unless they are among the first two of a record or of the file's header.
    struct Dump {
        is_swapped: bool,
        bytes: Vec<u8>,
    }

    impl Dump {
        fn new(is_swapped: bool) -> Dump {
            let mut dump = Dump { is_swapped, bytes: Vec::new() };
            [MAGIC, VERSION, 40, 62, 0, 7].into_iter().for_each(|word| dump.u32(word));
            [5, 0].into_iter().for_each(|word| dump.u64(word));
            dump
        }

        fn u32(&mut self, word: u32) {
            let bytes = if self.is_swapped { word.to_be_bytes() } else { word.to_le_bytes() };
            self.bytes.extend(bytes);
        }

        fn u64(&mut self, word: u64) {
            let bytes = if self.is_swapped { word.to_be_bytes() } else { word.to_le_bytes() };
            self.bytes.extend(bytes);
        }

        fn record(&mut self, kind: u32, words: &[u64], rest: &[u8]) {
            self.u32(kind);
            self.u32((RECORD_HEADER + 8 * (1 + words.len()) + rest.len()) as u32);
            self.u64(6);
            [7, 8].into_iter().for_each(|word| self.u32(word));
            words.iter().for_each(|word| self.u64(*word));
            self.bytes.extend(rest);
        }

        fn load(&mut self, start: u64, size: u64, number: u64, name: &str) {
            let code = [name.as_bytes(), &[0], &vec![0x90; size.min(64) as usize]].concat();
            self.record(LOAD, &[start, start, size, number], &code);
        }
    }

    fn dump(is_swapped: bool) -> Vec<u8> {
        let mut dump = Dump::new(is_swapped);
        dump.load(0x1000, 0x20, 1, "first");
        // Of another kind, with lines.
        dump.record(2, &[0x2000, 0], b"");
        dump.load(0x2000, 0x10, 2, "moves(int, long)");
        dump.load(0x1010, 0x8, 3, "later");
        dump.record(MOVE, &[0x3000, 0x2000, 0x3000, 0x10, 2], b"");
        dump.record(MOVE, &[0x4000, 0x2000, 0x4000, 0x10, 77], b"");
        dump.load(u64::MAX - 2, 9, 4, "beyond");
        dump.bytes
    }

    #[test]
    fn functions_have_their_names_where_they_are_and_were() {
        for is_swapped in [false, true] {
            let names = parse(&dump(is_swapped));
            let found = [0x1000, 0x1010, 0x1018, 0x200f, 0x2010, 0x3008, 0x4000, u64::MAX - 2];
            let moved = Some("moves(int, long)");
            // Compilers reuse memory: the last function there counts.
            let expected = [None, Some("later"), None, moved, None, moved, None, None];
            assert_eq!(found.map(|address| names.find(address)), expected);
        }
    }

    #[test]
    fn cut_and_damaged_dumps_have_the_functions_before() {
        let whole = dump(false);
        for length in 0..whole.len() {
            let names = parse(&whole[..length]);
            assert!(names.find(0x3008).is_none_or(|name| name == "moves(int, long)"));
        }
        for at in 0..whole.len() {
            for byte in [0, 0x7f, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = parse(&damaged);
            }
        }
        // A record without a length would be read for ever.
        let mut endless = Dump::new(false);
        endless.load(0x1000, 4, 1, "first");
        [LOAD, 0].into_iter().for_each(|word| endless.u32(word));
        endless.u64(0);
        assert_eq!(parse(&endless.bytes).find(0x1000), Some("first"));
        assert!(parse(b"1000 20 a line of a map\n").find(0x1000).is_none());
    }
}
