//! Sampling of call stacks: per-thread timers, a signal handler, unwinding.
//!
//! ```text
//!   timer ── signal ──▶ handler: walk (framehop) ▸ levels (OMPT frames) ▸ state ──▶ samples.obs
//!                          │                                                or the profile
//!                          └ asks for the path of its region (regions.rs)
//!   callbacks ──▶ paths: creation paths of tasks, and of regions that were asked for
//!   loader    ──▶ code_map: which code lies where, refreshed outside of the handler
//! ```
//! **Rules of the handler.** No allocation, no lock, `errno` kept; its memory was allocated, and touched as far as
//! most need it, before its timer was armed; every pointer of the runtime is checked before use. It reads the
//! thread's stack of open things only where it did not interrupt a callback. Of a stack that has no room, or of which that is not
//! known, it takes nothing (`own_stack`); the kernel's frame is on an alternate stack (`alternate`).

pub mod alternate;
pub mod code_map;
pub mod filters;
#[cfg(not(test))]
mod intercept;
pub mod module_files;
pub mod modules;
pub mod own_stack;
pub mod runtime_inside;
mod sampler;
pub mod signal;
mod timer;
mod unusual;
pub mod unwanted;
pub mod walk;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::OnceLock;

use taskscope_record::{Json, process};

use crate::profiling;
use crate::task_stacks::{handler, levels};

pub use own_stack::OwnStack;
pub use sampler::{Sampler, now};
pub use walk::{Bounds, read_anywhere, stack_pointer_here};

/// How often to sample, per second and thread; unset, nothing is sampled.
pub const RATE_VARIABLE: &str = "TASKSCOPE_SAMPLE";
/// `wall` (the default) or `cpu`.
pub const CLOCK_VARIABLE: &str = "TASKSCOPE_SAMPLE_CLOCK";
/// Rates above this are brought down to it.
const MAX_RATE: f64 = 20_000.0;

/// What the timers run by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Time that passes.
    Wall,
    /// Time that the thread is on a CPU.
    Cpu,
}

/// What was asked for.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Nanoseconds between two samples of a thread.
    pub period_ns: u64,
    /// By which clock.
    pub clock: Clock,
}

/// What the environment asks for; `None` when nothing is to be sampled.
pub fn settings() -> Option<Settings> {
    static SETTINGS: OnceLock<Option<Settings>> = OnceLock::new();
    *SETTINGS.get_or_init(|| {
        let usual = std::env::var(profiling::MODE_VARIABLE).is_ok_and(|mode| mode == "profile");
        let rate = std::env::var(RATE_VARIABLE).ok().or(usual.then(|| profiling::USUAL_RATE.to_owned()))?;
        let clock = std::env::var(CLOCK_VARIABLE).unwrap_or_default();
        parse(&rate, &clock)
    })
}

fn parse(rate: &str, clock: &str) -> Option<Settings> {
    let rate: f64 = rate.trim().parse().ok().filter(|rate: &f64| *rate > 0.0)?;
    let period_ns = (1e9 / rate.min(MAX_RATE)) as u64;
    Some(Settings { period_ns, clock: if clock.trim() == "cpu" { Clock::Cpu } else { Clock::Wall } })
}

/// Whether samples are taken: the question on the event path.
#[inline(always)]
pub fn is_active() -> bool {
    signal::number() != 0
}

/// Takes no samples any more: gives the signal back to the program.
#[cfg_attr(test, allow(dead_code, reason = "tests preload nothing"))]
pub fn end() {
    signal::give_back();
}

/// Threads that run parallel regions, now and at most.
static WORKERS: AtomicU64 = AtomicU64::new(0);
static MOST_WORKERS: AtomicU64 = AtomicU64::new(0);

/// A worker begins or ends.
pub fn count_worker(begins: bool) {
    if begins {
        MOST_WORKERS.fetch_max(WORKERS.fetch_add(1, Relaxed) + 1, Relaxed);
    } else {
        WORKERS.fetch_sub(1, Relaxed);
    }
}

/// The largest number of workers at a time.
pub fn most_workers() -> u64 {
    MOST_WORKERS.load(Relaxed)
}

/// Installs the handler and looks at the loaded code, if samples are wanted. Call when recording has
/// started; again does nothing.
pub fn start() {
    let Some(settings) = settings() else { return };
    if signal::number() != 0 || !process::is_recording() {
        return;
    }
    code_map::refresh();
    levels::look_whether_tools_are_taken();
    let Some(signal) = signal::install(handler::on_signal) else { return };
    process::set_attribute(
        "sampling",
        Json::object([
            ("clock", Json::string(if settings.clock == Clock::Cpu { "cpu" } else { "wall" })),
            ("period_ns", Json::integer(settings.period_ns)),
            ("signal", Json::integer(signal)),
        ]),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_become_periods() {
        let of = |rate: &str, clock: &str| parse(rate, clock).map(|s| (s.period_ns, s.clock));
        assert_eq!(of("100", ""), Some((10_000_000, Clock::Wall)));
        assert_eq!(of(" 0.5 ", "cpu"), Some((2_000_000_000, Clock::Cpu)));
        assert_eq!(of("1e9", "wall"), Some((50_000, Clock::Wall)), "brought down");
        for none in ["", "0", "-3", "fast", "NaN"] {
            assert_eq!(of(none, ""), None, "{none}");
        }
    }
}
