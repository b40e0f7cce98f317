//! Creators of tasks.

use taskscope_execution::{RegionIndex, TaskIndex, ThreadIndex};

/// The creator: a task, or a thread's implicit task in a region.
pub type Creator = (TaskIndex, ThreadIndex, u32);

/// The creator by its task, if that is explicit.
pub fn creator_of(task: TaskIndex, thread: ThreadIndex, region: RegionIndex) -> Creator {
    if task.is_some() { (task, ThreadIndex::NONE, 0) } else { (TaskIndex::NONE, thread, region.0) }
}
