//! A column of a table: in memory, or a part of a shared file.

use bytemuck::Pod;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// Bytes that do not change, shared by the columns in them.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Values of one kind, read as a slice.
#[derive(Clone)]
pub struct Column<T>(Storage<T>);

#[derive(Clone)]
enum Storage<T> {
    Memory(Vec<T>),
    File { bytes: SharedBytes, range: Range<usize> },
}

impl<T: Pod> Column<T> {
    /// The values in `range` of `bytes`, in this machine's representation. They are not copied if they are aligned.
    /// `None` if the range is out of bounds or not a whole number of values.
    pub fn shared(bytes: &SharedBytes, range: Range<usize>) -> Option<Column<T>> {
        let part = (**bytes).as_ref().get(range.clone())?;
        match bytemuck::try_cast_slice::<u8, T>(part) {
            Ok(_) => Some(Column(Storage::File { bytes: bytes.clone(), range })),
            Err(bytemuck::PodCastError::TargetAlignmentGreaterAndInputNotAligned) => {
                let whole = part.len().is_multiple_of(size_of::<T>());
                whole.then(|| Column(Storage::Memory(bytemuck::allocation::pod_collect_to_vec(part))))
            }
            Err(_) => None,
        }
    }

    /// The values, for modification; copied into memory if they are in a file.
    #[inline]
    pub fn to_mut(&mut self) -> &mut Vec<T> {
        if let Storage::File { .. } = self.0 {
            self.copy_to_memory();
        }
        match &mut self.0 {
            Storage::Memory(values) => values,
            Storage::File { .. } => unreachable!("copied above"),
        }
    }

    #[cold]
    fn copy_to_memory(&mut self) {
        self.0 = Storage::Memory(self.to_vec());
    }

    /// Makes rows of `value`, if there are fewer.
    #[inline]
    pub(crate) fn grow_to(&mut self, rows: usize, value: T) {
        let values = self.to_mut();
        // Mostly there is one to make, and to make many takes a loop.
        if values.len() + 1 == rows {
            values.push(value);
        } else if values.len() < rows {
            values.resize(rows, value);
        }
    }

    /// Reserves room for so many rows, if possible: unused room costs nothing.
    pub(crate) fn expect(&mut self, rows: usize) {
        let values = self.to_mut();
        let _ = values.try_reserve_exact(rows.saturating_sub(values.len()));
    }

    /// The values as bytes, as this machine writes them.
    pub fn as_bytes(&self) -> &[u8] {
        bytemuck::cast_slice(self)
    }
}

impl<T: Pod> Deref for Column<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        match &self.0 {
            Storage::Memory(values) => values,
            // Checked when the column was made; the bytes do not change.
            Storage::File { bytes, range } => {
                let part = (**bytes).as_ref().get(range.clone()).unwrap_or(&[]);
                bytemuck::try_cast_slice(part).unwrap_or(&[])
            }
        }
    }
}

impl<T: Pod> DerefMut for Column<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        self.to_mut()
    }
}

impl<'a, T: Pod> IntoIterator for &'a Column<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T> Default for Column<T> {
    fn default() -> Self {
        Column(Storage::Memory(Vec::new()))
    }
}

impl<T> From<Vec<T>> for Column<T> {
    fn from(values: Vec<T>) -> Self {
        Column(Storage::Memory(values))
    }
}

impl<T: Pod + std::fmt::Debug> std::fmt::Debug for Column<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_a_file_are_read_where_they_are_or_copied_where_they_must_be() {
        let values: Column<u64> = vec![1, 2, u64::MAX].into();
        let mut bytes = vec![0_u8; 16];
        let first = 8 - (bytes.as_ptr() as usize % 8) % 8;
        bytes.truncate(first);
        bytes.extend_from_slice(values.as_bytes());
        let end = bytes.len();
        let shared: SharedBytes = Arc::new(bytes);
        for (range, expected) in
            [(first..end, Some(3)), (first..end - 1, None), (0..end + 1, None), (end..end, Some(0))]
        {
            let found = Column::<u64>::shared(&shared, range.clone()).map(|column| column.len());
            assert_eq!(found, expected, "{range:?}");
        }
        let mut column = Column::<u64>::shared(&shared, first..end).unwrap();
        assert_eq!(*column, *values);
        column.to_mut().push(4);
        assert_eq!(*column, [1, 2, u64::MAX, 4]);
        // At an odd address they are copied.
        let odd: SharedBytes = Arc::new([&[7_u8][..], values.as_bytes()].concat());
        assert_eq!(*Column::<u64>::shared(&odd, 1..25).unwrap(), *values);
    }
}
