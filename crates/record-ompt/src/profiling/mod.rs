//! Profile mode: no trace, but a tree of call paths with metrics, of bounded size, written at an interval
//! and at the end.
//!
//! ```text
//!   handler ─── sample ─────────▶ tree of the thread (samples) ─┐ collected
//!   callbacks ▶ follow ┬ waits ─▶ counts of the thread (counts) ┴─▶ run ─▶ write: HOST.PID.tsprof
//!                      └ account: time by cause ─▶ idleness ────────▶ live: HOST.PID.live.jsonl
//! ```
//! A path in a thread's tree starts at its *context*: the creation path of the region or task that the
//! thread is in, as a number (`contexts`). Contexts are few: of recursive tasks those that repeat are
//! one. They become frames when counts are collected.

mod account;
mod callbacks;
mod cause;
mod contexts;
mod counts;
mod double_buffer;
mod files;
mod follow;
mod housekeeping;
mod idleness;
mod integrals;
mod live;
mod locks;
mod no_cpu;
mod open_ends;
mod places;
mod recent;
mod rows;
mod run;
mod samples;
mod teams;
mod waits;
mod workers;
mod write;

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub use callbacks::callback_of;
pub use cause::Cause;
pub use contexts::{define_path, is_of_tasks};
pub use follow::Follower;
pub use idleness::{SampleOf, share_in_callback};
pub use locks::destroyed;
pub use recent::{Recent, Sampled};
pub use run::{Counted, sample_no_cpu};
pub use samples::{Sample, is_work};
#[cfg_attr(test, allow(unused_imports, reason = "tests preload nothing"))]
pub use write::write_before_exit;
pub use write::{charge_so_far, write_last, write_so_far};

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
