//! Times off the CPU of the threads of another process, for a recorder outside of it.

use super::OsTime;
use super::watched::Watched;
use crate::clock;
use crate::cpus::Mask;
use crate::watched_process;
use std::path::Path;

/// Watches threads of one other process. Nothing is done in that process, and nothing beside the calls of this value.
pub struct Outside(OsTime);

impl Outside {
    /// Watches the process with this id. Its directory in the trace exists. A process watches one other at most.
    pub fn new(directory: &Path, loom: &str, pid: i32) -> Outside {
        watched_process::watch_other(pid);
        Outside(OsTime::new(directory, loom, pid.into(), Mask::thread_affinity(pid), true))
    }

    /// Begins to watch a thread.
    pub fn watch(&self, tid: i32) {
        let mut state = self.0.state();
        state.cpus.look_at_threads([(tid, i64::from(tid))].into_iter());
        state.watched.push(Watched::new(tid, tid.into(), None));
        drop(self.0.open_new(state));
    }

    /// Ends watching a thread, which may have ended.
    pub fn leave(&self, tid: i32) {
        let mut state = self.0.state();
        if let Some(watched) = state.watched.iter_mut().find(|row| row.os_tid == tid && !row.has_left()) {
            watched.leave();
        }
    }

    /// Writes the times so far. To be called every 10 ms if the kernel shows no context switches, else every 40 ms.
    pub fn round(&self) {
        let mut state = self.0.state();
        let mut watched = std::mem::take(&mut state.watched);
        self.0.round(&mut state, &mut watched, clock::kernel_ns());
        state.summed |= watched.iter().any(Watched::has_sums);
        watched.retain(|watched| !watched.is_done());
        state.watched = watched;
    }

    /// Whether times are estimated from sums, as the kernel shows no context switches of a thread.
    pub fn has_sums(&self) -> bool {
        let state = self.0.state();
        state.summed || state.watched.iter().any(Watched::has_sums)
    }

    /// The last round, and the end of the stream.
    pub fn finish(&self) {
        let mut state = self.0.state();
        self.0.last_round(&mut state);
    }
}
