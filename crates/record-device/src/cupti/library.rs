//! CUPTI's functions and the numbers that its interface consists of (documentation and headers of
//! CUPTI 12.9, 13.0 and 13.5). Records are read by kind and offset: since CUDA 9 the fields that are read
//! here have kept their places in every version of their structures, which grow at the end.

use crate::dynamic::{Library, functions};
use std::ffi::{c_char, c_void};

/// `CUptiResult`.
pub(super) const SUCCESS: i32 = 0;
/// `cuptiActivityFlushAll` with it hands over unfinished records too.
pub(super) const FLUSH_FORCED: u32 = 1;
/// `cuptiSetThreadIdType`: the system's thread ids.
pub(super) const THREAD_ID_SYSTEM: u32 = 1;

/// Kinds of activity records.
pub(super) mod activity {
    pub const MEMCPY: u32 = 1;
    pub const MEMSET: u32 = 2;
    pub const KERNEL: u32 = 3;
    pub const DEVICE: u32 = 8;
    pub const CONCURRENT_KERNEL: u32 = 10;
    pub const OVERHEAD: u32 = 17;
    pub const MEMCPY_PEER: u32 = 22;
    pub const SYNCHRONISATION: u32 = 38;
    pub const GRAPH: u32 = 51;
}

/// Domains of callbacks.
pub(super) mod domain {
    pub const DRIVER: u32 = 1;
    pub const RUNTIME: u32 = 2;
}

/// Handles of the default streams.
pub(super) const STREAM_PER_THREAD: usize = 2;

/// Arguments of a callback about a call.
#[repr(C)]
pub(super) struct CallData {
    /// 0 before the call, 1 after it.
    pub site: u32,
    pub function: *const c_char,
    pub arguments: *const u8,
    pub result: *const i32,
    /// The kernel, of calls that launch one.
    pub symbol: *const c_char,
    pub context: *mut c_void,
    pub context_number: u32,
    pub between: *mut u64,
    pub correlation: u32,
}

pub(super) type Callback = unsafe extern "C" fn(*mut c_void, u32, u32, *const CallData);
pub(super) type Requested = unsafe extern "C" fn(*mut *mut u8, *mut usize, *mut usize);
pub(super) type Completed = unsafe extern "C" fn(*mut c_void, u32, *mut u8, usize, usize);

functions! {
    /// The used part of CUPTI.
    Cupti {
        needed {
            register: fn(Requested, Completed) -> i32 = c"cuptiActivityRegisterCallbacks";
            enable: fn(u32) -> i32 = c"cuptiActivityEnable";
            flush_all: fn(u32) -> i32 = c"cuptiActivityFlushAll";
            next_record: fn(*mut u8, usize, *mut *mut u8) -> i32 = c"cuptiActivityGetNextRecord";
            dropped: fn(*mut c_void, u32, *mut usize) -> i32 = c"cuptiActivityGetNumDroppedRecords";
            timestamp: fn(*mut u64) -> i32 = c"cuptiGetTimestamp";
        }
        may {
            subscribe: fn(*mut *mut c_void, Callback, *mut c_void) -> i32 = c"cuptiSubscribe";
            enable_domain: fn(u32, *mut c_void, u32) -> i32 = c"cuptiEnableDomain";
            stream_number: fn(*mut c_void, usize, u8, *mut u32) -> i32 = c"cuptiGetStreamIdEx";
            context_number: fn(*mut c_void, *mut u32) -> i32 = c"cuptiGetContextId";
            device_number: fn(*mut c_void, *mut u32) -> i32 = c"cuptiGetDeviceId";
            thread_ids: fn(u32) -> i32 = c"cuptiSetThreadIdType";
        }
    }
}

impl Cupti {
    /// CUPTI as the program has loaded it, else the one that `TASKSCOPE_CUPTI` names, else the one
    /// that belongs to the driver.
    pub fn load() -> Option<Cupti> {
        let asked_for = std::env::var("TASKSCOPE_CUPTI").ok().filter(|path| !path.is_empty());
        let library = match asked_for {
            Some(path) => Library::load(&path),
            None => loaded_by_program().or_else(installed),
        };
        library.and_then(Cupti::find)
    }
}

const NAMES: [&str; 4] = ["libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so"];

fn loaded_by_program() -> Option<Library> {
    NAMES.into_iter().find_map(Library::loaded)
}

fn installed() -> Option<Library> {
    // A CUPTI that is newer than the driver refuses every call.
    let major = driver_major();
    let newer = |name: &&str| {
        let named_major =
            name.strip_prefix("libcupti.so.").and_then(|rest| rest.split('.').next()?.parse().ok());
        matches!((named_major, major), (Some(named_major), Some(major)) if u32::gt(&named_major, &major))
    };
    const PLACES: [&str; 4] = [
        "",
        "/usr/local/cuda/extras/CUPTI/lib64/",
        "/usr/local/cuda/lib64/",
        "/opt/cuda/extras/CUPTI/lib64/",
    ];
    let names = NAMES.into_iter().filter(|name| !newer(name));
    names.flat_map(|name| PLACES.map(|place| format!("{place}{name}"))).find_map(|path| Library::load(&path))
}

/// The CUDA release that the program's driver is of.
fn driver_major() -> Option<u32> {
    let driver = Library::loaded("libcuda.so.1")?;
    let function = driver.symbol(c"cuDriverGetVersion")?;
    type Function = unsafe extern "C" fn(*mut i32) -> i32;
    let mut version = 0;
    // SAFETY: the driver's function of this name has this form.
    let status = unsafe { std::mem::transmute::<*mut c_void, Function>(function)(&raw mut version) };
    (status == 0 && version > 0).then_some(version as u32 / 1000)
}

/// Offsets of the fields of an operation's record.
pub(super) struct Layout {
    pub start: usize,
    pub end: usize,
    pub device: usize,
    pub context: usize,
    pub stream: usize,
    pub correlation: usize,
    /// Time at which the driver passed it on; 0 if the record has none.
    pub submitted: usize,
    pub bytes: usize,
    /// The graph that it is a node of.
    pub graph: usize,
    pub name: usize,
    /// As long as the oldest structure that has all of them.
    pub size: usize,
}

const COPY: Layout = Layout {
    start: 16,
    end: 24,
    device: 32,
    context: 36,
    stream: 40,
    correlation: 44,
    submitted: 0,
    bytes: 8,
    graph: 72,
    name: 0,
    size: 64,
};

const KERNEL: Layout = Layout {
    device: 40,
    context: 44,
    stream: 48,
    correlation: 92,
    submitted: 128,
    bytes: 0,
    graph: 156,
    name: 104,
    size: 144,
    ..COPY
};

/// The layout of a kind of operation; `None` for other records.
pub(super) fn layout(kind: u32) -> Option<Layout> {
    Some(match kind {
        activity::MEMCPY | activity::MEMSET => COPY,
        activity::MEMCPY_PEER => Layout { correlation: 60, graph: 80, size: 72, ..COPY },
        activity::KERNEL | activity::CONCURRENT_KERNEL => KERNEL,
        activity::GRAPH => Layout {
            start: 8,
            end: 16,
            device: 24,
            context: 32,
            stream: 36,
            correlation: 4,
            bytes: 0,
            graph: 28,
            size: 40,
            ..COPY
        },
        _ => return None,
    })
}
