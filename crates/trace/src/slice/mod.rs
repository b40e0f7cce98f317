//! A part of a trace as a trace of its own: by time, threads and models.
//!
//! A thread that was in the middle of something when the range begins is brought there: in the
//! nanoseconds before it, two per thread, the thread starts on its CPU with the locks that it holds, and what is open
//! (tasks, sections, marks, states) is opened again, waits with their objects and places. What is open when the range
//! ends is closed after it, one nanosecond per thread. Task types and the tasks that the range uses are created first, and what
//! later events name by number is named, whichever thread named it. Where threads that are left out move one
//! that is kept to another CPU, it moves itself; what its metadata leaves to others (CPUs, marks, ranks) is there.
//!
//! ```text
//! clock   begin - 2 threads … begin - 1 │ begin …  end - 1 │ end … end + threads - 1
//! events  each thread's open state      │ as recorded      │ each thread's ends
//! ```
//!
//! Threads that do not run come first and leave last, so that no CPU ever has two running threads.

mod bytes;
mod instrument;
mod metadata;
mod request;
mod run_file;
mod slicer;
mod thread_state;
mod waits;

pub use self::request::{Slice, Sliced};
