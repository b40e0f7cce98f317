//! The first page of a tail: the words that the writing thread and the process that drains it share.
//!
//! Form and protocol: [`taskscope_event::tail`].

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::*, fence};
use std::ffi::{CStr, CString};

use taskscope_event::tail;

use crate::disk_file::{DiskFile, Identity};

/// The mapped first page of a tail. Its creator keeps it mapped as long as it is used.
pub struct TailPage {
    base: *mut u8,
}

impl TailPage {
    /// # Safety
    /// At `base`, page-aligned, a tail's first page is mapped, as long as the value is used.
    pub unsafe fn new(base: *mut u8) -> Self {
        TailPage { base }
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: within the mapped page, and aligned, as all offsets of words are.
        unsafe { AtomicU64::from_ptr(self.base.add(offset as usize).cast()) }
    }

    /// Stream offset of the active region, and that region's number.
    pub fn header(&self) -> (u64, u8) {
        let header = u64::from_le(self.word(0).load(Acquire));
        (header >> 3, (header & 7) as u8)
    }

    /// Activates `region`, which is cleared; the stream continues there at `base`.
    pub fn activate(&self, base: u64, region: u8) {
        self.word(0).store(tail::header(base, region).to_le(), Release);
    }

    /// The offset up to which the stream file is complete.
    pub fn stored(&self) -> u64 {
        u64::from_le(self.word(tail::STORED_OFFSET).load(Acquire))
    }

    /// Moves the length of the stream file's complete part from `from` to `to`, unless another process has
    /// moved it.
    pub fn move_stored(&self, from: u64, to: u64) -> bool {
        let word = self.word(tail::STORED_OFFSET);
        let moved = word.compare_exchange(from.to_le(), to.to_le(), AcqRel, Relaxed).is_ok();
        // The copying side must see a region as stored before it is cleared.
        fence(Release);
        moved
    }

    /// The process that stores sealed regions; 0 if it is the thread itself.
    pub fn drainer(&self) -> u64 {
        u64::from_le(self.word(tail::DRAINER_OFFSET).load(Acquire))
    }

    /// Sets the process that stores regions sealed from now on; 0 for the thread.
    pub fn set_drainer(&self, process: u64) {
        self.word(tail::DRAINER_OFFSET).store(process.to_le(), Release);
    }

    /// The part of the stream that a region held when it was last sealed.
    pub fn part(&self, region: u8) -> (u64, u64) {
        let offset = tail::PARTS_OFFSET + 16 * u64::from(region);
        let load = |offset| u64::from_le(self.word(offset).load(Relaxed));
        (load(offset), load(offset + 8))
    }

    /// Sets the part of the stream in the active region, just before another one is activated.
    pub fn set_part(&self, region: u8, start: u64, end: u64) {
        let offset = tail::PARTS_OFFSET + 16 * u64::from(region);
        self.word(offset).store(start.to_le(), Relaxed);
        self.word(offset + 8).store(end.to_le(), Relaxed);
    }

    /// The sealed region with the part that starts at `at`, before `base`, and the part's end.
    pub fn sealed_from(&self, at: u64) -> Option<(u8, u64)> {
        (0..tail::REGIONS as u8).find_map(|region| {
            let (start, end) = self.part(region);
            let holds =
                end.checked_sub(start).is_some_and(|bytes| (1..=tail::region(region).bytes).contains(&bytes));
            (start == at && holds).then_some((region, end))
        })
    }

    /// Sets the stream offset that the side area's events are being copied to; 0 for none.
    pub fn set_side_target(&self, offset: u64) {
        self.word(tail::SIDE_TARGET_OFFSET).store(offset.to_le(), Release);
    }

    /// Sets the stream file of the tail. Returns whether there is room for its path.
    pub fn set_stream(&self, stream: &DiskFile) -> bool {
        let path = stream.path().to_bytes_with_nul();
        let fits = path.len() <= tail::PATH.bytes as usize && path.starts_with(b"/");
        if fits {
            // SAFETY: within the page; no process reads there before `drainer` is set.
            unsafe {
                ptr::copy_nonoverlapping(path.as_ptr(), self.base.add(tail::PATH.offset as usize), path.len())
            };
            for (i, part) in stream.identity().0.into_iter().enumerate() {
                self.word(tail::IDENTITY_OFFSET + 8 * i as u64).store(part, Relaxed);
            }
        }
        fits
    }

    /// The stream file that the tail belongs to.
    pub fn stream(&self) -> Option<DiskFile> {
        let mut path = [0; tail::PATH.bytes as usize];
        // SAFETY: within the page; written before `drainer` was set.
        unsafe {
            ptr::copy_nonoverlapping(self.base.add(tail::PATH.offset as usize), path.as_mut_ptr(), path.len())
        };
        let path: CString = CStr::from_bytes_until_nul(&path).ok()?.to_owned();
        let identity = std::array::from_fn(|i| self.word(tail::IDENTITY_OFFSET + 8 * i as u64).load(Relaxed));
        path.to_bytes().starts_with(b"/").then(|| DiskFile::from_other_process(path, Identity(identity)))
    }
}
