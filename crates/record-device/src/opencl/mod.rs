//! The OpenCL layer: stands between a program and its OpenCL library, and hands every operation of
//! every queue to the hub. Loaded by `OPENCL_LAYERS` (ocl-icd, Khronos's loader).
//!
//! | loader | begins | ends |
//! | --- | --- | --- |
//! | ocl-icd; Khronos's up to 2024, or with `OCL_ICD_FORCE_LEGACY_TERMINATION` | [`clInitLayer`] | at exit |
//! | Khronos's | [`clInitLayerWithProperties`] | [`clDeinitLayer`], as the loader is unloaded |
//!
//! A layer receives the table of functions below it and returns its own, with replacements for the functions
//! that it observes. Profiling is enabled for every queue, and each operation gets an event with a callback
//! that reads the stamps; the program's own events are unaffected.

mod enqueue;
mod queues;

use crate::hub::Source;
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering::*};

/// Functions of the table: `struct _cl_icd_dispatch` of the OpenCL 3.0 headers.
const ENTRIES: usize = 149;

/// Places in the table.
pub(super) mod slot {
    pub const GET_DEVICE_INFO: usize = 3;
    pub const CREATE_COMMAND_QUEUE: usize = 9;
    pub const RELEASE_COMMAND_QUEUE: usize = 11;
    pub const GET_COMMAND_QUEUE_INFO: usize = 12;
    pub const GET_KERNEL_INFO: usize = 39;
    pub const WAIT_FOR_EVENTS: usize = 41;
    pub const GET_EVENT_INFO: usize = 42;
    pub const RETAIN_EVENT: usize = 43;
    pub const RELEASE_EVENT: usize = 44;
    pub const GET_EVENT_PROFILING_INFO: usize = 45;
    pub const FLUSH: usize = 46;
    pub const FINISH: usize = 47;
    pub const SET_EVENT_CALLBACK: usize = 81;
    pub const ENQUEUE_MARKER_WITH_WAIT_LIST: usize = 105;
    pub const CREATE_COMMAND_QUEUE_WITH_PROPERTIES: usize = 123;
    pub const GET_DEVICE_AND_HOST_TIMER: usize = 140;
}

pub(super) const SUCCESS: i32 = 0;

/// The functions below the layer; null before and after their library is there.
static BELOW: AtomicPtr<[usize; ENTRIES]> = AtomicPtr::new(std::ptr::null_mut());
/// The layer's own table.
static OWN: AtomicPtr<[usize; ENTRIES]> = AtomicPtr::new(std::ptr::null_mut());

/// The address of a function below the layer; 0 if that library does not have it.
pub(super) fn below(slot: usize) -> usize {
    // SAFETY: null or a leaked table.
    unsafe { BELOW.load(Acquire).as_ref() }.map_or(0, |table| table[slot])
}

/// Calls a function below the layer. Arguments are integers and pointers, each in a register or
/// stack slot of its own, as the calling conventions of x86-64 and aarch64 have them.
macro_rules! call_below {
    ($slot:expr $(, $argument:expr)*) => {{
        let address = $crate::opencl::below($slot);
        if address == 0 {
            -59 // CL_INVALID_OPERATION
        } else {
            type Function = unsafe extern "C" fn($($crate::opencl::call_below!(@word $argument)),*) -> i32;
            // SAFETY: the loader put a function of this form there.
            let function: Function = unsafe { std::mem::transmute(address) };
            // SAFETY: the arguments are the program's, or valid by the function's contract.
            unsafe { function($($argument as usize),*) }
        }
    }};
    (@word $argument:expr) => { usize };
}
pub(super) use call_below;

const LAYER_API_VERSION: u32 = 0x4240;
const LAYER_NAME: u32 = 0x4241;
const INVALID_VALUE: i32 = -30;

/// Returns the layer's properties to the loader. All loaders that call [`clInitLayerWithProperties`] require
/// version 100, too.
///
/// # Safety
/// As OpenCL's: `value` has `size` bytes, `size_ret` is null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clGetLayerInfo(
    name: u32,
    size: usize,
    value: *mut c_void,
    size_ret: *mut usize,
) -> i32 {
    static API: u32 = 100;
    const NAME: &[u8] = b"taskscope\0";
    let (bytes, count): (*const u8, usize) = match name {
        LAYER_API_VERSION => ((&raw const API).cast(), size_of::<u32>()),
        LAYER_NAME => (NAME.as_ptr(), NAME.len()),
        _ => return INVALID_VALUE,
    };
    if !value.is_null() && size < count {
        return INVALID_VALUE;
    }
    // SAFETY: by contract; the sizes were compared.
    unsafe {
        if !value.is_null() {
            std::ptr::copy_nonoverlapping(bytes, value.cast(), count);
        }
        if !size_ret.is_null() {
            *size_ret = count;
        }
    }
    SUCCESS
}

/// Takes the table below and gives the layer's own.
///
/// # Safety
/// As the loader's: `target` points to `entries` functions, the other pointers are writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayer(
    entries: u32,
    target: *const usize,
    entries_ret: *mut u32,
    own_ret: *mut *const usize,
) -> i32 {
    // SAFETY: by contract.
    unsafe { stand_between(entries, target, entries_ret, own_ret) }
}

/// As [`clInitLayer`], of loaders that call [`clDeinitLayer`]. No property is defined yet; unknown ones are ignored.
///
/// # Safety
/// As for [`clInitLayer`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn clInitLayerWithProperties(
    entries: u32,
    target: *const usize,
    entries_ret: *mut u32,
    own_ret: *mut *const usize,
    _properties: *const u64,
) -> i32 {
    // SAFETY: by contract.
    unsafe { stand_between(entries, target, entries_ret, own_ret) }
}

/// Ends the layer before the loader unloads the libraries below it: queues are flushed, records get a second
/// to arrive, operations still in flight are lost, and no function below is called after that. At the end of
/// the program these libraries may be gone already; recording has ended before.
#[unsafe(no_mangle)]
pub extern "C" fn clDeinitLayer() -> i32 {
    if let Some(hub) = crate::hub::hub() {
        queues::flush_all();
        enqueue::waited_for_all();
        hub.wait_for_records(MAX_WAIT_MS, MAX_QUIET_MS);
    }
    // The collector may be querying at this moment.
    let leaving = enqueue::asking_stopped();
    if crate::hub::hub().is_some() {
        enqueue::give_up();
    }
    BELOW.store(std::ptr::null_mut(), Release);
    drop(leaving);
    queues::forget_all();
    SUCCESS
}

/// How long an unloading loader waits for records in all, and after the last one: threads of the driver that need the
/// dynamic loader, as PoCL's for a new kernel, cannot go on meanwhile.
const MAX_WAIT_MS: u32 = 1000;
const MAX_QUIET_MS: u32 = 200;

/// # Safety
/// As for [`clInitLayer`].
unsafe fn stand_between(
    entries: u32,
    target: *const usize,
    entries_ret: *mut u32,
    own_ret: *mut *const usize,
) -> i32 {
    if target.is_null() || entries_ret.is_null() || own_ret.is_null() {
        return INVALID_VALUE;
    }
    let mut table = [0usize; ENTRIES];
    let count = ENTRIES.min(entries as usize);
    // SAFETY: by contract.
    unsafe { std::ptr::copy_nonoverlapping(target, table.as_mut_ptr(), count) };
    BELOW.store(Box::leak(Box::new(table)), Release);
    // Without a hub there is nothing to record: the table is unchanged.
    if let Some(hub) = crate::hub::hub() {
        static KNOWN_TO_HUB: AtomicBool = AtomicBool::new(false);
        if !KNOWN_TO_HUB.swap(true, Relaxed) {
            hub.add_source(Source { flush: enqueue::waited_for_all, force: || () });
        }
        enqueue::replace(&mut table);
        queues::replace(&mut table);
    }
    let own = Box::leak(Box::new(table));
    OWN.store(own, Release);
    // SAFETY: by contract.
    unsafe {
        *entries_ret = count as u32;
        *own_ret = own.as_ptr();
    }
    SUCCESS
}

/// A text that OpenCL's `get…Info` functions give.
pub(super) fn text(slot: usize, object: usize, parameter: u32) -> Option<String> {
    let mut buffer = [0u8; 256];
    let status = call_below!(slot, object, parameter, buffer.len() - 1, buffer.as_mut_ptr(), 0usize);
    let length = buffer.iter().position(|byte| *byte == 0)?;
    (status == SUCCESS).then(|| String::from_utf8_lossy(&buffer[..length]).trim().to_owned())
}

/// A number that OpenCL's `get…Info` functions give.
pub(super) fn number(slot: usize, object: usize, parameter: u32) -> Option<u64> {
    let mut value = 0u64;
    let status = call_below!(slot, object, parameter, size_of::<u64>(), &raw mut value, 0usize);
    (status == SUCCESS).then_some(value)
}
