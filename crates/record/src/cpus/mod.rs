//! The CPUs that a process has: masks, limits of its control groups, and time that others took.
//!
//! Everything is read from the kernel at the moment of the call; a fact that the kernel does not give is `None`.

mod cgroup;
mod load;
mod mask;

pub use cgroup::{Cgroups, Quota, Throttled, room_for_tasks};
pub use load::{CpuTime, online};
pub use mask::Mask;
