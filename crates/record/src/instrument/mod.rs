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
//! **Contexts.** Runtimes can record more: keys and states with descriptions, bursts, messages, and tasks
//! that take their open sections from thread to thread.
//!
//! ```
//! use taskscope_record::instrument::{Class, Key, StateName, TaskKind};
//!
//! static ALLOCATING: StateName = StateName::new("CACHE", "in the device's cache");
//! static BYTES: Key = Key::new("cache-malloc", "allocation in the device's cache").unit("bytes");
//! static LOOKING: StateName = StateName::new("looking for work", "").counts_as(Class::Scheduling);
//! static BLOCK: TaskKind = TaskKind::new("block");
//!
//! let task = BLOCK.create();
//! {
//!     let _on = task.enter(); // this thread takes the task up …
//!     let _both = ALLOCATING.enter_with(&BYTES, 4096); // … in which a state and a burst begin,
//! } // which end, and the thread puts the task down
//! let on = task.enter(); // on any thread
//! on.end();
//! let _looking = LOOKING.enter();
//! ```
//!
//! The trace has raw events only (`taskscope_event::models::instrument`): nothing is re-emitted when a task
//! changes its thread. A `static` looks its number up in the dictionary once; while its name is off
//! ([`LEVEL_VARIABLE`], [`ENABLE_VARIABLE`], [`DISABLE_VARIABLE`], [`set_enabled`]) or nothing is recorded,
//! it costs one load. [`sinks`] receive events while the program runs.
//!
//! - A guard ends its section, whatever the switch's state ([`switch_off`]) then; sections opened and closed
//!   by plain calls while it is off are not recorded.
//! - Mistakes (a close without an open, a task on two threads, a name with two meanings, …) do not affect the
//!   program: they are in the trace, and `taskscope check` lists them.
//! - Events after [`finish`] are counted in the metadata; those of destructors of thread-local data are
//!   recorded. A signal handler may raise events with names that the program has used before: a first use
//!   allocates.
//!
//! **Spans and tasks of ovni's models.** Threads are recorded from their first event on, and until they end.
//! Spans are marks on a stack (`ovni` model), tasks those of the `nosv` model, so that every tool for ovni
//! traces shows them. Without [`start`], and on threads without files, all functions have no effect. Without
//! the feature `instrument`, all calls are inlined to nothing, and no code is linked into the program.

mod active;
mod attaching;
mod dictionary;
pub(crate) mod feature;
mod follow;
mod keys;
#[doc(hidden)]
pub mod named;
mod names;
mod raise;
mod register;
mod settings;
pub mod sinks;
mod site;
mod task_context;
mod words;
pub use active::*;
pub use follow::Followed;
pub use keys::{
    Burst, Content, Domain, InState, InStateAndBurst, Key, StateName, StatesHidden, UnknownName, composite,
    find_key, hide_states,
};
#[doc(hidden)]
pub use names::{span_id, task_type_id, value_type};
#[doc(hidden)]
pub use raise::{late_events, raise, raise_data};
pub use settings::{DISABLE_VARIABLE, ENABLE_VARIABLE, LEVEL_VARIABLE};
pub use task_context::{OnThread, TaskContext, TaskKind, task_kind};
pub use words::{Class, Level};

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
