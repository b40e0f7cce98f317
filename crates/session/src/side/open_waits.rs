//! Waits of threads that were in a call when their process was killed or left at once: no event of theirs could be written.

use taskscope_execution::{Execution, Object, ObjectIndex, SiteIndex, ThreadIndex, ThreadWait, WaitOutcome};
use taskscope_trace::Trace;

/// Adds a wait until the end of its process for each thread that its process's sign of life shows in a call. `threads` are those of the
/// streams. The place of the call is not known.
pub(super) fn add_open_waits(trace: &Trace, threads: &[ThreadIndex], execution: &mut Execution) {
    let mut open = Vec::new();
    for (stream, thread) in trace.streams().iter().zip(threads) {
        let times = stream.asleep_since_ns().zip(stream.alive_until_ns());
        let Some(((since, until), (kind, id))) = times.zip(stream.asleep_in()) else { continue };
        let ended = execution.thread_waits.waits_of(*thread, 0, u64::MAX).last().map_or(0, |wait| wait.end);
        let (start, end) = (u64::try_from(since).unwrap_or(0).max(ended), u64::try_from(until).unwrap_or(0));
        if start >= end {
            continue;
        }
        let process = execution.threads[thread.index()].process;
        let row = Object { process, id, kind };
        let objects = &mut execution.catalog.objects;
        let object = objects.iter().position(|known| *known == row).unwrap_or_else(|| {
            objects.push(row);
            objects.len() - 1
        });
        open.push(ThreadWait {
            thread: *thread,
            object: ObjectIndex::of(object),
            site: SiteIndex::NONE,
            start,
            end,
            outcome: WaitOutcome::Open,
            waker: None,
            is_of_others: false,
        });
    }
    if !open.is_empty() {
        execution.thread_waits.waits.extend(open);
        execution.thread_waits.waits.sort_by_key(|wait| (wait.thread, wait.start, wait.end));
    }
}
