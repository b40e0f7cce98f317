//! Objects and places of a thread's waits, places of its calls of MPI, and its locks: values that last until an event changes
//! them.
//!
//! A hold has the place that the last entry for its lock had when it began, so that entry is written before it.

use super::bytes::{first_u32, push};
use crate::Event;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use taskscope_event::models::{messages, samples, wait};

/// The number of a lock in its process.
pub(super) type Lock = [u8; 8];

/// A hold of a lock.
#[derive(Clone, Copy)]
pub(super) struct Hold<'a> {
    /// The entry with its place.
    entry: Option<Event<'a>>,
    acquired: Event<'a>,
    /// The clock of its end; `i64::MAX` while it lasts.
    pub released_ns: i64,
}

impl Hold<'_> {
    /// Writes its begin.
    pub fn begin(&self, clock_ns: i64, own: &mut Vec<u8>) {
        for event in self.entry.iter().chain([&self.acquired]) {
            push(own, clock_ns, event.code, event.is_jumbo, event.payload);
        }
    }

    /// Writes its end.
    pub fn end(&self, clock_ns: i64, own: &mut Vec<u8>) {
        push(own, clock_ns, wait::RELEASED, self.acquired.is_jumbo, self.acquired.payload);
    }
}

/// A thread's current waits and locks.
#[derive(Clone, Default)]
pub(super) struct Waits<'a> {
    /// The last entry of each kind, in the order of time: kinds of locks share the latest one.
    entries: Vec<(u32, Event<'a>)>,
    /// The last place of each function of MPI.
    calls: Vec<(u32, Event<'a>)>,
    /// The last path of each called site.
    call_paths: BTreeMap<u32, Event<'a>>,
    /// Locks that are still held.
    held: Vec<Hold<'a>>,
    /// The last finished hold of each lock.
    released: FxHashMap<Lock, Hold<'a>>,
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
            wait::ACQUIRED => {
                let is_own = |entry: &&Event<'_>| {
                    entry.code == wait::WAIT_OBJECT
                        && entry.payload.get(..8) == event.payload.get(..8)
                        && entry.payload.get(12..16) == event.payload.get(8..12)
                };
                let entry = self.entries.iter().map(|(_, entry)| entry).find(is_own).copied();
                return self.held.push(Hold { entry, acquired: *event, released_ns: i64::MAX });
            }
            wait::RELEASED => {
                let is_released = |held: &Hold<'_>| held.acquired.payload.get(..8) == event.payload.get(..8);
                if let Some(position) = self.held.iter().rposition(is_released) {
                    let hold = Hold { released_ns: event.clock_ns, ..self.held.remove(position) };
                    if let Some(lock) = event.payload.first_chunk() {
                        self.released.insert(*lock, hold);
                    }
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
            samples::CALL_PATH => {
                self.call_paths.insert(first_u32(event.payload), *event);
                return;
            }
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

    /// The lock that the thread waits for, if it is in a wait for a lock.
    pub fn lock_of_wait(&self) -> Option<Lock> {
        let is_lock_wait =
            |(kind, _): &&(u32, Event<'_>)| (wait::kind::CRITICAL..=wait::kind::ATOMIC).contains(kind);
        let (_, entry) = self.entries.iter().rev().find(is_lock_wait)?;
        entry.payload.first_chunk().filter(|_| entry.code == wait::WAIT_OBJECT).copied()
    }

    /// Whether the thread holds a lock.
    pub fn holds(&self, lock: Lock) -> bool {
        self.held.iter().any(|held| held.acquired.payload.first_chunk() == Some(&lock))
    }

    /// The thread's last finished hold of a lock.
    pub fn last_hold(&self, lock: Lock) -> Option<Hold<'a>> {
        self.released.get(&lock).copied()
    }

    /// Writes the waits and locks as events of the thread's own models, with the begins of holds that end before the range, and the
    /// open wait for another thread if `is_wait_open`.
    pub fn write(
        &self,
        clock_ns: i64,
        ended: impl Iterator<Item = Hold<'a>>,
        is_wait_open: bool,
        own: &mut Vec<u8>,
    ) {
        if let Some(event) = &self.start {
            push(own, clock_ns, event.code, event.is_jumbo, event.payload);
        }
        ended.chain(self.held.iter().copied()).for_each(|hold| hold.begin(clock_ns, own));
        let entries = self.entries.iter().chain(&self.calls).map(|(_, event)| event);
        let paths = self.call_paths.values();
        for event in entries.chain(paths).chain(self.open.iter().filter(|_| is_wait_open)) {
            push(own, clock_ns, event.code, event.is_jumbo, event.payload);
        }
    }
}
