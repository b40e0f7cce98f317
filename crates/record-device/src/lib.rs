//! Records operations of device queues: several sources of device records, one ordering core.
//!
//! ```text
//!  OpenCL layer ── append, cancel (submitting thread) ─┐            ┌─ queue.<n>/   operations in order
//!                                                      ├▶ collector ┤
//!  driver ── completion (any thread) ──────────────────┘            └─ calls.<tid>/ calls of the host
//! ```
//!
//! `taskscope record` makes OpenCL's loader load `libtaskscope_device.so` through `OPENCL_LAYERS`, and CUDA's
//! driver through `CUDA_INJECTION64_PATH`; preloads it into programs that use Level Zero; the OpenMP tool
//! loads it when a program offloads. Vendors' libraries are looked up at run time. Other tools and vendors
//! use the ordering through `include/taskscope_device.h` ([`c_api`]). Nothing is recorded unless
//! `TASKSCOPE_TRACE_DIR` names a trace directory; locations are written to `devices.<host>.<pid>` in it.
//!
//! **Guarantees.** A program's calls are passed on unchanged, except that profiling is enabled and events are
//! requested; results are unchanged. No call waits for the collector. A forked child records nothing. At
//! exit, records get a second to arrive; after that they are reported as lost.
//!
//! **Not for** ordering (`taskscope-reorder`) or reading (`taskscope-session`).

mod buffers;
pub mod c_api;
mod clocks;
mod collector;
mod correlate;
mod cupti;
mod dynamic;
mod exchange;
pub mod hub;
mod level_zero;
mod locations;
mod message;
mod opencl;
mod pti;
mod start;
mod target;
