//! One stream file of one thread: position of the next event, and handling of events that do not fit.
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

use taskscope_event::framing::*;
use taskscope_event::models::recorder;
use taskscope_event::{Code, StreamFile};

use crate::clock::ThreadClock;
use crate::disk_file::NoRoom;
use crate::limits;
use crate::tailed_file::TailedFile;

/// Unpaired events that were dropped, and are not over.
#[derive(Clone, Copy, Default)]
pub(crate) struct Dropped {
    /// Begins without their ends.
    pub(crate) begins: u32,
    /// The task of the dropped visit; 0 for none.
    pub(crate) task: u64,
}

/// Nesting of an event that is passed as bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nesting {
    /// An event that neither opens nor closes a section.
    Point,
    /// Something that an event of `end_bytes` bytes, header included, closes in the same stream.
    Begin {
        /// Room reserved for that event.
        end_bytes: usize,
    },
    /// The section opened last.
    End,
}

/// Kept for ends ([`crate::unpaired`]): some forty of them.
const ROOM_FOR_ENDS: usize = 1024;

/// The event path's view comes first, so that it shares a cache line.
#[repr(C)]
pub(crate) struct Stream {
    pub(crate) pos: *mut u8,
    /// Null while a dropped begin is open, and when closed.
    pub(crate) end: *mut u8,
    /// End of the active region.
    pub(crate) region_end: *mut u8,
    /// `end` as it is to be when the dropped begin ends.
    resume_end: *mut u8,
    /// Begins that were dropped and are still open.
    dropped_depth: u32,
    /// State of [`crate::unpaired`] after a dropped event.
    pub(crate) dropped: Dropped,
    /// Reason for not growing any more.
    pub(crate) full: Option<NoRoom>,
    pub lost_events: u64,
    /// Separate, so that `taskscope.h` does not depend on the fields of a file.
    file: Option<Box<TailedFile>>,
    /// Area for discarded events, which are overwritten; null in all other streams.
    sink: *mut u8,
    /// Path of the file to create at the first event.
    planned: Option<PathBuf>,
}

/// Offsets of the fields that the C header's inline functions use.
pub(crate) const LAYOUT: [usize; 3] = [
    core::mem::offset_of!(Stream, pos),
    core::mem::offset_of!(Stream, end),
    core::mem::offset_of!(Stream, region_end),
];

impl Stream {
    /// Creates the file with its header.
    pub fn create(directory: &Path, file: StreamFile) -> Result<Self, NoRoom> {
        let mut stream = Self::in_memory(ptr::null_mut(), 0);
        stream.start_file(&directory.join(file.name()), file)?;
        Ok(stream)
    }

    /// Creates the file when the first event comes.
    pub fn planned(directory: &Path, file: StreamFile) -> Self {
        let mut stream = Self::in_memory(ptr::null_mut(), 0);
        stream.planned = Some(directory.join(file.name()));
        stream
    }

    /// Takes events of any number and keeps none: `bytes` bytes at `area` are written over and over.
    pub fn sink(area: *mut u8, bytes: usize) -> Self {
        Stream { sink: area, ..Self::in_memory(area, bytes) }
    }

    /// Stores events in `bytes` bytes at `area`, zeroed, and drops events that do not fit.
    pub fn in_memory(area: *mut u8, bytes: usize) -> Self {
        let end = area.wrapping_add(bytes);
        Stream {
            pos: area,
            end,
            region_end: end,
            resume_end: ptr::null_mut(),
            dropped_depth: 0,
            dropped: Dropped::default(),
            full: None,
            lost_events: 0,
            file: None,
            planned: None,
            sink: ptr::null_mut(),
        }
    }

    fn start_file(&mut self, path: &Path, file: StreamFile) -> Result<(), NoRoom> {
        let ring_bytes = if file == StreamFile::Standard { limits::ring_bytes() } else { 0 };
        let file = TailedFile::create(path, ring_bytes)?;
        let start = file.start();
        // SAFETY: a region is longer than the header.
        self.pos = unsafe {
            ptr::copy_nonoverlapping(file_header().as_ptr(), start, FILE_HEADER_BYTES);
            start.add(FILE_HEADER_BYTES)
        };
        (self.end, self.region_end, self.file) = (file.end(), file.end(), Some(Box::new(file)));
        Ok(())
    }

    /// Area for a signal handler's events that wait for this stream; null without a file.
    pub fn side_area(&self) -> *mut u8 {
        self.file.as_ref().map_or(ptr::null_mut(), |file| file.side_area())
    }

    #[inline(always)]
    pub(crate) fn room(&self) -> usize {
        // A null `end` gives zero.
        (self.end as usize).saturating_sub(self.pos as usize)
    }

    /// An event that neither opens nor closes anything. Returns whether it was kept, as all do.
    #[inline(always)]
    pub fn point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        self.put_if_room(at, code, payload, Nesting::Point)
            || self.make_room(EVENT_HEADER_BYTES + N) && self.put_if_room(at, code, payload, Nesting::Point)
    }

    /// An event that opens something; `end_bytes` is the whole size of the event that will close it.
    #[inline(always)]
    pub fn begin<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N], end_bytes: usize) -> bool {
        let nesting = Nesting::Begin { end_bytes };
        self.put_if_room(at, code, payload, nesting)
            || self.make_room_for_begin(EVENT_HEADER_BYTES + N + end_bytes)
                && self.put_if_room(at, code, payload, nesting)
    }

    /// Stores the event that closes the section opened last by [`Stream::begin`].
    #[inline(always)]
    pub fn end<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        let bytes = EVENT_HEADER_BYTES + N;
        let room = self.take_room(bytes, Nesting::End) || self.room_of_end(bytes);
        if room {
            // SAFETY: the room was checked.
            unsafe { self.put(at, code, payload) }
        }
        room
    }

    /// Stores an event if there is room; otherwise has no effect. Calls no function.
    #[inline(always)]
    fn put_if_room<const N: usize>(
        &mut self,
        at: u64,
        code: Code,
        payload: [u8; N],
        nesting: Nesting,
    ) -> bool {
        let room = self.take_room(EVENT_HEADER_BYTES + N, nesting);
        if room {
            // SAFETY: the room was checked.
            unsafe { self.put(at, code, payload) }
        }
        room
    }

    /// As [`put_if_room`](Self::put_if_room) at the current time, which is read last, so that few registers
    /// are live meanwhile. Also has no effect if the clock would have to read the kernel's.
    #[inline(always)]
    pub fn put_now_if_room<const N: usize>(
        &mut self,
        clock: &mut ThreadClock,
        code: Code,
        payload: [u8; N],
        nesting: Nesting,
    ) -> Option<()> {
        let bytes = EVENT_HEADER_BYTES + N;
        let at = if self.has_room(bytes, nesting) { clock.now_of_anchor()? } else { return None };
        self.move_end(bytes, nesting);
        // SAFETY: the room was checked.
        unsafe { self.put(at, code, payload) }
        Some(())
    }

    /// Whether a begin reserved so much for its end.
    #[inline(always)]
    fn is_reserved(&self, bytes: usize) -> bool {
        // A begin moved `end` down by as much; an end without a begin is stopped by the region's end.
        !self.end.is_null() && self.region_end as usize - self.end as usize >= bytes
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

    /// Stores an event with the caller's flags, which contain the payload size. Returns whether it was kept.
    ///
    /// # Safety
    /// As many bytes as `flags` specify are readable at `payload`.
    #[inline(always)]
    pub unsafe fn raw(
        &mut self,
        at: u64,
        flags: u8,
        code: Code,
        payload: *const u8,
        nesting: Nesting,
    ) -> bool {
        let bytes = EVENT_HEADER_BYTES + payload_bytes(flags);
        let room = self.take_room(bytes, nesting) || self.make_and_take_room(bytes, nesting);
        if room {
            // SAFETY: the room was made; the payload by contract.
            unsafe { self.put_raw(at, flags, code, payload) }
        }
        room
    }

    /// [`Stream::raw`] if there is room; otherwise has no effect.
    ///
    /// # Safety
    /// The conditions of [`Stream::raw`].
    #[inline(always)]
    pub unsafe fn raw_if_room(
        &mut self,
        at: u64,
        flags: u8,
        code: Code,
        payload: *const u8,
        nesting: Nesting,
    ) -> bool {
        let room = self.take_room(EVENT_HEADER_BYTES + payload_bytes(flags), nesting);
        if room {
            // SAFETY: the room was checked; the payload by contract.
            unsafe { self.put_raw(at, flags, code, payload) }
        }
        room
    }

    /// Whether an event of so many bytes fits, and the end that a begin reserves room for.
    #[inline(always)]
    fn has_room(&self, bytes: usize, nesting: Nesting) -> bool {
        match nesting {
            Nesting::Point => self.room() >= bytes,
            Nesting::Begin { end_bytes } => self.room() >= bytes + end_bytes,
            Nesting::End => self.is_reserved(bytes),
        }
    }

    /// Returns whether there is room, and counts it: a begin reserves its end's room, an end releases it.
    #[inline(always)]
    fn take_room(&mut self, bytes: usize, nesting: Nesting) -> bool {
        let room = self.has_room(bytes, nesting);
        if room {
            self.move_end(bytes, nesting);
        }
        room
    }

    #[inline(always)]
    fn move_end(&mut self, bytes: usize, nesting: Nesting) {
        match nesting {
            Nesting::Point => {}
            Nesting::Begin { end_bytes } => self.end = self.end.wrapping_sub(end_bytes),
            Nesting::End => self.end = self.end.wrapping_add(bytes),
        }
    }

    #[cold]
    #[inline(never)]
    fn make_and_take_room(&mut self, bytes: usize, nesting: Nesting) -> bool {
        match nesting {
            Nesting::Point => self.make_room(bytes),
            Nesting::Begin { end_bytes } => {
                self.make_room_for_begin(bytes + end_bytes) && self.take_room(bytes, nesting)
            }
            Nesting::End => self.room_of_end(bytes),
        }
    }

    /// # Safety
    /// The event fits at `pos`, and as many bytes as `flags` specify are readable at `payload`.
    #[inline(always)]
    unsafe fn put_raw(&mut self, at: u64, flags: u8, code: Code, payload: *const u8) {
        let (start, payload_bytes) = (self.pos, payload_bytes(flags));
        // SAFETY: by contract.
        unsafe {
            copy_payload(payload, start.add(EVENT_HEADER_BYTES), payload_bytes);
            start.add(4).cast::<u64>().write_unaligned(at.to_le());
            commit(start, flags, code);
            self.pos = start.add(EVENT_HEADER_BYTES + payload_bytes);
        }
    }

    /// Appends whole events from a side area, none of them earlier than `latest`; without room counts them as
    /// lost.
    pub fn append_from_side(&mut self, side: &mut Stream, area: *mut u8, latest: u64) {
        let bytes = side.pos as usize - area as usize;
        if bytes > 0 {
            if self.room() >= bytes || self.make_room(bytes) {
                // SAFETY: the side area holds `bytes` bytes of whole events, and there is room.
                unsafe { self.copy_side(area, bytes, latest) };
            } else {
                // SAFETY: as above. One of them is counted.
                self.lost_events +=
                    count(unsafe { core::slice::from_raw_parts(area, bytes) }).saturating_sub(1);
            }
            // SAFETY: this thread owns the area; its first word is written first, so that a reader sees all
            // or nothing.
            unsafe {
                commit_word(area, 0);
                ptr::write_bytes(area, 0, bytes);
            }
            if let Some(file) = &self.file {
                file.set_side_target(0);
            }
        }
        self.lost_events += core::mem::take(&mut side.lost_events);
        side.pos = area;
        // It was sealed for those events only.
        if side.full.take().is_some() {
            (side.end, side.dropped) = (side.region_end, Dropped::default());
        }
    }

    /// # Safety
    /// `bytes` bytes of whole events are at `area`, and there is room for them.
    unsafe fn copy_side(&mut self, area: *const u8, bytes: usize, latest: u64) {
        let Some(file) = &self.file else { return };
        file.set_side_target(file.offset_of(self.pos));
        // SAFETY: by contract. All but the first word first, which commits the copy.
        unsafe {
            let to = self.pos;
            ptr::copy_nonoverlapping(area.add(4), to.add(4), bytes - 4);
            let mut at = 0;
            while at < bytes {
                let clock = to.add(at + 4).cast::<u64>();
                clock.write_unaligned(u64::from_le(clock.read_unaligned()).max(latest).to_le());
                let head = core::slice::from_raw_parts(area.add(at), (bytes - at).min(JUMBO_HEADER_BYTES));
                at += event_bytes(head);
            }
            commit_word(to, area.cast::<u32>().read_unaligned());
            self.pos = to.add(bytes);
        }
    }

    /// Takes back the last two events, if they are `first` and `second` (code and clock) without payloads, written one
    /// after the other from `start`, a position of [`Stream::pos`], on. Returns whether they were.
    pub fn take_back(&mut self, start: usize, first: (Code, u64), second: (Code, u64)) -> bool {
        const BYTES: usize = 2 * EVENT_HEADER_BYTES;
        let from = self.pos.wrapping_sub(BYTES);
        if start == 0 || from as usize != start || self.dropped_depth > 0 {
            return false;
        }
        let header = |(Code(code), clock): (Code, u64)| {
            let mut bytes = [0; EVENT_HEADER_BYTES];
            bytes[1..4].copy_from_slice(&code);
            bytes[4..].copy_from_slice(&clock.to_le_bytes());
            bytes
        };
        let (first, second) = (header(first), header(second));
        // SAFETY: the caller wrote from `start` on, which is in a region; regions are never unmapped while the stream
        // is open, and `pos` is in the active one, so that all bytes between the two are in it.
        unsafe {
            let bytes = from.cast::<[[u8; EVENT_HEADER_BYTES]; 2]>();
            if bytes.read_unaligned() != [first, second] {
                return false;
            }
            // The first model letter first: a zero ends the stream for every reader.
            from.add(1).write_volatile(0);
            bytes.write_unaligned([[0; EVENT_HEADER_BYTES]; 2]);
        }
        self.pos = from;
        true
    }

    /// Appends the tail to the file now. Durability does not depend on it, but readers without support for
    /// tails see the events.
    pub fn flush(&mut self) {
        if self.dropped_depth == 0 {
            self.grow(0);
        }
    }

    /// # Safety
    /// `EVENT_HEADER_BYTES + N` bytes at `pos` are in the region.
    #[inline(always)]
    pub(crate) unsafe fn put<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
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

    /// Returns whether there is room for an end without a reservation: its begin was dropped, or there was
    /// none.
    #[cold]
    #[inline(never)]
    fn room_of_end(&mut self, bytes: usize) -> bool {
        if self.dropped_depth == 0 {
            return self.room() >= bytes || self.make_room(bytes);
        }
        self.lost_events += 1;
        self.dropped_depth -= 1;
        if self.dropped_depth == 0 {
            self.end = self.resume_end;
        }
        false
    }

    /// Continues in another region with room for `bytes` more and the reserved ends.
    pub(crate) fn grow(&mut self, bytes: usize) -> bool {
        if !self.sink.is_null() {
            let reserved = self.region_end as usize - self.end as usize;
            self.pos = self.sink;
            return self.region_end as usize - self.sink as usize >= bytes + reserved;
        }
        if self.full.is_some() {
            return false;
        }
        if let Some(path) = self.planned.take() {
            let started = self.start_file(&path, StreamFile::Own);
            if started.is_ok() {
                self.set_room_aside();
            }
            match started {
                Ok(()) if self.room() >= bytes => return true,
                Ok(()) => {}
                Err(why) => self.full = Some(why),
            }
        }
        let Some(file) = self.file.as_mut() else { return false };
        // A dropped begin is open: events without a reservation wait for its end, too.
        if self.end.is_null() {
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
            // The next event retries.
            Err(NoRoom::Descriptors) => false,
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

    /// Reserves room for the loss record, so that a loss can be recorded when the stream is full, and for
    /// ends of tasks' open sections ([`crate::unpaired`]).
    pub fn set_room_aside(&mut self) {
        // SAFETY: the first region is far longer; called once, right after creation.
        self.end = unsafe { self.end.sub(LOSS_RECORD_BYTES + ROOM_FOR_ENDS) };
    }

    /// Writes the loss record into its reserved room, in any state, and returns the file offset of its count.
    pub fn put_loss_record(&mut self, at: u64, events: u64, reason: u32) -> Option<u64> {
        let file = self.file.as_mut()?;
        // Its count is replaced later.
        file.store_from_now_on();
        let offset = file.offset_of(self.pos) + EVENT_HEADER_BYTES as u64;
        let end = if self.dropped_depth > 0 { &mut self.resume_end } else { &mut self.end };
        if end.is_null() || (self.region_end as usize - *end as usize) < LOSS_RECORD_BYTES {
            return None;
        }
        let payload = loss_payload(events, reason);
        // SAFETY: the room was set aside below the region's end.
        unsafe {
            *end = end.add(LOSS_RECORD_BYTES);
            self.put(at, recorder::LOST, payload);
        }
        Some(offset)
    }

    /// Replaces the content of a loss record, by the offset of its count.
    pub fn replace_loss(&mut self, offset: u64, events: u64, reason: u32) {
        if let Some(file) = &self.file {
            file.write_at(offset, &loss_payload(events, reason));
        }
    }

    /// Cuts the file at its last event and closes it. Returns the tail's paths, to be removed when the
    /// metadata marks the stream as finished; `None` on failure, and the stream stays unfinished.
    pub fn finish(&mut self) -> Option<Vec<PathBuf>> {
        let (file, pos) = (self.file.take(), self.pos);
        self.close();
        file.map_or(Some(vec![]), |file| file.finish(pos).ok())
    }

    /// Gives the stream up; the caller removes its directory.
    pub fn discard(&mut self) {
        if let Some(file) = self.file.take() {
            file.discard();
        }
        self.close();
    }

    /// Whether there is a file without an event.
    pub fn is_empty(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.offset_of(self.pos) == FILE_HEADER_BYTES as u64)
    }

    /// Whether events in memory start at `area`, that is, whether it is a stream of that area.
    pub fn is_at_or_after(&self, area: *mut u8) -> bool {
        self.pos as usize >= area as usize
            && self.pos as usize <= area as usize + taskscope_event::tail::SIDE.bytes as usize
    }

    /// Whether there is a file.
    pub fn has_file(&self) -> bool {
        self.file.is_some()
    }

    /// Drops all later events.
    fn close(&mut self) {
        (self.end, self.resume_end, self.dropped_depth) = (ptr::null_mut(), ptr::null_mut(), 0);
        self.full = Some(NoRoom::Other);
    }
}

fn loss_payload(events: u64, reason: u32) -> [u8; 12] {
    let mut payload = [0; 12];
    payload[..8].copy_from_slice(&events.to_le_bytes());
    payload[8..].copy_from_slice(&reason.to_le_bytes());
    payload
}

/// Bytes of a [`recorder::LOST`] event.
pub(crate) const LOSS_RECORD_BYTES: usize = EVENT_HEADER_BYTES + 12;

/// Stores an event's first word, which completes it.
///
/// # Safety
/// Four bytes at `start` are ours to write.
#[inline(always)]
unsafe fn commit(start: *mut u8, flags: u8, code: Code) {
    // SAFETY: by contract.
    unsafe { commit_word(start, head_word(flags, code).to_le()) }
}

/// [`commit`] with the word in memory order.
///
/// # Safety
/// Four bytes at `start` are ours to write.
#[inline(always)]
unsafe fn commit_word(start: *mut u8, word: u32) {
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
    unsafe { start.cast::<u32>().write_unaligned(word) }
}

/// The size of the event that begins with these bytes.
fn event_bytes(head: &[u8]) -> usize {
    if head[0] & JUMBO_FLAG != 0 {
        let size = head.get(EVENT_HEADER_BYTES..).and_then(|rest| rest.first_chunk());
        return JUMBO_HEADER_BYTES + size.map_or(0, |size| u32::from_le_bytes(*size) as usize);
    }
    EVENT_HEADER_BYTES + payload_bytes(head[0])
}

/// The number of whole events.
fn count(events: &[u8]) -> u64 {
    let (mut rest, mut count) = (events, 0);
    while !rest.is_empty() {
        rest = rest.get(event_bytes(rest)..).unwrap_or_default();
        count += 1;
    }
    count
}

/// Copies 0 or 2 to 16 bytes without a call, by two loads that may overlap.
///
/// # Safety
/// `bytes` bytes are readable at `from` and writable at `to`; they do not overlap.
#[inline(always)]
pub unsafe fn copy_payload(from: *const u8, to: *mut u8, bytes: usize) {
    // SAFETY: by contract, every access stays within `bytes` bytes.
    unsafe {
        if bytes >= 8 {
            let (first, last) =
                (from.cast::<u64>().read_unaligned(), from.add(bytes - 8).cast::<u64>().read_unaligned());
            to.cast::<u64>().write_unaligned(first);
            to.add(bytes - 8).cast::<u64>().write_unaligned(last);
        } else if bytes >= 4 {
            let (first, last) =
                (from.cast::<u32>().read_unaligned(), from.add(bytes - 4).cast::<u32>().read_unaligned());
            to.cast::<u32>().write_unaligned(first);
            to.add(bytes - 4).cast::<u32>().write_unaligned(last);
        } else if bytes >= 2 {
            let (first, last) =
                (from.cast::<u16>().read_unaligned(), from.add(bytes - 2).cast::<u16>().read_unaligned());
            to.cast::<u16>().write_unaligned(first);
            to.add(bytes - 2).cast::<u16>().write_unaligned(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_event::models::instrument;

    /// As after a begin that found no descriptor.
    #[test]
    fn an_unpaired_event_in_a_dropped_section_does_not_end_the_stream() {
        let here = tempfile::tempdir().unwrap();
        let mut stream = Stream::create(here.path(), StreamFile::Own).unwrap();
        stream.set_room_aside();
        (stream.resume_end, stream.end, stream.dropped_depth) = (stream.end, ptr::null_mut(), 1);
        assert!(!stream.unpaired(1, instrument::POINT, [0; 12]));
        assert_eq!((stream.full(), stream.lost_events), (None, 1));
        assert!(!stream.end(2, instrument::STATE_POP, [0; 4]));
        assert!(stream.unpaired(3, instrument::POINT, [0; 12]));
    }
}
