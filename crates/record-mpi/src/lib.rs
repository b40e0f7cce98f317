//! The MPI wrapper: `libtaskscope_mpi.so`, preloaded, records the communication of an MPI program.
//!
//! ```text
//!  program ── MPI_Send ──▶ entry ──▶ call ──▶ PMPI_Send of the MPI library, found at run time
//!  (C, Fortran)                       │ begin, effects (functions), end
//!                                     ▼
//!                     record-ompt::shared ──▶ record: stream.obs, taskscope.obs
//! ```
//!
//! **Recorded.** Calls, as events of ovni's `mpi` model if it has them, otherwise as `messages` events, with
//! their code site; each message with communicator, peer, tag, bytes and its place in MPI's matching order;
//! collective operations; ranks; the offset of each node's clock.
//!
//! **One library, one recorder.** The OMPT tool is linked in too: a process that uses both has one stream per
//! thread, whichever starts first. The OpenMP runtime must load this very file.
//!
//! **No MPI at build time.** Arguments go through as machine words, which fits every ABI; the interpreted
//! ones (handles, status, constants) are known for Open MPI and for the MPICH family ([`library`]). With
//! another MPI, only calls are recorded, without messages, and a line on stderr reports it. The functions are
//! those of the MPI Forum's list (`mpi-functions.tsv`, [`functions`]).
//!
//! **Rules of a guest.** With `TASKSCOPE_TRACE_DIR` unset every call goes straight through. Nothing
//! aborts; no message is added to a call of the program but at its `MPI_Init` and `MPI_Finalize`
//! (job number and clocks, on a communicator of our own).
//!
//! **Not recorded.** Dynamic processes (`MPI_Comm_spawn`) are jobs of their own.

// A panic would abort the program.
#![cfg_attr(
    not(test),
    warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]

mod arguments;
mod call;
mod clocks;
mod communicators;
mod effects;
mod entry;
mod functions;
mod handle_kind;
mod language;
mod library;
mod requests;

// Exports of the library besides its own entries.
pub use taskscope_ompt::{__itt_api_init, ompt_start_tool, taskscope_name_data_};
