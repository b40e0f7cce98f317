//! Process and thread ids for formats that identify lanes by them: the recorded ones if they are unique, else numbers
//! from 2^30 on.

use crate::timeline::{LaneKind, Timeline};
use std::collections::HashSet;
use taskscope_execution::ProcessIndex;

const FIRST_MADE: i32 = 1 << 30;

pub(crate) struct Ids {
    processes: Vec<i32>,
    lanes: Vec<i32>,
}

/// An id that formats take as it is: positive, 32 bits, below the made ones.
fn plain(id: i64) -> Option<i32> {
    i32::try_from(id).ok().filter(|id| (1..FIRST_MADE).contains(id))
}

impl Ids {
    pub(crate) fn of(timeline: &Timeline<'_>) -> Ids {
        let mut used = HashSet::new();
        let process_rows = timeline.execution().processes.iter().enumerate();
        let processes = process_rows.map(|(row, process)| {
            let own = plain(process.pid).filter(|_| !process.has_cpus).filter(|pid| used.insert(*pid));
            own.unwrap_or(FIRST_MADE.saturating_add(row as i32))
        });
        let processes: Vec<i32> = processes.collect();
        let mut used = HashSet::new();
        let lanes = timeline.lanes().iter().enumerate().map(|(row, lane)| {
            let own = match lane.kind {
                LaneKind::Thread(thread) => plain(timeline.execution().threads[thread.index()].tid),
                _ => None,
            };
            own.filter(|tid| used.insert(*tid)).unwrap_or(FIRST_MADE.saturating_add(row as i32))
        });
        let lanes = lanes.collect();
        Ids { processes, lanes }
    }

    /// The id of a process; of no process, one that no process has.
    pub(crate) fn process(&self, process: ProcessIndex) -> i32 {
        let made = FIRST_MADE.saturating_add(self.processes.len() as i32);
        self.processes.get(process.index()).copied().unwrap_or(made)
    }

    /// The id of a lane, unique in the run.
    pub(crate) fn lane(&self, lane: usize) -> i32 {
        self.lanes[lane]
    }
}
