//! Sampling of call stacks: per-thread timers, a signal handler, unwinding.
//!
//! ```text
//!   timer ── signal ──▶ handler ── Host::take_sample ──▶ the recorder: walk (framehop) ▸ its own state ▸ events
//!   program ──▶ intercept: calls that signals must not interrupt, threads, loading of code
//!   loader  ──▶ code_map: address ranges of code, refreshed outside of the handler
//! ```
//! The sampler does not depend on OpenMP: it calls the recorder through a [`Host`].
//!
//! **Rules of the handler.** No allocation, no lock, `errno` kept; its memory was allocated, and its most
//! used part touched, before its timer was armed; every pointer of the runtime is checked before use. It
//! reads the thread's stack of open constructs only if it did not interrupt a callback. On a stack that is
//! too small, or of unknown size, it uses the recorder's own (`own_stack`); the kernel's frame is on an
//! alternate stack (`alternate`). Samples take at most a quarter of a thread's time (`time_limit`).

pub mod alternate;
pub mod blocking;
pub mod bounds;
pub mod code_map;
pub mod excluded_programs;
pub mod filters;
mod handler;
mod host;
#[cfg(not(test))]
pub mod intercept;
pub mod machine;
pub mod module_files;
pub mod modules;
pub mod own_stack;
mod python;
pub mod runtime_code;
pub mod runtime_inside;
mod settings;
pub mod signal;
mod thread_sampler;
mod time_limit;
mod timer;
mod unusual;
mod unwind_tables;
pub mod walk;

use taskscope_record::{Json, process};

pub use bounds::Bounds;
pub use host::{Host, set_host};
pub use machine::{read_anywhere, stack_pointer_here};
pub use own_stack::OwnStack;
pub use python::interpreter as python_interpreter;
pub use settings::{Clock, now, settings};
pub use thread_sampler::Sampler;

/// Whether samples are taken: the question on the event path.
#[inline(always)]
pub fn is_active() -> bool {
    signal::number() != 0
}

/// Installs the handler and maps the loaded code, if samples are wanted, for the recorder `host`. Call after
/// recording has started; repeated calls have no effect.
pub fn start(host: &'static Host) {
    set_host(host);
    let Some(settings) = settings() else { return };
    if signal::number() != 0 || !process::is_recording() {
        return;
    }
    code_map::refresh();
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
