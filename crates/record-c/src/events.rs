//! Events: built by the caller in a `struct ovni_ev`, stored in the order of their emission.

use std::ffi::c_int;

use taskscope_event::Code;
use taskscope_event::framing::*;
use taskscope_event::models::ovni;
use taskscope_record::{Recording, clock, enter, enter_for, thread};

use crate::last_flush::{self, Flush};
use crate::lifecycle;
use crate::misuse::misuse;
use crate::nesting;

/// The largest event that the original takes, in bytes.
const MAX_EVENT_BYTES: usize = 2 << 20;

/// `struct ovni_ev`: header and payload, in the form of a stream.
#[repr(C, packed)]
pub struct Event {
    /// Flags and the three letters, in the order of their bytes. All functions read and write them as one word: a load that
    /// spans stores of other widths waits until those have left the processor's store buffer.
    head: u32,
    clock: u64,
    payload: [u8; MAX_PAYLOAD_BYTES],
}

const _: () = assert!(size_of::<Event>() == EVENT_HEADER_BYTES + MAX_PAYLOAD_BYTES);

impl Event {
    fn flags(&self) -> u8 {
        self.head.to_ne_bytes()[0]
    }

    fn code(&self) -> Code {
        let [_, code @ ..] = self.head.to_ne_bytes();
        Code(code)
    }

    #[inline(always)]
    fn set_head(&mut self, flags: u8, Code([model, category, value]): Code) {
        self.head = u32::from_ne_bytes([flags, model, category, value]);
    }

    fn is_jumbo(&self) -> bool {
        self.flags() & JUMBO_FLAG != 0
    }

    fn payload_bytes(&self) -> usize {
        if self.is_jumbo() {
            let [a, b, c, d, ..] = self.payload;
            return 4 + u32::from_le_bytes([a, b, c, d]) as usize;
        }
        payload_bytes(self.flags())
    }

    /// Appends to a payload of `used` bytes.
    ///
    /// # Safety
    /// `size` bytes, 2 at least, are readable at `bytes`, and fit behind the `used` ones.
    #[inline(always)]
    unsafe fn add(&mut self, used: usize, bytes: *const u8, size: usize) {
        // Read before the payload is written, as the compiler must assume that it aliases.
        let (flags, code) = (self.flags() & 0xf0 | (used + size - 1) as u8, self.code());
        // SAFETY: by contract.
        unsafe {
            let to = (&raw mut self.payload).cast::<u8>().add(used);
            taskscope_record::copy_payload(bytes, to, size);
        }
        self.set_head(flags, code);
    }
}

/// The calling thread's recorder for an event `code` with the clock `at`, if it has one yet. `None` if the
/// event is filtered or cannot be recorded, which was reported.
#[inline(always)]
pub(crate) fn recorder(function: &'static str, code: Code, at: Option<u64>) -> Option<Recording> {
    // Not `or_else`: its closure would spill its captures to memory beforehand.
    match enter_for(code) {
        None => recorder_of_unusual_thread(function, code, at),
        found => found,
    }
}

#[cold]
#[inline(never)]
fn recorder_of_unusual_thread(function: &'static str, code: Code, at: Option<u64>) -> Option<Recording> {
    if thread::was_forked() {
        return lifecycle::restart_in_child(at).then(|| enter_for(code)).flatten();
    }
    if !thread::is_attached() {
        lifecycle::report_not_initialized(function);
    }
    None
}

/// Sets the three letters of an event.
///
/// # Safety
/// `event` points to an event, `mcv` to three bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_ev_set_mcv(event: *mut Event, mcv: *const u8) {
    // SAFETY: by contract.
    let (event, code) = unsafe { (&mut *event, mcv.cast::<[u8; 3]>().read()) };
    event.set_head(event.flags(), Code(code));
}

/// Sets the event's clock, in nanoseconds.
///
/// # Safety
/// `event` points to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_ev_set_clock(event: *mut Event, clock: u64) {
    // SAFETY: by contract.
    unsafe { (*event).clock = clock }
}

/// The event's clock, in nanoseconds.
///
/// # Safety
/// `event` points to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_ev_get_clock(event: *const Event) -> u64 {
    // SAFETY: by contract.
    unsafe { (*event).clock }
}

/// `CLOCK_MONOTONIC` in nanoseconds; also on threads that are not initialized.
///
/// The counter is read after all earlier loads: a thread that has seen another thread's later write gets no
/// earlier time.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_clock_now() -> u64 {
    match thread::ordered_now_plain() {
        Some(now) => now,
        None => clock_of_unusual_thread(),
    }
}

#[cold]
#[inline(never)]
fn clock_of_unusual_thread() -> u64 {
    clock::finish_what_comes_before();
    match enter() {
        Some(mut recorder) => recorder.now(),
        None => clock::now(),
    }
}

/// Appends `size` bytes to the event's payload.
///
/// # Safety
/// `event` points to an event, `bytes` to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_payload_add(event: *mut Event, bytes: *const u8, size: c_int) {
    // SAFETY: by contract.
    let event = unsafe { &mut *event };
    let used = payload_bytes(event.flags());
    // A size below zero is a large one.
    let all = used.saturating_add(size as usize);
    if size < 2 || all > MAX_PAYLOAD_BYTES || event.is_jumbo() {
        return refuse_payload(event, size);
    }
    // SAFETY: the caller gives `size` readable bytes, which fit behind the `used` ones.
    unsafe { event.add(used, bytes, size as usize) }
}

#[cold]
fn refuse_payload(event: &Event, size: c_int) {
    if event.is_jumbo() {
        misuse!("ovni_payload_add", "the event is marked as jumbo");
    } else if size < 2 {
        misuse!("ovni_payload_add", "payload size {size} is too small");
    } else {
        misuse!("ovni_payload_add", "no space is left for {size} bytes");
    }
}

/// Bytes of the event in a stream.
///
/// # Safety
/// `event` points to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_ev_size(event: *const Event) -> c_int {
    // SAFETY: by contract.
    unsafe { (EVENT_HEADER_BYTES + (*event).payload_bytes()) as c_int }
}

/// Bytes of the event's payload; of a jumbo event with the size word.
///
/// # Safety
/// `event` points to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_payload_size(event: *const Event) -> c_int {
    // SAFETY: by contract.
    unsafe { (*event).payload_bytes() as c_int }
}

/// Stores the event in the thread's stream.
///
/// # Safety
/// `event` points to an event.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_ev_emit(event: *mut Event) {
    // SAFETY: by contract.
    let (flags, code, at) = unsafe { ((*event).flags(), (*event).code(), (*event).clock) };
    // A zero model letter would end the stream for every reader.
    if flags & JUMBO_FLAG != 0 || code.model() == 0 {
        return refuse_event(flags);
    }
    // SAFETY: the event holds the payload that the flags announce.
    let stored = unsafe {
        thread::store_plain(at, flags, code, (&raw const (*event).payload).cast(), nesting::of(code))
    };
    if !stored {
        // SAFETY: by contract.
        unsafe { emit_where_unusual(event) }
    }
}

/// # Safety
/// As [`ovni_ev_emit`], after that one's checks.
#[cold]
#[inline(never)]
unsafe fn emit_where_unusual(event: *mut Event) {
    // SAFETY: by contract.
    let (flags, code, at) = unsafe { ((*event).flags(), (*event).code(), (*event).clock) };
    if let Some(mut recorder) = recorder("ovni_ev_emit", code, Some(at)) {
        // SAFETY: the event holds the payload that the flags announce.
        unsafe { recorder.raw(at, flags, code, (&raw const (*event).payload).cast(), nesting::of(code)) }
    }
}

#[cold]
fn refuse_event(flags: u8) {
    if flags & JUMBO_FLAG != 0 {
        misuse!("ovni_ev_emit", "a jumbo event goes to ovni_ev_jumbo_emit");
    } else {
        misuse!("ovni_ev_emit", "the event has no model letter");
    }
}

/// Stores the event with `size` bytes of data.
///
/// # Safety
/// `event` points to an event, `data` to `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ovni_ev_jumbo_emit(event: *mut Event, data: *const u8, size: u32) {
    // SAFETY: by contract.
    let event = unsafe { &mut *event };
    if event.payload_bytes() != 0 {
        return misuse!("ovni_ev_jumbo_emit", "the event's payload must be empty");
    }
    if event.code().model() == 0 {
        return misuse!("ovni_ev_jumbo_emit", "the event has no model letter");
    }
    if JUMBO_HEADER_BYTES + size as usize >= MAX_EVENT_BYTES {
        return misuse!("ovni_ev_jumbo_emit", "the event with {size} bytes is too large");
    }
    // SAFETY: the four bytes are there, and the payload is empty.
    unsafe { event.add(0, size.to_le_bytes().as_ptr(), 4) };
    let code = event.code();
    event.set_head(event.flags() | JUMBO_FLAG, code);
    if let Some(mut recorder) = recorder("ovni_ev_jumbo_emit", code, Some(event.clock)) {
        // SAFETY: by contract; no bytes need no address.
        let data = if size == 0 { &[] } else { unsafe { core::slice::from_raw_parts(data, size as usize) } };
        recorder.jumbo(event.clock, code, &[data]);
    }
}

/// Appends the tail to the stream file, between flush events. Durability does not depend on it.
#[unsafe(no_mangle)]
pub extern "C" fn ovni_flush() {
    if let Some(mut recorder) = recorder("ovni_flush", ovni::FLUSH_BEGIN, None) {
        let begin = recorder.now();
        recorder.flush();
        let end = recorder.now();
        let start = recorder.position();
        recorder.begin(begin, ovni::FLUSH_BEGIN, [], 0);
        recorder.end(end, ovni::FLUSH_END, []);
        last_flush::keep(Flush { start, begin, end });
    }
}
