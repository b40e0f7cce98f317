//! A stream file whose newest part is a small mapped file, so that it survives the program.
//!
//! ```text
//!    events ──▶ active region of NAME.tail (mapped, touched before, in cache)
//!                   │ full: append to NAME.obs with one write, whose blocks were reserved before
//!                   ▼       activate the other region with one store, clear this one
//!               NAME.obs
//! ```
//! Storing into fresh pages of a mapped file costs four times as much as appending from a buffer
//! that stays in the cache (0.84 against 0.20 ns a byte on ext4), and stalls longer. The blocks of
//! the next append are reserved before a region becomes active: what was accepted can be stored
//! even if the disk is full by then. The form on disk is described in [`taskscope_event::tail`].

use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering::Release};
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use taskscope_event::tail;

/// Why there is no more room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The file system is full, or a quota is reached.
    DiskFull,
    /// `RLIMIT_FSIZE` would be passed.
    FileSizeLimit,
    /// The address space is limited (`RLIMIT_AS`) or full.
    AddressSpace,
    /// The file cannot be created or extended for another reason.
    Other,
}

/// A region serves this often before a larger one takes over: short streams stay small.
const FLUSHES_BEFORE_NEXT_PAIR: u32 = 4;
/// The pair that long streams use; larger ones serve single large events.
const LARGEST_USUAL_PAIR: usize = 2;

/// A stream file with its tail.
pub struct TailedFile {
    stream: OwnedFd,
    tail: OwnedFd,
    tail_path: PathBuf,
    /// The tail's header.
    header: Mapping,
    /// The pairs of regions that have been used so far.
    pairs: [Option<Mapping>; tail::PAIR_REGION_BYTES.len()],
    active: u8,
    /// Bytes of the stream file that are complete: the active region continues there.
    base: u64,
    flushes_of_pair: u32,
}

impl TailedFile {
    /// Creates `path`, which must not exist, and its tail.
    pub fn create(path: &Path) -> Result<Self, NoRoom> {
        let tail_path = path.with_extension("tail");
        let (stream, tail) = (create(path)?, create(&tail_path)?);
        // A file whose tail cannot be made is empty, and readers understand that.
        let header_bytes = tail::FIRST_REGION_OFFSET as usize;
        reserve(&tail, 0, header_bytes as u64)?;
        let header = Mapping::new(&tail, 0, header_bytes)?;
        let mut file = TailedFile {
            stream,
            tail,
            tail_path,
            header,
            pairs: [const { None }; 4],
            active: 0,
            base: 0,
            flushes_of_pair: 0,
        };
        file.map_pair(0)?;
        reserve(&file.stream, 0, tail::PAIR_REGION_BYTES[0])?;
        Ok(file)
    }

    /// First byte of the active region.
    pub fn start(&self) -> *mut u8 {
        let pair = self.pairs[usize::from(self.active / 2)].as_ref();
        let base = pair.map_or(ptr::null_mut(), |pair| pair.base);
        // SAFETY: the pair is mapped as a whole: two regions.
        unsafe { base.add(usize::from(self.active % 2) * self.region_bytes()) }
    }

    /// One past the last byte of the active region.
    pub fn end(&self) -> *mut u8 {
        // SAFETY: within the mapped pair.
        unsafe { self.start().add(self.region_bytes()) }
    }

    fn region_bytes(&self) -> usize {
        tail::region(self.active).bytes as usize
    }

    /// The offset in the stream of an address in the active region.
    pub fn offset_of(&self, position: *mut u8) -> u64 {
        self.base + (position as usize - self.start() as usize) as u64
    }

    /// Appends the active region up to `position` to the stream file, and activates a region of at
    /// least `bytes` bytes. On failure nothing has changed.
    pub fn advance(&mut self, position: *mut u8, bytes: usize) -> Result<(), NoRoom> {
        let next = self.next_region(bytes)?;
        let used = position as usize - self.start() as usize;
        let base = self.base + used as u64;
        self.map_pair(usize::from(next / 2))?;
        reserve(&self.stream, base, tail::region(next).bytes)?;
        // SAFETY: the active region is mapped, and `used` bytes of it are ours.
        unsafe { write_all_at(&self.stream, self.base, self.start(), used)? };
        let old = self.start();
        // SAFETY: the header's first 8 bytes are mapped, aligned, and written by this thread alone.
        unsafe { AtomicU64::from_ptr(self.header.base.cast()) }
            .store(tail::header(base, next).to_le(), Release);
        // The region just left is cleared for its next turn.
        // SAFETY: as above.
        unsafe { ptr::write_bytes(old, 0, used) };
        let same_pair = self.active / 2 == next / 2;
        self.flushes_of_pair = if same_pair { self.flushes_of_pair + 1 } else { 0 };
        (self.active, self.base) = (next, base);
        Ok(())
    }

    fn next_region(&self, bytes: usize) -> Result<u8, NoRoom> {
        let mut pair = usize::from(self.active / 2).min(LARGEST_USUAL_PAIR);
        if self.flushes_of_pair >= FLUSHES_BEFORE_NEXT_PAIR && pair < LARGEST_USUAL_PAIR {
            pair += 1;
        }
        while tail::PAIR_REGION_BYTES[pair] < bytes as u64 {
            pair += 1;
            if pair == tail::PAIR_REGION_BYTES.len() {
                return Err(NoRoom::Other);
            }
        }
        let other_of_same_pair = self.active ^ 1;
        Ok(if pair == usize::from(self.active / 2) { other_of_same_pair } else { 2 * pair as u8 })
    }

    fn map_pair(&mut self, pair: usize) -> Result<(), NoRoom> {
        if self.pairs[pair].is_none() {
            let region = tail::region(2 * pair as u8);
            reserve(&self.tail, region.offset, 2 * region.bytes)?;
            self.pairs[pair] = Some(Mapping::new(&self.tail, region.offset, 2 * region.bytes as usize)?);
        }
        Ok(())
    }

    /// Overwrites bytes of the stream that were written earlier, wherever they lie now.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) {
        let (in_region, length) = (offset.wrapping_sub(self.base), bytes.len());
        if offset >= self.base && in_region as usize + length <= self.region_bytes() {
            // SAFETY: within the active region.
            unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.start().add(in_region as usize), length) };
        } else {
            // SAFETY: `bytes` is as long as told. A failure leaves the older value.
            let _ = unsafe { write_all_at(&self.stream, offset, bytes.as_ptr(), length) };
        }
    }

    /// Appends what is left up to `position`, cuts the file there, removes the tail. Returns the
    /// stream's size; on failure the tail stays, and the stream unfinished.
    pub fn finish(self, position: *mut u8) -> Result<u64, NoRoom> {
        let size = self.offset_of(position);
        // SAFETY: the active region is mapped and written up to `position`; `stream` is open.
        unsafe {
            write_all_at(&self.stream, self.base, self.start(), (size - self.base) as usize)?;
            libc::ftruncate(self.stream.as_raw_fd(), size as libc::off_t);
        }
        Ok(size)
    }

    /// The tail's path, to be removed once the metadata says that the stream is finished.
    pub fn tail_path(&self) -> &Path {
        &self.tail_path
    }
}

/// A shared mapping, unmapped when dropped.
struct Mapping {
    base: *mut u8,
    bytes: usize,
}

impl Mapping {
    fn new(file: &OwnedFd, offset: u64, bytes: usize) -> Result<Self, NoRoom> {
        let (protection, kind) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping of our own file, at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(ptr::null_mut(), bytes, protection, kind, file.as_raw_fd(), offset as libc::off_t)
        };
        if base == libc::MAP_FAILED {
            return Err(NoRoom::AddressSpace);
        }
        // A child must not inherit it; and page faults are to happen now, not on the event path.
        // SAFETY: the range was just mapped. Failure (an old kernel) only costs time later.
        unsafe {
            libc::madvise(base, bytes, libc::MADV_DONTFORK);
            libc::madvise(base, bytes, libc::MADV_POPULATE_WRITE);
        }
        Ok(Mapping { base: base.cast(), bytes })
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new`, and nothing points into it any more.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Bytes of a page.
pub fn page_bytes() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

fn create(path: &Path) -> Result<OwnedFd, NoRoom> {
    let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| NoRoom::Other)?;
    let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: `path` is a NUL-terminated string.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
    if fd < 0 {
        return Err(last_no_room());
    }
    // SAFETY: `fd` was just opened and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(above_standard(fd)) })
}

/// Programs may expect to find 0, 1, 2 free or use them blindly: keep our files out of there.
fn above_standard(fd: i32) -> i32 {
    if fd > 2 {
        return fd;
    }
    // SAFETY: duplicates a descriptor that we own, and closes the original.
    unsafe {
        let moved = libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, 3);
        if moved < 0 {
            return fd;
        }
        libc::close(fd);
        moved
    }
}

fn last_no_room() -> NoRoom {
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => NoRoom::DiskFull,
        Some(libc::EFBIG) => NoRoom::FileSizeLimit,
        _ => NoRoom::Other,
    }
}

/// Makes sure that the blocks exist; new ones read as zeros.
fn reserve(file: &OwnedFd, offset: u64, bytes: u64) -> Result<(), NoRoom> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing. Passing the limit would raise SIGXFSZ in the program.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && offset + bytes > limit.rlim_cur {
        return Err(NoRoom::FileSizeLimit);
    }
    loop {
        // SAFETY: plain system call on our own file.
        let done =
            unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as libc::off_t, bytes as libc::off_t) };
        if done == 0 {
            return Ok(());
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            // Where blocks cannot be reserved by a call, writing zeros allocates them.
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return write_zeros(file, offset, bytes),
            _ => return Err(last_no_room()),
        }
    }
}

fn write_zeros(file: &OwnedFd, offset: u64, bytes: u64) -> Result<(), NoRoom> {
    static ZEROS: [u8; 65536] = [0; 65536];
    let mut at = offset;
    while at < offset + bytes {
        let chunk = ((offset + bytes - at) as usize).min(ZEROS.len());
        // SAFETY: `ZEROS` is long enough.
        unsafe { write_all_at(file, at, ZEROS.as_ptr(), chunk)? };
        at += chunk as u64;
    }
    Ok(())
}

/// # Safety
/// `bytes` bytes at `from` are readable.
unsafe fn write_all_at(
    file: &OwnedFd,
    mut offset: u64,
    mut from: *const u8,
    mut bytes: usize,
) -> Result<(), NoRoom> {
    while bytes > 0 {
        // SAFETY: by contract.
        let wrote = unsafe { libc::pwrite(file.as_raw_fd(), from.cast(), bytes, offset as libc::off_t) };
        if wrote > 0 {
            // SAFETY: `wrote` is at most `bytes`.
            from = unsafe { from.add(wrote as usize) };
            offset += wrote as u64;
            bytes -= wrote as usize;
        } else if std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return Err(last_no_room());
        }
    }
    Ok(())
}
