//! Calls that start a job, and places in it that the launcher and the library give to processes.

use crate::ProcessIndex;
use crate::messages::Rank;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_event::models::messages::function_number;

const INIT: u32 = function_number("Init");
const INIT_THREAD: u32 = function_number("Init_thread");

/// Whether a call of this function starts the job.
pub(super) fn starts_job(function: u32) -> bool {
    matches!(function, INIT | INIT_THREAD)
}

/// Calls that start jobs.
#[derive(Debug, Default)]
pub(super) struct Starts {
    /// By the number of the launcher's job: processes and their calls.
    pub by_job: FxHashMap<u64, Vec<(ProcessIndex, u32)>>,
    /// Processes to which the library gave another place than the launcher.
    pub contradicted: FxHashSet<ProcessIndex>,
}

impl Starts {
    /// Notes the rank of a process, which may have had one before.
    pub fn rank_is(&mut self, process: ProcessIndex, before: Option<Rank>, now: Rank) {
        if before.is_some_and(|before| (before.rank, before.ranks) != (now.rank, now.ranks)) {
            self.contradicted.insert(process);
        }
    }

    /// Notes the row of a call that starts the job of a process; `u32::MAX` if it is not known.
    pub fn add(&mut self, job: u64, process: ProcessIndex, call: u32) {
        if call != u32::MAX {
            self.by_job.entry(job).or_default().push((process, call));
        }
    }
}
