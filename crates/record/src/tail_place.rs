//! Place of tails: beside their streams, unless the file system there cannot be mapped safely.
//!
//! A mapped page of a network file system can vanish with its server (SIGBUS), and on file systems that
//! cannot reserve blocks a full disk shows only when the page is written back (SIGBUS again). There, the tail
//! is in memory (`/dev/shm`), with a symbolic link of its name beside the stream: it still survives the
//! process, and readers on the same host find it.

use crate::disk_file::{DiskFile, NoRoom};
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The environment variable that names a directory for all tails, to be on the host itself.
pub const TAIL_DIRECTORY_VARIABLE: &str = "TASKSCOPE_TAIL_DIR";

/// The environment variable that, set to 1, makes tails in memory readable by other users.
pub const SHARE_VARIABLE: &str = "TASKSCOPE_SHARE";

/// Prefix and suffix of a linked tail's name; the writing process's id follows the prefix.
pub(crate) const PREFIX: &str = "taskscope-";
pub(crate) const SUFFIX: &str = ".tail";

/// File systems that are remote, or cannot reserve the blocks of a file (statfs(2) magic numbers).
const UNSAFE_TO_MAP: [i64; 13] = [
    0x6969,      // NFS
    0x517b,      // SMB
    0xff53_4d42, // CIFS
    0xfe53_4d42, // SMB2
    0x6573_5546, // FUSE
    0x2fc1_2fc1, // ZFS
    0x0bd0_0bd0, // Lustre
    0x4750_4653, // GPFS
    0x1983_0326, // BeeGFS
    0x00c3_6400, // Ceph
    0x0102_1997, // 9P
    0x5346_414f, // AFS
    0x9123_683e, // btrfs: copy on write needs new blocks for every page written back
];

/// The directory for the tails of streams in `directory`, if they must be elsewhere; `None` if they may be
/// there.
pub fn place_for(directory: &Path) -> Option<PathBuf> {
    match std::env::var_os(TAIL_DIRECTORY_VARIABLE) {
        Some(chosen) if !chosen.is_empty() => std::path::absolute(chosen).ok(),
        _ => is_unsafe_to_map(directory).then(|| PathBuf::from("/dev/shm")),
    }
}

/// Creates the file of a tail: `linked`, which is in a directory of all users, readable only by its owner
/// unless [`SHARE_VARIABLE`] is set; else `tail_path`, readable as the whole trace is.
pub(crate) fn create(tail_path: &Path, linked: Option<&Path>) -> Result<(DiskFile, OwnedFd), NoRoom> {
    let Some(linked) = linked else { return DiskFile::create(tail_path) };
    let is_shared = std::env::var_os(SHARE_VARIABLE).is_some_and(|value| value == "1");
    DiskFile::with_mode(linked, if is_shared { 0o644 } else { 0o600 })
}

/// Links `tail_path` to a new place if the tail must be elsewhere; `None` if it may be there.
pub(crate) fn link(tail_path: &Path) -> Option<PathBuf> {
    let place = place_for(tail_path.parent()?)?;
    static COUNT: AtomicU32 = AtomicU32::new(0);
    for _ in 0..100 {
        let number = COUNT.fetch_add(1, Relaxed);
        let name = format!("{PREFIX}{}-{number}-{}{SUFFIX}", std::process::id(), crate::clock::kernel_ns());
        let target = place.join(name);
        if target.symlink_metadata().is_err() {
            return std::os::unix::fs::symlink(&target, tail_path).is_ok().then_some(target);
        }
    }
    None
}

fn is_unsafe_to_map(directory: &Path) -> bool {
    let Ok(path) = CString::new(directory.as_os_str().as_bytes()) else { return false };
    let mut found = core::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: `path` is NUL-terminated, `found` is valid for writing and filled on success.
    unsafe {
        libc::statfs(path.as_ptr(), found.as_mut_ptr()) == 0
            && UNSAFE_TO_MAP.contains(&(found.assume_init().f_type & 0xffff_ffff))
    }
}
