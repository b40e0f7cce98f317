//! Whether recording is paused: the switch itself, which signal handlers read too.

use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering::*};

use taskscope_record::event_filter;

/// `off`: recording starts paused. The same variable as for programs that instrument themselves.
pub use event_filter::SWITCH_VARIABLE;
/// The number of a signal that pauses and starts recording in turns.
pub const SIGNAL_VARIABLE: &str = "TASKSCOPE_CONTROL_SIGNAL";

static PAUSED: AtomicBool = AtomicBool::new(false);

/// Whether recording is paused; also for signal handlers.
#[inline(always)]
pub fn is_paused() -> bool {
    PAUSED.load(Relaxed)
}

/// Pauses recording, or continues it.
pub fn set(paused: bool) {
    PAUSED.store(paused, Relaxed);
}

/// Reads the environment, when recording has started.
pub fn start() {
    if std::env::var(SWITCH_VARIABLE).is_ok_and(|value| value == "off" || value == "0") {
        PAUSED.store(true, Relaxed);
    }
    let signal = std::env::var(SIGNAL_VARIABLE).ok().and_then(|text| text.trim().parse::<c_int>().ok());
    if let Some(signal) = signal {
        // SAFETY: all zero is a valid action; the handler only changes an atomic.
        unsafe {
            let mut action: libc::sigaction = core::mem::zeroed();
            action.sa_sigaction = toggle as *const () as usize;
            action.sa_flags = libc::SA_RESTART | libc::SA_ONSTACK;
            action.sa_mask = crate::sampler::signal::all();
            libc::sigaction(signal, &action, core::ptr::null_mut());
        }
    }
}

/// The handler of the control signal.
pub extern "C" fn toggle(_signal: c_int) {
    PAUSED.fetch_xor(true, Relaxed);
}
