//! The events of a trace in the order of time, read and merged on a thread of their own.

use crate::selection::Selected;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use taskscope_event::Code;
use taskscope_trace::Trace;

/// No trace is longer (26 days): a clock beyond is damage. It keeps sums over thousands of workers
/// within 64 bits.
pub const LONGEST_NS: u64 = 1 << 51;

/// Events that are handed over at once.
const BATCH: usize = 4096;
/// Batches that may wait: enough to even out, little memory.
const WAITING: usize = 16;
/// Traces of fewer events are read without a second thread.
const FEW: u64 = 100_000;

/// How far a trace is read, for somebody who shows it meanwhile.
#[derive(Debug, Default)]
pub struct ReadProgress {
    /// Events that were read.
    pub events: AtomicU64,
    /// Events of the trace; 0 while that is not known.
    pub of: AtomicU64,
}

/// An event with its time.
#[derive(Clone, Copy)]
pub struct TimedEvent<'a> {
    /// Index of its stream.
    pub stream: usize,
    /// Nanoseconds of the trace's clock.
    pub at: u64,
    /// Whether its clock was beyond all that can be true, and was taken at the limit.
    pub is_too_far: bool,
    /// Whether it is one of those that are asked for, and not only played because they rest on it.
    pub is_selected: bool,
    /// Whether it lies before the range that is asked for.
    pub is_before: bool,
    /// What happened.
    pub code: Code,
    /// Its fields.
    pub payload: &'a [u8],
}

/// Hands the events of the trace that must be played for what is selected to `take`, in order. The answer is the latest time that can be true,
/// where there is an event.
pub fn play<'a>(
    trace: &'a Trace,
    selected: Selected<'a>,
    progress: &ReadProgress,
    mut take: impl FnMut(TimedEvent<'a>),
) -> Option<u64> {
    let mut first = None;
    play_all(trace, selected, progress, |event| {
        first.get_or_insert(event.at);
        take(event);
    });
    first.map(|first| first.saturating_add(LONGEST_NS))
}

fn play_all<'a>(
    trace: &'a Trace,
    selected: Selected<'a>,
    progress: &ReadProgress,
    mut take: impl FnMut(TimedEvent<'a>),
) {
    progress.of.store(trace.event_count(), Ordering::Relaxed);
    let mut latest = None;
    let in_range = trace.merge().take_while(move |event| selected.time_ns(event) < selected.end_ns);
    let events = in_range.filter(move |event| selected.plays(event)).map(move |event| {
        // Clocks before the zero of the clock do not occur but in damaged traces.
        let clock = event.event.clock_ns.max(0) as u64;
        let at = clock.min(*latest.get_or_insert(clock.saturating_add(LONGEST_NS)));
        let (code, payload) = (event.event.code, event.event.payload);
        let is_before = selected.time_ns(&event) < selected.begin_ns;
        let is_selected = selected.passes(&event);
        TimedEvent { stream: event.stream, at, is_too_far: at < clock, is_selected, is_before, code, payload }
    });
    if trace.event_count() < FEW {
        events.for_each(take);
        return;
    }
    std::thread::scope(|scope| {
        let (full, batches) = sync_channel::<Vec<TimedEvent<'a>>>(WAITING);
        let (give_back, spent) = sync_channel::<Vec<TimedEvent<'a>>>(WAITING);
        scope.spawn(move || {
            let mut batch = Vec::with_capacity(BATCH);
            for event in events {
                batch.push(event);
                if batch.len() == BATCH {
                    let next = spent.try_recv().unwrap_or_else(|_| Vec::with_capacity(BATCH));
                    // Nobody takes events any more only when taking them panicked.
                    if full.send(std::mem::replace(&mut batch, next)).is_err() {
                        return;
                    }
                }
            }
            let _ = full.send(batch);
        });
        for mut batch in batches {
            progress.events.fetch_add(batch.len() as u64, Ordering::Relaxed);
            batch.drain(..).for_each(&mut take);
            // Batches circulate; a full way back only costs an allocation.
            let _ = give_back.try_send(batch);
        }
    });
}
