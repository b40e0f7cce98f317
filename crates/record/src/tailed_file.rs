//! A stream file with its newest part in a small mapped file, so that it survives the program.
//!
//! ```text
//!    events ──▶ active region of NAME.tail (mapped, touched before, in cache)
//!                   │ full: append to NAME.obs with one write, or leave that to the drainer
//!                   ▼       clear another region, activate it with one store
//!               NAME.obs
//! ```
//! Storing into fresh pages of a mapped file costs four times as much as appending from a buffer that stays
//! in the cache (0.84 against 0.20 ns a byte on ext4), and stalls longer. The blocks of the tail are
//! reserved, so accepted events stay even if the disk is full at the append: a failed append leaves the
//! region active, and at the end the idle regions' blocks make room for the last one. The form on disk, and
//! the protocol of thread and drainer, are in [`taskscope_event::tail`].

use core::ptr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use taskscope_event::tail;

use crate::disk_file::{self, DiskFile, Mapping, NoRoom, check_size_limit, give_back, reserve, write_all_at};
use crate::drain::DrainerName;
use crate::limits;
use crate::ring::Ring;
use crate::tail_page::TailPage;

/// A region serves this often before a larger one takes over. Touching a larger pair takes about as long as its
/// fewer writes save in forty regions: 0.6 ms for the largest, 14 µs in each.
const FLUSHES_BEFORE_NEXT_PAIR: u32 = 64;
/// The pair that long streams use; larger ones serve single large events.
const MAX_USUAL_PAIR: usize = 2;
/// From this length on a stream repeatedly reserves as many blocks ahead.
const AHEAD_BYTES: u64 = 4 << 20;
/// The first page and the first pair, which every stream has.
const HEAD_BYTES: u64 = tail::FIRST_REGION_OFFSET + 2 * tail::PAIR_REGION_BYTES[0];

/// A stream file with its tail.
pub struct TailedFile {
    stream: DiskFile,
    path: PathBuf,
    tail: DiskFile,
    /// In the stream's directory; elsewhere only a link to the tail's place.
    tail_path: PathBuf,
    /// The tail's real path, if it is linked.
    linked_tail: Option<PathBuf>,
    /// The tail's beginning: header, side area, and the first pair of regions.
    head: Mapping,
    /// Within `head`.
    page: TailPage,
    /// The process that stores sealed regions in place of this thread.
    drainer: Option<DrainerName>,
    /// The larger pairs of regions, as far as they have been used.
    larger_pairs: [Option<Mapping>; tail::PAIR_REGION_BYTES.len() - 1],
    active: u8,
    /// Bytes of the stream file that are complete: the active region continues there.
    base: u64,
    flushes_of_pair: u32,
    /// End of the stream file's blocks; `u64::MAX` if none are reserved ahead.
    allocated: u64,
    /// Bytes of the stream that count against the size cap.
    charged: u64,
    ring: Option<Ring>,
}

impl TailedFile {
    /// Creates `path`, which must not exist, and its tail. `ring_bytes` is how much of the stream
    /// is kept; 0 for all.
    pub fn create(path: &Path, ring_bytes: u64) -> Result<Self, NoRoom> {
        let (stream, _) = DiskFile::create(path)?;
        // A file without a tail is empty, which readers understand.
        let tail_path = path.with_extension("tail");
        let linked_tail = crate::tail_place::link(&tail_path);
        let (tail, open_tail) = crate::tail_place::create(&tail_path, linked_tail.as_deref())?;
        let made = (|| {
            reserve(&open_tail, 0, HEAD_BYTES)?;
            let head = Mapping::new(&open_tail, 0, HEAD_BYTES as usize)?;
            limits::charge(tail::PAIR_REGION_BYTES[0])?;
            Ok(head)
        })();
        if let (Err(_), Some(linked)) = (&made, &linked_tail) {
            let _ = std::fs::remove_file(linked);
        }
        let head = made?;
        // SAFETY: the first page is mapped, and stays so as long as the value lives.
        let page = unsafe { TailPage::new(head.base) };
        // A ring gives blocks back, too; its thread does both.
        let may_be_drained = linked_tail.is_some() && ring_bytes == 0 && page.set_stream(&stream);
        let drainer = if may_be_drained { DrainerName::from_environment() } else { None };
        if let Some(drainer) = drainer {
            page.set_drainer(drainer.pid);
        }
        Ok(TailedFile {
            stream,
            path: path.to_owned(),
            tail,
            tail_path,
            linked_tail,
            head,
            page,
            drainer,
            larger_pairs: [const { None }; tail::PAIR_REGION_BYTES.len() - 1],
            active: 0,
            base: 0,
            flushes_of_pair: 0,
            allocated: if ring_bytes > 0 { u64::MAX } else { AHEAD_BYTES },
            charged: tail::PAIR_REGION_BYTES[0],
            ring: (ring_bytes > 0).then(|| Ring::new(path, ring_bytes)),
        })
    }

    /// First byte of the active region.
    pub fn start(&self) -> *mut u8 {
        self.start_of(self.active)
    }

    /// First byte of a region of a mapped pair.
    fn start_of(&self, region: u8) -> *mut u8 {
        let base = match usize::from(region / 2).checked_sub(1) {
            // SAFETY: the first pair follows the first page.
            None => unsafe { self.head.base.add(tail::FIRST_REGION_OFFSET as usize) },
            Some(larger) => self.larger_pairs[larger].as_ref().map_or(ptr::null_mut(), |pair| pair.base),
        };
        // SAFETY: the pair is mapped as a whole: two regions.
        unsafe { base.add(usize::from(region % 2) * tail::region(region).bytes as usize) }
    }

    /// One past the last byte of the active region.
    pub fn end(&self) -> *mut u8 {
        // SAFETY: within the mapped pair.
        unsafe { self.start().add(self.region_bytes()) }
    }

    /// The tail's side area, which a signal handler's events go to.
    pub fn side_area(&self) -> *mut u8 {
        // SAFETY: within the first page, which is mapped.
        unsafe { self.head.base.add(tail::SIDE.offset as usize) }
    }

    /// Sets the stream offset that the side area's events are being copied to; 0 for none.
    pub fn set_side_target(&self, offset: u64) {
        self.page.set_side_target(offset);
    }

    fn region_bytes(&self) -> usize {
        tail::region(self.active).bytes as usize
    }

    /// The offset in the stream of an address in the active region.
    pub fn offset_of(&self, position: *mut u8) -> u64 {
        self.base + (position as usize - self.start() as usize) as u64
    }

    /// Seals the active region at `position`, and activates one of at least `bytes` bytes. The sealed part is
    /// appended to the stream file, now or by the drainer. On failure nothing has changed.
    pub fn advance(&mut self, position: *mut u8, bytes: usize) -> Result<(), NoRoom> {
        let used = position as usize - self.start() as usize;
        let base = self.base + used as u64;
        self.page.set_part(self.active, self.base, base);
        let next = match self.stored_region(base, bytes) {
            Some(next) => next,
            None => self.store_and_get_region(base, bytes)?,
        };
        self.clear(next);
        self.page.activate(base, next);
        let same_pair = self.active / 2 == next / 2;
        self.flushes_of_pair = if same_pair { self.flushes_of_pair + 1 } else { 0 };
        (self.active, self.base) = (next, base);
        Ok(())
    }

    /// With a drainer: a region of the usual size with a stored part, else a larger one, else a smaller one.
    fn stored_region(&mut self, base: u64, bytes: usize) -> Option<u8> {
        if !self.is_drained() {
            return None;
        }
        let usual = self.next_pair(bytes).ok()?;
        let pairs = (usual..tail::PAIR_REGION_BYTES.len()).chain((0..usual).rev());
        for pair in pairs.filter(|pair| tail::PAIR_REGION_BYTES[*pair] >= bytes as u64) {
            let stored = self.page.stored();
            let other = if pair == usize::from(self.active / 2) { self.active ^ 1 } else { 2 * pair as u8 };
            let is_free = |region: &u8| {
                let (start, end) = self.page.part(*region);
                *region != self.active && (end <= stored || start == end)
            };
            if let Some(region) = [other, other ^ 1].into_iter().find(is_free)
                && self.prepare(base + tail::region(region).bytes, pair).is_ok()
            {
                return Some(region);
            }
        }
        None
    }

    /// Whether a drainer stores the regions that this thread seals.
    fn is_drained(&self) -> bool {
        self.drainer.is_some() && self.page.drainer() != 0
    }

    /// Makes this thread store its sealed regions from now on, so that they can be changed in the file.
    pub fn store_from_now_on(&mut self) {
        self.drainer = None;
        self.page.set_drainer(0);
    }

    /// Appends sealed regions until one is free; without a living drainer, all of them, and the active one,
    /// which ends at `base`. That one is not stored before there is another.
    fn store_and_get_region(&mut self, base: u64, bytes: usize) -> Result<u8, NoRoom> {
        let stream = self.stream.open()?;
        if self.is_drained() && self.drainer.is_some_and(DrainerName::is_alive) {
            while self.page.stored() < self.base {
                self.store_oldest(&stream)?;
                if let Some(next) = self.stored_region(base, bytes) {
                    return Ok(next);
                }
            }
        } else if self.drainer.is_some() {
            self.store_from_now_on();
        }
        let next = self.prepare_next_region(base, bytes)?;
        while self.page.stored() < base {
            self.store_oldest(&stream)?;
        }
        Ok(next)
    }

    /// Appends the sealed region that continues the stream file.
    fn store_oldest(&mut self, stream: &OwnedFd) -> Result<(), NoRoom> {
        let stored = self.page.stored();
        // The parts join `stored` and `base`, unless another process has written into the page.
        let (region, end) = self.page.sealed_from(stored).ok_or(NoRoom::Other)?;
        let bytes = (end - stored) as usize;
        let start = self.start_of(region);
        if end > self.allocated {
            let more = disk_file::allocate_ahead(stream, stored, AHEAD_BYTES);
            self.allocated = if more { stored + AHEAD_BYTES } else { u64::MAX };
        }
        // SAFETY: the region was sealed with that many bytes, and stays mapped.
        unsafe { write_all_at(stream, stored, start, bytes)? };
        self.page.move_stored(stored, end);
        if let Some(ring) = &mut self.ring {
            // SAFETY: as above.
            ring.appended(unsafe { core::slice::from_raw_parts(start, bytes) }, stored, stream);
        }
        Ok(())
    }

    /// Zeroes the content of a stored region.
    fn clear(&self, region: u8) {
        let (start, end) = self.page.part(region);
        let bytes = end.saturating_sub(start).min(tail::region(region).bytes);
        // SAFETY: the region is mapped, and its content is stored.
        unsafe { ptr::write_bytes(self.start_of(region), 0, bytes as usize) };
    }

    /// Reserves the room for the region that continues the stream at `base`: a smaller one than usual if
    /// there is no room for a large one, so that a nearly full disk is filled to its end.
    fn prepare_next_region(&mut self, base: u64, bytes: usize) -> Result<u8, NoRoom> {
        let mut pair = self.next_pair(bytes)?;
        loop {
            let other_of_same_pair = self.active ^ 1;
            let same_pair = pair == usize::from(self.active / 2);
            let next = if same_pair { other_of_same_pair } else { 2 * pair as u8 };
            match self.prepare(base + tail::region(next).bytes, pair) {
                Ok(()) => return Ok(next),
                Err(NoRoom::Descriptors) => return Err(NoRoom::Descriptors),
                Err(_) if pair > 0 && tail::PAIR_REGION_BYTES[pair - 1] >= bytes as u64 => pair -= 1,
                Err(why) => return Err(why),
            }
        }
    }

    /// Reserves the room for a stream of up to `end` bytes that continues in a region of `pair`.
    fn prepare(&mut self, end: u64, pair: usize) -> Result<(), NoRoom> {
        check_size_limit(end)?;
        self.map_pair(pair)?;
        self.charge(end)
    }

    /// The next pair in turn that holds `bytes`.
    fn next_pair(&self, bytes: usize) -> Result<usize, NoRoom> {
        let mut pair = usize::from(self.active / 2).min(MAX_USUAL_PAIR);
        if self.flushes_of_pair >= FLUSHES_BEFORE_NEXT_PAIR && pair < MAX_USUAL_PAIR {
            pair += 1;
        }
        while tail::PAIR_REGION_BYTES[pair] < bytes as u64 {
            pair += 1;
            if pair == tail::PAIR_REGION_BYTES.len() {
                return Err(NoRoom::Other);
            }
        }
        Ok(pair)
    }

    fn map_pair(&mut self, pair: usize) -> Result<(), NoRoom> {
        if pair > 0 && self.larger_pairs[pair - 1].is_none() {
            let region = tail::region(2 * pair as u8);
            let open = self.tail.open()?;
            reserve(&open, region.offset, 2 * region.bytes)?;
            let mapping = Mapping::new(&open, region.offset, 2 * region.bytes as usize)?;
            self.larger_pairs[pair - 1] = Some(mapping);
        }
        Ok(())
    }

    /// Charges the size cap for a stream of `bytes`. A ring is charged for its kept part.
    fn charge(&mut self, bytes: u64) -> Result<(), NoRoom> {
        let bytes = self.ring.as_ref().map_or(bytes, |ring| bytes.min(ring.largest_bytes()));
        if bytes > self.charged {
            limits::charge(bytes - self.charged)?;
            self.charged = bytes;
        }
        Ok(())
    }

    /// Overwrites earlier bytes of the stream, in the tail or the file.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) {
        let (in_region, length) = (offset.wrapping_sub(self.base), bytes.len());
        if offset >= self.base && in_region as usize + length <= self.region_bytes() {
            // SAFETY: within the active region.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start().add(in_region as usize), length) };
        } else if let Ok(stream) = self.stream.open() {
            // SAFETY: `bytes` has the given length. A failure leaves the older value.
            let _ = unsafe { write_all_at(&stream, offset, bytes.as_ptr(), length) };
        }
    }

    /// Appends the rest up to `position`. Returns the tail's paths, to be removed once the metadata marks the
    /// stream as finished; on failure the tail stays needed, and the stream unfinished.
    pub fn finish(mut self, position: *mut u8) -> Result<Vec<PathBuf>, NoRoom> {
        let size = self.offset_of(position);
        let stream = self.stream.open()?;
        self.store_all(&stream, size).or_else(|_| {
            self.give_back_idle_regions();
            self.store_all(&stream, size)
        })?;
        if self.allocated > size.max(AHEAD_BYTES) && self.allocated != u64::MAX {
            disk_file::give_back_ahead(&stream, size);
        }
        limits::refund(self.charged.saturating_sub(size));
        if let Some(ring) = self.ring {
            ring.unroll(&self.path, size)?;
        }
        Ok(std::iter::once(self.tail_path).chain(self.linked_tail).collect())
    }

    /// Gives the stream up: removes a tail that is elsewhere, and returns its budget. The caller removes the directory.
    pub fn discard(self) {
        limits::refund(self.charged);
        if let Some(linked) = &self.linked_tail {
            let _ = std::fs::remove_file(linked);
        }
    }

    /// Appends the sealed regions, and the active one up to the stream's end at `size`.
    fn store_all(&mut self, stream: &OwnedFd, size: u64) -> Result<(), NoRoom> {
        while self.page.stored() < self.base {
            self.store_oldest(stream)?;
        }
        // SAFETY: the active region is mapped and written up to there.
        unsafe { write_all_at(stream, self.base, self.start(), (size - self.base) as usize) }
    }

    /// The region beside the active one is as large: its blocks are room for the active one's events.
    fn give_back_idle_regions(&self) {
        let Ok(tail) = self.tail.open() else { return };
        let is_idle = |number: &u8| *number != self.active && self.page.part(*number).1 <= self.page.stored();
        for idle in (0..tail::REGIONS as u8).filter(is_idle) {
            let region = tail::region(idle);
            give_back(&tail, region.offset, region.bytes);
        }
    }
}
