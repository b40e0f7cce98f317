//! Two words behind each word of the runtime.

use core::ptr::null_mut;

use crate::abi::{self, Data};

/// Both tools' words.
#[repr(C)]
struct Pair {
    ours: Data,
    theirs: Data,
}

/// The pair behind a word of the runtime; made at first sight. Null without a word or memory.
fn pair(word: *mut Data) -> *mut Pair {
    if !abi::is_object(word) {
        return null_mut();
    }
    // SAFETY: the runtime's words are live while it names them, and ours to use.
    unsafe {
        if (*word).ptr.is_null() {
            (*word).ptr = libc::calloc(1, size_of::<Pair>());
        }
        (*word).ptr.cast()
    }
}

/// Our word behind a word of the runtime.
pub fn ours(word: *mut Data) -> *mut Data {
    let pair = pair(word);
    // SAFETY: made by `pair`.
    if pair.is_null() { null_mut() } else { unsafe { &raw mut (*pair).ours } }
}

/// Our word behind a word of the runtime if there is one; in a signal handler too.
pub fn known(word: *mut Data) -> *mut Data {
    if !abi::is_object(word) {
        return null_mut();
    }
    // SAFETY: as in `pair`.
    let pair: *mut Pair = unsafe { (*word).ptr.cast() };
    // SAFETY: made by `pair`.
    if abi::is_object(pair) { unsafe { &raw mut (*pair).ours } } else { null_mut() }
}

/// The other tool's.
pub fn theirs(word: *mut Data) -> *mut Data {
    let pair = pair(word);
    // SAFETY: made by `pair`.
    if pair.is_null() { null_mut() } else { unsafe { &raw mut (*pair).theirs } }
}

/// A new object begins in this word, whatever was there.
pub fn renew(word: *mut Data) {
    if abi::is_object(word) {
        // SAFETY: as in `pair`.
        unsafe { (*word).ptr = null_mut() };
    }
}

/// The object of this word has ended.
pub fn release(word: *mut Data) {
    if abi::is_object(word) {
        // SAFETY: as in `pair`; nobody names the object after its end.
        unsafe {
            libc::free((*word).ptr);
            (*word).ptr = null_mut();
        }
    }
}
