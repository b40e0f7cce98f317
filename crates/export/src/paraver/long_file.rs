//! A file that grows beyond what should stay in memory.
//!
//! The kernel keeps what is written as long as it has memory. Ten gigabytes of records then take ten gigabytes of
//! pages that nothing was in before, which cost three times as much as pages that were used a moment ago (5.3 s
//! against 1.5 s of the kernel's time for 4 GB, on a virtual machine), and push everything else out of memory. So
//! what was written a while ago is brought to the disk, and its pages are given back, on a thread of its own.

use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// What a file may keep in memory: most files are no longer, and are read soon.
const KEPT_BYTES: u64 = 2 << 30;
/// Beyond that, what is given back at once.
const WINDOW_BYTES: u64 = 32 << 20;

/// A file that is written from its beginning to its end.
pub(crate) struct LongFile {
    file: Arc<File>,
    written: u64,
    /// Length at which pages are given back the next time.
    next: u64,
    cleaner: Option<Cleaner>,
}

/// Gives pages back when it is told to.
struct Cleaner {
    /// Room for one: who writes faster than the disk waits.
    turns: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl LongFile {
    pub(crate) fn create(path: &Path) -> io::Result<LongFile> {
        Ok(LongFile { file: Arc::new(File::create(path)?), written: 0, next: KEPT_BYTES, cleaner: None })
    }

    fn give_back(&mut self) -> io::Result<()> {
        self.next = self.written + WINDOW_BYTES;
        let cleaner = self.cleaner.get_or_insert_with(|| {
            let (turns, told) = sync_channel(1);
            let file = self.file.clone();
            Cleaner { turns, thread: std::thread::spawn(move || clean(&file, &told)) }
        });
        if cleaner.turns.send(()).is_err() {
            // It gave up: the disk failed, or there is nothing to give back.
            self.next = u64::MAX;
            return self.join();
        }
        Ok(())
    }

    fn join(&mut self) -> io::Result<()> {
        let Some(Cleaner { turns, thread }) = self.cleaner.take() else { return Ok(()) };
        drop(turns);
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the thread that gives pages back panicked")))
    }

    /// Waits for what is on its way to the disk, and says whether it got there.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.join()
    }
}

fn clean(file: &File, told: &Receiver<()>) -> io::Result<()> {
    while told.recv().is_ok() {
        match file.sync_data() {
            // Advice: where it is not taken, pages stay.
            Ok(()) => drop(posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)),
            // A pipe or a device has no pages.
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Ok(()),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

impl Write for LongFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.written += count as u64;
        if self.written >= self.next {
            self.give_back()?;
        }
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_back_is_in_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long");
        let mut file = LongFile::create(&path).unwrap();
        for number in 0..5000_u32 {
            if number % 1000 == 999 {
                file.next = 0;
            }
            file.write_all(&number.to_le_bytes()).unwrap();
        }
        assert!(file.cleaner.is_some());
        file.close().unwrap();
        let numbers: Vec<u8> = (0..5000_u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(std::fs::read(&path).unwrap(), numbers);
    }

    #[test]
    fn devices_are_written_like_files() {
        let mut file = LongFile::create(Path::new("/dev/null")).unwrap();
        for _ in 0..100 {
            file.next = file.next.min(10);
            file.write_all(&[0; 100]).unwrap();
        }
        assert_eq!(file.written, 10_000);
        file.close().unwrap();
    }
}
