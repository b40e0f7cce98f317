//! The collector of ROCTX (AMD's annotations of programs): ranges and marks.
//!
//! ```text
//!  program ── roctxRangePushA, … ──▶ our function of that name (preloaded) ──▶ the library's own: result
//!                                              └──▶ record::instrument
//! ```
//!
//! ROCTX is a library (`libroctx64.so`, `librocprofiler-sdk-roctx.so`). It hands its calls to tools through a library of AMD's that has to
//! be installed, and loads that into each process with a tool; so its functions are interposed instead. Results are the library's.
//!
//! | ROCTX | recorded as ([`taskscope_record::instrument`]) |
//! | --- | --- |
//! | range of push and pop | a state of its name, on the thread's stack of states; class useful |
//! | range of start and stop | a burst on the key of its name |
//! | mark | a point on the key of its name |
//! | name of the calling thread | the thread's name |
//!
//! **Not recorded.** Names of devices and streams; pauses of profilers.

use core::ffi::c_char;

use taskscope_record::instrument::{Class, Level, named};
use taskscope_record::os_thread;

use crate::attach;
use crate::cached::Cached;
use crate::names::Names;
use crate::overlapped;
use crate::stack::{self, Recorded, StateKind};
use crate::text::bytes;

/// Messages.
static TEXTS: Names<4096> = Names::new();

/// The use of a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Pushed,
    Started,
    Mark,
}

/// Ranges of ROCTX among those of other interfaces, which have addresses and numbers of their own there.
const OWN: usize = 1;

/// The number of a message in the dictionary; that of the name `other ranges` if there are too many.
fn number(used: Use, message: &[u8]) -> Option<u32> {
    static OTHERS: [Cached; 3] = [const { Cached::new() }; 3];
    let message = if message.is_empty() { b"without a message" } else { message };
    match TEXTS.find([used as u64, 0], message) {
        Some((numbers, message)) => numbers.number.number(|| ask(used, message)),
        None => OTHERS.get(used as usize)?.number(|| ask(used, b"other ranges of ROCTX")),
    }
}

fn ask(used: Use, name: &[u8]) -> Option<u32> {
    let level = Level::User as u32;
    match used {
        Use::Pushed => named::state(name, b"range reported through ROCTX", Class::Useful as u32),
        Use::Started => named::key_of(name, b"range reported through ROCTX", level, b"", true),
        Use::Mark => named::key(&[name, b" [mark]"].concat(), b"mark reported through ROCTX", level),
    }
}

/// Begins a range on the calling thread's stack.
///
/// # Safety
/// The message is null or a C string.
pub unsafe fn push(message: *const c_char) {
    // SAFETY: by contract.
    let message = unsafe { bytes(message) };
    stack::begin(StateKind::Range, OWN, || Recorded::state(number(Use::Pushed, message)));
}

/// Ends the innermost range of the calling thread, if there is one.
pub fn pop() {
    stack::end(StateKind::Range, OWN);
}

/// Starts the range of this number, which any thread may end.
///
/// # Safety
/// The message is null or a C string.
pub unsafe fn start(message: *const c_char, range: u64) {
    // SAFETY: by contract.
    if let Some(key) = number(Use::Started, unsafe { bytes(message) }) {
        overlapped::begin((overlapped::IntervalKind::Range, [range, OWN as u64, 0]), key, 1);
    }
}

/// Ends the range of this number.
pub fn stop(range: u64) {
    overlapped::end_anywhere((overlapped::IntervalKind::Range, [range, OWN as u64, 0]));
}

/// A moment of the calling thread.
///
/// # Safety
/// The message is null or a C string.
pub unsafe fn mark(message: *const c_char) {
    // SAFETY: by contract.
    if let Some(key) = number(Use::Mark, unsafe { bytes(message) }) {
        named::point(key, 0);
    }
}

/// Names the calling thread.
///
/// # Safety
/// The name is null or a C string.
pub unsafe fn name_thread(name: *const c_char) {
    attach::thread();
    // SAFETY: by contract.
    os_thread::report_name(os_thread::os_tid(), unsafe { bytes(name) });
}
