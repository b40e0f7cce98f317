//! What the operating system did to a process's threads: when they could run and did not.
//!
//! One location a process, kind `os-time`: a directory in that of the process with `taskscope.json`
//! (`source`: `context-switches`, where each time is known, or `schedstat`, where sums over short
//! periods are; `loom`, `pid`) and no `stream.json`. Events stand in the order of their clocks.

use super::prelude::*;

/// The letter that opens every code of this model.
pub const LETTER: u8 = b'Y';
/// The model version that these events belong to.
pub const VERSION: &str = "1.0.0";

events! {
    THREAD = b"YTt" plain (tid: u64, thread: u32) Rule, "watches thread {tid}, which is number {thread} from now on";
    PREEMPTED = b"YCp" plain (ns: u64, thread: u32) Rule, "puts thread {thread} back on a CPU, which was taken from it {ns} ns ago";
    RUN_DELAY = b"YDd" plain (ns: u64, period_ns: u32, thread: u32) Rule, "within the last {period_ns} ns, thread {thread} could run and had no CPU for {ns} ns";
    UNTOLD = b"YLu" plain (records: u64, thread: u32) Rule, "{records} records about thread {thread} before this point are missing";
}
