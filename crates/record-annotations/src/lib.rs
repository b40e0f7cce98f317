//! Collectors of annotations: tasks, kernels, ranges and counters that programs and libraries report through load-time
//! interfaces.
//!
//! ```text
//!  library ── its interface ──▶ collector ── names, stack, overlapped ──▶ record::instrument
//! ```
//!
//! | collector | interface | loaded by |
//! | --- | --- | --- |
//! | [`itt`] | Intel's ITT: oneTBB, OpenVINO, oneDNN, PyTorch | `INTEL_LIBITTNOTIFY64` |
//! | [`kokkos`] | Kokkos Tools | `KOKKOS_TOOLS_LIBS` |
//! | [`nvtx`] | NVTX: CUDA libraries, RAPIDS, PyTorch, Python's `nvtx` | `NVTX_INJECTION64_PATH` |
//! | [`roctx`] | ROCTX: ROCm libraries, PyTorch for AMD | `LD_PRELOAD` |
//!
//! Layers: collectors above `names`, `stack` and `overlapped`, these above `cached`, which is above `attach`.
//!
//! - `attach` has the recorder attach a thread before its first annotation.
//! - `cached` keeps the number of a name beside its uses.
//! - `names` finds the entry of a text that has no handle, without a lock.
//! - `stack` has the open states of each thread, `overlapped` the open intervals.
//!
//! **Rules of a guest.** No function aborts, prints or waits. A first use of a name allocates and takes the dictionary's
//! lock; later uses do neither. Names live for the process.

// A panic would abort the program.
#![cfg_attr(
    not(test),
    warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

pub mod attach;
mod cached;
pub mod itt;
pub mod kokkos;
mod names;
pub mod nvtx;
mod overlapped;
pub mod roctx;
mod stack;
mod text;
