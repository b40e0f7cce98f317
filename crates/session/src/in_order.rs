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
    /// Its fields.
    pub payload: &'a [u8],
}

/// Events on their way from one thread to the other.
///
/// Short payloads, which nearly all are, go along with their event: the stream's bytes lie in the cache of the
/// processor that merges, and the one that interprets would wait for each. Two events fill a line of the cache.
#[derive(Default)]
struct Batch<'a> {
    events: Vec<Packed>,
    /// Payloads that do not fit, in the order of their events.
    long: Vec<&'a [u8]>,
}

/// An event in 32 bytes.
#[derive(Clone, Copy)]
struct Packed {
    at: u64,
    payload: [u8; SHORT_BYTES],
    stream: u32,
    code: Code,
    /// Bytes of its payload, or [`LONG`], and the flags below.
    length_and_flags: u8,
}

const SHORT_BYTES: usize = 16;
const LONG: u8 = 31;
const LENGTHS: u8 = 0x1f;
const TOO_FAR: u8 = 0x20;
const SELECTED: u8 = 0x40;
const BEFORE: u8 = 0x80;

const _: () = assert!(size_of::<Packed>() == 32 && SHORT_BYTES < LONG as usize);

impl<'a> Batch<'a> {
    fn with_capacity(events: usize) -> Batch<'a> {
        Batch { events: Vec::with_capacity(events), long: Vec::new() }
    }

    #[inline(always)]
    fn push(&mut self, event: TimedEvent<'a>) {
        let mut payload = [0; SHORT_BYTES];
        let length = match event.payload {
            [] => 0,
            // Usual lengths are copied without a call.
            [a, b, c, d] => {
                payload[..4].copy_from_slice(&[*a, *b, *c, *d]);
                4
            }
            bytes => match bytes.first_chunk::<8>() {
                Some(first) if bytes.len() == 8 => {
                    payload[..8].copy_from_slice(first);
                    8
                }
                _ if bytes.len() <= SHORT_BYTES => {
                    payload[..bytes.len()].copy_from_slice(bytes);
                    bytes.len() as u8
                }
                _ => {
                    self.long.push(bytes);
                    LONG
                }
            },
        };
        let flag = |set: bool, flag: u8| if set { flag } else { 0 };
        let length_and_flags = length
            | flag(event.is_too_far, TOO_FAR)
            | flag(event.is_selected, SELECTED)
            | flag(event.is_before, BEFORE);
        let TimedEvent { stream, at, code, .. } = event;
        self.events.push(Packed { at, payload, stream, code, length_and_flags });
    }

    /// Hands all events over, and is empty.
    fn drain(&mut self, mut take: impl FnMut(TimedEvent<'_>)) {
        let mut long = self.long.drain(..);
        for event in self.events.drain(..) {
            let length = event.length_and_flags & LENGTHS;
            let payload = match event.payload.get(..usize::from(length)) {
                Some(payload) => payload,
                None => long.next().unwrap_or_default(),
            };
            take(TimedEvent {
                stream: event.stream,
                at: event.at,
                is_too_far: event.length_and_flags & TOO_FAR != 0,
                is_selected: event.length_and_flags & SELECTED != 0,
                is_before: event.length_and_flags & BEFORE != 0,
                code: event.code,
                payload,
            });
        }
    }
}

/// Hands the events of the trace that must be played for what is selected to `take`, in order. The answer is the latest time that can be true,
/// where there is an event.
pub fn play<'a>(
    trace: &'a Trace,
    selected: Selected<'a>,
    progress: &ReadProgress,
    mut take: impl FnMut(TimedEvent<'_>),
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
    take: impl FnMut(TimedEvent<'_>),
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
            let (stream, code, payload) = (stream as u32, event.code, event.payload);
            TimedEvent { stream, at, is_too_far, is_selected: true, is_before: false, code, payload }
        });
        return hand_over(events, trace.event_count(), progress, take);
    }
    let in_range = trace.merge().take_while(move |event| selected.time_ns(event) < selected.end_ns);
    let events = in_range.filter(move |event| selected.plays(event)).map(move |event| {
        let (at, is_too_far) = at(event.event.clock_ns);
        let is_before = selected.time_ns(&event) < selected.begin_ns;
        let is_selected = selected.passes(&event);
        let (stream, code, payload) = (event.stream as u32, event.event.code, event.event.payload);
        TimedEvent { stream, at, is_too_far, is_selected, is_before, code, payload }
    });
    hand_over(events, trace.event_count(), progress, take);
}

/// Reads events on a thread of their own, where there are `count`, not few.
fn hand_over<'a>(
    events: impl Iterator<Item = TimedEvent<'a>> + Send,
    count: u64,
    progress: &ReadProgress,
    mut take: impl FnMut(TimedEvent<'_>),
) {
    if count < FEW {
        events.for_each(take);
        return;
    }
    std::thread::scope(|scope| {
        let (full, batches) = sync_channel::<Batch<'a>>(WAITING);
        let (give_back, spent) = sync_channel::<Batch<'a>>(WAITING);
        scope.spawn(move || {
            let mut batch = Batch::with_capacity(BATCH);
            for event in events {
                batch.push(event);
                if batch.events.len() == BATCH {
                    let next = spent.try_recv().unwrap_or_else(|_| Batch::with_capacity(BATCH));
                    // Nobody takes events any more only when taking them panicked.
                    if full.send(std::mem::replace(&mut batch, next)).is_err() {
                        return;
                    }
                }
            }
            let _ = full.send(batch);
        });
        for mut batch in batches {
            progress.events.fetch_add(batch.events.len() as u64, Ordering::Relaxed);
            batch.drain(&mut take);
            // Batches circulate; a full way back only costs an allocation.
            let _ = give_back.try_send(batch);
        }
    });
}
