//! Target constructs: forwards host operations on devices to the recorder of device queues,
//! `libtaskscope_device.so` beside this library, which is loaded at the first one.
//!
//! | kind | |
//! | --- | --- |
//! | 0 | a kernel |
//! | 1, 2 | a copy to, from the device |
//! | 3 | memory is filled |
//! | 4, 5 | memory is allocated, freed |
//! | 6 | the construct as a whole |

use core::cell::Cell;
use core::ffi::{c_char, c_int, c_uint, c_void};
use std::ffi::{CStr, CString, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::abi::{Data, endpoint};

/// The device recorder's functions.
#[derive(Clone, Copy)]
struct Recorder {
    begin: unsafe extern "C" fn(i32, u32, u64),
    end: unsafe extern "C" fn(),
}

const FILE_NAME: &str = "libtaskscope_device.so";

fn recorder() -> Option<Recorder> {
    static RECORDER: OnceLock<Option<Recorder>> = OnceLock::new();
    *RECORDER.get_or_init(load)
}

fn load() -> Option<Recorder> {
    let own = own_path()?;
    let places = [own.with_file_name(FILE_NAME), own.with_file_name("deps").join(FILE_NAME)];
    let path = places.into_iter().find(|path| path.is_file())?;
    let path = CString::new(path.as_os_str().as_bytes()).ok()?;
    // SAFETY: the path is a C string; the library is ours, and stays loaded.
    unsafe {
        let library = libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL);
        if library.is_null() {
            return None;
        }
        let begin = libc::dlsym(library, c"taskscope_target_begin".as_ptr());
        let end = libc::dlsym(library, c"taskscope_target_end".as_ptr());
        if begin.is_null() || end.is_null() {
            return None;
        }
        Some(Recorder {
            begin: core::mem::transmute::<*mut c_void, unsafe extern "C" fn(i32, u32, u64)>(begin),
            end: core::mem::transmute::<*mut c_void, unsafe extern "C" fn()>(end),
        })
    }
}

/// Path of this library.
fn own_path() -> Option<PathBuf> {
    // SAFETY: all fields may be zero, and `dladdr` fills them in.
    let name: *const c_char = unsafe {
        let mut found: libc::Dl_info = core::mem::zeroed();
        let address = own_path as *const c_void;
        if libc::dladdr(address, &raw mut found) == 0 || found.dli_fname.is_null() {
            return None;
        }
        found.dli_fname
    };
    // SAFETY: the loader's own C string, which lives as long as this library.
    let name = unsafe { CStr::from_ptr(name) };
    Path::new(OsStr::from_bytes(name.to_bytes())).canonicalize().ok()
}

fn forward(scope: c_int, device: c_int, kind: u32, bytes: u64) {
    let Some(recorder) = recorder() else { return };
    // SAFETY: the device recorder's functions have no preconditions.
    unsafe {
        // 3 is begin and end in one call.
        if scope & endpoint::BEGIN != 0 {
            (recorder.begin)(device, kind, bytes);
        }
        if scope & endpoint::END != 0 {
            (recorder.end)();
        }
    }
}

thread_local! {
    /// The device of the construct that this thread is in.
    static DEVICE: Cell<c_int> = const { Cell::new(0) };
}

/// `ompt_callback_target_emi`.
pub unsafe extern "C" fn target(
    _kind: c_int,
    scope: c_int,
    device: c_int,
    _task: *mut Data,
    _target_task: *mut Data,
    _target: *mut Data,
    _codeptr: *const c_void,
) {
    let _ = DEVICE.try_with(|known| known.set(device));
    forward(scope, device, 6, 0);
}

/// `ompt_callback_target_data_op_emi`. The runtime numbers operations, and asynchronous ones 16 higher.
#[allow(clippy::too_many_arguments, reason = "as the standard has it")]
pub unsafe extern "C" fn data_op(
    scope: c_int,
    _target_task: *mut Data,
    _target: *mut Data,
    _operation: *mut u64,
    kind: c_int,
    _source: *mut c_void,
    source_device: c_int,
    _destination: *mut c_void,
    destination_device: c_int,
    bytes: usize,
    _codeptr: *const c_void,
) {
    let (device, kind) = match kind {
        1 | 17 => (destination_device, 4),
        2 | 18 => (destination_device, 1),
        3 | 19 => (source_device, 2),
        4 | 20 => (source_device, 5),
        7 | 23 => (destination_device, 3),
        // Associations of memory have no effect.
        _ => return,
    };
    forward(scope, device, kind, bytes as u64);
}

/// `ompt_callback_target_submit_emi`.
pub unsafe extern "C" fn submit(scope: c_int, _target: *mut Data, _operation: *mut u64, _teams: c_uint) {
    forward(scope, DEVICE.try_with(Cell::get).unwrap_or(0), 0, 0);
}
