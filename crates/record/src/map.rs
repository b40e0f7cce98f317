//! A file that grows by reserved, populated, mapped windows.
//!
//! Blocks are reserved before they are mapped: storing into a sparse file on a full disk would be a
//! SIGBUS in the program. Pages are populated here, off the event path.

use core::ptr;
use std::ffi::CString;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

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

/// The window of a file that is mapped at present.
pub struct MappedFile {
    file: OwnedFd,
    base: *mut u8,
    /// File offset of `base`.
    offset: u64,
    bytes: usize,
}

impl MappedFile {
    /// Creates `path`, which must not exist, and maps its first `bytes` bytes (whole pages).
    pub fn create(path: &Path, bytes: usize) -> Result<Self, NoRoom> {
        use std::os::unix::ffi::OsStrExt;
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| NoRoom::Other)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: `path` is a NUL-terminated string.
        let fd = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
        if fd < 0 {
            return Err(NoRoom::Other);
        }
        // SAFETY: `fd` was just opened and belongs to nobody else.
        let file = unsafe { OwnedFd::from_raw_fd(above_standard(fd)) };
        let base = map_window(&file, 0, bytes)?;
        Ok(MappedFile { file, base, offset: 0, bytes })
    }

    /// The first mapped byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }

    /// One past the last mapped byte.
    pub fn end(&self) -> *mut u8 {
        // SAFETY: the window is `bytes` long.
        unsafe { self.base.add(self.bytes) }
    }

    /// Bytes of the window.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The file offset of an address in the window.
    pub fn offset_of(&self, position: *mut u8) -> u64 {
        self.offset + (position as usize - self.base as usize) as u64
    }

    /// Maps a window of at least `bytes` bytes that holds `position` and what follows, and returns
    /// where `position` now lies. The old window is unmapped. On failure nothing has changed.
    pub fn advance(&mut self, position: *mut u8, bytes: usize) -> Result<*mut u8, NoRoom> {
        let page = page_bytes() as u64;
        let at = self.offset_of(position);
        let offset = at / page * page;
        let bytes = (bytes as u64 + (at - offset)).next_multiple_of(page) as usize;
        let base = map_window(&self.file, offset, bytes)?;
        // SAFETY: the old window was mapped by us, and nothing points into it but `position`.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
        (self.base, self.offset, self.bytes) = (base, offset, bytes);
        // SAFETY: `at - offset` is below a page, and the window is at least a page.
        Ok(unsafe { base.add((at - offset) as usize) })
    }

    /// Overwrites bytes that were written earlier, wherever they lie now.
    pub fn write_at(&self, offset: u64, bytes: &[u8]) {
        // SAFETY: plain system call on our own file; shared mappings see the change.
        unsafe {
            libc::pwrite(self.file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), offset as libc::off_t)
        };
    }

    /// Unmaps, and cuts the file at `position`. Returns the file's size.
    pub fn finish(self, position: *mut u8) -> u64 {
        let size = self.offset_of(position);
        // SAFETY: the window was mapped by us and is not used after this.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
        // SAFETY: `file` is open. A failure leaves zeros at the end, which readers understand.
        unsafe { libc::ftruncate(self.file.as_raw_fd(), size as libc::off_t) };
        size
    }
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

/// Bytes of a page.
pub fn page_bytes() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}

fn map_window(file: &OwnedFd, offset: u64, bytes: usize) -> Result<*mut u8, NoRoom> {
    reserve(file, offset, bytes)?;
    // SAFETY: a new shared mapping of a file that we own, at an address of the kernel's choice.
    let base = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_SHARED,
            file.as_raw_fd(),
            offset as libc::off_t,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(NoRoom::AddressSpace);
    }
    // Write faults now rather than on the event path; a child must not inherit the window.
    // SAFETY: the range was just mapped. Failure (an old kernel) only costs time later.
    unsafe {
        libc::madvise(base, bytes, libc::MADV_DONTFORK);
        libc::madvise(base, bytes, libc::MADV_POPULATE_WRITE);
    }
    Ok(base.cast())
}

/// Makes sure that the blocks exist.
fn reserve(file: &OwnedFd, offset: u64, bytes: usize) -> Result<(), NoRoom> {
    let end = offset + bytes as u64;
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing. Passing the limit would raise SIGXFSZ in the program.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if known && limit.rlim_cur != libc::RLIM_INFINITY && end > limit.rlim_cur {
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
            Some(libc::EINTR) => continue,
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return write_zeros(file, offset, bytes),
            Some(libc::ENOSPC | libc::EDQUOT) => return Err(NoRoom::DiskFull),
            Some(libc::EFBIG) => return Err(NoRoom::FileSizeLimit),
            _ => return Err(NoRoom::Other),
        }
    }
}

/// Where blocks cannot be reserved by a call, writing zeros allocates them.
fn write_zeros(file: &OwnedFd, offset: u64, bytes: usize) -> Result<(), NoRoom> {
    static ZEROS: [u8; 65536] = [0; 65536];
    // The file may already reach into the window; only what lies behind its end is new.
    // SAFETY: plain system calls on our own file; `ZEROS` is long enough for every chunk.
    unsafe {
        let size = libc::lseek(file.as_raw_fd(), 0, libc::SEEK_END).max(0) as u64;
        let mut at = size.max(offset);
        let end = offset + bytes as u64;
        while at < end {
            let chunk = ((end - at) as usize).min(ZEROS.len());
            let wrote = libc::pwrite(file.as_raw_fd(), ZEROS.as_ptr().cast(), chunk, at as libc::off_t);
            if wrote <= 0 {
                match std::io::Error::last_os_error().raw_os_error() {
                    Some(libc::EINTR) => continue,
                    Some(libc::ENOSPC | libc::EDQUOT) => return Err(NoRoom::DiskFull),
                    _ => return Err(NoRoom::Other),
                }
            }
            at += wrote as u64;
        }
    }
    Ok(())
}
