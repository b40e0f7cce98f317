//! Plays events through the model into an execution.

use crate::Threads;
use crate::in_order::{NeedsOrder, OwnEvent, Player, TimedEvent};
use crate::recorders::OfProcesses;
use taskscope_execution::{ExecutionBuilder, ThreadIndex};
use taskscope_model::semantic::Interpreter;

/// What events are played into.
pub(crate) struct Playing<'a> {
    pub builder: &'a mut ExecutionBuilder,
    pub interpreter: &'a mut Interpreter,
    pub threads: &'a Threads,
    /// Selected events of each stream.
    pub events_of_streams: Vec<u64>,
    /// Selected events by the letters of their models.
    pub by_letter: [u64; 256],
    /// Events with clocks beyond all that can be true.
    pub clocks_too_far: u64,
    /// The stream of each thread that has one; of several any.
    streams: Vec<Option<u32>>,
    /// Whether the range has begun.
    begun: bool,
}

impl<'a> Playing<'a> {
    pub fn new(
        builder: &'a mut ExecutionBuilder,
        interpreter: &'a mut Interpreter,
        threads: &'a Threads,
    ) -> Playing<'a> {
        let mut streams = Vec::new();
        for (stream, thread) in threads.threads.iter().enumerate() {
            streams.resize(streams.len().max(thread.index() + 1), None);
            streams[thread.index()] = Some(stream as u32);
        }
        Playing {
            builder,
            interpreter,
            threads,
            events_of_streams: vec![0; threads.threads.len()],
            by_letter: [0; 256],
            clocks_too_far: 0,
            streams,
            begun: false,
        }
    }
}

/// Events, counted on their way. A type of its own, as `UntilDue` is.
struct Counted<'a, I> {
    events: I,
    count: u64,
    first: u64,
    last: u64,
    too_far: &'a mut u64,
    by_letter: &'a mut [u64; 256],
}

impl<I: Iterator<Item = OwnEvent>> Iterator for Counted<'_, I> {
    /// Time, and code as a number.
    type Item = (u64, u32);

    #[inline(always)]
    fn next(&mut self) -> Option<(u64, u32)> {
        let event = self.events.next()?;
        self.count += 1;
        (self.first, self.last) = (self.first.min(event.at), self.last.max(event.at));
        *self.too_far += u64::from(event.is_too_far());
        self.by_letter[event.code() as usize & 0xff] += 1;
        Some((event.at, event.code()))
    }
}

impl Threads {
    /// Which events need the order of all streams; all, where only some events are played.
    pub(crate) fn needs_order(&self, everything: bool) -> NeedsOrder {
        // Of a thread that several recorders write, each stream tells a part.
        let mut streams_of: Vec<u32> = Vec::new();
        for thread in &self.threads {
            streams_of.resize(streams_of.len().max(thread.index() + 1), 0);
            streams_of[thread.index()] += 1;
        }
        let all = |thread: &ThreadIndex| !everything || streams_of[thread.index()] > 1;
        NeedsOrder::of_streams(self.threads.iter().map(all).collect())
    }
}

impl Player for Playing<'_> {
    #[inline(always)]
    fn event(&mut self, event: TimedEvent<'_>) {
        if !event.is_before && !std::mem::replace(&mut self.begun, true) {
            self.builder.forget_anomalies();
            self.clocks_too_far = 0;
        }
        let stream = event.stream as usize;
        let thread = self.threads.threads[stream];
        self.clocks_too_far += u64::from(event.is_too_far);
        self.by_letter[event.code.model() as usize] += u64::from(event.is_selected);
        self.events_of_streams[stream] += u64::from(event.is_selected);
        self.builder.event(thread, event.at);
        let mut out = OfProcesses { builder: self.builder, processes: &self.threads.processes };
        self.interpreter.speaks(thread, self.threads.recorders[stream]);
        self.interpreter.event(thread, event.at, event.code, event.payload, &mut out);
    }

    #[inline(always)]
    fn own_events(&mut self, stream: u32, events: impl Iterator<Item = OwnEvent>) {
        let thread = self.threads.threads[stream as usize];
        let mut out = OfProcesses { builder: self.builder, processes: &self.threads.processes };
        let (by_letter, too_far) = (&mut self.by_letter, &mut self.clocks_too_far);
        let mut counted = Counted { events, count: 0, first: u64::MAX, last: 0, too_far, by_letter };
        self.interpreter.own_events(thread, &mut counted, &mut out);
        let Counted { count, first, last, .. } = counted;
        self.events_of_streams[stream as usize] += count;
        if count > 0 {
            self.builder.events(thread, count, first, last);
        }
    }

    #[inline(always)]
    fn reaches(&mut self, event: &TimedEvent<'_>, streams: &mut Vec<u32>) {
        let stream = event.stream as usize;
        let thread = self.threads.threads[stream];
        self.interpreter.speaks(thread, self.threads.recorders[stream]);
        self.interpreter.reaches(thread, event.code, event.payload, |other| {
            streams.extend(self.streams.get(other.index()).copied().flatten());
        });
    }
}
