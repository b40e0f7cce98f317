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
//! **The caller** names each operation by (queue, sequence), the sequence counted per queue from 0 without
//! gaps, and announces it *before* the operation is really submitted ([`Reorder::append`]); it withdraws that
//! if the submission fails ([`Reorder::cancel`]); it passes completions on as they come
//! ([`Reorder::complete`]). For out-of-order queues it declares its knowledge of the future
//! ([`Reorder::no_append_before`], [`Reorder::not_started_before`]). It calls [`Reorder::finish`].
//!
//! **Guarantees.**
//! - Every appended operation ends exactly once: delivered (perhaps without usable times), cancelled, or
//!   reported as lost. `appended = delivered + cancelled + lost` after `finish` ([`Account`]).
//! - An in-order queue is released by sequence; operations that threads submit at once
//!   ([`Reorder::append_concurrent`]) by start among each other. An out-of-order queue is released by start
//!   time, when no outstanding operation can start earlier.
//! - Begin and end events of a [lane](Released::lane) never go back in time, for any stamps.
//! - Records held in memory never exceed [`Limits::held_records`]; the rest is in an unnamed file. A stuck
//!   queue does not hold back another.
//! - An operation announced more than 2²⁶ ahead of the first open one of its queue is lost at once, and
//!   reported.
//! - Nothing is reordered silently or dropped: duplicates, late and untimed records and impossible times are
//!   reported with their original values.
//!
//! **Not for** reading any vendor's records, and it reads no clock: times are numbers in a unit and from an
//! origin that the caller chooses per queue.
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
