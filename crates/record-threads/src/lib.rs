//! The recorder of threads: `libtaskscope_threads.so`, preloaded, records which thread waits for which.
//!
//! ```text
//!  program ── pthread_mutex_lock ──▶ entry ──▶ mutex, condition, … ──▶ the C library's function
//!                                                │ contended: begin, holder, end
//!                                                ▼
//!                              events ──▶ record-ompt::shared ──▶ record: taskscope.obs
//! ```
//!
//! **Intercepted functions.** Mutexes, read-write locks, spin locks, conditions, barriers, semaphores and
//! joins of POSIX threads, including the variants with a timeout; locks, conditions and joins of C11, which
//! the C library does not route through the former. `entry` has the list. Each symbol is two instructions: it
//! passes the return address on as a further argument and jumps, so no frame is added. The original functions
//! are looked up when the library is loaded, those of conditions by version: their oldest version has another
//! memory layout.
//!
//! **Recorded events** of the model `taskscope-wait`:
//!
//! - a wait has a begin and an end, with the object, the call and its call path;
//! - a lock's holder is known from a mark that it leaves when it takes the lock ([`objects`]). The waiting
//!   thread records the holder that it finds; each holder that releases a lock with waiting threads records
//!   the place of its acquisition;
//! - a thread that signals a condition, posts a semaphore or arrives last at a barrier records that, if
//!   others wait; a signal under the condition's mutex is recorded before the release of that ([`late_wakes`]);
//! - a thread that was woken from a condition records how long others held its mutex then ([`condition`]);
//! - a starting thread records its handle, which a join names.
//!
//! Which of these ended a wait is decided when the trace is read.
//!
//! **Uncontended calls** make no event and no system call: `trylock` first; if it succeeds, two stores into the
//! object's entry. Releasing is two loads and a store. Entries are in a table of fixed size
//! ([`objects::MAX_OBJECTS`]), looked up by address, without locks or allocation. A lock without an entry is recorded without its
//! holder.
//!
//! **One library, one recorder.** The OMPT tool and the sampler are linked in, as into the recorder of MPI: a process has
//! one stream per thread. Samples have to be taken: threads are attached, and call paths known, through the sampler.
//!
//! **Rules of a guest.** Results, `errno` and cancellation points are those of the C library. A cancelled
//! thread unwinds through these functions, which therefore own nothing that needs dropping; its wait ends
//! with its next event. Locks that the recorder itself takes inside an event are not recorded. In a forked
//! child the table is empty, and recording begins with the first semaphore, sleep or input, at the time of the fork. A child without
//! any is recorded when it exits, if it has used 5 ms of a CPU. A thread that is not attached passes straight through.
//!
//! **Futex calls** of the program by `syscall` ([`futex`]) are waits for a word of memory without a holder. The interposed
//! `syscall` compares the number and passes all other calls on.
//!
//! **The lock of CPython** ([`gil`]) is a lock of its own kind, in the place of the condition that it is made of.
//!
//! **Sleep and I/O** ([`blocking`]) are recorded when they are over, if they took 50 µs and the thread gave up its CPU.
//! The sampler intercepts calls that signals interrupt, and calls this recorder; the others are in `waits`. Calls that are open at the
//! end of the process are waits until then ([`taskscope_record::open_call`]).
//!
//! **Pipes, eventfds and socket pairs** of the process ([`channels`]): while a thread reads from one or polls it, a thread that
//! writes records that before it does so, and while a thread writes, one that reads.
//!
//! **Messages, semaphore sets and signals** ([`exchange`]): while a thread waits for one, a thread that sends, posts or signals
//! records that before it does so.
//!
//! **Not recorded.** Waits of Go, which makes system calls itself; functions inside the C library that wait or write without
//! these symbols (`fread`, `fwrite`); statically linked programs.

// A panic would abort the program.
#![cfg_attr(
    not(test),
    warn(clippy::indexing_slicing, clippy::unwrap_used, clippy::expect_used, clippy::panic)
)]
#![cfg_attr(test, allow(dead_code, reason = "tests intercept nothing"))]

mod barrier;
mod blocking;
mod c_library;
mod channels;
mod condition;
#[cfg(not(test))]
mod descriptors;
#[cfg(not(test))]
mod entry;
mod events;
mod exchange;
mod futex;
mod gil;
mod join;
mod late_wakes;
mod lock;
mod objects;
mod once;
mod read_holds;
mod semaphore;
#[cfg(not(test))]
mod signals;
mod start;
mod switches;
#[cfg(not(test))]
mod waits;

// Exports of the library besides its own entries.
pub use taskscope_ompt::{__itt_api_init, ompt_start_tool, taskscope_name_data_};
