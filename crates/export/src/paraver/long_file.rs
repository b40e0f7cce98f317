//! A file that grows beyond the size that should stay in memory.
//!
//! The kernel keeps written data while it has memory. Ten gigabytes of records then take ten gigabytes of fresh pages.
//! On a virtual machine these cost ten times as much as the copying itself, and push everything else out of memory. So
//! a file uses the page cache up to a length, as most files are short and read soon, and bypasses it beyond that, if
//! the file system permits it (`O_DIRECT`).

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use std::io::{self, ErrorKind, Write};
use std::ops::{Deref, DerefMut};
use taskscope_files::NewFile;

/// Bytes of one write that bypasses the page cache.
pub(crate) const BLOCK_BYTES: usize = 1 << 20;
/// Bytes of one write through the page cache: for larger pieces the kernel takes larger pages, which were unused for
/// long.
const CACHED_BYTES: usize = 256 << 10;
/// Bytes that go through the page cache.
const KEPT_BYTES: u64 = 256 << 20;
/// Alignment in memory and in the file of data that bypasses the page cache, for any disk.
const ALIGNMENT: usize = 4096;

/// A file that is written from its beginning to its end, block by block.
pub(crate) struct LongFile {
    file: NewFile,
    written: u64,
    /// Whether it goes past the page cache.
    direct: bool,
    /// Length at which it does so next.
    direct_from: u64,
}

/// A block to be and some room behind it, at an address that serves all ways.
pub(crate) struct Block {
    bytes: Vec<u8>,
    begin: usize,
}

impl Block {
    pub(crate) fn with_room(room: usize) -> Block {
        let bytes = vec![0; BLOCK_BYTES + room + ALIGNMENT];
        let begin = bytes.as_ptr().align_offset(ALIGNMENT);
        Block { bytes, begin }
    }
}

impl Deref for Block {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.begin..]
    }
}

impl DerefMut for Block {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.begin..]
    }
}

impl LongFile {
    pub(crate) fn new(file: NewFile) -> LongFile {
        // On a pipe, the flag would create packets.
        let direct_from = if file.is_pipe() { u64::MAX } else { KEPT_BYTES };
        LongFile { file, written: 0, direct: false, direct_from }
    }

    /// Writes the next [`BLOCK_BYTES`].
    pub(crate) fn write_block(&mut self, block: &Block) -> io::Result<()> {
        if !self.direct && self.written >= self.direct_from {
            self.direct = self.pass_cache(true).is_ok();
            self.direct_from = u64::MAX;
        }
        self.write(&block[..BLOCK_BYTES])
    }

    /// Writes the last piece, and returns the file, which has no name of its own yet.
    pub(crate) fn write_end(mut self, text: &[u8]) -> io::Result<NewFile> {
        self.leave_direct()?;
        self.write(text)?;
        Ok(self.file)
    }

    fn write(&mut self, mut text: &[u8]) -> io::Result<()> {
        while !text.is_empty() {
            let most = if self.direct { BLOCK_BYTES } else { CACHED_BYTES };
            match self.file.write(&text[..text.len().min(most)]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count as u64;
                    text = &text[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // The file system cannot after all, or wrote a part, and the rest begins at an unaligned
                // offset.
                Err(error) if self.direct && error.raw_os_error() == Some(Errno::EINVAL as i32) => {
                    self.leave_direct()?;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Returns to the page cache, which has none of the bytes written past it; the next bytes follow these.
    fn leave_direct(&mut self) -> io::Result<()> {
        if self.direct {
            self.direct = false;
            self.pass_cache(false)?;
        }
        Ok(())
    }

    fn pass_cache(&self, pass: bool) -> io::Result<()> {
        let mut flags = OFlag::from_bits_retain(fcntl(self.file.file(), FcntlArg::F_GETFL)?);
        flags.set(OFlag::O_DIRECT, pass);
        fcntl(self.file.file(), FcntlArg::F_SETFL(flags))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// The block with this number: no two pages are alike.
    fn block(number: u8) -> Block {
        let mut block = Block::with_room(0);
        for (index, byte) in block.iter_mut().enumerate() {
            *byte = number ^ (index as u8) ^ (index >> 12) as u8;
        }
        block
    }

    /// Whether the whole text went to the file, whichever ways it took.
    fn is_whole(path: &Path, blocks: u8, end: &[u8]) -> bool {
        let mut text: Vec<u8> =
            (0..blocks).flat_map(|number| block(number)[..BLOCK_BYTES].to_vec()).collect();
        text.extend(end);
        std::fs::read(path).unwrap() == text
    }

    fn written(path: &Path, blocks: u8, set: impl FnOnce(&mut LongFile)) -> LongFile {
        let mut file = LongFile::new(NewFile::create(path).unwrap());
        set(&mut file);
        (0..blocks).for_each(|number| file.write_block(&block(number)).unwrap());
        file
    }

    #[test]
    fn a_file_passes_the_cache_from_a_length_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        // A longer file that was there leaves nothing behind.
        std::fs::write(&path, vec![7; 9 * BLOCK_BYTES]).unwrap();
        let file = written(&path, 4, |file| file.direct_from = 2 * BLOCK_BYTES as u64);
        let passes = OFlag::from_bits_retain(fcntl(file.file.file(), FcntlArg::F_GETFL).unwrap())
            .contains(OFlag::O_DIRECT);
        assert_eq!((passes, file.direct_from), (file.direct, u64::MAX));
        file.write_end(b"the end, which is no whole page").unwrap().commit().unwrap();
        assert!(is_whole(&path, 4, b"the end, which is no whole page"));
    }

    #[test]
    fn a_short_file_stays_in_the_cache() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("short");
        let file = written(&path, 3, |_| ());
        assert!(!file.direct);
        file.write_end(b"").unwrap().commit().unwrap();
        assert!(is_whole(&path, 3, b""));
    }

    #[test]
    fn unaligned_remainders_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        let mut file = written(&path, 1, |file| file.direct_from = 0);
        // As after a write that the file system cut short.
        let second = block(1);
        file.write(&second[..1000]).unwrap();
        file.write(&second[1000..BLOCK_BYTES]).unwrap();
        file.write_block(&block(2)).unwrap();
        file.write_end(b"end").unwrap().commit().unwrap();
        assert!(is_whole(&path, 3, b"end"));
    }
}
