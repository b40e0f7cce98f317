//! From `ompt_start_tool` to the end of the process.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_uint};
use core::mem::transmute;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use taskscope_event::models::{openmp, ovni};
use taskscope_record::{Json, process};

use crate::abi::{Callback, Data, Lookup, SetCallback, StartToolResult, event};
use crate::sampler::excluded_programs;
use crate::{chain, control, end_order, host, memory, profiling, recording, sampler, task_stacks};

/// A static that the runtime gets a pointer to.
struct Shared<T>(UnsafeCell<T>);
// SAFETY: only the runtime's start-up touches the content, on one thread.
unsafe impl<T> Sync for Shared<T> {}

static RESULT: Shared<StartToolResult> = Shared(UnsafeCell::new(StartToolResult {
    initialize: Some(initialize),
    finalize: Some(finalize),
    tool_data: Data { value: 0 },
}));

/// Entry point that every OpenMP runtime looks up in a tool: returns null, at no further cost to the program,
/// unless recording was requested.
///
/// # Safety
/// Called by an OpenMP runtime according to the standard: `runtime_version` is a C string or null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ompt_start_tool(
    omp_version: c_uint,
    runtime_version: *const c_char,
) -> *mut StartToolResult {
    // The user's list may name this library too.
    static STARTING: AtomicBool = AtomicBool::new(false);
    if excluded_programs::is_here() || STARTING.swap(true, Relaxed) {
        return core::ptr::null_mut();
    }
    // SAFETY: the runtime's own arguments.
    let result = unsafe { start(omp_version, runtime_version) };
    STARTING.store(false, Relaxed);
    result
}

/// # Safety
/// As [`ompt_start_tool`].
unsafe fn start(omp_version: c_uint, runtime_version: *const c_char) -> *mut StartToolResult {
    let records = recording::trace_directory().is_some();
    // SAFETY: by contract.
    let next = unsafe { chain::start_next(omp_version, runtime_version, records) };
    let next_result = next.as_ref().map_or(core::ptr::null_mut(), |(result, _)| *result);
    if !records {
        return next_result;
    }
    let runtime = if runtime_version.is_null() {
        "unknown".to_owned()
    } else {
        // SAFETY: by contract.
        unsafe { CStr::from_ptr(runtime_version) }.to_string_lossy().into_owned()
    };
    let mut openmp_attributes =
        vec![("runtime", Json::string(&runtime)), ("version", Json::integer(omp_version))];
    if let Some((_, library)) = &next {
        openmp_attributes.push(("next_tool", Json::string(library)));
    }
    if !recording::start_recording(&[("ovni", ovni::VERSION), ("openmp", openmp::VERSION)]) {
        return next_result;
    }
    process::set_attribute("openmp", Json::object(openmp_attributes));
    if let Some(mut recording) = taskscope_record::enter() {
        // Recording began before the process had OpenMP.
        recording.store_metadata();
    }
    chain::set_next(next_result);
    host::start_sampling();
    RESULT.0.get()
}

unsafe extern "C" fn initialize(lookup: Lookup, initial_device: c_int, _tool_data: *mut Data) -> c_int {
    // SAFETY: the runtime's own function, called with a C string as the standard says.
    let Some(set_callback) = (unsafe { lookup(c"ompt_set_callback".as_ptr()) }) else { return 0 };
    sampler::runtime_code::set_runtime(set_callback as usize);
    end_order::end_runtime_last(set_callback as usize as u64);
    if sampler::is_active() {
        // SAFETY: the runtime's own function.
        unsafe {
            task_stacks::levels::set_lookup(lookup);
            task_stacks::check::set_lookup(lookup);
        }
        sampler::code_map::rebuild();
    }
    // SAFETY: this entry point has this type.
    let set_callback = unsafe { transmute::<unsafe extern "C" fn(), SetCallback>(set_callback) };
    // Its result goes to the program, so it is not one of the events that two tools see. SAFETY: only changes
    // the type under which the address is passed on.
    let control = unsafe { transmute::<*const (), Callback>(control::control_tool as *const ()) };
    // SAFETY: the callback has the type of this event's.
    unsafe { set_callback(event::CONTROL_TOOL, Some(control)) };
    for handler in chain::handlers() {
        let Some(own) = handler.own else { continue };
        let is_wanted = (handler.event != event::TASK_DEPENDENCE || memory::wants_edges())
            && !(profiling::is_on() && TRACED_ONLY.contains(&handler.event));
        if !is_wanted && !chain::has_next() {
            continue;
        }
        let callback = if chain::has_next() { handler.both } else { own };
        // SAFETY: both have the type that the standard gives to the event's callback.
        unsafe { set_callback(handler.event, Some(callback)) };
    }
    if chain::has_next() {
        // SAFETY: the runtime's own arguments.
        unsafe { chain::initialize_next(lookup, initial_device) };
    }
    1
}

/// Events without use in a profile, some of them frequent: they are not registered.
const TRACED_ONLY: [c_int; 7] = [
    event::DEPENDENCES,
    event::TASK_DEPENDENCE,
    event::DISPATCH,
    event::CANCEL,
    event::FLUSH,
    event::SYNC_REGION,
    event::LOCK_INIT,
];

/// Threads that still live may record until the process ends; [`recording`] closes their streams.
unsafe extern "C" fn finalize(_tool_data: *mut Data) {
    chain::finalize_next();
}
