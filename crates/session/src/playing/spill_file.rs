//! The file of a long run's tracks while it is open: the system can then reclaim their memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, OnceLock};
use taskscope_execution::{ColumnFile, SharedBytes};
use taskscope_trace::UnchangingFile;

/// Tracks of runs with fewer events stay in memory: they take six bytes for most of these.
const FEW_EVENTS: u64 = 1 << 24;

/// A file without a name, so that it is gone when this process is.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: File,
    failed: OnceLock<io::Error>,
}

impl SpillFile {
    /// Creates the file for a run of so many events. `None` for a small run, or if no file can be created.
    pub fn for_events(events: u64) -> Option<Arc<SpillFile>> {
        if events < FEW_EVENTS {
            return None;
        }
        let beside_caches = crate::cache::directory().and_then(|directory| {
            std::fs::create_dir_all(&directory).ok()?;
            tempfile::tempfile_in(directory).ok()
        });
        let file = beside_caches.or_else(|| tempfile::tempfile().ok())?;
        Some(Arc::new(SpillFile { file, failed: OnceLock::new() }))
    }

    /// The error of reading back, if any.
    pub fn failure(&self) -> Option<&io::Error> {
        self.failed.get()
    }
}

impl ColumnFile for SpillFile {
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, at)
    }

    fn read(&self, bytes: &mut [u8], at: u64) {
        if let Err(error) = self.file.read_exact_at(bytes, at) {
            let _ = self.failed.set(error);
        }
    }

    fn shared(&self) -> io::Result<SharedBytes> {
        Ok(Arc::new(UnchangingFile::from_unnamed(&self.file)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_tracks_are_read_back_and_missing_ones_reported() {
        assert!(SpillFile::for_events(FEW_EVENTS - 1).is_none());
        let file = SpillFile::for_events(FEW_EVENTS).unwrap();
        file.write(&[1, 2, 3], 5_000).unwrap();
        let mut read = [0; 3];
        file.read(&mut read, 5_000);
        assert_eq!((read, file.failure().is_none()), ([1, 2, 3], true));
        let shared = file.shared().unwrap();
        assert_eq!((*shared).as_ref()[4_999..], [0, 1, 2, 3]);
        file.read(&mut read, 5_001);
        assert!(file.failure().is_some());
    }
}
