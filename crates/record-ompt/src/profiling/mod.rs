//! Profile mode: no trace, but a tree of call paths with metrics, of bounded size, written at the end.
//!
//! ```text
//!   handler ─── sample ──▶ tree of the thread, preallocated ─┐
//!   callbacks ─ counts, lock waits and blame ▶ another tree ─┴─▶ merged as threads end ▶ HOST.PID.tsprof
//! ```
//! A path in a thread's tree starts at its *context*: the creation path of the region or task that the
//! thread is in, as a number (`contexts`). Contexts are few: of recursive tasks those that repeat are
//! one. They become frames when the profile is written.

mod contexts;
mod live;
mod locks;
mod store;

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::path::PathBuf;
use std::sync::Mutex;

use taskscope_record::{clock, process};

pub use locks::destroyed;
pub use store::{CallbackProfile, Sample, SampleTree, define_path, merge, write};

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

/// When profiling began, nanoseconds of `CLOCK_MONOTONIC`.
static STARTED_NS: AtomicU64 = AtomicU64::new(0);
/// Directory and name of the process, kept for the end.
static PLACE: Mutex<Option<(PathBuf, String)>> = Mutex::new(None);

/// Recording has started: from here the profile counts.
pub fn begin() {
    STARTED_NS.store(clock::kernel_ns(), Relaxed);
    if let Some((directory, name)) = process::place() {
        live::set_place(&directory, &name);
        *PLACE.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some((directory, name));
    }
}

/// Whether the environment asks for a profile; from then on [`is_on`] says so.
pub fn start() -> bool {
    let wanted = std::env::var(MODE_VARIABLE).is_ok_and(|mode| mode == "profile");
    ON.store(wanted, Relaxed);
    if wanted {
        live::start();
    }
    wanted
}
