//! Idleness: workers without work, charged to the code that ran meanwhile.
//!
//! ```text
//!   epochs    |      0       |           1           |      2
//!   worker 1   ── serial ──├ region ┤── serial ──────├ region ┤──
//!   worker 2   not started  └ works ┘ idle            └ works ┘ idle
//!   worker 6   not started ──────────────────────────└ works ┘ idle
//! ```
//! At each instant every working thread is charged I/W for the I idle workers, while W work; if none works,
//! the time is unattributed. Each path has two weights, which become exact sums when a profile is written
//! ([`settle`]):
//!
//! - *present*, for workers that have begun: I/W of the time.
//! - *turn*, for workers that begin later: 1/W of the time, by epoch. An epoch ends when a worker begins; a worker
//!   idles through all epochs before its own.
//!
//! Between its regions, a thread that alone forks leaves all others idle. The time of its work is *known*,
//! from its account, and each of its samples is charged with its work since the previous one. (A sample in a
//! callback, when its account cannot be read, is charged with the time that it represents, and the next
//! sample with as much less.) The remainder at a fork, less than a period, is added to the next sample of
//! serial work: frequent ends are sampled as frequently. Beside a team that is smaller than the pool or
//! incomplete, and beside other forking threads, weights are *sampled*: handlers read the states of all
//! workers, and integrate I/W and 1/W over time (`integrals`); a sample of work is charged with the increase
//! of the integrals since the previous sample, however long ago. These weights divide the rest that the known
//! ones leave.

mod pool;
mod role;
mod weights;

pub use pool::{ByEpoch, Late, Pool};
pub use role::{Charge, Role, SampleOf, add_unsampled, share_in_callback};
pub use weights::{Idled, add_sample, settle};
