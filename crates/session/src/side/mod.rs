//! Facts that no event states, from side streams and from the metadata of streams.

mod cpus;
mod open_waits;
mod os_time;
mod ranks;
mod signals;
mod stops;
mod thread_ids;

use crate::devices::work::device_waits;
use crate::playing::threads::Threads;
use taskscope_execution::Execution;
use taskscope_execution::devices::Devices;
use taskscope_trace::Trace;

/// Adds CPUs, times off the CPU, waits for devices and ranks, and since when threads sleep.
pub(crate) fn add_facts(trace: &Trace, threads: &Threads, devices: &Devices, execution: &mut Execution) {
    let Threads { threads, names, .. } = threads;
    cpus::add_cpus(trace, threads, names, execution);
    let known = os_time::add_os_times(trace, names, execution);
    execution.attribute_system_time_and_devices(&device_waits(execution, devices));
    execution.replace_system_time(|thread| known.threads.contains(&thread), known.times);
    ranks::add_ranks(trace, threads, execution);
    for (stream, thread) in trace.streams().iter().zip(threads) {
        let since = stream.asleep_since_ns().map(|since| since.max(0) as u64);
        // A thread may have several streams, not all of them with signs of life.
        let known = &mut execution.threads[thread.index()].asleep_since;
        *known = since.max(*known);
    }
    open_waits::add_open_waits(trace, threads, execution);
}
