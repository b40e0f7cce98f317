//! Events that come after recording has ended: the metadata of a finished stream has how many, and which was
//! the first.
//!
//! They may come from any code, even a signal handler that interrupts an allocation: the data for counting is
//! prepared when the stream is closed, and counting itself is system calls alone.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Mutex;

use taskscope_event::layout;

use crate::clock;
use crate::metadata::{self, Json};

pub(crate) static COUNT: AtomicU64 = AtomicU64::new(0);
/// Place of the count in the metadata.
pub(crate) static PLACE: Mutex<Option<CountPosition>> = Mutex::new(None);

const COUNT_KEY: &str = "late_events";
const FIRST_KEY: &str = "late_first";
/// Room for the words of the first event.
pub(crate) const FIRST_CHARACTERS: usize = 48;

pub(crate) struct CountPosition {
    pub(crate) stream_json: CString,
    pub(crate) count_offset: u64,
    pub(crate) first_offset: u64,
    /// When the stream was closed, by the recorder's clock.
    pub(crate) closed_ns: u64,
}

/// Metadata members for late events while there are none: members of a fixed size.
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
        *place = find(&directory.join(layout::STREAM_METADATA));
    }
}

fn find(stream_json: &Path) -> Option<CountPosition> {
    let text = std::fs::read_to_string(stream_json).ok()?;
    // Some serializers put a blank after the colon.
    let value = |key: &str| {
        let key = format!("\"{key}\":");
        let at = text.rfind(&key)? + key.len();
        Some((
            at,
            text.as_bytes()[at..].iter().position(|byte| *byte == b'"').map_or(at, |more| at + more + 1),
        ))
    };
    Some(CountPosition {
        stream_json: CString::new(stream_json.as_os_str().as_bytes()).ok()?,
        count_offset: value(COUNT_KEY)?.0 as u64,
        first_offset: value(FIRST_KEY)?.1 as u64,
        closed_ns: clock::now(),
    })
}
