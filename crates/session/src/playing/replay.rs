//! The events of a trace in an order in which they can be interpreted.
//!
//! Most events affect only their own thread: each stream is replayed by itself, up to its next event that needs the
//! order of all streams ([`Turns`](taskscope_trace::Turns)). The order of turns is computed on a separate thread.
//! Before an event that changes the state of other threads, these are replayed up to it.

use crate::selection::{Part, Selected};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use taskscope_event::Code;
use taskscope_model::semantic::{Kinds, OwnKind};
use taskscope_trace::{Event, MergedEvent, Stream, ThreadEvents, Trace};

/// No trace is longer (26 days): a clock beyond is damage. It keeps sums over thousands of workers
/// within 64 bits.
pub const MAX_RUN_NS: u64 = 1 << 51;

/// Turns that are handed over at once.
const BATCH: usize = 4096;
/// Batches that may wait: enough to even out, little memory.
const WAITING: usize = 16;
/// Traces of fewer events are read without a second thread.
const FEW: u64 = 100_000;

/// Progress of reading a trace, for display meanwhile.
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
    /// Whether it is selected, and not only replayed because selected events depend on it.
    pub is_selected: bool,
    /// Whether it is in the selected range; all events are replayed, since the states in the range follow from the
    /// whole.
    pub is_in_range: bool,
    /// Code of the event.
    pub code: Code,
    /// Its fields.
    pub payload: &'a [u8],
}

/// An interpreter of events.
pub trait Player {
    /// Takes an event.
    fn event(&mut self, event: TimedEvent<'_>);

    /// Takes events of a stream that need no order. The answer is how many.
    fn own_events(&mut self, stream: u32, events: OwnEvents<'_, '_>) -> u64;

    /// Adds the other streams with earlier events that must be taken before this one.
    fn reaches(&mut self, event: &TimedEvent<'_>, streams: &mut Vec<u32>);
}

/// An event that needs no order.
#[derive(Clone, Copy)]
pub struct OwnEvent {
    /// Time, as in a [`TimedEvent`].
    pub at: u64,
    /// Whether its time is implausibly late, as in a [`TimedEvent`].
    pub is_too_far: bool,
    /// Code of the event; there are no fields.
    pub code: Code,
    /// Effect of the event.
    pub kind: OwnKind,
}

/// The next events of a stream, up to one that needs the order.
pub struct OwnEvents<'r, 'a> {
    events: &'r mut ThreadEvents<'a>,
    kinds: &'r Kinds,
    /// Upper bound of their times.
    last_ns: i64,
    /// The latest time that can be true.
    latest: u64,
}

impl<'r, 'a> OwnEvents<'r, 'a> {
    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        let next = self.events.peek_code_until(self.last_ns);
        next.and_then(|code| self.kinds.own_kind(code)).is_none()
    }

    /// Iterates over the events. Decoding is inlined into the consumer's loop, so that events stay in registers: a
    /// value stored in parts and loaded as a whole stalls.
    #[inline(always)]
    pub fn iter(self) -> impl Iterator<Item = OwnEvent> + use<'r, 'a> {
        let OwnEvents { events, kinds, last_ns, latest } = self;
        events.found(last_ns, |code| kinds.own_kind(code)).map(move |(clock_ns, code, kind)| {
            let clock = not_negative(clock_ns);
            OwnEvent { at: clock.min(latest), is_too_far: clock > latest, code, kind }
        })
    }
}

/// The events that need the order of all streams.
pub struct NeedsOrder {
    kinds: Kinds,
    /// Streams of which all events do.
    streams: Vec<bool>,
}

impl NeedsOrder {
    /// The events of the scope of the trace, and all events of these streams.
    pub fn with_all_of(streams: Vec<bool>) -> NeedsOrder {
        NeedsOrder { kinds: Kinds::default(), streams }
    }

    /// Whether all events of a stream do.
    #[inline(always)]
    fn orders_all(&self, stream: u32) -> bool {
        self.streams[stream as usize]
    }
}

/// Passes the events of the trace that the selection needs to `player`, `parts` of each stream. Unless everything is
/// selected, all events must need the order. Returns the latest possible time, if there is an event.
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
    let mut replay = Replay {
        streams: trace.streams().iter().map(open).collect(),
        selected: (!selected.is_everything()).then_some(selected),
        parts,
        reached: Vec::new(),
        latest: None,
        read: 0,
        needs_order,
        player,
    };
    let turns = trace.turns(|stream| needs_order.orders_all(stream as u32));
    if trace.event_count() < FEW {
        turns.for_each(|stream| replay.turn(stream));
    } else {
        std::thread::scope(|scope| {
            let (full, batches) = sync_channel::<Vec<u32>>(WAITING);
            // A thread that cannot be made would drop the turns.
            let (hand_over, given) = channel_for(&turns);
            let merge = move || {
                let Ok(mut turns) = given.recv() else { return };
                loop {
                    let batch: Vec<u32> = Iterator::by_ref(&mut turns).take(BATCH).collect();
                    // The receiver is gone only after a panic.
                    if batch.is_empty() || full.send(batch).is_err() {
                        return;
                    }
                }
            };
            let made = std::thread::Builder::new().spawn_scoped(scope, merge).is_ok();
            let left = if made { hand_over.send(turns).err().map(|unsent| unsent.0) } else { Some(turns) };
            if let Some(turns) = left {
                turns.for_each(|stream| replay.turn(stream));
            }
            for batch in batches {
                batch.into_iter().for_each(|stream| replay.turn(stream));
                progress.events.store(replay.read, Ordering::Relaxed);
            }
        });
    }
    if replay.selected.is_none() {
        replay.rest();
    }
    replay.latest
}

/// A channel for values of an unnameable type.
fn channel_for<T>(_: &T) -> (SyncSender<T>, Receiver<T>) {
    sync_channel(1)
}

/// A stream, read up to the replayed position.
struct OpenStream<'a> {
    events: ThreadEvents<'a>,
    begun: bool,
}

struct Replay<'a, 'p, P> {
    streams: Vec<OpenStream<'a>>,
    /// The selection, unless everything is selected.
    selected: Option<Selected<'a>>,
    /// The part of each stream that is replayed.
    parts: &'p [Part],
    /// Streams that the event at hand reaches.
    reached: Vec<u32>,
    /// The latest time that can be true.
    latest: Option<u64>,
    /// Events so far.
    read: u64,
    needs_order: &'p NeedsOrder,
    player: &'p mut P,
}

impl<'a, P: Player> Replay<'a, '_, P> {
    /// Plays a stream up to its next event that needs the order, that one included.
    #[inline(always)]
    fn turn(&mut self, stream: u32) {
        if std::mem::replace(&mut self.streams[stream as usize].begun, true) {
            self.play_own(stream, i64::MAX);
        }
        let Some((file, event)) = self.streams[stream as usize].events.next() else { return };
        self.read += 1;
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
        let part = self.parts.get(merged.stream).copied().unwrap_or(Part::Whole);
        if part == Part::Passing && !selected.plays(&merged) {
            return;
        }
        let is_in_range = (selected.begin_ns..selected.end_ns).contains(&selected.time_ns(&merged));
        let is_selected = is_in_range && selected.passes_filter(&merged);
        let timed = timed(&mut self.latest, merged.stream as u32, &merged.event);
        self.player.event(TimedEvent { is_in_range, is_selected, ..timed });
    }

    /// Plays the next events of a stream that need no order and are not later than `last_ns`.
    #[inline(always)]
    fn play_own(&mut self, stream: u32, last_ns: i64) {
        if self.needs_order.orders_all(stream) {
            return;
        }
        let events = &mut self.streams[stream as usize].events;
        let kinds = &self.needs_order.kinds;
        // A stream's first event needs the order: it defines the latest time.
        let own = OwnEvents { events, kinds, last_ns, latest: self.latest.unwrap_or(u64::MAX) };
        self.read += self.player.own_events(stream, own);
    }

    /// The same as a separate function, for rare callers.
    #[inline(never)]
    fn play_own_apart(&mut self, stream: u32, last_ns: i64) {
        self.play_own(stream, last_ns);
    }

    /// Replays the streams that the current event reaches, up to its time. Earlier events need no order: otherwise they
    /// have had their turn.
    fn play_reached(&mut self, until_ns: i64) {
        let mut reached = std::mem::take(&mut self.reached);
        for stream in reached.drain(..) {
            self.play_own_apart(stream, until_ns.saturating_sub(1));
        }
        // Its memory is used again.
        self.reached = reached;
    }

    /// Replays the rest of the streams after the last turn.
    fn rest(&mut self) {
        for stream in 0..self.streams.len() {
            self.play_own_apart(stream as u32, i64::MAX);
        }
    }
}

/// Clocks before the zero of the clock do not occur but in damaged traces.
#[inline(always)]
fn not_negative(clock_ns: i64) -> u64 {
    clock_ns.max(0) as u64
}

/// The time of a clock, and whether it was beyond all that can be true.
#[inline(always)]
fn time(latest: &mut Option<u64>, clock_ns: i64) -> (u64, bool) {
    let clock = not_negative(clock_ns);
    let at = clock.min(*latest.get_or_insert(clock.saturating_add(MAX_RUN_NS)));
    (at, at < clock)
}

/// An event with its time, for a selection of everything.
#[inline(always)]
fn timed<'a>(latest: &mut Option<u64>, stream: u32, event: &Event<'a>) -> TimedEvent<'a> {
    let (at, is_too_far) = time(latest, event.clock_ns);
    let (code, payload) = (event.code, event.payload);
    TimedEvent { stream, at, is_too_far, is_selected: true, is_in_range: true, code, payload }
}
