//! Numbers of creation paths.

use rustc_hash::FxHashMap;
use taskscope_execution::{PathIndex, ProcessIndex, ThreadIndex, TypeIndex};

/// Numbers of creation paths during the replay.
#[derive(Default)]
pub struct PathNumbers {
    pub paths: FxHashMap<(ProcessIndex, u32), PathIndex>,
    pub count: usize,
    /// The creation path of a thread's later tasks of a type.
    pub sticky: FxHashMap<(ThreadIndex, TypeIndex), PathIndex>,
}

impl PathNumbers {
    pub fn number(&mut self, process: ProcessIndex, id: u32) -> PathIndex {
        let next = PathIndex::of(self.count);
        let path = *self.paths.entry((process, id)).or_insert(next);
        self.count += usize::from(path == next);
        path
    }
}
