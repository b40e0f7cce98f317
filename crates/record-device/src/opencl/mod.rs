//! The OpenCL layer: is between a program and its OpenCL library, and hands every operation of
//! every queue to the hub. Loaded by `OPENCL_LAYERS` (ocl-icd, Khronos's loader).
//!
//! | loader | begins | ends |
//! | --- | --- | --- |
//! | ocl-icd; Khronos's up to 2024, or with `OCL_ICD_FORCE_LEGACY_TERMINATION` | [`clInitLayer`] | at exit |
//! | Khronos's | [`clInitLayerWithProperties`] | [`clDeinitLayer`], as the loader is unloaded |
//!
//! A layer receives the table of functions below it and returns its own, with replacements for the functions
//! that it observes. Functions of extensions are not in the table: the layer answers the query of their addresses.
//! Profiling is enabled for every queue, and each operation gets an event with a callback that reads the stamps;
//! the program's own events are unaffected.

mod dispatch_table;
mod enqueue;
mod extensions;
mod queues;
mod watched_events;

use crate::hub::Source;
use dispatch_table::{BELOW, ENTRIES, INVALID_VALUE, OWN, SUCCESS};
use std::ffi::c_void;
use std::sync::atomic::{AtomicBool, Ordering::*};

const LAYER_API_VERSION: u32 = 0x4240;
const LAYER_NAME: u32 = 0x4241;

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
        watched_events::waited_for_all();
        hub.wait_for_records(MAX_WAIT_MS, MAX_QUIET_MS);
    }
    // The collector may be querying at this moment.
    let leaving = watched_events::asking_stopped();
    if crate::hub::hub().is_some() {
        watched_events::give_up();
    }
    BELOW.store(std::ptr::null_mut(), Release);
    drop(leaving);
    queues::forget_all();
    extensions::forget_all();
    SUCCESS
}

/// Time that an unloading loader waits for records in all, and after the last one: threads of the driver that need the
/// dynamic loader, as PoCL's for a new kernel, cannot continue meanwhile.
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
            hub.add_source(Source { flush: watched_events::waited_for_all, force: || () });
        }
        enqueue::replace(&mut table);
        queues::replace(&mut table);
        extensions::replace(&mut table);
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
