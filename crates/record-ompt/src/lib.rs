//! The OMPT tool: records OpenMP programs that are neither recompiled nor relinked.
//!
//! An OpenMP runtime that implements the tools interface of OpenMP 5 (LLVM's, Intel's) loads
//! `libtaskscope_ompt.so` because `OMP_TOOL_LIBRARIES` names it, and calls its callbacks. With
//! `TASKSCOPE_TRACE_DIR` unset the tool declines, and the program runs as if it were not there.
//!
//! ```text
//!  runtime ── callback ──▶ parallel, tasks, work, sync, mutexes ──▶ frames ──▶ record: stream.obs
//!                                  what it means                 what is open          taskscope.obs
//! ```
//!
//! **What is recorded.** Events of ovni's `ovni` and `openmp` models where they fit, taskscope's
//! `wait`, `omp` and `dictionary` models for the rest. A plain task costs three events: created,
//! executes, ends. Everything that a thread opens it also closes, in order, whatever the runtime
//! reports or forgets (`frames.rs`).
//!
//! **What is not.** `atomic`, which compilers do inline; reductions that the runtime does not report.
//!
//! **How fast.** A callback takes 100 to 120 instructions, one reading of the counter and 12 to 20
//! bytes per event; nothing on its way is shared between threads. `make bench` measures what
//! that does to programs.
//!
//! **Samples.** With `TASKSCOPE_SAMPLE` set, timers per thread take samples of the call stacks
//! (`sampling`), which go to `samples.obs`; preloaded, the library samples programs without OpenMP too.
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
mod callee;
mod chain;
mod control;
mod device;
mod dictionary;
mod end_order;
mod fast_path;
mod fast_tasks;
mod frames;
mod ids;
mod label;
mod memory;
mod mutexes;
mod named_data;
mod outlined;
mod own_memory;
mod parallel;
mod payload;
mod profiling;
mod sampler;
mod sections;
pub mod shared;
mod standard;
mod state;
mod sync;
mod table;
mod target;
mod task_stacks;
mod tasks;
mod team_limits;
mod thread;
mod tool;
mod tool_data;
mod work;

pub use named_data::taskscope_name_data_;
pub use tool::ompt_start_tool;
