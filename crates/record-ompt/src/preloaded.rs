//! Load-time entry: samples programs from their start, with or without OpenMP.

use core::ffi::{c_int, c_void};

use taskscope_event::models::ovni;

use crate::host::{self, HOST};
use crate::sampler::{self, excluded_programs, intercept, modules, settings};
use crate::{recording, shared, thread};

/// Programs that only start others: a shell replaces itself by them, and would leave its recording open.
const STARTERS: [&str; 24] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "busybox",
    "env",
    "nice",
    "ionice",
    "chrt",
    "time",
    "timeout",
    "nohup",
    "setsid",
    "stdbuf",
    "taskset",
    "numactl",
    "xargs",
    "mpirun",
    "mpiexec",
    "orterun",
    "prterun",
    "srun",
    "taskscope",
];

/// Runs when the library is loaded: starts to sample a program that need not know OpenMP.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn(c_int, *const *const libc::c_char) = at_load;

/// The loader passes the program's arguments.
extern "C" fn at_load(_count: c_int, arguments: *const *const libc::c_char) {
    // It is 0 when a program begins.
    // SAFETY: `errno` is the thread's own.
    unsafe {
        let errno = libc::__errno_location();
        let kept = *errno;
        sampler::set_host(&HOST);
        excluded_programs::start_anew(arguments);
        start_at_load();
        *errno = kept;
    }
}

fn start_at_load() {
    if intercept::is_found(c"taskscope_name_data_", crate::taskscope_name_data_ as *const c_void) {
        intercept::look_up();
    }
    if settings().is_none() || !intercept::is_preloaded() {
        return;
    }
    let program = modules::path_of_program().to_bytes();
    let name = program.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if STARTERS.iter().any(|starter| starter.as_bytes() == name) {
        return;
    }
    if recording::start_recording(&[("ovni", ovni::VERSION)]) {
        host::start_sampling();
        thread::attach_outside_openmp();
        shared::thread_starts(0);
    }
}
