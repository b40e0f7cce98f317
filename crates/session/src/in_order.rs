//! The events of a trace in an order in which they can be interpreted.
//!
//! Most events concern nobody but their thread: each stream plays them by itself, up to its next event that needs the
//! order of all streams ([`Turns`](taskscope_trace::Turns)). Whose turn it is is found out on a thread of its own.
//! Before an event changes what other threads are in, these are played up to it.

use crate::selection::{Part, Selected};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::sync_channel;
use taskscope_event::Code;
use taskscope_model::semantic::Kinds;
use taskscope_trace::{Event, File, MergedEvent, Stream, ThreadEvents, Trace};

/// No trace is longer (26 days): a clock beyond is damage. It keeps sums over thousands of workers
/// within 64 bits.
pub const LONGEST_NS: u64 = 1 << 51;

/// Turns that are handed over at once.
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

/// Who interprets the events.
pub trait Player {
    /// Takes an event.
    fn event(&mut self, event: TimedEvent<'_>);

    /// Takes events of a stream that need no order.
    fn own_events(&mut self, stream: u32, events: impl Iterator<Item = OwnEvent>);

    /// The other streams whose earlier events must have been taken before this one.
    fn reaches(&mut self, event: &TimedEvent<'_>, streams: &mut Vec<u32>);
}

/// An event that needs no order. It passes through memory: three bytes and a flag, stored one by one, would make
/// the next read of all wait.
#[derive(Clone, Copy)]
pub struct OwnEvent {
    /// As of a [`TimedEvent`].
    pub at: u64,
    /// What happened, as a number, and above it whether `at` was taken at the limit.
    code_and_limit: u32,
}

impl OwnEvent {
    /// What happened, as a number.
    pub fn code(self) -> u32 {
        self.code_and_limit & 0xff_ffff
    }

    /// As of a [`TimedEvent`].
    pub fn is_too_far(self) -> bool {
        self.code_and_limit >> 24 != 0
    }
}

/// Which events need the order of all streams.
pub struct NeedsOrder {
    kinds: Kinds,
    /// Streams of which all events do.
    streams: Vec<bool>,
}

impl NeedsOrder {
    /// In these streams all events need it, in the others those of which the model says so.
    pub fn of_streams(streams: Vec<bool>) -> NeedsOrder {
        NeedsOrder { kinds: Kinds::default(), streams }
    }

    /// Whether all events of a stream do.
    #[inline(always)]
    fn of_all(&self, stream: u32) -> bool {
        self.streams[stream as usize]
    }
}

/// Hands the events of the trace that must be played for what is selected to `player`, `parts` of each stream. Where not everything is, all events
/// must need the order. The answer is the latest time that can be true, where there is an event.
pub fn play<'a>(
    trace: &'a Trace,
    selected: Selected<'a>,
    parts: &[Part],
    needs_order: &NeedsOrder,
    progress: &ReadProgress,
    player: &mut impl Player,
) -> Option<u64> {
    progress.of.store(trace.event_count(), Ordering::Relaxed);
    let open = |stream: &'a Stream| OpenStream { events: stream.events(), begun: false };
    let mut reading = Reading {
        streams: trace.streams().iter().map(open).collect(),
        selected: (!selected.is_everything()).then_some(selected),
        parts,
        is_over: false,
        reached: Vec::new(),
        latest: None,
        read: 0,
        needs_order,
        player,
    };
    let turns = trace.turns(|stream, code| needs_order.of_all(stream) || needs_order.kinds.needs_order(code));
    if trace.event_count() < FEW {
        turns.for_each(|stream| reading.turn(stream));
    } else {
        std::thread::scope(|scope| {
            let (full, batches) = sync_channel::<Vec<u32>>(WAITING);
            scope.spawn(move || {
                let mut turns = turns;
                loop {
                    let batch: Vec<u32> = turns.by_ref().take(BATCH).collect();
                    // Nobody takes turns any more when the range is over, or when taking them panicked.
                    if batch.is_empty() || full.send(batch).is_err() {
                        return;
                    }
                }
            });
            for batch in batches {
                batch.into_iter().for_each(|stream| reading.turn(stream));
                progress.events.store(reading.read, Ordering::Relaxed);
                if reading.is_over {
                    break;
                }
            }
        });
    }
    if reading.selected.is_none() {
        reading.rest();
    }
    reading.latest
}

/// A stream, read up to where it was played.
struct OpenStream<'a> {
    events: ThreadEvents<'a>,
    begun: bool,
}

struct Reading<'a, 'p, P> {
    streams: Vec<OpenStream<'a>>,
    /// What is selected, if not everything is.
    selected: Option<Selected<'a>>,
    /// What is played of each stream.
    parts: &'p [Part],
    /// No later event lies in the range.
    is_over: bool,
    /// Streams that the event at hand reaches.
    reached: Vec<u32>,
    /// The latest time that can be true.
    latest: Option<u64>,
    /// Events so far.
    read: u64,
    needs_order: &'p NeedsOrder,
    player: &'p mut P,
}

impl<'a, P: Player> Reading<'a, '_, P> {
    /// Plays a stream up to its next event that needs the order, that one included.
    #[inline(always)]
    fn turn(&mut self, stream: u32) {
        let OpenStream { events, begun } = &mut self.streams[stream as usize];
        let mut due = None;
        if std::mem::replace(begun, true) {
            let (latest, read, needs_order) = (&mut self.latest, &mut self.read, self.needs_order);
            let (all, kinds) = (needs_order.of_all(stream), &needs_order.kinds);
            let own = UntilDue { events, all, kinds, due: &mut due, latest, read };
            self.player.own_events(stream, own);
        } else {
            due = events.next();
            self.read += 1;
        }
        let Some((file, event)) = due else { return };
        if self.selected.is_some() {
            return self.take_if_selected(MergedEvent { stream: stream as usize, file, event });
        }
        let timed = timed(&mut self.latest, stream, &event);
        self.player.reaches(&timed, &mut self.reached);
        if !self.reached.is_empty() {
            self.play_reached(event.clock_ns);
        }
        self.player.event(timed);
    }

    fn take_if_selected(&mut self, merged: MergedEvent<'a>) {
        let Some(selected) = self.selected else { return };
        self.is_over |= selected.time_ns(&merged) >= selected.end_ns;
        let part = self.parts.get(merged.stream).copied().unwrap_or(Part::Whole);
        if self.is_over || (part == Part::Passing && !selected.plays(&merged)) {
            return;
        }
        let is_before = selected.time_ns(&merged) < selected.begin_ns;
        let is_selected = selected.passes(&merged);
        let timed = timed(&mut self.latest, merged.stream as u32, &merged.event);
        self.player.event(TimedEvent { is_before, is_selected, ..timed });
    }

    /// Plays the streams that the event at hand reaches up to its time.
    #[inline(never)]
    fn play_reached(&mut self, until_ns: i64) {
        for stream in self.reached.drain(..) {
            let events = &mut self.streams[stream as usize].events;
            let (latest, read) = (&mut self.latest, &mut self.read);
            // What lies before that time needs no order: else it has had its turn.
            let own = std::iter::from_fn(|| {
                events.peek_clock_ns().filter(|clock_ns| *clock_ns < until_ns)?;
                *read += 1;
                events.next().map(|(_, event)| own(latest, &event))
            });
            self.player.own_events(stream, own);
        }
    }

    /// Plays what the streams have left after the last turn.
    fn rest(&mut self) {
        for (stream, open) in self.streams.iter_mut().enumerate() {
            let latest = &mut self.latest;
            let own = open.events.by_ref().map(|(_, event)| own(latest, &event));
            self.player.own_events(stream as u32, own);
        }
    }
}

/// The events of a stream up to the next one that needs the order, which is then `due`. A type of its own, so that
/// taking an event is compiled into the loop of who takes it.
struct UntilDue<'r, 'a> {
    events: &'r mut ThreadEvents<'a>,
    /// Whether all of its events need the order.
    all: bool,
    kinds: &'r Kinds,
    due: &'r mut Option<(File, Event<'a>)>,
    latest: &'r mut Option<u64>,
    read: &'r mut u64,
}

impl Iterator for UntilDue<'_, '_> {
    type Item = OwnEvent;

    #[inline(always)]
    fn next(&mut self) -> Option<OwnEvent> {
        let (file, event) = self.events.next()?;
        *self.read += 1;
        if self.all || self.kinds.needs_order(event.code) {
            *self.due = Some((file, event));
            return None;
        }
        Some(own(self.latest, &event))
    }
}

/// The time of a clock, and whether it was beyond all that can be true.
#[inline(always)]
fn time(latest: &mut Option<u64>, clock_ns: i64) -> (u64, bool) {
    // Clocks before the zero of the clock do not occur but in damaged traces.
    let clock = clock_ns.max(0) as u64;
    let at = clock.min(*latest.get_or_insert(clock.saturating_add(LONGEST_NS)));
    (at, at < clock)
}

#[inline(always)]
fn own(latest: &mut Option<u64>, event: &Event<'_>) -> OwnEvent {
    let (at, is_too_far) = time(latest, event.clock_ns);
    OwnEvent { at, code_and_limit: event.code.to_u32() | u32::from(is_too_far) << 24 }
}

/// An event where everything is selected, with its time.
#[inline(always)]
fn timed<'a>(latest: &mut Option<u64>, stream: u32, event: &Event<'a>) -> TimedEvent<'a> {
    let (at, is_too_far) = time(latest, event.clock_ns);
    let (code, payload) = (event.code, event.payload);
    TimedEvent { stream, at, is_too_far, is_selected: true, is_before: false, code, payload }
}
