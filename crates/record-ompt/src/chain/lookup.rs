//! The entry points that the other tool gets: the runtime's, but for those that register callbacks or
//! hand out tool_data.

use core::ffi::{CStr, c_char, c_int};
use core::mem::transmute;
use core::sync::atomic::{AtomicUsize, Ordering::*};

use super::handlers::{Handler, THEIRS, handlers};
use super::tool_data::theirs;
use crate::abi::{Callback, Data, EntryPoint, GetTaskInfo, Lookup, OmptFrame, SetCallback};

/// `ompt_set_always`.
const SET_ALWAYS: c_int = 5;

/// The runtime's own lookup function; 0 before it is known.
static RUNTIME_LOOKUP: AtomicUsize = AtomicUsize::new(0);

/// Sets the runtime's own lookup function.
pub fn set_runtime_lookup(lookup: Lookup) {
    RUNTIME_LOOKUP.store(lookup as usize, Release);
}

/// Entry point lookup for the second tool.
pub unsafe extern "C" fn our_lookup(name: *const c_char) -> Option<EntryPoint> {
    // SAFETY: entry points are looked up by C strings.
    let text = unsafe { CStr::from_ptr(name) };
    let own = match text.to_bytes() {
        b"ompt_set_callback" => set_callback as *const (),
        b"ompt_get_callback" => get_callback as *const (),
        b"ompt_get_task_info" => get_task_info as *const (),
        b"ompt_get_parallel_info" => get_parallel_info as *const (),
        _ => return runtime_entry(text),
    };
    // SAFETY: the caller casts it to the type of the entry point of this name.
    Some(unsafe { transmute::<*const (), EntryPoint>(own) })
}

fn runtime_entry(name: &CStr) -> Option<EntryPoint> {
    let lookup = RUNTIME_LOOKUP.load(Acquire);
    if lookup == 0 {
        return None;
    }
    // SAFETY: stored by `initialize_next` from a value of this type.
    unsafe { transmute::<usize, Lookup>(lookup)(name.as_ptr()) }
}

unsafe extern "C" fn set_callback(number: c_int, callback: Option<Callback>) -> c_int {
    let Some(slot) = THEIRS.get(number as usize) else { return 0 };
    let Some(register) = runtime_entry(c"ompt_set_callback") else { return 0 };
    // SAFETY: this entry point has this type.
    let register = unsafe { transmute::<EntryPoint, SetCallback>(register) };
    slot.store(callback.map_or(0, |callback| callback as usize), Release);
    match handlers().into_iter().find(|handler| handler.event == number) {
        // Registered from the start.
        Some(Handler { own: Some(_), .. }) => SET_ALWAYS,
        // SAFETY: registers a callback of the event's type.
        Some(Handler { both, .. }) => unsafe { register(number, callback.map(|_| both)) },
        // SAFETY: forwards the tool's request.
        None => unsafe { register(number, callback) },
    }
}

unsafe extern "C" fn get_callback(number: c_int, callback: *mut Option<Callback>) -> c_int {
    let known = THEIRS.get(number as usize).map_or(0, |slot| slot.load(Acquire));
    if known == 0 || callback.is_null() {
        return 0;
    }
    // SAFETY: stored by `set_callback` from a value of this type; the caller gives room for it.
    unsafe { callback.write(Some(transmute::<usize, Callback>(known))) };
    1
}

/// Replaces our data by the other tool's.
///
/// # Safety
/// `data` is null or points to a pointer.
unsafe fn translate(data: *mut *mut Data) {
    if !data.is_null() {
        // SAFETY: by contract.
        unsafe { *data = theirs(*data) };
    }
}

unsafe extern "C" fn get_task_info(
    level: c_int,
    flags: *mut c_int,
    task: *mut *mut Data,
    frame: *mut *mut OmptFrame,
    region: *mut *mut Data,
    index: *mut c_int,
) -> c_int {
    let Some(entry) = runtime_entry(c"ompt_get_task_info") else { return 0 };
    // SAFETY: this entry point has this type, and the arguments are its caller's.
    unsafe {
        let found = transmute::<EntryPoint, GetTaskInfo>(entry)(level, flags, task, frame, region, index);
        if found != 0 {
            translate(task);
            translate(region);
        }
        found
    }
}

unsafe extern "C" fn get_parallel_info(level: c_int, region: *mut *mut Data, team: *mut c_int) -> c_int {
    type Function = unsafe extern "C" fn(c_int, *mut *mut Data, *mut c_int) -> c_int;
    let Some(entry) = runtime_entry(c"ompt_get_parallel_info") else { return 0 };
    // SAFETY: as in `get_task_info`.
    unsafe {
        let found = transmute::<EntryPoint, Function>(entry)(level, region, team);
        if found != 0 {
            translate(region);
        }
        found
    }
}
