//! The end of the recording of a process.

use crate::process::{current, is_of_parent, was_forked};
use crate::thread::{self, ThreadRecorder};
use crate::turns;

/// The calling thread ends the process at once (`_exit`), maybe in a signal handler: stores the times off the CPU so far. The streams
/// of threads are complete without that. Async-signal-safe.
pub fn finish_before_exit() {
    // A child that does not record, or one of `vfork`.
    if !is_of_parent()
        && let Some(process) = current()
    {
        // Its waiting is not the program's: calls that are intercepted meanwhile are no events. Never to be left; in a handler that
        // interrupted an event, the recorder is in use already.
        core::mem::forget(thread::enter().filter(|recording| !recording.user().is_null()));
        process.os_time.finish_for_leaver();
    }
}

/// Closes the streams of all threads that still live, and ends recording in this process. Returns
/// how many streams could not be closed properly because their thread did not leave an event in
/// time.
pub fn finish() -> usize {
    if was_forked() {
        return 0;
    }
    let Some(process) = current() else { return 0 };
    let left = process
        .end()
        .into_iter()
        // SAFETY: registered by `attach`, and no longer in the list.
        .filter(|recorder| !unsafe { thread::close_from_outside(recorder.cast::<ThreadRecorder>(), process) })
        .count();
    turns::wait_for_threads_inside();
    // Last, as the threads run until here.
    process.os_time.finish();
    left
}
