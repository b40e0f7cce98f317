//! Objects and places of a thread's waits, places of its calls of MPI, and its locks: values that last until an event changes
//! them.

use super::bytes::push;
use crate::Event;
use taskscope_event::models::{messages, wait};

/// A thread's current waits and locks.
#[derive(Clone, Default)]
pub(super) struct Waits<'a> {
    /// The last entry of each kind, in the order of time: kinds of locks share the latest one.
    entries: Vec<(u32, Event<'a>)>,
    /// The last place of each function of MPI.
    calls: Vec<(u32, Event<'a>)>,
    /// Acquisitions of locks that are still held.
    held: Vec<Event<'a>>,
    /// The start of the thread, by which others name it.
    start: Option<Event<'a>>,
    /// The wait for another thread that is not over, with the holder that was found.
    open: Vec<Event<'a>>,
}

impl<'a> Waits<'a> {
    /// Takes an event of the thread.
    pub fn follow(&mut self, event: &Event<'a>) {
        let kind = match event.code {
            wait::WAIT_SITE => event.payload.first_chunk(),
            wait::WAIT_OBJECT => event.payload.get(12..).and_then(|rest| rest.first_chunk()),
            wait::ACQUIRED => return self.held.push(*event),
            wait::RELEASED => {
                let is_released = |held: &Event<'_>| held.payload.get(..8) == event.payload.get(..8);
                if let Some(position) = self.held.iter().rposition(is_released) {
                    self.held.remove(position);
                }
                return;
            }
            wait::THREAD_STARTS => {
                self.start = Some(*event);
                return;
            }
            wait::WAIT_BEGIN => {
                self.open.clear();
                return self.open.push(*event);
            }
            wait::FOUND_HELD => {
                self.open.truncate(1);
                return self.open.push(*event);
            }
            wait::WAIT_END => return self.open.clear(),
            messages::CALL_SITE => return self.follow_call_site(event),
            _ => return,
        };
        let Some(kind) = kind.map(|bytes| u32::from_le_bytes(*bytes)) else { return };
        // There are few kinds; those of damaged events are not more than these.
        if kind > wait::kind::TARGET {
            return;
        }
        self.entries.retain(|(known, _)| *known != kind);
        self.entries.push((kind, *event));
    }

    fn follow_call_site(&mut self, event: &Event<'a>) {
        let Some(function) = event.payload.first_chunk().map(|bytes| u32::from_le_bytes(*bytes)) else {
            return;
        };
        if (function as usize) < messages::FUNCTIONS.len() {
            self.calls.retain(|(known, _)| *known != function);
            self.calls.push((function, *event));
        }
    }

    /// Writes the waits and locks as events of the thread's own models.
    pub fn write(&self, clock_ns: i64, own: &mut Vec<u8>) {
        let entries = self.entries.iter().chain(&self.calls).map(|(_, event)| event);
        for event in self.start.iter().chain(&self.held).chain(entries).chain(&self.open) {
            push(own, clock_ns, event.code, event.is_jumbo, event.payload);
        }
    }
}
