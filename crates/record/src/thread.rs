//! One thread's recorder: its two streams, its clock, and the entry lock that guards them.

mod attach;
mod recording;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::*};

use taskscope_event::Code;
use taskscope_event::models::recorder;

use crate::clock::ThreadClock;
use crate::disk_file::NoRoom;
use crate::entry_lock::EntryLock;
use crate::metadata::{self, ThreadIdentity};
use crate::open_call::{Open, OpenCall};
use crate::process;
use crate::samples::Samples;
use crate::stream::{Nesting, Stream};
use crate::tls;

pub use attach::*;
pub use recording::*;

/// Writes the events that end open sections, when a thread's stream is closed: by the thread itself, or by
/// the finisher of the process. The number is the time to use.
pub type Closer = Box<dyn FnOnce(&mut ThreadRecorder, u64) + Send>;

/// A thread's recorder. Reached through [`enter`], or by a [`Closer`]. `taskscope.h` depends on the offsets
/// of the first fields ([`crate::layout`]).
#[repr(C, align(64))]
pub struct ThreadRecorder {
    pub(crate) entry_lock: EntryLock,
    /// Something waits in the nested recorder, to be copied when the entry lock is left. In the nested recorder
    /// itself it is always set.
    pub(crate) pending: AtomicU32,
    /// State of [`crate::event_filter`] for this thread.
    pub(crate) filter: AtomicU32,
    /// The thread pointer of the thread that it belongs to.
    pub(crate) owner: usize,
    /// For the caller's own per-thread data.
    user: *mut (),
    pub(crate) clock: ThreadClock,
    pub(crate) standard: Stream,
    pub(crate) own: Stream,
    /// For a signal handler that interrupts this recorder; null in a nested recorder.
    pub(crate) nested: *mut ThreadRecorder,
    /// In a nested recorder: its main one.
    pub(crate) main: *mut ThreadRecorder,
    /// File offset in the own stream of the count of lost events.
    loss_count_offset: Option<u64>,
    pub(crate) reentered: AtomicU64,
    identity: ThreadIdentity,
    closer: Option<Closer>,
    pub(crate) samples: Samples,
    /// The real streams while events are diverted, and the destination meanwhile.
    diverted: Option<(Stream, Stream)>,
    sink: Option<Box<[u8; SINK_BYTES]>>,
    /// When the process was forked off, if the thread is the first one of the child.
    forked_at: Option<u64>,
    /// Written by its thread at any time.
    pub(crate) open_call: OpenCall,
    /// See [`token`].
    token: usize,
}

/// Room for the events of one callback, per stream half of it.
const SINK_BYTES: usize = 8192;

impl ThreadRecorder {
    /// Nanoseconds of `CLOCK_MONOTONIC`. Read it once per callback.
    #[inline(always)]
    pub fn now(&mut self) -> u64 {
        self.clock.now()
    }

    /// The time that was read last, for events without a reading of their own.
    #[inline(always)]
    pub fn last_time(&self) -> u64 {
        self.clock.last_ns()
    }

    /// When the process was forked off, nanoseconds, if this is the first thread of the child: then it began.
    pub fn forked_at(&self) -> Option<u64> {
        self.forked_at
    }

    /// Sets a lower bound for later readings of the clock.
    pub(crate) fn raise_clock(&mut self, least: u64) {
        self.clock.raise(least);
    }

    /// Discards later events as if they were kept, until [`undivert`](Self::undivert).
    #[cold]
    pub fn divert(&mut self) {
        let sink = self.sink.get_or_insert_with(|| Box::new([0; SINK_BYTES]));
        let half = SINK_BYTES / 2;
        let area = sink.as_mut_ptr();
        let streams = (Stream::in_memory(area, half), Stream::in_memory(area.wrapping_add(half), half));
        self.diverted.get_or_insert((
            core::mem::replace(&mut self.standard, streams.0),
            core::mem::replace(&mut self.own, streams.1),
        ));
    }

    /// Ends a [`divert`](Self::divert).
    #[cold]
    pub fn undivert(&mut self) {
        if let Some((standard, own)) = self.diverted.take() {
            (self.standard, self.own) = (standard, own);
        }
    }

    /// Whether an event is being written, which a signal handler on this thread has interrupted.
    pub(crate) fn is_busy(&self) -> bool {
        !self.entry_lock.is_free()
    }

    /// The user data of [`attach()`].
    #[inline(always)]
    pub fn user(&self) -> *mut () {
        self.user
    }

    /// A standard event that neither opens nor closes anything. Returns whether it was kept.
    #[inline(always)]
    pub fn point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) -> bool {
        let kept = self.standard.point(at, code, payload);
        if !kept {
            self.record_loss(at);
        }
        kept
    }

    /// Stores a standard event that opens a section, closed in the same stream by [`ThreadRecorder::end`];
    /// `end_payload_bytes` is the payload size of that end, reserved here.
    #[inline(always)]
    pub fn begin<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N], end_payload_bytes: usize) {
        let end_bytes = taskscope_event::framing::EVENT_HEADER_BYTES + end_payload_bytes;
        if !self.standard.begin(at, code, payload, end_bytes) {
            self.record_loss(at);
        }
    }

    /// Stores the end of the section opened last in the standard stream.
    #[inline(always)]
    pub fn end<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.standard.end(at, code, payload) {
            self.record_loss(at);
        }
    }

    /// A standard event with data of any length, stored as `parts` one after another. Returns whether
    /// it was kept.
    pub fn jumbo(&mut self, at: u64, code: Code, parts: &[&[u8]]) -> bool {
        let kept = self.standard.jumbo(at, code, parts);
        if !kept {
            self.record_loss(at);
        }
        kept
    }

    /// Stores a standard event with the caller's flags, which contain the payload size. The order of such
    /// events is kept, for any clocks.
    ///
    /// # Safety
    /// As many bytes as `flags` specify are readable at `payload`.
    #[inline(always)]
    pub unsafe fn raw(&mut self, at: u64, flags: u8, code: Code, payload: *const u8, nesting: Nesting) {
        // SAFETY: by contract.
        if !unsafe { self.standard.raw(at, flags, code, payload, nesting) } {
            self.record_loss(0);
        }
    }

    /// Position of the next standard event; for [`ThreadRecorder::take_back`].
    pub fn position(&self) -> usize {
        self.standard.pos as usize
    }

    /// Takes back the last two standard events, if they are these (code and clock), without payloads, and were written
    /// from `start`, a [`ThreadRecorder::position`], on. Returns whether they were.
    pub fn take_back(&mut self, start: usize, first: (Code, u64), second: (Code, u64)) -> bool {
        self.main.is_null() && self.diverted.is_none() && self.standard.take_back(start, first, second)
    }

    /// Appends the tail of the standard stream to its file.
    pub fn flush(&mut self) {
        self.standard.flush();
    }

    /// [`ThreadRecorder::point`] in the own stream.
    #[inline(always)]
    pub fn own_point<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.own.point(at, code, payload) {
            self.record_loss(at);
        }
    }

    /// Stores an event of the instrument model; its counterpart may come on another thread.
    #[inline(always)]
    pub(crate) fn own_unpaired<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.own.unpaired(at, code, payload) {
            self.record_loss(at);
        }
    }

    /// [`ThreadRecorder::begin`] in the own stream.
    #[inline(always)]
    pub fn own_begin<const N: usize>(
        &mut self,
        at: u64,
        code: Code,
        payload: [u8; N],
        end_payload_bytes: usize,
    ) {
        let end_bytes = taskscope_event::framing::EVENT_HEADER_BYTES + end_payload_bytes;
        if !self.own.begin(at, code, payload, end_bytes) {
            self.record_loss(at);
        }
    }

    /// [`ThreadRecorder::end`] in the own stream.
    #[inline(always)]
    pub fn own_end<const N: usize>(&mut self, at: u64, code: Code, payload: [u8; N]) {
        if !self.own.end(at, code, payload) {
            self.record_loss(at);
        }
    }

    /// [`ThreadRecorder::jumbo`] in the own stream.
    pub fn own_jumbo(&mut self, at: u64, code: Code, parts: &[&[u8]]) {
        if !self.own.jumbo(at, code, parts) {
            self.record_loss(at);
        }
    }

    /// Counts `events` that the caller left out because of an earlier loss.
    #[cold]
    pub fn lose(&mut self, at: u64, events: u64) {
        self.standard.lost_events += events;
        self.record_loss(at);
    }

    /// Events that could not be kept so far.
    pub fn lost_events(&self) -> u64 {
        self.standard.lost_events
            + self.own.lost_events
            + self.reentered.load(Relaxed)
            + self.samples.lost_events()
    }

    /// The call that its thread, which is not the calling one, is blocked in. For a [`Closer`].
    pub fn open_call(&self) -> Option<Open> {
        self.open_call.find(self.identity.os_tid)
    }

    /// The operating system's thread id.
    pub fn os_tid(&self) -> i32 {
        self.identity.os_tid
    }

    /// Stores the count of losses on disk, so that it survives a crash: in the own stream if there is one,
    /// else in the metadata.
    #[cold]
    #[inline(never)]
    fn record_loss(&mut self, at: u64) {
        if self.diverted.is_some() {
            return;
        }
        let lost = self.lost_events();
        // System calls each; after some losses only now and then, and once more at the end.
        if lost > 1000 && !lost.is_multiple_of(1024) || !self.main.is_null() {
            return;
        }
        if !self.own.has_file() {
            if lost.is_power_of_two() || lost.is_multiple_of(65536) {
                metadata::store_loss(&self.identity.directory, lost);
            }
            return;
        }
        match self.loss_count_offset {
            Some(offset) => self.own.replace_loss(offset, lost, self.loss_reason()),
            None => {
                self.loss_count_offset = self.own.put_loss_record(at, lost, self.loss_reason());
            }
        }
    }

    /// Lack of room wins: it lasts.
    fn loss_reason(&self) -> u32 {
        match self.standard.full().or(self.own.full()) {
            Some(NoRoom::SizeCap) => recorder::loss::SIZE_CAP,
            Some(_) => recorder::loss::NO_SPACE,
            None => recorder::loss::REENTERED,
        }
    }

    /// Writes the metadata as it is now. Returns whether that worked.
    pub fn store_metadata(&mut self) -> bool {
        process::current().is_some_and(|process| process.write_metadata(&self.identity, None))
    }

    /// Replaces the end of `stream.json`, from the byte `at` on, by `text`. Returns whether that worked; if not,
    /// the file is as before. Works only within a page, so that a killed process leaves the old end or the new one.
    pub fn append_metadata(&mut self, at: u64, text: &str) -> bool {
        !process::keeps_streams() || metadata::replace_end(&self.identity.directory, at, text).is_ok()
    }

    pub(crate) fn is_own_thread(&self) -> bool {
        self.owner == tls::thread_pointer()
    }
}
