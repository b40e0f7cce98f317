//! The side stream: whole events, appended after each round.
//!
//! No tail and no mapping: appended data is the kernel's, and a round's events are few.

use crate::disk_file::check_size_limit;
use crate::limits;
use crate::metadata::{Json, replace_file};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use taskscope_event::framing::{JUMBO_FLAG, JUMBO_SIZE_CODE, file_header, head_word, size_code};
use taskscope_event::{Code, StreamFile, layout};
use taskscope_files::append_regular;

/// A location's directory with its stream.
pub(super) struct SideFile {
    directory: PathBuf,
    stored: u64,
    /// Events of this round.
    round: Vec<u8>,
    /// Storing has failed; events are dropped whole rounds at a time.
    full: bool,
}

impl SideFile {
    /// Makes the directory, which must not exist, and the file in it.
    pub fn create(directory: &Path) -> io::Result<SideFile> {
        std::fs::create_dir(directory)?;
        let mut file =
            SideFile { directory: directory.to_owned(), stored: 0, round: Vec::new(), full: false };
        file.round.extend(file_header());
        if !file.store() {
            // No file is left there, and it is not retried each round: the disk is full.
            let _ = std::fs::remove_dir(directory);
        }
        Ok(file)
    }

    pub fn point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        self.round.extend(head_word(size_code(N), code).to_le_bytes());
        self.round.extend(at.to_le_bytes());
        self.round.extend(payload);
    }

    /// Adds an event with data of any length: `parts`, one after another.
    pub fn jumbo(&mut self, at: u64, code: Code, parts: &[&[u8]]) {
        let bytes: usize = parts.iter().map(|part| part.len()).sum();
        self.round.extend(head_word(JUMBO_FLAG | JUMBO_SIZE_CODE, code).to_le_bytes());
        self.round.extend(at.to_le_bytes());
        self.round.extend((bytes as u32).to_le_bytes());
        parts.iter().for_each(|part| self.round.extend(*part));
    }

    /// Appends the round's events. Returns whether all events so far are stored.
    pub fn store(&mut self) -> bool {
        if !self.full && !self.round.is_empty() {
            self.full = self.append().is_err();
        }
        self.round.clear();
        !self.full
    }

    fn append(&mut self) -> io::Result<()> {
        let bytes = self.round.len() as u64;
        let no_room = |_| io::Error::from(io::ErrorKind::StorageFull);
        // Passing the limit would raise SIGXFSZ in the program.
        check_size_limit(self.stored + bytes).map_err(no_room)?;
        limits::charge(bytes).map_err(no_room)?;
        // Opened each time: a descriptor that is held could be closed by the program.
        let path = self.directory.join(StreamFile::Own.name());
        let file = append_regular(&path);
        let appended = file.and_then(|mut file| {
            let whole = file.write_all(&self.round);
            if whole.is_err() {
                // No partial event is left, and no file without a header.
                let _ =
                    if self.stored == 0 { std::fs::remove_file(&path) } else { file.set_len(self.stored) };
            }
            whole
        });
        match &appended {
            Ok(()) => self.stored += bytes,
            Err(_) => limits::refund(bytes),
        }
        appended
    }

    pub fn write_metadata(&self, metadata: &Json) {
        // On failure the stream stays unfinished, and readable as such.
        let _ = replace_file(metadata.as_str(), &self.directory.join(layout::LOCATION_METADATA));
    }
}
