//! Records what device queues do: sources of device records on one ordering core.
//!
//! ```text
//!  OpenCL layer ── append, cancel (submitting thread) ─┐            ┌─ queue.<n>/   operations in order
//!                                                      ├▶ collector ┤
//!  driver ── completion (any thread) ──────────────────┘            └─ calls.<tid>/ calls of the host
//! ```
//!
//! `taskscope record` has OpenCL's loader load `libtaskscope_device.so` through `OPENCL_LAYERS`, and
//! CUDA's driver through `CUDA_INJECTION64_PATH`; preloads it into programs that use Level Zero; the
//! OpenMP tool loads it when a program offloads. What it needs of vendors is found when the program
//! runs. Other
//! tools and vendors use the ordering through `include/taskscope_device.h` ([`c_api`]).
//! Nothing is recorded unless `TASKSCOPE_TRACE_DIR` names a trace directory; locations are written to
//! `devices.<host>.<pid>` in it.
//!
//! **What holds.** A program's calls are passed on unchanged but for profiling, which is switched on,
//! and events, which are asked for; their results are the program's. Nothing waits for the collector.
//! A forked child records nothing. At exit, records get a second to arrive; then they are lost, and
//! said to be.
//!
//! **Not for** ordering (`taskscope-reorder`) or reading (`taskscope-session`).

mod buffers;
pub mod c_api;
mod clocks;
mod collector;
mod correlate;
mod cupti;
mod dynamic;
pub mod hub;
mod level_zero;
mod locations;
mod message;
mod opencl;
mod pti;
mod start;
mod target;
