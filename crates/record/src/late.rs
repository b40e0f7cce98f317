//! Events that come after recording has ended: they are counted in the metadata of a finished stream.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::path::PathBuf;
use std::sync::Mutex;

use crate::metadata;
use crate::thread;

pub(crate) static COUNT: AtomicU64 = AtomicU64::new(0);
/// Where it is counted if the thread that came late has no stream.
static PLACE: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Keeps the first stream that was closed.
pub(crate) fn offer(directory: &std::path::Path) {
    if let Ok(mut place) = PLACE.try_lock() {
        place.get_or_insert_with(|| directory.to_owned());
    }
}

/// Counts one more. The metadata has the number at its powers of two, since each is some system calls.
#[cold]
pub(crate) fn count() {
    let count = COUNT.fetch_add(1, Relaxed) + 1;
    if !count.is_power_of_two() || thread::was_forked() {
        return;
    }
    if let Ok(place) = PLACE.try_lock()
        && let Some(directory) = place.as_ref()
    {
        metadata::store_count(directory, metadata::LATE_KEY, count);
    }
}
