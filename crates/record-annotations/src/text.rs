//! Texts of programs in the C language.

use core::ffi::{CStr, c_char, c_int, c_void};

/// The bytes of a C string; none for a null pointer.
///
/// # Safety
/// `text` is null or a C string, which lives as long as the result is used.
pub unsafe fn bytes<'a>(text: *const c_char) -> &'a [u8] {
    // SAFETY: by contract.
    if text.is_null() { &[] } else { unsafe { CStr::from_ptr(text) }.to_bytes() }
}

/// Length of a [`Buffer`].
const MAX_JOINED: usize = 1_000;

/// A joined text without memory of the heap; cut where it is full.
pub struct Buffer {
    bytes: [u8; MAX_JOINED],
    used: usize,
}

impl Buffer {
    /// The parts, joined.
    pub fn of(parts: &[&[u8]]) -> Buffer {
        let mut buffer = Buffer { bytes: [0; MAX_JOINED], used: 0 };
        for part in parts {
            let room = buffer.bytes.get_mut(buffer.used..).unwrap_or_default();
            let taken = part.len().min(room.len());
            room.iter_mut().zip(*part).for_each(|(place, byte)| *place = *byte);
            buffer.used += taken;
        }
        buffer
    }

    /// A text of wide characters (32 bits each), in UTF-8; the first that is invalid ends it.
    ///
    /// # Safety
    /// `text` is null or ends with a null character.
    pub unsafe fn from_wide(text: *const u32) -> Buffer {
        let mut buffer = Buffer::of(&[]);
        let mut next = text;
        while !next.is_null() {
            // SAFETY: by contract, no character before this one is null.
            let character = char::from_u32(unsafe { next.read() }).filter(|character| *character != '\0');
            let Some(character) = character else { break };
            let mut bytes = [0; 4];
            let bytes = character.encode_utf8(&mut bytes).as_bytes();
            let Some(place) = buffer.bytes.get_mut(buffer.used..buffer.used + bytes.len()) else { break };
            place.copy_from_slice(bytes);
            buffer.used += bytes.len();
            next = next.wrapping_add(1);
        }
        buffer
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.used).unwrap_or_default()
    }
}

unsafe extern "C" {
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn free(memory: *mut c_void);
}

type Demangle = unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;

/// Shortest mangled type that is not taken for a word.
const MIN_MANGLED: usize = 5;

/// The C++ type with this name of the language's run-time type information, as users write it; `None` for other texts, and
/// in programs without the C++ library.
///
/// Types of one letter (`f` is `float`) are words of users, too, and stay.
pub fn demangled_type(name: &[u8]) -> Option<Vec<u8>> {
    let starts_as_type = matches!(name.first(), Some(b'N' | b'Z' | b'1'..=b'9'));
    if !starts_as_type || name.len() < MIN_MANGLED {
        return None;
    }
    let name = std::ffi::CString::new(name).ok()?;
    // SAFETY: the null handle searches all libraries; the function has this signature in every C++ library of the platform,
    // and returns memory of `malloc`, or null.
    unsafe {
        let demangle = dlsym(core::ptr::null_mut(), c"__cxa_demangle".as_ptr());
        if demangle.is_null() {
            return None;
        }
        let demangle: Demangle = core::mem::transmute(demangle);
        let mut status = 0;
        let result = demangle(name.as_ptr(), core::ptr::null_mut(), core::ptr::null_mut(), &mut status);
        let text = (status == 0).then(|| bytes(result).to_owned());
        free(result.cast());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_texts_are_converted_and_cut() {
        let wide = |text: &str| -> Vec<u32> { text.chars().map(u32::from).chain([0]).collect() };
        // SAFETY: the texts end with a null character.
        let buffer = |text: &str| unsafe { Buffer::from_wide(wide(text).as_ptr()) };
        assert_eq!(buffer("Δt ≤ 1").bytes(), "Δt ≤ 1".as_bytes());
        assert_eq!(buffer(&"ä".repeat(MAX_JOINED)).bytes().len(), MAX_JOINED);
        // SAFETY: null is accepted.
        assert_eq!(unsafe { Buffer::from_wide(core::ptr::null()) }.bytes(), b"");
        assert_eq!(Buffer::of(&[&[b'a'; MAX_JOINED - 1], b"bc"]).bytes().last(), Some(&b'b'));
    }

    #[test]
    fn words_are_not_taken_for_types() {
        for word in ["advect", "f", "2nd", "Nodes", "Zonal mean", "", "10"] {
            assert_eq!(demangled_type(word.as_bytes()), None, "{word}");
        }
    }
}
