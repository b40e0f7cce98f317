//! The CPUs of looms in which CPUs are the workers.

use rustc_hash::FxHashMap;
use taskscope_execution::{ProcessIndex, ThreadIndex};

/// A loom's number, given by the caller.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LoomNumber(pub u32);

impl LoomNumber {
    pub(in crate::semantic) fn index(self) -> usize {
        self.0 as usize
    }
}

/// The CPUs of a loom with CPUs as workers.
#[derive(Default)]
pub struct LoomCpus {
    pub begun: bool,
    pub last: u64,
    /// By the index that events use.
    pub by_index: FxHashMap<i32, ThreadIndex>,
    /// All threads of the loom by their ids.
    pub tids: FxHashMap<i32, ThreadIndex>,
    /// The recorder of its threads, while that is one.
    pub recorder: Option<ProcessIndex>,
    /// Several processes share the CPUs.
    pub is_shared: bool,
}

/// The CPU of a thread.
#[derive(Clone, Copy, Default)]
pub struct OnCpu {
    pub loom: Option<LoomNumber>,
    /// The CPU's row, if the CPU is known.
    pub cpu: Option<ThreadIndex>,
    pub running: bool,
}
