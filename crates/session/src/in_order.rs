//! The events of a trace in the order of time, read and merged on a thread of their own.

use crate::selection::Selected;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use taskscope_event::Code;
use taskscope_trace::{MergedEvent, Trace};

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
    pub stream: u32,
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
    fields: Fields<'a>,
}

impl TimedEvent<'_> {
    /// Its fields.
    #[inline]
    pub fn payload(&self) -> &[u8] {
        match &self.fields {
            Fields::Few { bytes, length } => &bytes[..usize::from(*length)],
            Fields::Many(bytes) => bytes,
        }
    }
}

/// A payload. Short ones, which nearly all are, go along with their event: the stream's bytes lie in the cache of the
/// processor that merges, and the one that interprets would wait for each.
#[derive(Clone, Copy)]
enum Fields<'a> {
    Few { bytes: [u8; FEW_BYTES], length: u8 },
    Many(&'a [u8]),
}

const FEW_BYTES: usize = 16;

impl<'a> Fields<'a> {
    #[inline]
    fn of(payload: &'a [u8]) -> Fields<'a> {
        let mut bytes = [0; FEW_BYTES];
        match payload {
            [] => {}
            // Usual lengths are copied without a call.
            [a, b, c, d] => bytes[..4].copy_from_slice(&[*a, *b, *c, *d]),
            _ => match payload.first_chunk::<8>() {
                Some(first) if payload.len() == 8 => bytes[..8].copy_from_slice(first),
                _ if payload.len() <= FEW_BYTES => bytes[..payload.len()].copy_from_slice(payload),
                _ => return Fields::Many(payload),
            },
        }
        Fields::Few { bytes, length: payload.len() as u8 }
    }
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
    take: impl FnMut(TimedEvent<'a>),
) {
    progress.of.store(trace.event_count(), Ordering::Relaxed);
    let mut latest = None;
    let mut at = move |clock_ns: i64| {
        // Clocks before the zero of the clock do not occur but in damaged traces.
        let clock = clock_ns.max(0) as u64;
        let at = clock.min(*latest.get_or_insert(clock.saturating_add(LONGEST_NS)));
        (at, at < clock)
    };
    if selected.is_everything() {
        let events = trace.merge().map(move |MergedEvent { stream, event, .. }| {
            let (at, is_too_far) = at(event.clock_ns);
            let (code, fields) = (event.code, Fields::of(event.payload));
            let stream = stream as u32;
            TimedEvent { stream, at, is_too_far, is_selected: true, is_before: false, code, fields }
        });
        return hand_over(events, trace.event_count(), progress, take);
    }
    let in_range = trace.merge().take_while(move |event| selected.time_ns(event) < selected.end_ns);
    let events = in_range.filter(move |event| selected.plays(event)).map(move |event| {
        let (at, is_too_far) = at(event.event.clock_ns);
        let is_before = selected.time_ns(&event) < selected.begin_ns;
        let is_selected = selected.passes(&event);
        let (code, fields) = (event.event.code, Fields::of(event.event.payload));
        TimedEvent { stream: event.stream as u32, at, is_too_far, is_selected, is_before, code, fields }
    });
    hand_over(events, trace.event_count(), progress, take);
}

/// Reads events on a thread of their own, where there are `count`, not few.
fn hand_over<'a>(
    events: impl Iterator<Item = TimedEvent<'a>> + Send,
    count: u64,
    progress: &ReadProgress,
    mut take: impl FnMut(TimedEvent<'a>),
) {
    if count < FEW {
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
