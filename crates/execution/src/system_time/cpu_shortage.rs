//! Sums of the time that workers had no CPU.

use super::intervals::{Times, overlap_ns};
use crate::{Execution, ThreadIndex};

/// Time of workers without a CPU, by loss and by the thread without one; nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CpuShortage {
    /// Lost by workers that could run and had no CPU.
    pub own_ns: u64,
    /// Lost by workers that wait (asleep, or on a CPU) while those that they wait for have no CPU, or all CPUs are taken.
    pub others_ns: u64,
    /// Not lost to the system: workers that could run and had no CPU, waiting meanwhile for others that worked.
    pub waiting_ns: u64,
    /// The part of `own_ns` and `waiting_ns` in which a signal had stopped the process: no `run_delay`.
    pub stopped_ns: u64,
}

impl CpuShortage {
    /// The time lost to the system.
    pub fn lost_ns(&self) -> u64 {
        self.own_ns + self.others_ns
    }

    /// Time in which workers could run and had no CPU, as the kernel's `run_delay` counts it.
    pub fn runnable_ns(&self) -> u64 {
        (self.own_ns + self.waiting_ns).saturating_sub(self.stopped_ns)
    }
}

impl Execution {
    /// Time of all workers without a CPU.
    pub fn cpu_shortage(&self) -> CpuShortage {
        let mut shortage = CpuShortage::default();
        for (thread, _) in self.workers() {
            let runnable = self.runnable_times(thread);
            let lost = self.system_time_of(thread).iter().filter(|part| part.cause.is_off_cpu());
            let own = overlap_ns(&runnable, lost.clone().map(|part| (part.start, part.end)));
            let total = |times: &Times| times.iter().map(|time| time.1 - time.0).sum::<u64>();
            shortage.own_ns += own;
            shortage.others_ns += lost.map(|part| part.end - part.start).sum::<u64>() - own;
            shortage.waiting_ns += total(&runnable) - own;
            shortage.stopped_ns += overlap_ns(&runnable, self.stops_of(thread).iter().copied());
        }
        shortage
    }

    /// Times in which a signal had stopped the process of a thread, in order; empty if not known.
    pub fn stops_of(&self, thread: ThreadIndex) -> &[(u64, u64)] {
        let process = &self.processes[self.threads[thread.index()].process.index()];
        process.cpus.as_ref().map_or(&[], |cpus| &cpus.stopped)
    }

    /// Nanoseconds of a thread's time without a CPU in which a signal had stopped its process.
    pub fn stopped_ns(&self, thread: ThreadIndex) -> u64 {
        overlap_ns(&self.runnable_times(thread), self.stops_of(thread).iter().copied())
    }
}
