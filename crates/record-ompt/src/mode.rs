//! Whether the process is traced or profiled.

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// `profile`: no trace is written.
pub const MODE_VARIABLE: &str = "TASKSCOPE_MODE";
/// Samples per second where nothing else is asked for.
pub const USUAL_RATE: &str = "100";

static ON: AtomicBool = AtomicBool::new(false);

/// Whether this process is profiled rather than traced.
#[inline(always)]
pub fn is_on() -> bool {
    ON.load(Relaxed)
}

/// Whether the environment asks for a profile; from then on [`is_on`] says so.
pub fn start() -> bool {
    let wanted = std::env::var(MODE_VARIABLE).is_ok_and(|mode| mode == "profile");
    ON.store(wanted, Relaxed);
    wanted
}
