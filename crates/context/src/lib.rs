//! What belongs to a task and moves with it from thread to thread, and how that looks from outside.
//!
//! ```text
//!  raw events of all threads          Contexts                     what is shown
//!  push, pop, open, close,  ──▶  a context per task and   ──▶  on each thread: with what a switch ends and
//!  enter, leave, switch …        one per thread of its own     begins again, in one of four behaviours;
//!                                                              on each task: as if it had never moved
//! ```
//!
//! A trace holds raw events alone. This crate is the one place that derives from them what a thread or a
//! task shows; readers of traces use it, and so does the recorder for sinks inside a living program,
//! so both show the same.
//!
//! **The caller** adds threads ([`Contexts::add_thread`]), decodes events ([`Raw::decode`]), hands them over
//! in the order of time over all threads of a process ([`Contexts::event`]), and says when a thread ends.
//! What a thread or a task shows at a moment is a [`Showing`] of its items. Who cuts a run in its middle asks for the events that
//! restore what was open there ([`Contexts::created`] and what follows it).
//!
//! **What holds, whatever the input.**
//! - On a thread, the stacked states begin and end last in, first out, and so do the bursts of one switch.
//! - After every event a thread shows what the task on it has open, no more and no less.
//! - On a task, begins and ends pair up, wherever its threads' events came from, and its own time
//!   stands still while it is on no thread.
//! - A mistake of the program is a [`Problem`] with thread and time; the context goes on with the most
//!   plausible meaning. Nothing panics.
//!
//! **The order at a switch**: the old task's message half; ends of its sub-states and states, the top first;
//! ends of its bursts, the newest first; the new task's message half; its states, the bottom first, then its
//! sub-states; its bursts, the oldest first; what others left for it, in the order in which they left it.
//!
//! Tasks on one thread form a stack: a task that is taken up while another is on the thread runs inside
//! it, and the outer one stands still meanwhile. Below all lies the thread's own context, for what is done
//! outside of tasks.
//!
//! **Not for** names (numbers stay numbers), I/O, or the judgement of what is shown.
#![forbid(unsafe_code)]

mod context;
mod contexts;
mod ended;
mod problem;
mod raw;
mod restoring;
mod showing;
mod shown;

pub use contexts::{Contexts, Out};
pub use problem::Problem;
pub use raw::{Message, Pairs, Raw, Short};
pub use showing::{Showing, Turn, What};
pub use shown::{Behaviour, Item, Lane, Shown};
