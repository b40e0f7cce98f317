//! For programs that instrument themselves: spans, tasks, values, points.
//!
//! ```
//! use taskscope_record::{instrument, span};
//! use taskscope_record::instrument::{TaskType, Value};
//!
//! # let directory = std::env::temp_dir().join(format!("taskscope-doc-{}", std::process::id()));
//! instrument::start(&directory)?;
//!
//! static BLOCK: TaskType = TaskType::new("block");
//! static RESIDUAL: Value = Value::new("residual");
//! {
//!     let _sweep = span!("sweep");
//!     let task = BLOCK.create();
//!     let sum: i64 = task.run(|| (1..=10).sum());
//!     RESIDUAL.set(sum);
//! }
//!
//! instrument::finish();
//! # std::fs::remove_dir_all(&directory).ok();
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Threads are recorded from their first event on, and until they end. Spans are marks on a stack
//! (`ovni` model), tasks those of the `nosv` model, so that every tool for ovni traces shows them.
//! Without [`start`], and on threads whose files cannot be made, everything here does nothing. With the
//! feature `instrument` switched off, nothing of it is compiled into the program.

#[cfg(feature = "instrument")]
mod active;
#[cfg(feature = "instrument")]
mod names;
#[cfg(feature = "instrument")]
pub use active::*;
#[cfg(feature = "instrument")]
#[doc(hidden)]
pub use names::{span_id, task_type_id, value_type};

#[cfg(not(feature = "instrument"))]
mod inert;
#[cfg(not(feature = "instrument"))]
pub use inert::*;

/// A span from here to the end of the scope of the guard that it gives.
///
/// ```
/// let _guard = taskscope_record::span!("exchange of halos");
/// ```
#[macro_export]
macro_rules! span {
    ($name:literal) => {{
        static NAME: $crate::instrument::SpanName = $crate::instrument::SpanName::new($name);
        NAME.enter()
    }};
}
