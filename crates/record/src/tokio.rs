//! Activity of tokio's threads: looking for tasks, and idle times.
//!
//! ```
//! # fn main() -> std::io::Result<()> {
//! let mut builder = tokio::runtime::Builder::new_multi_thread();
//! let runtime = taskscope_record::tokio::observe(&mut builder).enable_all().build()?;
//! # drop(runtime);
//! # Ok(())
//! # }
//! ```
//!
//! Tasks themselves come from the [`tracing`](crate::tracing) layer (a future with a span is one), or from
//! [`TaskKind::follow`](crate::instrument::TaskKind::follow), which knows of wakes, too: [`spawn`].

use std::future::Future;

use ::tokio::runtime::Builder;
use ::tokio::task::JoinHandle;

use crate::instrument::{Class, StateName, TaskKind};

static LOOKING: StateName =
    StateName::new("tokio thread", "between tasks: the runtime, or tasks without a span")
        .counts_as(Class::Scheduling);
static IDLE: StateName = StateName::new("IDLE", "parked").counts_as(Class::Idle);

/// Records when the runtime's threads start, park and stop. Uses the builder's hooks for these.
pub fn observe(builder: &mut Builder) -> &mut Builder {
    builder
        .on_thread_start(|| LOOKING.push())
        .on_thread_park(|| IDLE.push())
        .on_thread_unpark(|| IDLE.pop())
        .on_thread_stop(|| LOOKING.pop())
}

/// [`tokio::spawn`] of a future that is a task of `kind`: its polls and wakes are recorded.
#[track_caller]
pub fn spawn<F>(kind: &'static TaskKind, future: F) -> JoinHandle<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    ::tokio::spawn(kind.follow(future))
}
