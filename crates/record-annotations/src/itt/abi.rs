//! Structures that ITT's static part and the collector share, as in `ittnotify_config.h` and `ittnotify.h`.

use core::ffi::{c_char, c_int, c_long, c_ulong, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::*};

use crate::cached::Cached;

/// A function of the static part's table (`___itt_api_info`).
#[repr(C)]
pub struct Function {
    /// Its name, with the prefix `__itt_`; null ends the table.
    pub name: *const c_char,
    /// The pointer that calls go through.
    pub target: *mut *const c_void,
    /// The function that initialises, before calling.
    pub initial: *const c_void,
    /// The function that does nothing; may be null.
    pub empty: *const c_void,
    /// Its groups, as bits.
    pub group: c_int,
}

/// The beginning of the static part's data (`___itt_global`).
#[repr(C)]
pub struct Global {
    magic: [u8; 8],
    version: [c_ulong; 3],
    api_initialized: c_long,
    mutex_initialized: c_long,
    atomic_counter: c_long,
    mutex: Mutex,
    library: *mut c_void,
    error_handler: *mut c_void,
    path: *mut *const c_char,
    /// The table of functions.
    pub functions: *const Function,
}

/// `pthread_mutex_t` of 64-bit Linux: 40 bytes on x86-64, 48 on aarch64.
#[repr(C, align(8))]
struct Mutex([u8; size_of::<MutexOfTheSystem>()]);

#[cfg(target_arch = "aarch64")]
type MutexOfTheSystem = [u64; 6];
#[cfg(not(target_arch = "aarch64"))]
type MutexOfTheSystem = [u64; 5];

/// A domain (`___itt_domain`).
#[repr(C)]
pub struct Domain {
    /// Not 0 while it is enabled; programs may change it.
    pub flags: c_int,
    /// Its name.
    pub name: *const c_char,
    wide_name: *const c_void,
    extra: c_int,
    /// Number of the key of its frames.
    pub frame_key: Cached,
    next: *mut Domain,
}

/// A string with an identity (`___itt_string_handle`).
#[repr(C)]
pub struct StringHandle {
    /// The text.
    pub text: *const c_char,
    wide_text: *const c_void,
    extra: c_int,
    /// The numbers of the name; null at first, as the static part leaves this field to the collector.
    numbers: AtomicPtr<Numbers>,
    next: *mut StringHandle,
}

/// An identity of an object in a domain (`___itt_id`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Id {
    /// Its words: an address, a number, and one that is reserved.
    pub words: [u64; 3],
}

impl Id {
    /// Whether it names nothing.
    pub fn is_null(&self) -> bool {
        self.words == [0; 3]
    }
}

/// Types of values (`__itt_metadata_type`).
pub mod value_type {
    /// 64 bits without a sign.
    pub const U64: u32 = 1;
    /// 64 bits with a sign.
    pub const S64: u32 = 2;
    /// 32 bits without a sign.
    pub const U32: u32 = 3;
    /// 32 bits with a sign.
    pub const S32: u32 = 4;
    /// 16 bits without a sign.
    pub const U16: u32 = 5;
    /// 16 bits with a sign.
    pub const S16: u32 = 6;
    /// A float.
    pub const FLOAT: u32 = 7;
    /// A double.
    pub const DOUBLE: u32 = 8;
}

/// Relations between objects (`__itt_relation`).
pub mod relation {
    /// The first is the parent of the second.
    pub const IS_PARENT_OF: u32 = 3;
    /// The first is a child of the second.
    pub const IS_CHILD_OF: u32 = 5;
}

impl Domain {
    pub(crate) fn new(name: *const c_char) -> Domain {
        let null = core::ptr::null;
        Domain {
            flags: 1,
            name,
            wide_name: null(),
            extra: 0,
            frame_key: Cached::default(),
            next: core::ptr::null_mut(),
        }
    }
}

impl StringHandle {
    pub(crate) fn new(text: *const c_char) -> StringHandle {
        let null = core::ptr::null;
        StringHandle {
            text,
            wide_text: null(),
            extra: 0,
            numbers: AtomicPtr::new(core::ptr::null_mut()),
            next: core::ptr::null_mut(),
        }
    }

    /// The numbers of the name, which live for the process.
    pub(crate) fn numbers(&self) -> &'static Numbers {
        // SAFETY: null, or numbers that are never freed.
        if let Some(numbers) = unsafe { self.numbers.load(Acquire).as_ref() } {
            return numbers;
        }
        let made = Box::into_raw(Box::<Numbers>::default());
        let before = self.numbers.compare_exchange(core::ptr::null_mut(), made, AcqRel, Acquire);
        // SAFETY: either is never freed from here on.
        unsafe { &*before.err().unwrap_or(made) }
    }
}

/// The numbers of a name in the dictionary, by use.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    /// The state of tasks.
    pub state: Cached,
    /// The key of intervals.
    pub interval: Cached,
    /// The key of moments.
    pub point: Cached,
}
