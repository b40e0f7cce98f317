//! Memory that is wiped in a forked child: the only way to detect a fork at no cost on the event path, and
//! that `_Fork` and a raw `clone` cannot bypass.
//!
//! A child made by `vfork` shares its parent's memory, which is not wiped then: until it calls `exec`
//! it is the parent.

use core::ptr;

use crate::disk_file::page_bytes;

/// Zeroed pages that a forked child finds zeroed again.
pub fn wiped_on_fork(bytes: usize) -> Option<*mut u8> {
    let bytes = bytes.next_multiple_of(page_bytes());
    // SAFETY: a new private anonymous mapping.
    unsafe {
        let base = libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        if base == libc::MAP_FAILED {
            return None;
        }
        if libc::madvise(base, bytes, libc::MADV_WIPEONFORK) != 0 {
            // Before Linux 4.14 a child is not detectable: do not record.
            libc::munmap(base, bytes);
            return None;
        }
        Some(base.cast())
    }
}
