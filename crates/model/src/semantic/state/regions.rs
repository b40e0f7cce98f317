//! Parallel regions and their members.

use rustc_hash::FxHashMap;
use taskscope_execution::{ProcessIndex, RegionIndex, SiteIndex, ThreadIndex};

/// Region ids of processes to numbers of the trace.
pub type RegionsById = FxHashMap<(ProcessIndex, u32), RegionIndex>;

/// State of a running region.
pub struct RegionState {
    /// The recorder's number of it.
    pub number: u32,
    pub site: SiteIndex,
    pub begun: bool,
    pub over: bool,
    /// When the first member joined.
    pub joined: u64,
    pub members: Vec<ThreadIndex>,
}
