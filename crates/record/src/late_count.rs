//! Counts events that come after recording has ended, by system calls alone.

use core::ffi::CStr;
use core::sync::atomic::Ordering::Relaxed;
use std::io::{Cursor, Write};

use taskscope_event::Code;

use crate::late_events::{COUNT, FIRST_CHARACTERS, PLACE};
use crate::os_thread::os_tid;
use crate::{clock, metadata, process};

/// Counts one more. The metadata has the number at its powers of two, since each is some system calls.
#[cold]
pub(crate) fn count(code: Code) {
    let count = COUNT.fetch_add(1, Relaxed) + 1;
    if !count.is_power_of_two() || process::was_forked() {
        return;
    }
    let Ok(place) = PLACE.try_lock() else { return };
    let Some(place) = place.as_ref() else { return };
    // SAFETY: a thread's own error number.
    let errno = unsafe { *libc::__errno_location() };
    let mut digits = [b' '; metadata::LOSS_DIGITS];
    let _ = write!(&mut digits[..], "{count:>width$}", width = metadata::LOSS_DIGITS);
    overwrite(&place.stream_json, place.count_offset, &digits);
    if count == 1 {
        let mut words = Cursor::new([b' '; FIRST_CHARACTERS]);
        let since = clock::now().saturating_sub(place.closed_ns);
        let letters = code.0.map(|letter| if letter.is_ascii_graphic() { char::from(letter) } else { '?' });
        let _ = write!(words, "{}{}{} {} {since}", letters[0], letters[1], letters[2], os_tid());
        overwrite(&place.stream_json, place.first_offset, words.get_ref());
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Overwrites a part of a file, without allocating. A replacement of the file, for instance a link, is left
/// untouched.
fn overwrite(path: &CStr, offset: u64, bytes: &[u8]) {
    let flags = libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut about = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a terminated path, a buffer of its length, and `about`, which may have any bit pattern.
    unsafe {
        let file = libc::open(path.as_ptr(), flags);
        if file < 0 {
            return;
        }
        let is_known = libc::fstat(file, about.as_mut_ptr()) == 0;
        let about = about.assume_init();
        if is_known && about.st_mode & libc::S_IFMT == libc::S_IFREG && about.st_nlink == 1 {
            libc::pwrite(file, bytes.as_ptr().cast(), bytes.len(), offset as libc::off_t);
        }
        libc::close(file);
    }
}
