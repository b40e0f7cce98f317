//! The operating system's view of a process's threads: runnable times without a CPU, blocked times, and the
//! CPUs on which they may run.
//!
//! One location per process, kind `os-time`: a directory in that of the process with `taskscope.json`
//! (`source`: `context-switches` with each interval, or `schedstat` with sums over short periods; `loom`,
//! `pid`) and no `stream.json`. Events are in the order of their clocks. Events about CPUs and stops have
//! their times (`at`, `start`, `end`, same clock) as fields. In a mask, bit *n* of byte *b* is CPU 8 *b* +
//! *n*.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'Y';
/// The model version that these events belong to.
pub const VERSION: &str = "1.2.0";

events! {
    THREAD = b"YTt" plain (tid: u64, thread: u32) Rule, "watches thread {tid} as number {thread}";
    TOTAL_ON_CPU = b"YTc" plain (ns: u64, thread: u32) Rule, "thread {thread} has run on a CPU for {ns} ns since its start";
    TOTAL_RUN_DELAY = b"YTd" plain (ns: u64, thread: u32) Rule, "thread {thread} has been runnable without a CPU for {ns} ns since its start";
    COALESCED = b"YTb" plain (intervals: u64, thread: u32) Rule, "{intervals} blocked intervals of thread {thread} are in sums only";
    PREEMPTED = b"YCp" plain (ns: u64, thread: u32) Rule, "reschedules thread {thread} after {ns} ns off CPU: preempted";
    BLOCKED = b"YCb" plain (ns: u64, delay_ns: u32, thread: u32) Rule, "reschedules thread {thread} after {ns} ns off CPU: blocked, then runnable for the last {delay_ns} ns";
    BLOCKS = b"YCo" plain (ns: u64, thread: u32) Rule, "thread {thread} has been blocked for {ns} ns and still is";
    RUN_DELAY = b"YDd" plain (ns: u64, period_ns: u32, thread: u32) Rule, "within the last {period_ns} ns, thread {thread} was runnable without a CPU for {ns} ns";
    BLOCKED_SUM = b"YDb" plain (ns: u64, period_ns: u32, thread: u32) Rule, "within the last {period_ns} ns, thread {thread} was blocked for {ns} ns";
    KNOWN = b"YRk" plain (source: u32, thread: u32) Rule, "times off the CPU of thread {thread}, and their causes, are those of the run that this slice is of (source {source}: 0 not known, 1 context switches, 2 estimated)";
    TAKEN = b"YRt" plain (ns: u64, cause: u32, thread: u32) Rule, "in the run that this slice is of, cause {cause} (0: no CPU, 1: more workers than CPUs, 2: blocked, 3: a device) took the last {ns} ns of thread {thread}";
    TAKEN_OF_CPU = b"YRc" plain (ns: u64, cause: u32, cpu: u32) Rule, "in the run that this slice is of, cause {cause} (as of threads) took the last {ns} ns of CPU {cpu}, a worker";
    UNTOLD = b"YLu" plain (records: u64, thread: u32) Rule, "{records} records about thread {thread} before this point are missing";
    CPUS = b"YAp" jumbo (online: u32, mask: rest) Rule, "is in a process that may use the CPUs of the mask {mask}, on a node with {online} CPUs online (0: not known)";
    BOUND = b"YAt" jumbo (at: u64, tid: u64, mask: rest) Rule, "found at {at}, and at the next reading, that thread {tid} may use the CPUs of the mask {mask}";
    QUOTA = b"YQc" jumbo (at: u64, millicpus: u64, cgroup: str) Rule, "found at {at} that the control group {cgroup} limits the process to {millicpus} thousandths of a CPU (0: no limit)";
    THROTTLED = b"YQt" jumbo (start: u64, end: u64, periods: u64, ns: u64) Rule, "found that from {start} to {end} the process's control groups were throttled in {periods} periods, for {ns} ns summed over CPUs";
    KEPT = b"YKh" jumbo (start: u64, end: u64) Rule, "found that from {start} to {end} the recorder's housekeeping thread was stopped, neither in a wait of its own nor runnable";
    CPU_TIME = b"YUt" jumbo (at: u64, busy_ns: u64, stolen_ns: u64, own_ns: u64) Rule, "found at {at} that the CPUs of the process's mask had been busy for {busy_ns} ns since boot, that the hypervisor had kept them for {stolen_ns} ns, and that the process had used {own_ns} ns of CPU time";
}
