//! Accepts records of device operations in any order from any thread, and releases each exactly
//! once, in order, with bounded memory and an account of every loss.
//!
//! ```text
//!  host threads ── append, cancel ──▶ ring per thread ─┐
//!  driver threads ── completion ────▶ ring per thread ─┴▶ one collector ─▶ Reorder ─▶ Output
//!                                                                            │ pages and runs on disk
//!                                                                            ▼ beyond the cap
//! ```
//!
//! **The caller** names each operation by (queue, sequence), the sequence counted per queue from 0
//! without gaps, and tells it *before* the operation is really submitted ([`Reorder::append`]); it
//! takes that back if the submission fails ([`Reorder::cancel`]); it hands in completions as they
//! come ([`Reorder::complete`]). For out-of-order queues it tells what it knows about the future
//! ([`Reorder::no_append_before`], [`Reorder::not_started_before`]). It calls [`Reorder::finish`].
//!
//! **What holds.**
//! - Every appended operation ends exactly once: delivered (perhaps without usable times), cancelled,
//!   or lost and told so. `appended = delivered + cancelled + lost` after `finish` ([`Account`]).
//! - An in-order queue is released by sequence; operations that threads submit at once
//!   ([`Reorder::append_concurrent`]) by start among each other. An out-of-order queue is released by start time,
//!   when nothing that is still to come can start earlier.
//! - Begin and end events of a [lane](Released::lane) never go back in time, whatever the stamps.
//! - Records held in memory never exceed [`Limits::held_records`]; the rest lies in a file that has
//!   no name. One queue that is stuck does not hold back another.
//! - What is announced more than 2²⁶ operations ahead of the first open one of its queue is lost at once, and told so.
//! - Nothing is reordered silently or thrown away: duplicates, late and untimed records and
//!   impossible times are told with the values as they came.
//!
//! **Not for** reading any vendor's records, and it never asks a clock: times are numbers whose unit
//! and origin the caller chooses per queue.
//!
//! About 38 M records a CPU-second in order (`cargo run --release -p taskscope-reorder --example throughput`).
#![forbid(unsafe_code)]

mod account;
pub mod clock;
mod identity;
mod lanes;
mod lost;
mod pages;
mod queue;
mod record;
mod reorder;
mod rings;
mod sorter;
mod spill;

pub use account::{Account, Totals};
pub use identity::{Identities, Operation, VendorKey};
pub use lanes::Lanes;
pub use record::{Anomalies, Completion, Detail, Notice, Output, QueueIndex, QueueOrder, Released};
pub use reorder::{Limits, Reorder, WhenFull, WithoutId};
pub use rings::{Producer, Rings};
