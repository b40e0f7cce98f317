//! Buffers that vendors' interfaces fill with records: given out empty, taken back full, read once.
//!
//! A buffer is never freed, so that one that is delivered a second time, as broken tools and releases
//! were seen to do, can still be read; its records are then duplicates. It rests before it is given out
//! again, so that it is not another thread's by then.

use crate::hub::lock;
use std::alloc::{Layout, alloc};
use std::sync::Mutex;

/// Bytes of a buffer.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Buffers that rest. Their pages stay in memory, of which records fill a part.
const RESTING: usize = 16;

/// The buffers of one interface: address, and whether the vendor has it. Those that came back last are at the end.
pub(crate) struct Buffers(Mutex<Vec<(usize, bool)>>);

impl Buffers {
    pub const fn new() -> Self {
        Buffers(Mutex::new(Vec::new()))
    }

    /// An empty buffer; null without memory.
    pub fn give(&self) -> *mut u8 {
        let mut buffers = lock(&self.0);
        let resting = buffers.iter().filter(|(_, given)| !given).count();
        if resting > RESTING
            && let Some((address, given)) = buffers.iter_mut().find(|(_, given)| !given)
        {
            *given = true;
            return *address as *mut u8;
        }
        let Ok(memory) = Layout::from_size_align(BUFFER_BYTES, 8) else { return std::ptr::null_mut() };
        // SAFETY: the size is not zero.
        let address = unsafe { alloc(memory) };
        if !address.is_null() {
            buffers.push((address as usize, true));
        }
        address
    }

    /// Whether it is one of these, wherever it is now.
    pub fn has(&self, buffer: *mut u8) -> bool {
        lock(&self.0).iter().any(|(address, _)| *address == buffer as usize)
    }

    /// The vendor gave it back.
    pub fn take_back(&self, buffer: *mut u8) {
        let mut buffers = lock(&self.0);
        if let Some(place) = buffers.iter().position(|(address, _)| *address == buffer as usize) {
            let (address, _) = buffers.remove(place);
            buffers.push((address, false));
        }
    }
}

/// A record in a buffer, read by offset; further bytes follow it.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a>(pub &'a [u8]);

impl Record<'_> {
    /// 0 if the record ends before it.
    pub fn u64(self, offset: usize) -> u64 {
        self.0
            .get(offset..offset + 8)
            .map_or(0, |bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }

    pub fn u32(self, offset: usize) -> u32 {
        self.0
            .get(offset..offset + 4)
            .map_or(0, |bytes| u32::from_le_bytes(bytes.try_into().unwrap_or_default()))
    }

    pub fn u8(self, offset: usize) -> u8 {
        self.0.get(offset).copied().unwrap_or(0)
    }

    /// A vendor's text; empty if there is none.
    ///
    /// # Safety
    /// The field at `offset` is null or points to a text that stays.
    pub unsafe fn text(self, offset: usize) -> String {
        // SAFETY: by contract.
        unsafe { crate::dynamic::text(self.u64(offset) as *const std::ffi::c_char) }
    }
}

/// Calls `take` with each record of a buffer that `next` finds, as long as they advance.
///
/// # Safety
/// `buffer` is readable for `valid` bytes.
pub(crate) unsafe fn walk(
    buffer: *mut u8,
    valid: usize,
    mut next: impl FnMut(*mut *mut u8) -> bool,
    mut take: impl FnMut(Record<'_>),
) {
    let mut record: *mut u8 = std::ptr::null_mut();
    let mut last = None;
    while next(&raw mut record) {
        let offset = (record as usize).wrapping_sub(buffer as usize);
        // A record elsewhere, or one that comes again, ends the walk.
        if offset >= valid || last.is_some_and(|last| offset <= last) {
            break;
        }
        last = Some(offset);
        // SAFETY: within the buffer, of which so much is filled.
        take(Record(unsafe { std::slice::from_raw_parts(record, valid - offset) }));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_rests_before_it_is_given_again() {
        let buffers = Buffers::new();
        let first = buffers.give();
        buffers.take_back(first);
        let others: Vec<*mut u8> = (0..RESTING).map(|_| buffers.give()).collect();
        assert!(!others.contains(&first));
        // A second return of the same buffer: it has no other user.
        assert!(buffers.has(first));
        buffers.take_back(first);
        others.iter().for_each(|other| buffers.take_back(*other));
        assert_eq!(buffers.give(), first, "the one that rested longest");
        assert_eq!(lock(&buffers.0).len(), RESTING + 1);
    }
}
