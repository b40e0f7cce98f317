//! Long columns while they grow: the newest values in memory, earlier ones in a file of the caller.
//!
//! ```text
//! file    │ column A ▒▒▒▒▒▒▒▒▒▒░░░░ │ column B ▒▒▒▒▒░░░░░ │      room for as many values as are expected
//! memory               A's newest ─┘      B's newest ─┘
//! ```

use crate::{Column, SharedBytes};
use bytemuck::Pod;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// Storage for long columns while they grow. No other code changes it.
pub trait ColumnFile: Send + Sync + Debug {
    /// Stores bytes from `at` on.
    ///
    /// # Errors
    /// If they cannot be stored; the column then stays in memory.
    fn write(&self, bytes: &[u8], at: u64) -> io::Result<()>;

    /// Reads bytes that were stored from `at` on. Unreadable bytes are unchanged: the file's owner knows and reports
    /// the error.
    fn read(&self, bytes: &mut [u8], at: u64);

    /// All bytes, of which none is stored any more.
    ///
    /// # Errors
    /// If they cannot be had as one slice; columns are then read into memory.
    fn shared(&self) -> io::Result<SharedBytes>;
}

/// The parts of a file that columns get.
#[derive(Debug)]
pub(crate) struct FileParts {
    pub file: Arc<dyn ColumnFile>,
    /// Begin of the next part.
    pub next: u64,
    /// Bytes of a column that stay in memory, about.
    pub newest: usize,
}

/// Memory for the newest values of all columns together, and of one.
const NEWEST_BYTES: usize = 16 << 20;
const NEWEST_OF_COLUMN: Range<usize> = 1 << 12..1 << 16;

impl FileParts {
    /// Parts of `file` for about so many columns.
    pub fn of(file: Arc<dyn ColumnFile>, columns: usize) -> FileParts {
        let newest = NEWEST_BYTES / columns.max(1);
        FileParts { file, next: 0, newest: newest.clamp(NEWEST_OF_COLUMN.start, NEWEST_OF_COLUMN.end) }
    }

    /// All bytes of the file, if it can be mapped.
    pub fn shared(&self) -> Option<SharedBytes> {
        self.file.shared().ok()
    }
}

/// A part of a file.
#[derive(Debug)]
struct Part {
    file: Arc<dyn ColumnFile>,
    /// First byte.
    at: u64,
    /// Values for which there is room.
    room: usize,
}

/// A column of which values are added at the end.
#[derive(Debug)]
pub(crate) struct GrowingColumn<T> {
    /// Values in the file.
    stored: usize,
    newest: Vec<T>,
    /// Maximum number in memory.
    most: usize,
    part: Option<Part>,
}

impl<T> Default for GrowingColumn<T> {
    fn default() -> Self {
        GrowingColumn { stored: 0, newest: Vec::new(), most: usize::MAX, part: None }
    }
}

impl<T: Pod> GrowingColumn<T> {
    /// Makes room for so many values. In memory, room that is not used costs nothing.
    pub fn expect(&mut self, values: usize, parts: Option<&mut FileParts>) {
        let Some(parts) = parts else { return self.newest.reserve_exact(values) };
        let most = parts.newest / size_of::<T>();
        self.newest.reserve_exact(values.min(most));
        if values <= most {
            return;
        }
        self.most = most;
        self.part = Some(Part { file: parts.file.clone(), at: parts.next, room: values });
        // Values are aligned to their size.
        parts.next = (parts.next + (values * size_of::<T>()) as u64).next_multiple_of(64);
    }

    /// Number of values.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.stored + self.newest.len()
    }

    /// Adds values.
    #[inline(always)]
    pub fn extend(&mut self, values: impl ExactSizeIterator<Item = T>) {
        if self.newest.len() + values.len() > self.most {
            self.store();
        }
        self.newest.extend(values);
    }

    /// The value of a row that there is.
    #[inline]
    pub fn get(&self, row: usize) -> T {
        match row.checked_sub(self.stored) {
            Some(newest) => self.newest[newest],
            None => self.stored_values(row..row + 1)[0],
        }
    }

    /// Changes the value of a row that there is.
    pub fn set(&mut self, row: usize, value: T) {
        if row < self.stored {
            let Some(part) = &self.part else { return };
            let at = part.at + (row * size_of::<T>()) as u64;
            if part.file.write(bytemuck::bytes_of(&value), at).is_ok() {
                return;
            }
            self.back_to_memory();
        }
        self.newest[row - self.stored] = value;
    }

    /// Ends the column: the values in the file are complete.
    pub fn complete(&mut self) {
        if self.stored > 0 {
            self.store();
        }
    }

    /// The column, when it is complete; `shared` are the bytes of the file.
    pub fn finish(mut self, shared: Option<&SharedBytes>) -> Column<T> {
        let in_file = self.part.as_ref().filter(|_| self.stored > 0).and_then(|part| {
            let begin = usize::try_from(part.at).ok()?;
            Column::shared(shared?, begin..begin + self.stored * size_of::<T>())
        });
        in_file.unwrap_or_else(|| {
            self.back_to_memory();
            self.newest.into()
        })
    }

    /// Moves the values in memory to the file, or all values into memory if that fails.
    #[cold]
    fn store(&mut self) {
        let Some(part) = &self.part else { return };
        let at = part.at + (self.stored * size_of::<T>()) as u64;
        let fits = self.len() <= part.room;
        if fits && part.file.write(bytemuck::cast_slice(&self.newest), at).is_ok() {
            self.stored += self.newest.len();
            self.newest.clear();
        } else {
            self.back_to_memory();
        }
    }

    fn stored_values(&self, rows: Range<usize>) -> Vec<T> {
        let mut values = vec![T::zeroed(); rows.len()];
        if let Some(part) = &self.part {
            let at = part.at + (rows.start * size_of::<T>()) as u64;
            part.file.read(bytemuck::cast_slice_mut(&mut values), at);
        }
        values
    }

    #[cold]
    fn back_to_memory(&mut self) {
        if self.stored > 0 {
            let mut values = self.stored_values(0..self.stored);
            values.append(&mut self.newest);
            (self.newest, self.stored) = (values, 0);
        }
        (self.most, self.part) = (usize::MAX, None);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Mutex;

    /// A file in memory that is full at some length.
    #[derive(Debug)]
    pub(crate) struct SmallDisk {
        pub bytes: Mutex<Vec<u8>>,
        pub most: u64,
        pub can_be_shared: bool,
    }

    impl ColumnFile for SmallDisk {
        fn write(&self, bytes: &[u8], at: u64) -> io::Result<()> {
            let end = at + bytes.len() as u64;
            if end > self.most {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let mut all = self.bytes.lock().unwrap();
            let length = all.len().max(end as usize);
            all.resize(length, 0);
            all[at as usize..end as usize].copy_from_slice(bytes);
            Ok(())
        }

        fn read(&self, bytes: &mut [u8], at: u64) {
            bytes.copy_from_slice(&self.bytes.lock().unwrap()[at as usize..][..bytes.len()]);
        }

        fn shared(&self) -> io::Result<SharedBytes> {
            let bytes = self.bytes.lock().unwrap().clone();
            self.can_be_shared
                .then(|| Arc::new(bytes) as SharedBytes)
                .ok_or(io::ErrorKind::Unsupported.into())
        }
    }

    /// Columns read as they were written, wherever the disk is full, whether or not it can be mapped, and with more
    /// values than expected.
    #[test]
    fn columns_in_a_file_read_as_they_were_written() {
        for (most, can_be_shared, expected) in [
            (u64::MAX, true, 40_000),
            (u64::MAX, false, 40_000),
            (u64::MAX, true, 30_000),
            (90_000, true, 40_000),
            (0, true, 40_000),
        ] {
            let disk = Arc::new(SmallDisk { bytes: Mutex::default(), most, can_be_shared });
            let mut parts = FileParts::of(disk.clone(), 1 << 20);
            let (mut a, mut b): (GrowingColumn<u32>, GrowingColumn<u16>) = Default::default();
            a.expect(expected, Some(&mut parts));
            b.expect(expected, Some(&mut parts));
            let (mut plain_a, mut plain_b) = (Vec::new(), Vec::new());
            for round in 0..4_000_u32 {
                let values: [u32; 10] = std::array::from_fn(|value| round * 10 + value as u32);
                a.extend(values.into_iter());
                b.extend(values.iter().map(|value| *value as u16));
                plain_a.extend(values);
                plain_b.extend(values.map(|value| value as u16));
                let row = (round as usize * 7919) % plain_a.len();
                if round % 5 == 0 {
                    (plain_a[row], plain_b[row]) = (row as u32 + 7, 7);
                    a.set(row, row as u32 + 7);
                    b.set(row, 7);
                }
                assert_eq!((a.get(row), b.get(row)), (plain_a[row], plain_b[row]));
            }
            assert_eq!((a.len(), b.len()), (plain_a.len(), plain_b.len()));
            let bytes = disk.bytes.lock().unwrap().len();
            assert_eq!(bytes > 90_000, most == u64::MAX, "the file is used");
            assert!(a.newest.capacity() < 2048 || most < u64::MAX || expected < 40_000);
            a.complete();
            b.complete();
            let shared = parts.shared();
            assert_eq!(*a.finish(shared.as_ref()), *plain_a);
            assert_eq!(*b.finish(shared.as_ref()), *plain_b);
        }
    }

    /// Sections and waits with late changes, as many threads have them.
    fn execution(disk: Option<Arc<SmallDisk>>, is_beside: bool) -> crate::Execution {
        use crate::{Change, Observer, Section, State, TaskIndex};
        let mut builder = crate::ExecutionBuilder::new();
        let process = builder.add_process("host", 1);
        let threads: Vec<_> = (0..3).map(|tid| builder.add_thread(process, tid)).collect();
        if let Some(disk) = disk {
            builder.keep_long_tracks_in(disk);
        }
        if is_beside {
            builder.store_beside();
        }
        threads.iter().for_each(|thread| builder.expect_sections(*thread, 80_000));
        let states = [State::Task, State::LockWait, State::Idle];
        for at in 0..240_000_u64 {
            let thread = threads[at as usize % 3];
            builder.event(thread, 10 * at);
            let mut section = Section::of(states[(at / 3 * 7 % 5 % 3) as usize]);
            section.task = TaskIndex((at / 50) as u32);
            builder.change(thread, 10 * at, Change::Becomes(section));
            if at > 150 && at % 7 == 0 {
                // That of 50 events before, which has been stored.
                let was = Section { task: crate::TaskIndex(9), ..Section::of(State::OrderedWait) };
                builder.change(thread, 10 * (at - 150), Change::Was(was));
            }
        }
        builder.finish()
    }

    #[test]
    fn tracks_in_a_file_read_as_those_in_memory() {
        let plain = execution(None, false);
        for (most, is_beside) in
            [u64::MAX, 600_000].into_iter().flat_map(|most| [(most, false), (most, true)])
        {
            let disk = Arc::new(SmallDisk { bytes: Mutex::default(), most, can_be_shared: true });
            let in_file = execution(Some(disk.clone()), is_beside);
            assert!(disk.bytes.lock().unwrap().len() > 100_000, "the file is used");
            for (plain, in_file) in plain.threads.iter().zip(&in_file.threads) {
                assert!(plain.track.len() > 40_000 && plain.track.spans().eq(in_file.track.spans()));
                assert!(plain.track.rows().rev().eq(in_file.track.rows().rev()));
                assert!(plain.track.spans().any(|span| span.section.task == crate::TaskIndex(9)));
            }
        }
    }
}
