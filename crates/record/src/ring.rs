//! The flight recorder: of a long stream only the newest part is kept.
//!
//! ```text
//!  NAME.obs         │ header │ hole (blocks given back) │ events … │      + NAME.tail
//!                                                       ▲ kept_from
//!  NAME.checkpoint  kept_from, then events: definitions, and open sections at `kept_from`
//! ```
//! The checkpoint is replaced by renaming before the hole grows, so that at every moment checkpoint
//! and stream give a readable whole. When the stream ends, both become an ordinary stream file.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use taskscope_event::framing::{FILE_HEADER_BYTES, file_header};
use taskscope_event::tail::PAIR_REGION_BYTES;
use taskscope_files::{NewFile, open_regular};

use crate::checkpoint::Checkpoint;
use crate::disk_file::{NoRoom, check_size_limit};
use crate::limits::check_file_size;

/// The kept part of one stream.
pub struct Ring {
    checkpoint_path: PathBuf,
    keep_bytes: u64,
    kept_from: u64,
    /// Offsets at which appended blocks start: all of them are borders of events.
    borders: VecDeque<u64>,
    checkpoint: Checkpoint,
}

impl Ring {
    /// For the stream `path`, of which the last `keep_bytes` are to be kept.
    pub fn new(path: &Path, keep_bytes: u64) -> Self {
        Ring {
            checkpoint_path: path.with_extension("checkpoint"),
            keep_bytes,
            kept_from: FILE_HEADER_BYTES as u64,
            borders: VecDeque::new(),
            checkpoint: Checkpoint::default(),
        }
    }

    /// The most bytes that the stream takes on disk.
    pub fn largest_bytes(&self) -> u64 {
        self.keep_bytes + 2 * PAIR_REGION_BYTES[2]
    }

    /// Records that `block` was appended at `offset`, and frees the blocks that are too old.
    pub fn appended(&mut self, block: &[u8], offset: u64, stream: &OwnedFd) {
        self.borders.push_back(offset.max(FILE_HEADER_BYTES as u64));
        let end = offset + block.len() as u64;
        let mut from = self.kept_from;
        while self.borders.len() > 1 && end - self.borders[1] >= self.keep_bytes {
            self.borders.pop_front();
            from = self.borders[0];
        }
        if from == self.kept_from {
            return;
        }
        let mut old = vec![0; (from - self.kept_from) as usize];
        let file = ReadAt(stream.as_raw_fd());
        if file.read_exact_at(&mut old, self.kept_from).is_err() {
            return;
        }
        self.checkpoint.absorb(&old);
        self.kept_from = from;
        // Else the files have the one before, and all events since.
        if self.store(from).is_ok() {
            let (mode, start) =
                (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE, FILE_HEADER_BYTES as i64);
            // SAFETY: plain system call on our own file. If it is not supported, the blocks stay.
            unsafe { libc::fallocate(stream.as_raw_fd(), mode, start, from as i64 - start) };
        }
    }

    fn store(&self, kept_from: u64) -> io::Result<()> {
        let mut bytes = kept_from.to_le_bytes().to_vec();
        self.checkpoint.write(&mut bytes);
        check_file_size(bytes.len() as u64)?;
        let mut file = NewFile::create(&self.checkpoint_path)?;
        file.write_all(&bytes)?;
        file.commit()
    }

    /// Makes the stream, which ends at `size`, an ordinary file that starts with the checkpoint.
    pub fn unroll(self, path: &Path, size: u64) -> Result<(), NoRoom> {
        if self.kept_from == FILE_HEADER_BYTES as u64 {
            return Ok(());
        }
        self.write_whole(path, size).map_err(|_| NoRoom::Other)?;
        let _ = fs::remove_file(&self.checkpoint_path);
        Ok(())
    }

    fn write_whole(&self, path: &Path, size: u64) -> io::Result<()> {
        let mut head = file_header().to_vec();
        self.checkpoint.write(&mut head);
        check_size_limit(head.len() as u64 + size - self.kept_from)
            .map_err(|_| io::ErrorKind::FileTooLarge)?;
        let ((from, _), mut to) = (open_regular(path)?, NewFile::create(path)?);
        to.write_all(&head)?;
        let mut block = vec![0; 256 << 10];
        let mut at = self.kept_from;
        while at < size {
            let length = block.len().min((size - at) as usize);
            from.read_exact_at(&mut block[..length], at)?;
            to.write_all(&block[..length])?;
            at += length as u64;
        }
        // The checkpoint belongs to the file that is replaced now.
        to.commit()
    }
}

/// Reads from a descriptor with another owner.
struct ReadAt(i32);

impl ReadAt {
    fn read_exact_at(&self, mut to: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !to.is_empty() {
            // SAFETY: `to` has the given length.
            let read =
                unsafe { libc::pread(self.0, to.as_mut_ptr().cast(), to.len(), offset as libc::off_t) };
            if read <= 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            to = &mut to[read as usize..];
            offset += read as u64;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use taskscope_event::framing::{head_word, size_code};
    use taskscope_event::models::nosv;

    #[test]
    fn events_are_taken_in_once_if_a_checkpoint_cannot_be_stored() {
        let here = tempfile::tempdir().unwrap();
        let path = here.path().join("stream.obs");
        let checkpoint = path.with_extension("checkpoint");
        let head = head_word(size_code(0), nosv::SCHEDULER_HUNGRY_BEGIN).to_le_bytes();
        let event = [&head[..], &1_u64.to_le_bytes()].concat();
        let file = File::options().read(true).write(true).create_new(true).open(&path).unwrap();
        file.write_all_at(&[&file_header()[..], &event, &event, &event].concat(), 0).unwrap();
        let (stream, mut ring) = (OwnedFd::from(file), Ring::new(&path, 1));
        let (first, step) = (FILE_HEADER_BYTES + event.len(), event.len() as u64);
        ring.appended(&[&file_header()[..], &event].concat(), 0, &stream);
        // No file can have its name now.
        fs::create_dir(&checkpoint).unwrap();
        ring.appended(&event, first as u64, &stream);
        fs::remove_dir(&checkpoint).unwrap();
        ring.appended(&event, first as u64 + step, &stream);
        let kept_from = (first as u64 + step).to_le_bytes();
        assert_eq!(fs::read(&checkpoint).unwrap(), [&kept_from[..], &event, &event].concat());
    }
}
