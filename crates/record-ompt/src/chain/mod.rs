//! A second tool behind this one.
//!
//! A runtime has one place for a tool. When the user has named a tool of their own, it is loaded from
//! here and gets every callback after ours. Both tools want the runtime's data per region and task:
//!
//! ```text
//!   ompt_data_t ──▶ both ┬ our data        our callbacks get a pointer to this,
//!                        └ their data      theirs to this
//! ```
//! so that neither sees the other. Without a second tool none of this is on any path.

mod handlers;
mod lookup;
mod tool_data;

use core::ffi::{CStr, c_char, c_int, c_uint, c_void};
use core::mem::transmute;
use core::ptr::null_mut;
use core::sync::atomic::Ordering::*;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;

use self::handlers::THEIRS;
use self::lookup::{our_lookup, set_runtime_lookup};
use self::tool_data::NEXT;
use crate::abi::{Lookup, StartTool, StartToolResult};

pub use self::handlers::handlers;
pub use self::tool_data::{has_next, known_data};

/// The user's own tools, as a list of libraries separated by colons.
const NEXT_TOOLS_VARIABLE: &str = "TASKSCOPE_NEXT_TOOL_LIBRARIES";
/// Tool that LLVM's runtime loads by default: it reports OpenMP's synchronisation to ThreadSanitizer, and
/// declines in programs without it.
const DEFAULT_TOOL: &CStr = c"libarcher.so";

/// Starts the first of the user's tools that wants to run: its result and its library. In a program
/// with ThreadSanitizer, the tool that the runtime would have loaded if we were not there.
///
/// # Safety
/// Called from `ompt_start_tool`, with its arguments.
pub unsafe fn start_next(
    omp_version: c_uint,
    runtime_version: *const c_char,
    recording: bool,
) -> Option<(*mut StartToolResult, String)> {
    let libraries = std::env::var_os(NEXT_TOOLS_VARIABLE).unwrap_or_default();
    let named = libraries.as_bytes().split(|byte| *byte == b':').filter(|name| !name.is_empty());
    let default = (recording && has_thread_sanitizer()).then(|| DEFAULT_TOOL.to_bytes());
    for library in named.chain(default) {
        let Ok(path) = CString::new(library) else { continue };
        // SAFETY: as the runtime itself would load it; the names are C strings.
        let start = unsafe {
            let handle = libc::dlopen(path.as_ptr(), libc::RTLD_LAZY);
            if handle.is_null() {
                continue;
            }
            libc::dlsym(handle, c"ompt_start_tool".as_ptr())
        };
        if start.is_null() {
            continue;
        }
        // SAFETY: the symbol of this name has this type; the arguments are the runtime's.
        let result = unsafe { transmute::<*mut c_void, StartTool>(start)(omp_version, runtime_version) };
        if !result.is_null() {
            return Some((result, path.to_string_lossy().into_owned()));
        }
    }
    None
}

fn has_thread_sanitizer() -> bool {
    // SAFETY: looks a C string up among the loaded symbols.
    !unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"__tsan_init".as_ptr()) }.is_null()
}

/// Puts a started tool behind this one.
pub fn set_next(result: *mut StartToolResult) {
    NEXT.store(result, Release);
}

/// Initialises the tool behind this one.
///
/// # Safety
/// Called from this tool's own initialisation, with the runtime's arguments.
pub unsafe fn initialize_next(lookup: Lookup, initial_device: c_int) {
    set_runtime_lookup(lookup);
    let next = NEXT.load(Acquire);
    // SAFETY: the tool's result lives as long as the tool.
    let active = unsafe {
        (*next)
            .initialize
            .is_some_and(|initialize| initialize(our_lookup, initial_device, &raw mut (*next).tool_data) != 0)
    };
    if !active {
        THEIRS.iter().for_each(|callback| callback.store(0, Release));
        set_next(null_mut());
    }
}

/// Finalises the tool behind this one.
pub fn finalize_next() {
    let next = NEXT.swap(null_mut(), AcqRel);
    if !next.is_null() {
        // SAFETY: as in `initialize_next`; the runtime calls this once.
        unsafe {
            if let Some(finalize) = (*next).finalize {
                finalize(&raw mut (*next).tool_data);
            }
        }
    }
}
