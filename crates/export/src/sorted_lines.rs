//! Lines in the order of a key, written to a file, with bounded memory: an external merge sort.
//!
//! ```text
//!  push ──▶ lines, 32 MiB of text ──full──▶ sorted, to the end of a file without a name ──▶ merged into FILE
//! ```
//! Lines of one key keep their order. Memory holds at most [`LINES_BYTES`] of text with 24 bytes per line, and
//! while merging [`MERGE_BYTES`] for all runs together. The runs take the disk space of the file once more.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use taskscope_files::file_without_name;

/// Text that is kept before it is sorted and written.
const LINES_BYTES: usize = 32 << 20;
/// Buffer for reading all runs in one merge.
const MERGE_BYTES: usize = 16 << 20;
/// Header of each line of a run: its key, and its length.
const HEAD_BYTES: usize = 12;

/// Collects lines.
pub struct SortedLines {
    /// Text of the lines; a line ends at the begin of the next.
    text: Vec<u8>,
    lines: Vec<Line>,
    most_bytes: usize,
    runs: Option<Runs>,
    path: PathBuf,
}

#[derive(Clone, Copy)]
struct Line {
    key: u64,
    begin: usize,
    length: u32,
}

/// Sorted runs, one after another in one file without a name.
struct Runs {
    file: File,
    /// Begin and end of each run.
    places: Vec<(u64, u64)>,
}

impl SortedLines {
    /// Sorts lines for a file at `path`; lines beyond the memory limit go to an unnamed file in its directory.
    pub fn beside(path: &Path) -> SortedLines {
        let (text, lines) = (Vec::new(), Vec::new());
        SortedLines { text, lines, most_bytes: LINES_BYTES, runs: None, path: path.to_owned() }
    }

    /// Adds the line that `write` writes.
    ///
    /// # Errors
    /// When kept lines must be written, and cannot be.
    pub fn push(&mut self, key: u64, write: impl FnOnce(&mut Vec<u8>)) -> io::Result<()> {
        let begin = self.text.len();
        write(&mut self.text);
        self.lines.push(Line { key, begin, length: (self.text.len() - begin) as u32 });
        if self.text.len() + self.lines.len() * size_of::<Line>() < self.most_bytes {
            return Ok(());
        }
        self.write_run()
    }

    fn write_run(&mut self) -> io::Result<()> {
        self.lines.sort_by_key(|line| line.key);
        let runs = match &mut self.runs {
            Some(runs) => runs,
            None => {
                let file = file_without_name(&self.path)?;
                self.runs.insert(Runs { file, places: Vec::new() })
            }
        };
        let begin = runs.places.last().map_or(0, |(_, end)| *end);
        let mut out = BufWriter::new(&runs.file);
        for line in &self.lines {
            out.write_all(&line.key.to_le_bytes())?;
            out.write_all(&line.length.to_le_bytes())?;
            out.write_all(&self.text[line.begin..][..line.length as usize])?;
        }
        out.flush()?;
        drop(out);
        let end = begin + (self.text.len() + self.lines.len() * HEAD_BYTES) as u64;
        runs.places.push((begin, end));
        self.text.clear();
        self.lines.clear();
        Ok(())
    }

    /// Writes all lines in order.
    ///
    /// # Errors
    /// Errors of reading the runs, and of `out`.
    pub fn write_to(mut self, out: &mut impl Write) -> io::Result<()> {
        if self.runs.is_none() {
            self.lines.sort_by_key(|line| line.key);
            let text = &self.text;
            return self.lines.iter().try_for_each(|l| out.write_all(&text[l.begin..][..l.length as usize]));
        }
        if !self.lines.is_empty() {
            self.write_run()?;
        }
        (self.text, self.lines) = (Vec::new(), Vec::new());
        let Some(runs) = &self.runs else { return Ok(()) };
        let room = (MERGE_BYTES / runs.places.len()).clamp(4 << 10, 1 << 20);
        let mut readers: Vec<Reader<'_>> = (runs.places.iter())
            .map(|place| Reader { file: &runs.file, place: *place, room, buffer: Vec::new(), at: 0 })
            .collect();
        let mut next = BinaryHeap::new();
        for (number, reader) in readers.iter_mut().enumerate() {
            next.extend(reader.key()?.map(|key| Reverse((key, number))));
        }
        while let Some(Reverse((_, number))) = next.pop() {
            readers[number].line(out)?;
            next.extend(readers[number].key()?.map(|key| Reverse((key, number))));
        }
        Ok(())
    }
}

/// Reads a run.
struct Reader<'a> {
    file: &'a File,
    /// The part that is not in the buffer yet.
    place: (u64, u64),
    room: usize,
    buffer: Vec<u8>,
    at: usize,
}

impl Reader<'_> {
    /// Reads `bytes` more into the buffer.
    fn fill(&mut self, bytes: usize) -> io::Result<()> {
        if self.buffer.len() - self.at >= bytes {
            return Ok(());
        }
        self.buffer.drain(..self.at);
        self.at = 0;
        let (begin, end) = self.place;
        let present = self.buffer.len();
        let more = self.room.max(bytes - present).min((end - begin) as usize);
        self.buffer.resize(present + more, 0);
        self.file.read_exact_at(&mut self.buffer[present..], begin)?;
        self.place.0 += more as u64;
        if self.buffer.len() < bytes { Err(io::ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }

    fn number<const N: usize>(&self, at: usize) -> [u8; N] {
        self.buffer[self.at + at..].first_chunk().copied().unwrap_or([0; N])
    }

    /// The next line's key; nothing at the end.
    fn key(&mut self) -> io::Result<Option<u64>> {
        if self.at == self.buffer.len() && self.place.0 == self.place.1 {
            return Ok(None);
        }
        self.fill(HEAD_BYTES)?;
        Ok(Some(u64::from_le_bytes(self.number(0))))
    }

    fn line(&mut self, out: &mut impl Write) -> io::Result<()> {
        let length = u32::from_le_bytes(self.number(8)) as usize;
        self.fill(HEAD_BYTES + length)?;
        out.write_all(&self.buffer[self.at + HEAD_BYTES..][..length])?;
        self.at += HEAD_BYTES + length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_in_memory_and_on_disk() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out");
        let mut state = 1_u64;
        let lines: Vec<(u64, String)> = (0..5000)
            .map(|row| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let length = (state >> 40) as usize % if row == 2500 { 9000 } else { 50 };
                ((state >> 33) % 700, format!("{row} {}\n", "x".repeat(length)))
            })
            .collect();
        let mut sorted = lines.clone();
        sorted.sort_by_key(|(key, _)| *key);
        let expected: String = sorted.into_iter().map(|(_, line)| line).collect();
        for most_bytes in [100, 5000, 60_000, usize::MAX] {
            let mut all = SortedLines { most_bytes, ..SortedLines::beside(&path) };
            for (key, line) in &lines {
                all.push(*key, |text| text.extend_from_slice(line.as_bytes())).unwrap();
            }
            assert_eq!(most_bytes < usize::MAX, all.runs.is_some());
            let mut out = Vec::new();
            all.write_to(&mut out).unwrap();
            assert!(out == expected.as_bytes(), "with {most_bytes} bytes");
            assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
        }
    }
}
