//! A file that is opened for each use, with blocks reserved before they are written.
//!
//! No descriptor is held between uses: a program with thousands of threads keeps its descriptors, and one
//! that closes all descriptors (a daemon, a launcher) can never make us write into its own file with a reused
//! number. Opening costs 2 µs once per region of up to 256 KiB.

use core::ptr;
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Reason for missing room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoRoom {
    /// The file system is full, or a quota is reached.
    DiskFull,
    /// `RLIMIT_FSIZE` would be passed.
    FileSizeLimit,
    /// The configured size was reached.
    SizeCap,
    /// The address space is limited (`RLIMIT_AS`) or full.
    AddressSpace,
    /// The program holds all the descriptors it may have; a later try may succeed.
    Descriptors,
    /// The file cannot be created or extended for another reason, for instance because it was removed.
    Other,
}

/// A file that this process created.
pub struct DiskFile {
    path: CString,
    /// Identity of the file, so that another file of its name is never written.
    identity: Identity,
}

impl DiskFile {
    /// Creates `path`, which must not exist, and leaves it open for its first use.
    pub fn create(path: &Path) -> Result<(Self, OwnedFd), NoRoom> {
        Self::with_mode(path, 0o644)
    }

    /// Creates the file with these permissions at most; otherwise as [`create`](Self::create).
    pub fn with_mode(path: &Path, mode: libc::mode_t) -> Result<(Self, OwnedFd), NoRoom> {
        let path = CString::new(path.as_os_str().as_bytes()).map_err(|_| NoRoom::Other)?;
        let flags = libc::O_RDWR | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
        // SAFETY: `path` is a NUL-terminated string.
        let fd = unsafe { libc::open(path.as_ptr(), flags, mode) };
        let fd = owned(fd)?;
        let identity = identity(&fd)?;
        Ok((DiskFile { path, identity }, fd))
    }

    /// A file that another process created.
    pub fn from_other_process(path: CString, identity: Identity) -> Self {
        DiskFile { path, identity }
    }

    pub fn path(&self) -> &CStr {
        &self.path
    }

    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Opens it again; fails when it was removed or replaced.
    pub fn open(&self) -> Result<OwnedFd, NoRoom> {
        let flags = libc::O_RDWR | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: `path` is a NUL-terminated string.
        let fd = owned(unsafe { libc::open(self.path.as_ptr(), flags) })?;
        if identity(&fd)? == self.identity { Ok(fd) } else { Err(NoRoom::Other) }
    }
}

fn owned(fd: i32) -> Result<OwnedFd, NoRoom> {
    if fd < 0 {
        return Err(last_no_room());
    }
    // SAFETY: `fd` was just opened, with no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(above_standard(fd)) })
}

/// Closes a file that was written.
///
/// # Errors
/// Errors that a network file system reports only then.
pub fn close(file: OwnedFd) -> std::io::Result<()> {
    // SAFETY: the descriptor is given away.
    let closed = unsafe { libc::close(file.into_raw_fd()) };
    if closed == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Device, inode and time of birth: the inode's number alone is reused for the next file.
#[derive(Clone, Copy, PartialEq)]
pub struct Identity(pub [u64; 4]);

fn identity(file: &OwnedFd) -> Result<Identity, NoRoom> {
    let mut found = core::mem::MaybeUninit::<libc::statx>::zeroed();
    let wanted = libc::STATX_INO | libc::STATX_BTIME;
    let (fd, empty) = (file.as_raw_fd(), c"".as_ptr());
    // SAFETY: `found` is valid for writing, and all its bit patterns are valid.
    unsafe {
        if libc::statx(fd, empty, libc::AT_EMPTY_PATH, wanted, found.as_mut_ptr()) != 0 {
            return Err(last_no_room());
        }
        let found = found.assume_init();
        let device = u64::from(found.stx_dev_major) << 32 | u64::from(found.stx_dev_minor);
        let born = [found.stx_btime.tv_sec as u64, u64::from(found.stx_btime.tv_nsec)];
        Ok(Identity([device, found.stx_ino, born[0], born[1]]))
    }
}

/// A shared mapping, unmapped when dropped.
pub struct Mapping {
    pub base: *mut u8,
    bytes: usize,
}

impl Mapping {
    pub fn new(file: &OwnedFd, offset: u64, bytes: usize) -> Result<Self, NoRoom> {
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
        // SAFETY: mapped by `new`, and no pointer into it is left.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
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

fn last_no_room() -> NoRoom {
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::ENOSPC | libc::EDQUOT) => NoRoom::DiskFull,
        Some(libc::EFBIG) => NoRoom::FileSizeLimit,
        Some(libc::EMFILE | libc::ENFILE) => NoRoom::Descriptors,
        _ => NoRoom::Other,
    }
}

/// Whether a file may grow to `bytes`. Passing the limit would raise SIGXFSZ in the program.
pub fn check_size_limit(bytes: u64) -> Result<(), NoRoom> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for writing.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    let passed = known && limit.rlim_cur != libc::RLIM_INFINITY && bytes > limit.rlim_cur;
    if passed { Err(NoRoom::FileSizeLimit) } else { Ok(()) }
}

/// Allocates the blocks; new ones read as zeros. On failure, blocks of the range may have been freed, so none
/// of it may be in use.
pub fn reserve(file: &OwnedFd, offset: u64, bytes: u64) -> Result<(), NoRoom> {
    check_size_limit(offset + bytes)?;
    let reserved = allocate(file, offset, bytes);
    if reserved.is_err() {
        // Some file systems keep the partial reservation; other writers may need it.
        give_back(file, offset, bytes);
    }
    reserved
}

/// Reserves blocks after a file's end, which is unchanged. `false` if there are none, or if the file system
/// gains nothing: with them, ext4 takes a third less time for an append; others preallocate themselves, or
/// would only write zeros.
pub fn allocate_ahead(file: &OwnedFd, offset: u64, bytes: u64) -> bool {
    let mut found = core::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `found` is valid for writing and filled on success; plain system calls on our own file.
    unsafe {
        libc::fstatfs(file.as_raw_fd(), found.as_mut_ptr()) == 0
            && found.assume_init().f_type & 0xffff_ffff == libc::EXT4_SUPER_MAGIC
            && libc::fallocate(
                file.as_raw_fd(),
                libc::FALLOC_FL_KEEP_SIZE,
                offset as libc::off_t,
                bytes as libc::off_t,
            ) == 0
    }
}

/// Frees the blocks behind a file's end, which is at `size`.
pub fn give_back_ahead(file: &OwnedFd, size: u64) {
    // SAFETY: plain system call on our own file.
    unsafe { libc::ftruncate(file.as_raw_fd(), size as libc::off_t) };
}

/// Frees the blocks of an unused range; if the file system cannot, they stay.
pub fn give_back(file: &OwnedFd, offset: u64, bytes: u64) {
    let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    // SAFETY: plain system call on our own file.
    unsafe { libc::fallocate(file.as_raw_fd(), mode, offset as libc::off_t, bytes as libc::off_t) };
}

fn allocate(file: &OwnedFd, offset: u64, bytes: u64) -> Result<(), NoRoom> {
    loop {
        // SAFETY: plain system call on our own file.
        let done =
            unsafe { libc::fallocate(file.as_raw_fd(), 0, offset as libc::off_t, bytes as libc::off_t) };
        if done == 0 {
            return Ok(());
        }
        match std::io::Error::last_os_error().raw_os_error() {
            Some(libc::EINTR) => {}
            // If the call cannot reserve blocks, writing zeros allocates them.
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
pub unsafe fn write_all_at(
    file: &OwnedFd,
    mut offset: u64,
    mut from: *const u8,
    mut bytes: usize,
) -> Result<(), NoRoom> {
    check_size_limit(offset + bytes as u64)?;
    while bytes > 0 {
        // SAFETY: by contract.
        let wrote = unsafe { libc::pwrite(file.as_raw_fd(), from.cast(), bytes, offset as libc::off_t) };
        if wrote > 0 {
            // SAFETY: `wrote` is at most `bytes`.
            from = unsafe { from.add(wrote as usize) };
            offset += wrote as u64;
            bytes -= wrote as usize;
        } else if wrote == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::EINTR) {
            return Err(last_no_room());
        }
    }
    Ok(())
}

/// Bytes of a page.
pub fn page_bytes() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) as usize }
}
