//! Writes streams in ovni format (version 3) from inside a traced program.
//!
//! ```text
//!  thread ── enter() ──▶ Recording ── point / begin / end / jumbo ──▶ mapped tail ──▶ stream.obs, taskscope.obs
//!              │ one flag, one state word        plain stores, the model byte last
//!  process ─ start() … finish(): directories, metadata, closing of streams of threads that still live
//! ```
//!
//! **The caller** (an OMPT tool, a C library, a Rust API) calls [`process::start`] once, then
//! [`thread::attach`] on each thread; on the event path [`enter`], one [`ThreadRecorder::now`], and any
//! number of events; [`thread::detach`] at a thread's end; [`process::finish`] at the end.
//!
//! **Guarantees.**
//! - No lock or allocation on the event path; one `write` per full region (256 KiB), no other system call.
//! - An event is complete when its first word is stored, last; a process that dies by `kill -9`
//!   loses no completed event, since the pages of the tail belong to the kernel.
//! - A begin is kept only if the room for its end is reserved; dropped events are counted in the stream
//!   itself ([`taskscope_event::models::recorder::LOST`], updated in place).
//! - The program is never aborted: a full disk, a limit, a missing directory stop that stream only.
//! - A forked child sees its recorder memory wiped, so it can never write its parent's streams; it
//!   starts a process of its own at its next attach.
//! - A signal handler that interrupts an event gets a recorder of its own; its events are put after the
//!   interrupted one. Events of a handler that interrupts a handler are counted as lost.
//! - Samples of call stacks go to a stream of their own (`samples.obs`), which a signal handler alone
//!   writes, through [`enter_in_handler`].
//! - No descriptor is held open between the appends of a region.
//! - If the caller requests [`os_time`], a housekeeping thread that takes no signal reads the times off the
//!   CPU every 10 ms.
//!
//! **Not for** reading traces, or for the meaning of a runtime's events.
//!
//! Linux only; x86-64 and aarch64.

pub mod attached;
pub mod calibration;
pub mod cancellation;
mod checkpoint;
pub mod clock;
pub mod cpus;
mod disk_file;
pub mod drain;
mod ending;
mod entry_lock;
pub mod event_filter;
pub mod fork_gate;
mod fork_word;
pub mod forked;
mod in_handler;
pub mod instrument;
mod late_count;
mod late_events;
pub mod launcher;
pub mod layout;
pub mod limits;
mod location;
mod metadata;
pub mod nap;
mod nested_recorder;
pub mod open_call;
pub mod os_thread;
pub mod os_time;
pub mod own_threads;
pub mod process;
#[cfg(feature = "rayon")]
pub mod rayon;
mod ring;
mod samples;
mod stream;
mod switch;
mod sync;
mod tail_page;
mod tail_place;
mod tailed_file;
pub mod thread;
pub mod thread_sums;
mod tls;
#[cfg(feature = "tokio")]
pub mod tokio;
#[cfg(feature = "tracing")]
pub mod tracing;
mod turns;
mod unpaired;
pub mod wake;
mod watched_process;

pub use in_handler::{InHandler, enter_in_handler};
pub use location::LocationStream;
pub use metadata::{About, Describe, Json};
pub use stream::{Nesting, copy_payload};
pub use sync::heavy_fence as fence_all_threads;
pub use tail_place::{SHARE_VARIABLE, TAIL_DIRECTORY_VARIABLE, place_for as tail_place_for};
pub use thread::{FastRecording, Recording, ThreadRecorder, enter, enter_fast, enter_for};
