//! The recording of this process, from its start to its end.

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

use taskscope_event::models::MODELS;
use taskscope_record::process;

use crate::sampler::{self, excluded_programs, module_files};
use crate::task_stacks::check;
use crate::{pause, profiling, thread};

/// If set to any value, reasons that prevent recording are printed to standard error.
const VERBOSE_VARIABLE: &str = "TASKSCOPE_VERBOSE";

/// Whether there is something to finish.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// Starts recording this process into the directory that the environment names, with these ovni models. If
/// recording has already started (a second runtime, the same one loaded again, or sampling), the recording is
/// shared. Returns whether the process is recorded now.
pub fn start_recording(models: &[(&'static str, &'static str)]) -> bool {
    let Some(trace_directory) = trace_directory().filter(|_| !excluded_programs::is_here()) else {
        return false;
    };
    let config = process::Config {
        trace_directory: trace_directory.into(),
        app_id: 1,
        require: models.to_vec(),
        own_require: MODELS
            .iter()
            .filter(|model| model.own)
            .map(|model| (model.name, model.version))
            .collect(),
        attributes: Vec::new(),
    };
    HAS_STARTED.store(true, Relaxed);
    let profiled = profiling::start();
    let started = if profiled { process::start_without_streams(config) } else { process::start(config) };
    match started {
        Ok(()) => {
            pause::start();
        }
        Err(process::StartError::Again) => process::require(models),
        Err(why) => {
            if std::env::var_os(VERBOSE_VARIABLE).is_some() {
                eprintln!("taskscope: this process is not recorded\nwhy: {why}");
            }
        }
    }
    process::is_recording()
}

/// The directory to record into; `None` if the environment names none.
pub fn trace_directory() -> Option<std::ffi::OsString> {
    std::env::var_os(process::TRACE_DIRECTORY_VARIABLE).filter(|path| !path.is_empty())
}

unsafe extern "C" {
    fn at_quick_exit(call: extern "C" fn()) -> c_int;
    fn __cxa_atexit(call: extern "C" fn(*mut c_void), argument: *mut c_void, library: *mut c_void) -> c_int;
}

/// The library's destructor. At `exit` it runs before that of the OpenMP runtime, which is loaded
/// earlier and reports the ends of its threads in its own. So it only registers [`finish`], which
/// then runs after all destructors.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_EXIT: extern "C" fn() = at_exit;

/// `quick_exit` runs no destructors.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = at_start;

extern "C" fn at_start() {
    extern "C" fn finish_quickly() {
        finish(core::ptr::null_mut());
    }
    // SAFETY: as above; on failure the loss is the same as without this library.
    unsafe { at_quick_exit(finish_quickly) };
}

extern "C" fn at_exit() {
    // SAFETY: `finish` is never unloaded, as the library is linked.
    if unsafe { __cxa_atexit(finish, core::ptr::null_mut(), core::ptr::null_mut()) } != 0 {
        finish(core::ptr::null_mut());
    }
}

/// Ends the recording while the program continues. Nothing remains to be done at its end.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub fn finish_now() {
    finish(core::ptr::null_mut());
}

extern "C" fn finish(_: *mut c_void) {
    static FINISHED: AtomicBool = AtomicBool::new(false);
    // Else no call of the system is made: the process may have a filter of them.
    if HAS_STARTED.load(Relaxed) && !FINISHED.swap(true, Relaxed) {
        if !profiling::is_on() {
            thread::record_silent_child();
        }
        check::store_counts();
        if sampler::is_active() {
            module_files::keep_generated_code();
        }
        profiling::charge_so_far();
        process::finish();
        if profiling::is_on() {
            profiling::write_last();
        }
    }
}
