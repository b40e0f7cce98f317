//! `libtaskscope.so.1`, the part of `taskscope.h` that is not inline.
//!
//! **The caller** is a C or C++ program that includes `include/taskscope.h`. Its inline functions store
//! events straight into the thread's recorder. This library starts and ends recording, assigns numbers to
//! names, and takes the events that the inline code cannot store: the first of a thread, those that do not
//! fit, those of a forked child, those of a signal handler that interrupted the recorder, and those that a
//! filter must check.
//!
//! The header is written from [`header::text`], with the offsets of `taskscope_record::layout` and the
//! codes of the event table; a test holds the file in `include` in step.

mod contexts;
pub mod header;
mod sinks;

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use taskscope_event::Code;
use taskscope_event::framing::MAX_PAYLOAD_BYTES;
use taskscope_event::models::nosv;
use taskscope_record::{Recording, ThreadRecorder, clock, enter, enter_for, instrument};

/// Starts recording into `directory`; null means the directory of `TASKSCOPE_TRACE_DIR`. Returns 0, or -1 if
/// neither a trace is recorded nor a sink loaded (which is reported, unless the variables are unset).
///
/// # Safety
/// `directory` points to a NUL-terminated string, or is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_start(directory: *const c_char) -> c_int {
    let started = if directory.is_null() {
        instrument::start_configured()
    } else {
        // SAFETY: by contract.
        let bytes = unsafe { CStr::from_ptr(directory) }.to_bytes();
        instrument::start(Path::new(OsStr::from_bytes(bytes))).map(|()| true)
    };
    match started {
        Ok(true) => 0,
        Ok(false) => -1,
        Err(why) => {
            eprintln!("taskscope: recording is disabled: {why}\n  kept: the program continues");
            -1
        }
    }
}

/// Ends recording; the end of the program does so implicitly.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_finish() {
    instrument::finish();
}

/// Ends recording on the calling thread; the thread's end does so implicitly.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_thread_end() {
    instrument::detach();
}

/// Switches recording on or off for all threads.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_switch(on: c_int) {
    if on != 0 { instrument::switch_on() } else { instrument::switch_off() }
}

/// Nanoseconds of `CLOCK_MONOTONIC`, on any thread.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_clock() -> u64 {
    enter().map_or_else(clock::now, |mut recorder| recorder.now())
}

/// The number of the span `name`, from 1.
///
/// # Safety
/// `name` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_span(name: *const c_char) -> u32 {
    // SAFETY: by contract.
    registered(instrument::span_id(&unsafe { text(name) }))
}

/// The number of the value `title`, from 1.
///
/// # Safety
/// `title` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_value(title: *const c_char) -> u32 {
    // SAFETY: by contract.
    registered(instrument::value_type(&unsafe { text(title) }))
}

/// Writes the metadata for a new number.
fn registered(number: u32) -> u32 {
    instrument::attach();
    if let Some(mut recorder) = enter() {
        recorder.store_metadata();
    }
    number
}

/// The number of the task type `name`, from 1.
///
/// # Safety
/// `name` points to a NUL-terminated string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_task_type(name: *const c_char) -> u32 {
    // SAFETY: by contract.
    let name = unsafe { text(name) };
    instrument::attach();
    let (id, is_new) = instrument::task_type_id(&name);
    if is_new && let Some(mut recorder) = enter() {
        let at = recorder.now();
        recorder.jumbo(at, nosv::TYPE_CREATE, &[&id.to_le_bytes(), name.as_bytes(), &[0]]);
    }
    id
}

/// A number for a new task.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_task_number() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Relaxed)
}

/// Zeros in the place of a recorder: no thread owns it.
#[repr(align(64))]
struct NotWanted([u8; size_of::<ThreadRecorder>()]);

static NOT_WANTED: NotWanted = NotWanted([0; size_of::<ThreadRecorder>()]);

/// Returned for an event that is not wanted, so that its end is not recorded either. It is only read.
pub(crate) fn not_wanted() -> *mut ThreadRecorder {
    NOT_WANTED.0.as_ptr().cast_mut().cast()
}

/// Stores an event that the inline code could not store, and returns the thread's recorder for the next, or
/// [`not_wanted`] for a begin that is not recorded. `head` is the event's first word; `kind` is 0 for a point, 1 for a begin with an end of equal payload
/// size, 2 for an end.
///
/// # Safety
/// `payload` points to `bytes` bytes, at most 16.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_emit_(
    head: u32,
    payload: *const c_void,
    bytes: u32,
    kind: u32,
) -> *mut ThreadRecorder {
    let [_, model, category, value] = head.to_le_bytes();
    let code = Code([model, category, value]);
    let mut buffer = [0u8; MAX_PAYLOAD_BYTES];
    // SAFETY: by contract.
    unsafe { core::ptr::copy_nonoverlapping(payload.cast(), buffer.as_mut_ptr(), (bytes as usize).min(16)) };
    // A begun section is ended, whatever the switch's state.
    let entered = if kind == 2 { enter() } else { enter_for(code) };
    let entered = entered.or_else(|| {
        let attached = kind != 2 && instrument::attach();
        attached.then(|| enter_for(code)).flatten()
    });
    if let Some(mut recorder) = entered {
        match bytes {
            0 => store::<0>(&mut recorder, code, &buffer, kind),
            4 => store::<4>(&mut recorder, code, &buffer, kind),
            8 => store::<8>(&mut recorder, code, &buffer, kind),
            12 => store::<12>(&mut recorder, code, &buffer, kind),
            _ => store::<16>(&mut recorder, code, &buffer, kind),
        }
    } else if kind == 1 {
        return not_wanted();
    }
    taskscope_record::thread::address() as *mut ThreadRecorder
}

fn store<const N: usize>(recorder: &mut Recording, code: Code, buffer: &[u8; 16], kind: u32) {
    let Some(payload) = buffer.first_chunk::<N>().copied() else { return };
    let at = recorder.now();
    match kind {
        1 => recorder.begin(at, code, payload, N),
        2 => recorder.end(at, code, payload),
        _ => {
            recorder.point(at, code, payload);
        }
    }
}

/// Copies events that signal handlers stored while the inline code was storing one.
#[unsafe(no_mangle)]
pub extern "C" fn taskscope_settle_() {
    // Leaving the door does it.
    drop(enter());
}

/// Implementation of `taskscope_name_data`.
///
/// # Safety
/// `name` points to a NUL-terminated string, or is null. `data` is not read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_name_data_(data: *const c_void, bytes: usize, name: *const c_char) {
    // SAFETY: by contract.
    let name = if name.is_null() { c"" } else { unsafe { CStr::from_ptr(name) } };
    instrument::name_memory(data as u64, bytes as u64, name.to_bytes());
}

/// Stores an event with data of any length: `model`, `category`, `value` are its letters.
///
/// # Safety
/// `code` points to three letters, `data` to `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taskscope_data(code: *const c_char, data: *const c_void, bytes: usize) {
    // SAFETY: by contract.
    let (code, data) = unsafe {
        let data = if bytes == 0 { &[][..] } else { core::slice::from_raw_parts(data.cast::<u8>(), bytes) };
        (Code(code.cast::<[u8; 3]>().read()), data)
    };
    instrument::attach();
    if let Some(mut recorder) = enter_for(code) {
        let at = recorder.now();
        recorder.jumbo(at, code, &[data]);
    }
}

/// # Safety
/// `string` points to a NUL-terminated string.
unsafe fn text(string: *const c_char) -> String {
    // SAFETY: by contract.
    unsafe { CStr::from_ptr(string) }.to_string_lossy().into_owned()
}

/// Closes all active recorders when the program ends by `exit` or by leaving `main`.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = {
    extern "C" fn at_exit() {
        instrument::finish();
    }
    at_exit
};
