//! A thread with its times, before activities are compared.

use crate::ThreadIndex;

/// A thread that runs code of a set of processes.
pub(super) struct Member {
    pub thread: ThreadIndex,
    /// Number of its process within the set.
    pub process: usize,
    /// Number of its crowd.
    pub crowd: Option<usize>,
    pub worker: bool,
    /// Times in which it could run and had no CPU.
    pub off: Vec<(u64, u64)>,
    /// Times in which it was blocked in the kernel.
    pub blocked: Vec<(u64, u64)>,
    /// Times in which it waited for a device in a call.
    pub device: Vec<(u64, u64)>,
}
