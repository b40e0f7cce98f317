//! Events that come after recording has ended: the metadata of a finished stream has how many, and which was
//! the first.
//!
//! They may come from anywhere, a signal handler that interrupts an allocation too: what counting needs is
//! made ready when the stream is closed, and counting itself is system calls alone.

use core::ffi::CStr;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::ffi::CString;
use std::io::{Cursor, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;

use taskscope_event::Code;

use crate::metadata::{self, Json};
use crate::{clock, thread};

pub(crate) static COUNT: AtomicU64 = AtomicU64::new(0);
/// Where it is told.
static PLACE: Mutex<Option<Place>> = Mutex::new(None);

const COUNT_KEY: &str = "late_events";
const FIRST_KEY: &str = "late_first";
/// Room for the words of the first event.
const FIRST_CHARACTERS: usize = 48;

struct Place {
    stream_json: CString,
    count_offset: u64,
    first_offset: u64,
    /// When the stream was closed, by the recorder's clock.
    closed_ns: u64,
}

/// What a stream's metadata says of late events until there are any: members of a fixed size.
pub(crate) fn members() -> [(String, Json); 2] {
    [
        (COUNT_KEY.to_owned(), metadata::loss_member(COUNT.load(Relaxed))),
        (FIRST_KEY.to_owned(), Json::string(&" ".repeat(FIRST_CHARACTERS))),
    ]
}

/// Keeps the first stream that was closed.
pub(crate) fn offer(directory: &Path) {
    if let Ok(mut place) = PLACE.try_lock()
        && place.is_none()
    {
        *place = find(&directory.join("stream.json"));
    }
}

fn find(stream_json: &Path) -> Option<Place> {
    let text = std::fs::read_to_string(stream_json).ok()?;
    // Some serializers put a blank behind the colon.
    let value = |key: &str| {
        let key = format!("\"{key}\":");
        let at = text.rfind(&key)? + key.len();
        Some((
            at,
            text.as_bytes()[at..].iter().position(|byte| *byte == b'"').map_or(at, |more| at + more + 1),
        ))
    };
    Some(Place {
        stream_json: CString::new(stream_json.as_os_str().as_bytes()).ok()?,
        count_offset: value(COUNT_KEY)?.0 as u64,
        first_offset: value(FIRST_KEY)?.1 as u64,
        closed_ns: clock::now(),
    })
}

/// Counts one more. The metadata has the number at its powers of two, since each is some system calls.
#[cold]
pub(crate) fn count(code: Code) {
    let count = COUNT.fetch_add(1, Relaxed) + 1;
    if !count.is_power_of_two() || thread::was_forked() {
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
        let _ = write!(words, "{}{}{} {} {since}", letters[0], letters[1], letters[2], thread::os_tid());
        overwrite(&place.stream_json, place.first_offset, words.get_ref());
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Writes over a part of a file, without allocating. What has taken the file's place meanwhile, a link for instance, stays.
fn overwrite(path: &CStr, offset: u64, bytes: &[u8]) {
    let flags = libc::O_WRONLY | libc::O_CLOEXEC | libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let mut about = core::mem::MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: a terminated path, a buffer of its length, and `about`, all of whose bit patterns are valid.
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
