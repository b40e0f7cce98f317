//! The recorder's implementation of the sampler's host interface.

use crate::profiling;
use crate::recording;
use crate::sampler::{self, Host, Sampler};
use crate::shared;
use crate::task_stacks::{levels, sample};
use crate::thread::{self, Thread};
use taskscope_record::forked;

/// This recorder, for the sampler.
pub static HOST: Host = Host {
    sampler_of,
    take_sample: sample::take_sample,
    begin_thread,
    write_modules,
    before_exit,
    finish: recording::finish_now,
};

/// Starts sampling, if it is wanted. Call after recording has started; repeated calls have no effect.
pub fn start_sampling() {
    levels::look_whether_tools_are_taken();
    sampler::start(&HOST);
}

/// # Safety
/// `user` is the pointer that the calling thread was attached with, and the thread is inside the recorder.
unsafe fn sampler_of(user: *mut ()) -> Option<&'static Sampler> {
    let thread = user.cast::<Thread>();
    if thread.is_null() {
        return None;
    }
    // SAFETY: by contract; the sampler lives as long as the thread records, and is not changed before.
    unsafe { (*thread).sampler.as_deref().map(|sampler| &sampler.core) }
}

fn begin_thread(routine: usize) {
    thread::attach_outside_openmp();
    shared::thread_starts(routine);
}

fn write_modules() {
    thread::record(|moment| moment.catch_up());
}

fn before_exit() {
    if profiling::is_on() {
        profiling::write_before_exit(profiling::charge_leaver);
    } else if forked::has_mask_of_fork() && thread::record_silent_child() {
        taskscope_record::process::finish();
    } else {
        taskscope_record::process::finish_before_exit();
    }
}
