//! Switches recording on and off: by `omp_control_tool`, by the environment, or by a signal from outside.
//!
//! ```text
//!   pause:    every thread, at its next event, ends its shown sections; then its events are discarded
//!   start:    every thread, from its next event on, shows new sections
//! ```
//! Open constructs are still followed during a pause, so a trace is consistent on both sides of the gap.
//! Sections that are open when a pause begins or ends are not shown beyond it: a thread is marked as not
//! recorded from the pause until all of them have closed. Tasks created during a pause are not in the trace,
//! nor are their bodies.

use core::ffi::{c_int, c_void};

use taskscope_event::models::{omp, recorder};
use taskscope_record::process;

use crate::pause;
use crate::profiling;
use crate::thread::{Moment, record};

/// `omp_control_tool_t`.
mod command {
    pub const START: u64 = 1;
    pub const PAUSE: u64 = 2;
    pub const FLUSH: u64 = 3;
    pub const END: u64 = 4;
}

/// `ompt_callback_control_tool`. Returns 0 for an obeyed command.
pub unsafe extern "C" fn control_tool(
    command: u64,
    modifier: u64,
    _argument: *mut c_void,
    _codeptr: *const c_void,
) -> c_int {
    let mut payload = [0; 16];
    payload[..8].copy_from_slice(&command.to_le_bytes());
    payload[8..].copy_from_slice(&modifier.to_le_bytes());
    let record_control = || record(|moment| moment.recorder.own_point(moment.at, omp::CONTROL, payload));
    match command {
        command::START => {
            pause::set(false);
            record_control();
        }
        command::PAUSE => {
            record_control();
            pause::set(true);
            // Not at the next event, which may be far.
            record(|_| {});
        }
        command::FLUSH => {
            record_control();
            record(|moment| moment.recorder.flush());
            if profiling::is_on() {
                profiling::write_so_far();
            }
        }
        command::END => {
            record_control();
            profiling::charge_so_far();
            process::finish();
            if profiling::is_on() {
                profiling::write_last();
            }
        }
        // `omp_control_tool_max` and beyond belong to tools: the program may speak to another one.
        _ => {
            record_control();
            return if command >= 64 { 1 } else { -1 };
        }
    }
    0
}

impl Moment<'_> {
    /// Follows the switch: the open sections of this thread end in the trace, although they continue.
    #[cold]
    #[inline(never)]
    pub fn follow_switch(&mut self, paused: bool) {
        if self.thread.is_paused == paused {
            return;
        }
        if self.thread.profile.is_some() {
            self.follow_pause(paused);
        } else if paused {
            self.end_all_shown();
            self.record_pause();
        } else {
            // Sites that are written once may have been written during the pause.
            self.thread.wait_sites = Default::default();
            self.thread.wait_object = Default::default();
            self.thread.paths.forget_last();
        }
        self.thread.is_paused = paused;
        self.record_end_of_pause();
    }

    /// Records the begin of a pause of this thread.
    pub fn record_pause(&mut self) {
        if self.thread.has_begun && !core::mem::replace(&mut self.thread.is_pause_recorded, true) {
            self.recorder.own_begin(self.at, recorder::PAUSE_BEGIN, [], 0);
        }
    }

    /// Records the end of the pause, once all sections that were opened during the pause have closed.
    pub fn record_end_of_pause(&mut self) {
        if self.thread.is_pause_recorded && !self.thread.is_paused && self.thread.frames.is_empty() {
            self.thread.is_pause_recorded = false;
            self.recorder.own_end(self.at, recorder::PAUSE_END, []);
        }
    }
}
