//! Attaching of threads that instrument themselves.

use taskscope_event::models::ovni;

use super::feature::IS_COMPILED_IN;
use crate::process;
use crate::thread::{self, enter};

/// Starts recording the calling thread, with a stream for the instrument model from the start: a signal
/// handler may use it.
pub(super) fn attach_with_own_stream() -> bool {
    attach_as(false)
}

/// Starts recording the calling thread; its stream for the instrument model may be created at the first
/// event.
pub(super) fn attach_as(own_stream_on_demand: bool) -> bool {
    if IS_COMPILED_IN && thread::is_attached() {
        return true;
    }
    let attached = IS_COMPILED_IN
        && process::is_recording()
        && thread::attach_with(
            core::ptr::null_mut(),
            Box::new(|recorder, at| recorder.end(at, ovni::THREAD_ENDS, [])),
            thread::Options { own_stream_on_demand, ..Default::default() },
        );
    if attached && let Some(mut recorder) = enter() {
        let at = recorder.now();
        let mut payload = [0; 16];
        payload[..4].copy_from_slice(&(-1i32).to_le_bytes());
        payload[4..8].copy_from_slice(&recorder.os_tid().to_le_bytes());
        recorder.begin(at, ovni::THREAD_EXECUTES, payload, 0);
    }
    attached
}
