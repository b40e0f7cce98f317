//! Time that threads were runnable without a CPU, and the part of others' waiting that follows from it.
//!
//! ```text
//!   thread    ·─── interval ───·──────────·    its run delay between two readings, divided among its states
//!   workers   ├────── window ───────────────┤  work on a CPU and without one, beside the waiting of others
//! ```
//! The kernel sums a thread's time runnable without a CPU (`schedstat`), without its times of day. A thread's
//! handler reads that sum at each sample, and the thread that closes a window or writes a profile reads those
//! of all threads. The states of an interval's delay are estimated from samples: a signal that arrives late
//! found its thread without a CPU. Waiting is divided in each window ([`estimate`]), so sums by state stay
//! exact, and parts of them are estimates.
//!
//! The profile's own thread measures stops by signals ([`StopWatch`]). It takes that time out of the sleep of
//! each thread, in whatever state the thread was.

mod elapsed;
mod estimate;
mod stop_watch;
mod watch;
mod window;

pub use estimate::Moved;
pub use stop_watch::StopWatch;
pub use watch::Watch;
pub use window::{Observed, Share, read, read_stopped};

/// A signal that arrives so much later than its timer expires, nanoseconds, found its thread without a CPU.
pub const LATE_NS: u64 = 200_000;
