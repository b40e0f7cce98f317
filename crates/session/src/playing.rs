//! Plays events through the model into an execution.

use crate::Threads;
use crate::in_order::{OwnEvent, OwnEvents, Player, TimedEvent};
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

impl Threads {
    /// Streams of which all events need the order of all streams; all, where only some events are played.
    pub(crate) fn in_order(&self, everything: bool) -> Vec<bool> {
        // Of a thread that several recorders write, each stream tells a part.
        let mut streams_of: Vec<u32> = Vec::new();
        for thread in &self.threads {
            streams_of.resize(streams_of.len().max(thread.index() + 1), 0);
            streams_of[thread.index()] += 1;
        }
        let all = |thread: &ThreadIndex| !everything || streams_of[thread.index()] > 1;
        self.threads.iter().map(all).collect()
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
    fn own_events(&mut self, stream: u32, events: OwnEvents<'_, '_>) -> u64 {
        let thread = self.threads.threads[stream as usize];
        let mut out = OfProcesses { builder: self.builder, processes: &self.threads.processes };
        let mut own = self.interpreter.own_events(thread);
        let (mut count, mut first, mut last) = (0, u64::MAX, 0);
        events.for_each(|OwnEvent { at, is_too_far, code, kind }| {
            count += 1;
            // Their clocks do not fall.
            (first, last) = (first.min(at), at);
            self.clocks_too_far += u64::from(is_too_far);
            self.by_letter[usize::from(code.model())] += 1;
            own.event(at, code, kind, &mut out);
        });
        own.end(&mut out);
        self.events_of_streams[stream as usize] += count;
        if count > 0 {
            self.builder.events(thread, count, first, last);
        }
        count
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
