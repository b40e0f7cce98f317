//! `libovni.so.1`: the recording library of ovni, on taskscope's recorder.
//!
//! **The caller** is an unmodified runtime (Nanos6, nOS-V, NODES) or program that is linked to ovni
//! 1.x; `LD_LIBRARY_PATH` puts this library in the original's place. All 35 functions of `ovni.h` are
//! here, with its struct layouts.
//!
//! **Differences from the original.** Events survive the death of the process; the clock is the time-stamp
//! counter; a forked child writes streams of its own; a signal handler cannot damage a stream; a full disk or
//! a directory that cannot be created stops recording, not the program. Misuse that the original answers with
//! `abort()` prints a message, and the call has no effect; `TASKSCOPE_OVNI_ABORT=1` restores the abort
//! ([`misuse`]). A process may be initialized again after its end; it is then another process of the trace.
//!
//! **Environment.** `OVNI_TRACEDIR` and `OVNI_TMPDIR` as in the original; size cap, ring, filter and
//! switch as in `taskscope-record`.
//!
//! **Not for** new programs: `taskscope.h` and the Rust interface cost half as much per event.

mod attributes;
mod events;
mod json;
mod last_flush;
mod lifecycle;
mod marks;
mod misuse;
mod nesting;
mod thread_metadata;
