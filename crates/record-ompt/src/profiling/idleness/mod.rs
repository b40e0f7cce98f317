//! Idleness: workers that have nothing to do, charged to what ran meanwhile.
//!
//! ```text
//!   epochs    |      0       |           1           |      2
//!   worker 1   ── serial ──├ region ┤── serial ──────├ region ┤──
//!   worker 2   not started  └ works ┘ idle            └ works ┘ idle
//!   worker 6   not started ──────────────────────────└ works ┘ idle
//! ```
//! At each instant every working thread is charged I/W for the I workers that idle, while W work; where none works
//! it is nobody's. Two weights are kept at each path, and become exact sums when a profile is written
//! ([`settle`]):
//!
//! - *present*, for workers that are there: I/W of the time.
//! - *turn*, for workers that begin later: 1/W of the time, by epoch. An epoch ends when a worker begins; a worker
//!   idles through all epochs before its own.
//!
//! Between its regions, a thread that alone forks has all others idle: the time of its work is *known*, from its account, and
//! each of its samples has what it worked since the one before. (In a callback, where its account
//! cannot be looked at, a sample has the time that it stands for, which the next one does without.) What is left when it forks, less than a period, waits for the
//! next sample of serial work: such ends are sampled as often if they come often. Beside a team that is smaller than the pool, or has not all its members yet, and beside
//! other threads that fork, weights are *sampled*: handlers look at what all workers do, and integrate I/W and 1/W over
//! time (`integrals`); a sample of work has what the integrals have grown by since the sample before, however long that
//! was. These weights divide what the known ones leave.

mod pool;
mod role;
mod weights;

pub use pool::{ByEpoch, Late, Pool};
pub use role::{Charge, Role, SampleOf, add_unsampled, share_in_callback};
pub use weights::{Idled, add_sample, settle};
