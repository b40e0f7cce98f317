//! PTI's functions and the numbers that its interface consists of (headers of PTI SDK 0.17 and 1.0).

use crate::dynamic::{Library, functions};
use std::ffi::{c_char, c_void};

/// `pti_result`.
pub(super) const SUCCESS: i32 = 0;

/// Kinds of views.
pub(super) mod view {
    pub const KERNEL: u32 = 1;
    pub const DRIVER_CALL: u32 = 3;
    pub const OVERHEAD: u32 = 5;
    pub const RUNTIME_CALL: u32 = 6;
    pub const COPY: u32 = 8;
    pub const FILL: u32 = 9;
    pub const COPY_PEER: u32 = 10;
    pub const SYNCHRONISATION: u32 = 11;
}

/// Domain of callbacks: an operation is appended to a command list.
pub(super) const APPENDED: u32 = 4;
/// Phases of a callback.
pub(super) const ENTER: u32 = 1;
pub(super) const EXIT: u32 = 2;

/// Arguments of a callback about appended operations.
#[repr(C)]
pub(super) struct Appended {
    pub domain: u32,
    pub list_properties: u32,
    pub list: usize,
    /// 0 if the list has no queue yet.
    pub queue: usize,
    pub device: usize,
    pub phase: u32,
    pub result: u32,
    pub correlation: u32,
    pub operations: u32,
    pub operation: *const AppendedOperation,
}

/// One of them.
#[repr(C)]
pub(super) struct AppendedOperation {
    pub kind: u32,
    pub id: u64,
    pub kernel: u64,
    pub name: *const c_char,
}

pub(super) type Callback =
    unsafe extern "C" fn(u32, u32, u32, usize, *const c_void, *mut c_void, *mut *mut c_void);
pub(super) type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize);
pub(super) type Completed = unsafe extern "C" fn(*mut u8, usize, usize);

functions! {
    /// The used part of PTI.
    Pti {
        needed {
            set_callbacks: fn(Requested, Completed) -> i32 = c"ptiViewSetCallbacks";
            enable: fn(u32) -> i32 = c"ptiViewEnable";
            flush: fn() -> i32 = c"ptiFlushAllViews";
            next_record: fn(*mut u8, usize, *mut *mut u8) -> i32 = c"ptiViewGetNextRecord";
        }
        may {
            call_name: fn(u32, u32, *mut *const c_char) -> i32 = c"ptiViewGetApiIdName";
            timestamp: fn() -> u64 = c"ptiViewGetTimestamp";
            set_timestamp: fn(extern "C" fn() -> u64) -> i32 = c"ptiViewSetTimestampCallback";
            subscribe: fn(*mut *mut c_void, Callback, *mut c_void) -> i32 = c"ptiCallbackSubscribe";
            enable_domain: fn(*mut c_void, u32, u32, u32) -> i32 = c"ptiCallbackEnableDomain";
        }
    }
}

impl Pti {
    /// The library that `TASKSCOPE_PTI` names, else the installed one.
    pub fn load() -> Option<Pti> {
        let asked_for = std::env::var("TASKSCOPE_PTI").ok().filter(|path| !path.is_empty());
        let library = match asked_for {
            Some(path) => Library::load(&path),
            None => {
                ["libpti_view.so.1", "libpti_view.so.0", "libpti_view.so"].into_iter().find_map(Library::load)
            }
        };
        library.and_then(Pti::find)
    }
}

/// Offsets of the fields of an operation's record.
pub(super) struct Layout {
    pub queue: usize,
    pub context: usize,
    pub name: usize,
    /// Universal id of the device.
    pub device: usize,
    pub id: usize,
    pub correlation: usize,
    pub thread: usize,
    /// Append, start, end, submission: one after the other.
    pub append: usize,
    /// 0 if the record has none.
    pub bytes: usize,
    pub sycl_queue: usize,
    pub size: usize,
}

/// The layout of a kind of operation; `None` for other records.
pub(super) fn layout(kind: u32) -> Option<Layout> {
    Some(match kind {
        view::KERNEL => Layout {
            queue: 8,
            context: 16,
            name: 24,
            id: 48,
            correlation: 56,
            thread: 60,
            device: 80,
            append: 96,
            bytes: 0,
            sycl_queue: 152,
            size: 160,
        },
        view::COPY => Layout {
            queue: 16,
            context: 24,
            name: 32,
            device: 56,
            id: 72,
            correlation: 80,
            thread: 84,
            append: 88,
            bytes: 120,
            sycl_queue: 128,
            size: 136,
        },
        view::COPY_PEER => Layout {
            queue: 16,
            context: 24,
            name: 32,
            device: 88,
            id: 104,
            correlation: 112,
            thread: 116,
            append: 120,
            bytes: 152,
            sycl_queue: 160,
            size: 168,
        },
        view::FILL => Layout {
            queue: 8,
            context: 16,
            name: 24,
            device: 48,
            id: 64,
            correlation: 72,
            thread: 76,
            append: 80,
            bytes: 112,
            sycl_queue: 128,
            size: 136,
        },
        _ => return None,
    })
}

/// Offsets in a kernel's record: numbers of SYCL's own.
pub(super) const KERNEL_SYCL_NODE: usize = 144;
pub(super) const KERNEL_SYCL_INVOCATION: usize = 160;
/// Missing SYCL queue ids.
pub(super) const NO_SYCL_QUEUE: u64 = u64::MAX - 1;
