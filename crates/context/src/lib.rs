//! State that belongs to a task and moves with it from thread to thread, and its appearance.
//!
//! ```text
//!  raw events of all threads          Contexts                     visible state
//!  push, pop, open, close,  ──▶  a context per task and   ──▶  on each thread: with items that a switch ends and
//!  enter, leave, switch …        one per thread of its own     begins again, in one of four behaviours;
//!                                                              on each task: as if it had never moved
//! ```
//!
//! A trace holds raw events only. This crate is the one place that derives the visible state of threads and
//! tasks from them; readers of traces use it, and so does the recorder for sinks inside a running program, so
//! both show the same.
//!
//! **The caller** adds threads ([`Contexts::add_thread`]), decodes events ([`Raw::decode`]), passes them on
//! in the order of time over all threads of a process ([`Contexts::event`]), and reports the end of threads.
//! The visible state of a thread or a task is a [`Showing`] of its items. To cut a run in its middle, request
//! the events that restore its open state ([`Contexts::created`] and the functions after it).
//!
//! **Invariants, for any input.**
//! - On a thread, the stacked states begin and end last in, first out, and so do the bursts of one switch.
//! - After every event a thread shows exactly the open state of its task.
//! - On a task, begins and ends are paired, for events of any threads, and its own time is suspended while it
//!   is on no thread.
//! - A mistake of the program is a [`Problem`] with thread and time; the context continues with the most
//!   plausible meaning. Nothing panics.
//!
//! **The order at a switch**: the old task's message half; ends of its sub-states and states, the top first;
//! ends of its bursts, the newest first; the new task's message half; its states, the bottom first, then its
//! sub-states; its bursts, the oldest first; events that other threads left for it, in their order.
//!
//! Tasks on one thread form a stack: a task that is taken up while another is on the thread runs inside it,
//! and the outer one is suspended meanwhile. The bottom is the thread's own context, for events outside of
//! tasks.
//!
//! **Not for** names (numbers stay numbers), I/O, or judgements.
#![forbid(unsafe_code)]

mod context;
mod contexts;
mod ended_tasks;
mod problem;
mod raw;
mod restoring;
mod shown;
mod visible_state;

pub use contexts::{Contexts, Out};
pub use problem::Problem;
pub use raw::{Message, Pairs, Raw, Short};
pub use shown::{Behaviour, Item, Lane, Shown};
pub use visible_state::{Showing, ShownPart, Turn};
