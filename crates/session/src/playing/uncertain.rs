//! Uncertain intervals of threads, from their streams.

use taskscope_event::StreamFile;
use taskscope_execution::{Doubt, Execution, Thread, ThreadIndex, Uncertain};
use taskscope_trace::{Stream, Trace};

/// The end of each stream that ends before its thread, and falls of its clock.
pub(crate) fn uncertain_parts(
    trace: &Trace,
    threads: &[ThreadIndex],
    execution: &Execution,
) -> Vec<Uncertain> {
    let mut all = Vec::new();
    for (stream, thread) in trace.streams().iter().zip(threads) {
        let row = &execution.threads[thread.index()];
        let mut doubts = |doubt, start, end| all.push(Uncertain { thread: *thread, start, end, doubt });
        if let Some((start, end)) = end_of(stream, row) {
            doubts(Doubt::StreamEnds, start, end);
        }
        for (from, to) in stream.clock_falls_ns() {
            let in_row = |clock: i64| (clock.max(0) as u64).max(row.track.start()).min(row.track.end());
            doubts(Doubt::ClockGoesBack, in_row(from), in_row(to));
        }
    }
    all
}

/// Corrected clock, nanoseconds, up to which a thread's state is known: its last event, or, if no events are missing,
/// its last sample or the last sign of life of its process.
pub(crate) fn known_until(stream: &Stream) -> Option<i64> {
    let later = stream.last_clock_of(StreamFile::Samples).max(stream.alive_until_ns());
    stream.last_clock_ns().max(later.filter(|_| stream.cut_at_ns().is_none()))
}

/// A thread that outlives its stream is shown in its last state, which is uncertain. So is a thread with one file that
/// ends before the other.
fn end_of(stream: &Stream, row: &Thread) -> Option<(u64, u64)> {
    let ends = match stream.cut_at_ns() {
        Some(cut) => cut,
        None if row.ended => return None,
        // It ended, and `stream.obs` is where that is recorded.
        None if stream.is_finished() => {
            stream.last_clock_of(StreamFile::Standard).or(stream.last_clock_ns())?
        }
        None => known_until(stream)?,
    };
    let (start, end) = (ends.max(0) as u64, row.track.end());
    // Only this shows that a properly ended stream lacks its thread's end.
    (start < end || (start == end && stream.is_finished() && !row.ended)).then_some((start, end))
}
