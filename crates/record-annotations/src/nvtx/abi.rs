//! Structures that NVTX's header and the collector share, as in `nvToolsExt.h` and `nvtxTypes.h`.

use core::ffi::{c_char, c_int, c_uint, c_void};

use super::Handle;
use crate::text::{Buffer, bytes};

/// Returns a table of the header by its number.
pub type GetTable = unsafe extern "C" fn(table: u32) -> *const Callbacks;

/// Number of the table of functions.
pub const CALLBACKS: u32 = 1;

/// The table that finds functions of a module.
#[repr(C)]
pub struct Callbacks {
    /// Size of this structure in bytes.
    pub size: usize,
    /// Stores an array of places of functions, and its length; the first place is null. Returns 0 for unknown modules.
    pub functions: Option<unsafe extern "C" fn(u32, *mut *const *mut *const c_void, *mut c_uint) -> c_int>,
}

/// Attributes of an event (`nvtxEventAttributes_v2`).
#[repr(C)]
pub struct Attributes {
    version: u16,
    /// Size of the program's structure in bytes, which may be shorter.
    size: u16,
    category: u32,
    colour_type: i32,
    colour: u32,
    payload_type: i32,
    reserved: i32,
    payload: [u8; 8],
    message_type: i32,
    message: *const c_void,
}

const _: () = assert!(size_of::<Attributes>() == 48);

/// Types of messages (`nvtxMessageType_t`).
mod message_type {
    pub const ASCII: i32 = 1;
    pub const UNICODE: i32 = 2;
    pub const REGISTERED: i32 = 3;
}

/// A message, and memory for one that had to be converted.
pub struct Message<'a> {
    kept: &'a [u8],
    converted: Option<Buffer>,
}

impl<'a> Message<'a> {
    /// A text in UTF-8.
    ///
    /// # Safety
    /// `text` is null or a C string.
    pub unsafe fn narrow(text: *const c_char) -> Message<'a> {
        // SAFETY: by contract.
        Message { kept: unsafe { bytes(text) }, converted: None }
    }

    /// A text of wide characters.
    ///
    /// # Safety
    /// `text` is null or ends with a null character.
    pub unsafe fn wide(text: *const u32) -> Message<'a> {
        // SAFETY: by contract.
        Message { kept: &[], converted: Some(unsafe { Buffer::from_wide(text) }) }
    }

    /// The text.
    pub fn bytes(&self) -> &[u8] {
        self.converted.as_ref().map_or(self.kept, Buffer::bytes)
    }
}

impl Attributes {
    /// Whether the program's structure has all fields.
    fn is_whole(&self) -> bool {
        usize::from(self.size) >= size_of::<Attributes>()
    }

    /// The category; 0 is none.
    pub fn category(&self) -> u32 {
        self.category
    }

    /// The message.
    ///
    /// # Safety
    /// The structure is the program's, with its message.
    pub unsafe fn message(&self) -> Message<'_> {
        let text = if self.is_whole() { self.message } else { core::ptr::null() };
        // SAFETY: by contract, the message is of its type.
        unsafe {
            match self.message_type {
                message_type::ASCII => Message::narrow(text.cast()),
                message_type::UNICODE => Message::wide(text.cast()),
                message_type::REGISTERED => {
                    Message { kept: super::text_of(text.cast::<Handle>()), converted: None }
                }
                _ => Message { kept: &[], converted: None },
            }
        }
    }

    /// The payload as an integer; 0 without one.
    pub fn payload(&self) -> u64 {
        let long = u64::from_le_bytes(self.payload);
        match self.payload_type {
            _ if !self.is_whole() => 0,
            1 | 2 => long,
            3 => f64::from_bits(long).round() as i64 as u64,
            4 => u64::from(long as u32),
            5 => i64::from(long as i32) as u64,
            6 => f32::from_bits(long as u32).round() as i64 as u64,
            _ => 0,
        }
    }
}
