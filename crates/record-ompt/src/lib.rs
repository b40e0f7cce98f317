//! The OMPT tool: records OpenMP programs that are neither recompiled nor relinked.
//!
//! An OpenMP runtime that implements the tools interface of OpenMP 5 (LLVM's, Intel's) loads
//! `libtaskscope_ompt.so` named by `OMP_TOOL_LIBRARIES`, and calls its callbacks. With `TASKSCOPE_TRACE_DIR`
//! unset the tool declines, and the program runs without it.
//!
//! ```text
//!  runtime ── callback ──▶ tasks, parallel, work, sync, mutexes, device, memory
//!                                  │ Moment: recorder, thread, time
//!                                  ▼
//!                          open_close ──▶ standard: stream.obs, taskscope.obs     a trace
//!                                  └────▶ profiling::follow: accounts, waits       a profile
//! ```
//!
//! **Layers.** A module imports only modules of the layers beneath it; `cli/tests/module_cycles.rs` checks that.
//!
//! | layer | modules |
//! | --- | --- |
//! | the library | `tool` (OMPT's start), `preloaded` (loaded without OpenMP), `host` (called by the sampler), `shared` (MPI), `itt` (loaded by ITT), `roctx` (called by programs) |
//! | callbacks | `tasks`, `parallel`, `work`, `sync`, `mutexes`, `memory`, `device`, `control`, `chain::handlers` (a second tool) |
//! | sinks | `sink` (`Sink`), `trace_sink`, `profiling::sink`: fast paths of small tasks, over which callbacks are generic; `fast_path` |
//! | events | `open_close`, `standard`, `dictionary`, `table`, `creation_paths`, `state`, `profiling::follow`, `task_stacks::sample` |
//! | one thread | `thread` (`Thread`, `Moment`), `thread_sampler` |
//! | profiles | `profiling`: `follower` ▸ `threads` ▸ `housekeeping` ▸ `write` ▸ `run` ▸ `counts` ▸ `waits`, `locks`, `idleness` ▸ `workers` ▸ `account` ▸ `states` |
//! | stacks of tasks | `task_stacks` (`levels`, `paths`, `regions`), `outlined`, `frames`, `site_cache` |
//! | sampler | `sampler`: knows no OpenMP; calls the recorder through `sampler::Host` |
//! | base | `abi`, `tool_data`, `sections`, `payload`, `ids`, `mode`, `pause`, `worker_count`, `own_memory` |
//!
//! **Entry points.** To follow an OMPT callback, begin at its function in `tasks` or beside it: it enters the
//! recorder in `thread::record`, and its opens and closes pass through `open_close`. To follow a sample,
//! begin at `sampler::handler`, which calls `task_stacks::sample`. To follow a profile, begin at
//! `profiling::follow`.
//!
//! **Recorded.** Events of ovni's `ovni` and `openmp` models if they fit, taskscope's `wait`, `omp` and
//! `dictionary` models for the rest. A plain task costs three events: created, executes, ends. Every
//! construct that a thread opens is closed, in order, even if the runtime does not report its end
//! (`open_close`).
//!
//! **Not recorded.** `atomic`, which compilers inline; reductions that the runtime does not report.
//!
//! **Cost.** A callback takes 100 to 120 instructions, one read of the counter and 12 to 20 bytes per event;
//! it touches no data shared between threads. `make bench` measures the effect on programs.
//!
//! **Samples.** With `TASKSCOPE_SAMPLE` set, timers per thread take samples of the call stacks
//! (`sampler`), which go to `samples.obs`; preloaded, the library samples programs without OpenMP too.
//!
//! **Rules of a guest.** No callback aborts, prints, or waits for another thread, apart from the
//! first meeting with a code address. Pointers from the runtime are checked before use. Without
//! memory or disk space events are counted as lost, never written half.

// A panic in a callback would abort the program.
#![cfg_attr(
    not(test),
    warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod abi;
mod annotations;
mod callee;
mod chain;
mod control;
mod creation_paths;
mod device;
mod dictionary;
mod end_order;
mod fast_path;
mod frames;
mod host;
mod ids;
mod itt;
mod kokkos;
mod label;
mod memory;
mod mode;
mod mutex_kind;
mod mutexes;
mod named_data;
mod nvtx;
mod open_close;
mod outlined;
mod own_memory;
mod parallel;
mod pause;
mod payload;
#[cfg(not(test))]
mod preloaded;
mod profiling;
mod recording;
#[cfg(not(test))]
mod roctx;
mod sampler;
mod sections;
pub mod shared;
mod sink;
mod site_cache;
mod standard;
mod state;
mod sync;
mod table;
mod target;
mod task_stacks;
mod tasks;
mod team_limits;
mod thread;
mod thread_sampler;
mod tool;
mod tool_data;
mod trace_sink;
mod work;
mod worker_count;

pub use itt::__itt_api_init;
pub use named_data::taskscope_name_data_;
pub use tool::ompt_start_tool;
