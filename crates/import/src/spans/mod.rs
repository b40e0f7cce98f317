//! A run over time as other tools store it: processes, threads with spans, flows between them, device queues.
//!
//! ```text
//!  reader of a format ──▶ Run ──▶ thread_events: the order of events in a thread ──▶ write: a trace directory
//!                                 device_events: operations and calls
//! ```
//!
//! - A span is an interval in which a thread is in something with a name: a task of that name, or a state of the runtime.
//!   Spans of a thread may nest; those that overlap otherwise share the time: each instant belongs to the span that began
//!   last.
//! - Time of a thread outside of its spans is *not known*, as the file does not have it.
//! - A flow is an order: code after its end waited for code before its begin.
//! - Everything that the trace cannot hold is counted in [`Losses`], with the place of the first one.

mod device_events;
mod losses;
mod numbers;
mod own_states;
mod run;
mod stream;
mod thread_events;
mod write;

pub use losses::{Loss, Losses};
pub(crate) use own_states::{activity_of, find_rows_beside, known_activity};
pub use run::{
    Activity, Call, Flow, Kind, KindRow, Operation, Point, Process, ProcessRow, Queue, QueueRow, Run, Span,
    Thread, ThreadRow,
};
pub(crate) use thread_events::{begins, next_begin};
pub use write::{Written, write_run};
