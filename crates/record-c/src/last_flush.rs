//! The last flush of a thread: its events are removed if nothing follows.

use std::cell::Cell;

use taskscope_event::models::ovni;
use taskscope_record::enter;

/// The events of a thread's last flush: their address, and clocks.
#[derive(Clone, Copy, Default)]
pub(crate) struct Flush {
    /// Offset in the tail of its first event.
    pub start: usize,
    /// Clock of the first.
    pub begin: u64,
    /// Clock of the second.
    pub end: u64,
}

std::thread_local! {
    static LAST_FLUSH: Cell<Flush> = const { Cell::new(Flush { start: 0, begin: 0, end: 0 }) };
}

/// Keeps the events of a flush.
pub(crate) fn keep(flush: Flush) {
    LAST_FLUSH.set(flush);
}

/// Removes the events of a flush that no event of the thread followed. The original keeps them in a buffer
/// that the next flush would write.
pub(crate) fn take_back() {
    let Flush { start, begin, end } = LAST_FLUSH.take();
    if let Some(mut recorder) = enter() {
        recorder.take_back(start, (ovni::FLUSH_BEGIN, begin), (ovni::FLUSH_END, end));
    }
}
