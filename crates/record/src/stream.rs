//! One stream file of one thread: where the next event goes, and what happens when it does not fit.
//!
//! ```text
//!   active region   pos                 end     + reserved     region end
//!    │ events ……… │ free, zeros ……… │ room for ends of open begins │
//! ```
//! A begin takes its own bytes and moves `end` down by the bytes of its end, which therefore always
//! fits. When a begin does not fit, it and everything nested in it is dropped, up to its end, and
//! counted; `end` is null meanwhile, so that the fast path needs one comparison.

use core::ptr;
use core::sync::atomic::{Ordering::*, compiler_fence, fence};
use std::path::{Path, PathBuf};

use taskscope_event::Code;
use taskscope_event::framing::*;
use taskscope_event::models::recorder;

use crate::tailed_file::{NoRoom, TailedFile};

/// The two files of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// `stream.obs`: ovni's models.
    Standard,
    /// `taskscope.obs`: taskscope's own models.
    Own,
}

impl Half {
    /// Name of the file.
    pub const fn file_name(self) -> &'static str {
        match self {
            Half::Standard => "stream.obs",
            Half::Own => "taskscope.obs",
        }
    }
}

/// The event path's view comes first, so that it shares a cache line.
#[repr(C)]
pub(crate) struct Stream {
    pos: *mut u8,
    /// Null while a dropped begin is open, and when closed.
    end: *mut u8,
    /// End of the active region.
    region_end: *mut u8,
    /// `end` as it is to be when the dropped begin ends.
    resume_end: *mut u8,
    /// Begins that were dropped and are still open.
    dropped_depth: u32,
    /// No further growth is tried.
    full: Option<NoRoom>,
    pub lost_events: u64,
    file: Option<TailedFile>,
}

impl Stream {
    /// Creates the file with its header.
    pub fn create(directory: &Path, half: Half) -> Result<Self, NoRoom> {
        let file = TailedFile::create(&directory.join(half.file_name()))?;
        let start = file.start();
        // SAFETY: a region is longer than the header.
        let pos = unsafe {
            ptr::copy_nonoverlapping(file_header().as_ptr(), start, FILE_HEADER_BYTES);
            start.add(FILE_HEADER_BYTES)
        };
        Ok(Stream {
            pos,
            end: file.end(),
            region_end: file.end(),
            resume_end: ptr::null_mut(),
            dropped_depth: 0,
            full: None,
            lost_events: 0,
            file: Some(file),
        })
    }

    #[inline(always)]
    fn room(&self) -> usize {
        // A null `end` gives zero.
        (self.end as usize).saturating_sub(self.pos as usize)
    }

    /// An event that neither opens nor closes anything. Returns whether it was kept, as all do.
    #[inline(always)]
    pub fn point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        let room = self.room() >= EVENT_HEADER_BYTES + N || self.make_room(EVENT_HEADER_BYTES + N);
        if room {
            // SAFETY: the room was checked.
            unsafe { self.put(at, code, payload) }
        }
        room
    }

    /// An event that opens something; `end_bytes` is the whole size of the event that will close it.
    #[inline(always)]
    pub fn begin<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N], end_bytes: usize) -> bool {
        let room = self.room() >= EVENT_HEADER_BYTES + N + end_bytes
            || self.make_room_for_begin(EVENT_HEADER_BYTES + N + end_bytes);
        if room {
            // SAFETY: the room was checked, so `end` also stays above `pos`.
            unsafe {
                self.end = self.end.sub(end_bytes);
                self.put(at, code, payload);
            }
        }
        room
    }

    /// The event that closes what [`Stream::begin`] opened last.
    #[inline(always)]
    pub fn end<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        // Its begin moved `end` down by as much; an end that has no begin finds the region's end.
        let reserved =
            !self.end.is_null() && self.region_end as usize - self.end as usize >= EVENT_HEADER_BYTES + N;
        if reserved {
            // SAFETY: checked just now.
            unsafe {
                self.end = self.end.add(EVENT_HEADER_BYTES + N);
                self.put(at, code, payload);
            }
            return true;
        }
        self.end_without_room(at, code, payload)
    }

    /// An event with data of any length; `parts` are stored one after another.
    pub fn jumbo(&mut self, at: u64, code: Code, parts: &[&[u8]]) -> bool {
        let data: usize = parts.iter().map(|part| part.len()).sum();
        let Ok(size) = u32::try_from(data) else {
            self.lost_events += 1;
            return false;
        };
        if self.room() < JUMBO_HEADER_BYTES + data && !self.make_room(JUMBO_HEADER_BYTES + data) {
            return false;
        }
        // SAFETY: the room was checked.
        unsafe {
            let start = self.pos;
            let mut to = start.add(JUMBO_HEADER_BYTES);
            for part in parts {
                ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
            start.add(4).cast::<u64>().write_unaligned(at.to_le());
            start.add(12).cast::<u32>().write_unaligned(size.to_le());
            commit(start, JUMBO_FLAG | JUMBO_SIZE_CODE, code);
            self.pos = to;
        }
        true
    }

    /// # Safety
    /// `EVENT_HEADER_BYTES + N` bytes at `pos` lie in the region.
    #[inline(always)]
    unsafe fn put<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        let start = self.pos;
        // SAFETY: by contract.
        unsafe {
            start.add(EVENT_HEADER_BYTES).cast::<[u8; N]>().write_unaligned(payload);
            start.add(4).cast::<u64>().write_unaligned(at.to_le());
            commit(start, const { size_code(N) }, code);
            self.pos = start.add(EVENT_HEADER_BYTES + N);
        }
    }

    #[cold]
    #[inline(never)]
    fn make_room(&mut self, bytes: usize) -> bool {
        let made = self.dropped_depth == 0 && self.grow(bytes);
        if !made {
            self.lost_events += 1;
        }
        made
    }

    #[cold]
    #[inline(never)]
    fn make_room_for_begin(&mut self, bytes: usize) -> bool {
        if self.make_room(bytes) {
            return true;
        }
        if self.dropped_depth == 0 {
            (self.resume_end, self.end) = (self.end, ptr::null_mut());
        }
        self.dropped_depth += 1;
        false
    }

    #[cold]
    #[inline(never)]
    fn end_without_room<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        if self.dropped_depth == 0 {
            return self.point(at, code, payload);
        }
        self.lost_events += 1;
        self.dropped_depth -= 1;
        if self.dropped_depth == 0 {
            self.end = self.resume_end;
        }
        false
    }

    /// Goes on in another region with room for `bytes` more and what is reserved.
    fn grow(&mut self, bytes: usize) -> bool {
        let Some(file) = self.file.as_mut() else { return false };
        if self.full.is_some() {
            return false;
        }
        let reserved = self.region_end as usize - self.end as usize;
        match file.advance(self.pos, bytes + reserved) {
            Ok(()) => {
                (self.pos, self.region_end) = (file.start(), file.end());
                // SAFETY: the region holds `bytes + reserved` bytes.
                self.end = unsafe { self.region_end.sub(reserved) };
                true
            }
            Err(why) => {
                self.full = Some(why);
                false
            }
        }
    }

    /// Why the stream stopped growing, if it did.
    pub fn full(&self) -> Option<NoRoom> {
        self.full
    }

    /// Keeps room for the loss record, so that a loss can be told when nothing else fits.
    pub fn set_room_for_loss_record_aside(&mut self) {
        // SAFETY: the first region is far longer; called once, right after creation.
        self.end = unsafe { self.end.sub(LOSS_RECORD_BYTES) };
    }

    /// Writes the loss record into its room, whatever the state, and returns the file offset of its
    /// count.
    pub fn put_loss_record(&mut self, at: u64, events: u64, reason: u32) -> Option<u64> {
        let offset = self.file.as_ref()?.offset_of(self.pos) + EVENT_HEADER_BYTES as u64;
        let end = if self.dropped_depth > 0 { &mut self.resume_end } else { &mut self.end };
        if end.is_null() || (self.region_end as usize - *end as usize) < LOSS_RECORD_BYTES {
            return None;
        }
        let mut payload = [0; 12];
        payload[..8].copy_from_slice(&events.to_le_bytes());
        payload[8..].copy_from_slice(&reason.to_le_bytes());
        // SAFETY: the room was set aside below the region's end.
        unsafe {
            *end = end.add(LOSS_RECORD_BYTES);
            self.put(at, recorder::LOST, payload);
        }
        Some(offset)
    }

    /// Replaces eight bytes that were written earlier.
    pub fn replace_u64(&mut self, offset: u64, value: u64) {
        if let Some(file) = &self.file {
            file.write_at(offset, &value.to_le_bytes());
        }
    }

    /// Cuts the file at its last event and closes it. Returns the tail, to be removed when the
    /// metadata says that the stream is finished; nothing if that failed, and the stream stays
    /// unfinished.
    pub fn finish(&mut self) -> Option<PathBuf> {
        let file = self.file.take()?;
        let (pos, tail) = (self.pos, file.tail_path().to_owned());
        self.close();
        file.finish(pos).ok().map(|_| tail)
    }

    /// Whether there is no event in it.
    pub fn is_empty(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.offset_of(self.pos) == FILE_HEADER_BYTES as u64)
    }

    /// No event is taken any more.
    fn close(&mut self) {
        (self.end, self.resume_end, self.dropped_depth) = (ptr::null_mut(), ptr::null_mut(), 0);
        self.full = Some(NoRoom::Other);
    }
}

/// Bytes of a [`recorder::LOST`] event.
pub(crate) const LOSS_RECORD_BYTES: usize = EVENT_HEADER_BYTES + 12;

/// Stores an event's first word, which completes it.
///
/// # Safety
/// Four bytes at `start` are ours to write.
#[inline(always)]
unsafe fn commit(start: *mut u8, flags: u8, code: Code) {
    // On x86-64 stores are not reordered among themselves, so keeping the compiler from it is
    // enough; elsewhere the fence is a real one.
    if cfg!(target_arch = "x86_64") {
        compiler_fence(Release)
    } else {
        fence(Release)
    }
    // Not volatile, which would need alignment (a packed wrapper costs a detour over the stack): the
    // mapped memory is known outside, so the store happens before the callback returns.
    // SAFETY: by contract.
    unsafe { start.cast::<u32>().write_unaligned(head_word(flags, code).to_le()) }
}
