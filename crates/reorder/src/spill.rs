//! The unnamed file for records beyond the memory limit.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Fixed-size blocks and growing runs in one temporary file, made when first needed.
#[derive(Debug, Default)]
pub(crate) struct SpillFile {
    directory: Option<PathBuf>,
    file: Option<File>,
    end: u64,
    /// Places of blocks that are free again.
    free_blocks: Vec<u64>,
    /// Number of refused writes.
    pub failures: u64,
}

impl SpillFile {
    /// The file will be in `directory`; by default in that of temporary files.
    pub fn in_directory(directory: Option<PathBuf>) -> Self {
        SpillFile { directory, ..SpillFile::default() }
    }

    /// Writes a block; all blocks have the same size. Returns its place.
    pub fn write_block(&mut self, bytes: &[u8]) -> Option<u64> {
        let reused = self.free_blocks.pop();
        let offset = reused.unwrap_or(self.end);
        if self.write_at(offset, bytes).is_none() {
            self.free_blocks.extend(reused);
            return None;
        }
        if reused.is_none() {
            self.end += bytes.len() as u64;
        }
        Some(offset)
    }

    /// Reads a block and frees its place.
    pub fn take_block(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.free_blocks.push(offset);
        self.read_at(offset, bytes)
    }

    /// Room for a run of so many bytes.
    pub fn reserve_run(&mut self, bytes: u64) -> u64 {
        let offset = self.end;
        self.end += bytes;
        offset
    }

    /// Writes; `None` and counted if the disk refuses.
    pub fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Option<()> {
        let written = self.file().and_then(|file| file.write_all_at(bytes, offset));
        if written.is_err() {
            self.failures += 1;
        }
        written.ok()
    }

    /// Reads exactly as many bytes.
    pub fn read_at(&mut self, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
        self.file()?.read_exact_at(bytes, offset)
    }

    /// Discards everything written.
    pub fn clear(&mut self) {
        if let Some(file) = &self.file {
            // A file that stays long costs disk, not correctness.
            let _ = file.set_len(0);
        }
        self.end = 0;
        self.free_blocks.clear();
    }

    /// Makes every later write fail; reads still work.
    #[cfg(test)]
    pub fn make_read_only(&mut self) {
        use std::os::fd::AsRawFd;
        let descriptor = self.file().unwrap().as_raw_fd();
        self.file = Some(File::open(format!("/proc/self/fd/{descriptor}")).unwrap());
    }

    fn file(&mut self) -> io::Result<&File> {
        if self.file.is_none() {
            self.file = Some(match &self.directory {
                Some(directory) => tempfile::tempfile_in(directory)?,
                None => tempfile::tempfile()?,
            });
        }
        self.file.as_ref().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}
