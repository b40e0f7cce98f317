//! Starts of the library and of threads.

use taskscope_ompt::shared::{self, BlockingRecorder};

use crate::{blocking, c_library, channels, events, futex, objects, switches};

/// Runs when the library is loaded.
#[cfg(not(test))]
#[used]
#[unsafe(link_section = ".init_array")]
static AT_LOAD: extern "C" fn() = at_load;

#[cfg_attr(test, allow(dead_code, reason = "tests intercept nothing"))]
extern "C" fn at_load() {
    c_library::look_up();
    objects::prepare();
    channels::prepare();
    shared::at_thread_start(thread_starts);
    static RECORDER: BlockingRecorder =
        BlockingRecorder { futex: futex::call, begins: blocking::begins, returned: blocking::returned };
    shared::record_blocking(&RECORDER);
    shared::at_open_call(blocking::is_open);
    taskscope_record::open_call::describe_by(blocking::describe);
}

/// Starts recording of the calling thread, which is to run `routine`; 0 if unknown.
fn thread_starts(routine: usize) {
    switches::begin();
    // SAFETY: no preconditions.
    let handle = unsafe { libc::pthread_self() };
    events::starts(handle as usize, taskscope_record::thread::token(), routine);
}
