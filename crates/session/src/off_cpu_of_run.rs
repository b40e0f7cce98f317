//! The times off the CPU of a run with their causes, for a slice of it.
//!
//! A slice has neither the threads and times that decide them nor the operations of devices, so it keeps the results.

use taskscope_execution::{Execution, OffCpu, SystemTime, Thread, ThreadIndex, ThreadKind};
use taskscope_trace::{OffCpuOfRun, OffCpuTimes};

/// The times off the CPU of each thread, and of each CPU that is a worker, of the whole run that this execution is or is a part
/// of.
pub fn off_cpu_of_run(execution: &Execution) -> OffCpuOfRun {
    let execution = execution.whole();
    let times = |all: &[OffCpu]| all.iter().map(|off| (clock(off.start), clock(off.end))).collect();
    let row = |(number, thread): (usize, &Thread)| {
        let process = &execution.processes[thread.process.index()];
        let index = ThreadIndex(number as u32);
        let time =
            |SystemTime { start, end, cause, .. }: &SystemTime| (clock(*start), clock(*end), *cause as u32);
        OffCpuTimes {
            loom: process.loom.clone(),
            pid: (thread.kind != ThreadKind::Cpu).then_some(process.pid),
            id: thread.tid,
            source: thread.os_source as u32,
            runnable: times(execution.off_cpu_of(index)),
            blocked: times(execution.blocked_of(index)),
            taken: execution.system_time_of(index).iter().map(time).collect(),
        }
    };
    let stops = execution.processes.iter().filter(|process| !process.has_cpus).filter_map(|process| {
        let times = process.cpus.as_ref()?.stopped.iter().map(|(start, end)| (clock(*start), clock(*end)));
        Some(((process.loom.clone(), process.pid), times.collect()))
    });
    OffCpuOfRun { rows: execution.threads.iter().enumerate().map(row).collect(), stops: stops.collect() }
}

fn clock(at: u64) -> i64 {
    i64::try_from(at).unwrap_or(i64::MAX)
}
