//! Events to changes: the models of ovni's eight runtimes.
//!
//! **The caller** describes the streams ([`ThreadDescription`]), builds the [`System`] ([`build_system`]), plays events
//! in order into a [`Machine`], takes its violations now and then, and calls [`Machine::finish`].
//!
//! **The crate** keeps the state of every thread, CPU and task, passes the values of views to a
//! [`ViewObserver`](taskscope_execution::view::ViewObserver), and reports every broken rule with ovniemu's
//! verdict and ours. It never stops or panics: after a violation it continues with the most plausible state.
//! Memory grows with threads, CPUs and tasks (eight bytes for a task that has ended), not with events.
//!
//! **Not for** reading files, or for writing formats.
#![forbid(unsafe_code)]

pub mod graph;
mod machine;
mod payload;
pub mod semantic;
mod system;
mod system_builder;
mod views;
mod violation;

pub use machine::{DOUBT_TYPE, InputEvent, Machine, MachineOptions, ThreadState};
pub use payload::readable;
pub use system::{Cpu, Loom, Mark, Process, System, Thread};
pub use system_builder::{ThreadDescription, build_system};
pub use views::describe::{PLAIN_CPU_TYPES, labels_of_views};
pub use violation::{Severity, Violation, ViolationCode};
