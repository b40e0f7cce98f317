//! Whether the process is traced or profiled.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// `profile`: no trace is written.
pub const MODE_VARIABLE: &str = "TASKSCOPE_MODE";
/// Default sampling rate, samples per second.
pub const USUAL_RATE: &str = "100";

static ON: AtomicBool = AtomicBool::new(false);

/// Whether this process is profiled rather than traced.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Returns whether the environment requests a profile; [`is_on`] returns the same from then on.
pub fn start() -> bool {
    let wanted = std::env::var(MODE_VARIABLE).is_ok_and(|mode| mode == "profile");
    ON.store(wanted, Relaxed);
    wanted
}
