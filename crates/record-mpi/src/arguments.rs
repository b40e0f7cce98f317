//! The arguments of one call, read as the caller's language means them.

use core::ffi::c_int;

use crate::handle_kind::Kind;
use crate::language::Language;
use crate::library::{Library, Real, WORDS};

/// Argument words, and their language.
pub struct Arguments {
    pub words: [usize; WORDS],
    pub language: Language,
    /// Whether counts have 64 bits.
    pub large: bool,
    /// Arguments without the error code of Fortran.
    pub arity: u8,
}

impl Arguments {
    /// The word at a position; 0 if there is none.
    pub fn word(&self, at: u8) -> usize {
        self.words.get(usize::from(at)).copied().unwrap_or(0)
    }

    /// Replaces a word.
    pub fn set(&mut self, at: u8, word: usize) {
        if let Some(place) = self.words.get_mut(usize::from(at)) {
            *place = word;
        }
    }

    /// # Safety
    /// The argument is an integer of the caller's language.
    pub unsafe fn int(&self, at: u8) -> i32 {
        match self.language {
            Language::C => self.word(at) as i32,
            // SAFETY: by contract.
            _ => unsafe { self.result(at) },
        }
    }

    /// # Safety
    /// The argument points to an integer, which the call may have written.
    pub unsafe fn result(&self, at: u8) -> i32 {
        // SAFETY: by contract.
        unsafe { (self.word(at) as *const i32).read_unaligned() }
    }

    /// A count, in the width of the function's version.
    ///
    /// # Safety
    /// The argument is a count of the caller's language.
    pub unsafe fn count(&self, at: u8) -> i64 {
        match self.language {
            Language::C if self.large => self.word(at) as i64,
            Language::C => i64::from(self.word(at) as i32),
            // SAFETY: by contract.
            _ => unsafe { self.count_in(at, 0) },
        }
    }

    /// An element of an array of counts.
    ///
    /// # Safety
    /// The argument points to so many.
    pub unsafe fn count_in(&self, at: u8, index: usize) -> i64 {
        if self.large {
            // SAFETY: by contract.
            return unsafe { (self.word(at) as *const i64).add(index).read_unaligned() };
        }
        // SAFETY: by contract.
        i64::from(unsafe { self.int_in(at, index) })
    }

    /// The bytes of a string, without the blanks that fill it up in Fortran: the function's first one.
    ///
    /// # Safety
    /// The argument is a string of the caller's language.
    pub unsafe fn first_string(&self, at: u8) -> &[u8] {
        const MAX_BYTES: usize = 4096;
        let start = self.word(at) as *const u8;
        if start.is_null() {
            return &[];
        }
        match self.language {
            // SAFETY: by contract.
            Language::C => unsafe {
                let length = libc::strnlen(start.cast(), MAX_BYTES);
                core::slice::from_raw_parts(start, length)
            },
            _ => {
                let length = self.word(self.arity + 1).min(MAX_BYTES);
                // SAFETY: by contract; the length follows the error code.
                unsafe { core::slice::from_raw_parts(start, length) }.trim_ascii_end()
            }
        }
    }

    /// An element of an array of integers.
    ///
    /// # Safety
    /// The argument points to so many.
    pub unsafe fn int_in(&self, at: u8, index: usize) -> i32 {
        // SAFETY: by contract.
        unsafe { (self.word(at) as *const i32).add(index).read_unaligned() }
    }

    /// An array index written by the call, from 0 in every language; `None` if it is undefined.
    pub fn index(&self, written: i32) -> Option<usize> {
        let first = if self.language == Language::C { 0 } else { 1 };
        usize::try_from(written - first).ok()
    }

    /// A handle that the caller gives by value in C.
    ///
    /// # Safety
    /// The argument is a handle of this kind.
    pub unsafe fn handle(&self, library: &Library, at: u8, kind: Kind) -> usize {
        match self.language {
            Language::C => library.handle(self.word(at), kind),
            // SAFETY: by contract.
            _ => library.handle_from_fortran(kind, unsafe { self.result(at) }),
        }
    }

    /// A handle that the caller gives by reference in every language, or an element of an array.
    ///
    /// # Safety
    /// The argument points to so many handles.
    pub unsafe fn handle_in(&self, library: &Library, at: u8, index: usize, kind: Kind) -> usize {
        match self.language {
            // SAFETY: by contract.
            Language::C => unsafe { library.handle_in(self.word(at), index, kind) },
            // SAFETY: by contract.
            _ => library.handle_from_fortran(kind, unsafe { self.int_in(at, index) }),
        }
    }

    /// Returns an error to the caller, in its language's place.
    ///
    /// # Safety
    /// As [`Arguments::forward`].
    pub unsafe fn fail(&self, error: c_int) -> c_int {
        let place = self.word(self.arity) as *mut i32;
        if self.language != Language::C && !place.is_null() {
            // SAFETY: by contract.
            unsafe { place.write_unaligned(error) };
        }
        error
    }

    /// Calls the function itself. Returns its result, and whether it succeeded.
    ///
    /// # Safety
    /// The words are those of the program's call, or valid replacements.
    pub unsafe fn forward(&self, real: Real) -> (c_int, bool) {
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n] = self.words;
        // SAFETY: by contract.
        let returned = unsafe { real(a, b, c, d, e, f, g, h, i, j, k, l, m, n) };
        if self.language == Language::C {
            return (returned, returned == 0);
        }
        let error = self.word(self.arity);
        // SAFETY: the error code's place; it may be left out in Fortran 2008.
        let good = error == 0 || unsafe { (error as *const i32).read_unaligned() } == 0;
        (returned, good)
    }
}
