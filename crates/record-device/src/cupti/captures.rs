//! Streams that are being captured into a graph: their calls execute nothing.
//!
//! A capture begins on one stream. Another stream joins when it waits for an event that was recorded on
//! a stream of the capture; the end on the first stream ends it for all.

use crate::hub::lock;
use rustc_hash::FxHashMap;
use std::sync::Mutex;

/// A stream's handle, and the thread that it is the default stream of, 0 for others.
pub(super) type Stream = (usize, u32);

/// The captures of a process.
pub(super) struct Captures(Mutex<Option<State>>);

#[derive(Default)]
struct State {
    /// Streams by the stream on which their capture began.
    streams: FxHashMap<Stream, Stream>,
    /// Events of captured work.
    events: FxHashMap<usize, Stream>,
}

impl Captures {
    pub const fn new() -> Self {
        Captures(Mutex::new(None))
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(lock(&self.0).get_or_insert_default())
    }

    pub fn has(&self, stream: Stream) -> bool {
        self.with(|state| state.streams.contains_key(&stream))
    }

    pub fn begin(&self, stream: Stream) {
        self.with(|state| state.streams.insert(stream, stream));
    }

    pub fn end(&self, stream: Stream) {
        self.with(|state| {
            state.streams.retain(|_, first| *first != stream);
            state.events.retain(|_, first| *first != stream);
        });
    }

    /// Makes the event stand for the submissions to the stream so far.
    pub fn recorded(&self, event: usize, stream: Stream) {
        self.with(|state| {
            match state.streams.get(&stream) {
                Some(first) => state.events.insert(event, *first),
                None => state.events.remove(&event),
            };
        });
    }

    /// The stream waits for the event.
    pub fn waits(&self, stream: Stream, event: usize) {
        self.with(|state| {
            if let Some(first) = state.events.get(&event).copied() {
                state.streams.entry(stream).or_insert(first);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_join_by_events_and_leave_together() {
        let captures = Captures::new();
        let [first, second, third, other] = [1, 2, 3, 4].map(|stream| (stream, 0));
        captures.begin(first);
        captures.recorded(0xe1, first);
        captures.recorded(0xe9, other);
        captures.waits(second, 0xe1);
        captures.recorded(0xe2, second);
        captures.waits(third, 0xe2);
        captures.waits((2, 77), 0xe9);
        assert_eq!(
            [first, second, third, other, (2, 77)].map(|s| captures.has(s)),
            [true, true, true, false, false]
        );
        captures.end(first);
        assert!([first, second, third].into_iter().all(|stream| !captures.has(stream)));
        // Its events have no meaning any more.
        captures.waits(other, 0xe2);
        assert!(!captures.has(other));
    }

    #[test]
    fn an_event_that_is_recorded_again_outside_joins_nothing() {
        let captures = Captures::new();
        captures.begin((1, 0));
        captures.recorded(7, (1, 0));
        captures.recorded(7, (5, 0));
        captures.waits((6, 0), 7);
        assert!(!captures.has((6, 0)));
    }
}
