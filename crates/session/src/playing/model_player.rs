//! Plays events through the models into an execution.

use super::replay::{OwnEvent, OwnEvents, Player, TimedEvent};
use super::threads::Threads;
use crate::recorders::ProcessObserver;
use taskscope_execution::{Anomalies, ExecutionBuilder, ProcessIndex, ThreadIndex};
use taskscope_model::semantic::Interpreter;

/// Takes events and passes them to the interpreter.
pub(crate) struct ModelPlayer<'a> {
    pub builder: &'a mut ExecutionBuilder,
    pub interpreter: &'a mut Interpreter,
    pub threads: &'a Threads,
    streams: Vec<StreamProgress>,
    /// Selected events per model, by its letter.
    pub events_per_model: [u64; 256],
    /// Events with clocks beyond all that can be true.
    pub clocks_too_far: u64,
    /// The stream of each thread that has one; of several any.
    thread_streams: Vec<Option<u32>>,
    /// Anomalies in the range, while events outside of it are replayed.
    anomalies: Option<Anomalies>,
}

/// Events played of a stream.
struct StreamProgress {
    thread: ThreadIndex,
    /// Its recorder, if the thread has several: the interpreter needs each event's recorder.
    recorder: Option<ProcessIndex>,
    events: u64,
    selected: u64,
    /// Times of the first event and of the last.
    first: u64,
    last: u64,
}

impl StreamProgress {
    #[inline(always)]
    fn took(&mut self, events: u64, first: u64, last: u64) {
        self.events += events;
        self.first = self.first.min(first);
        self.last = self.last.max(last);
    }
}

impl<'a> ModelPlayer<'a> {
    pub fn new(
        builder: &'a mut ExecutionBuilder,
        interpreter: &'a mut Interpreter,
        threads: &'a Threads,
    ) -> ModelPlayer<'a> {
        let mut thread_streams = Vec::new();
        for (stream, thread) in threads.threads.iter().enumerate() {
            thread_streams.resize(thread_streams.len().max(thread.index() + 1), None);
            thread_streams[thread.index()] = Some(stream as u32);
        }
        let played =
            |(is_shared, (thread, recorder)): (bool, (&ThreadIndex, &ProcessIndex))| StreamProgress {
                thread: *thread,
                recorder: is_shared.then_some(*recorder),
                events: 0,
                selected: 0,
                first: u64::MAX,
                last: 0,
            };
        let streams_with_recorders = threads.threads.iter().zip(&threads.recorders);
        let streams = threads.shared().into_iter().zip(streams_with_recorders).map(played).collect();
        let (events_per_model, clocks_too_far) = ([0; 256], 0);
        ModelPlayer {
            builder,
            interpreter,
            threads,
            streams,
            events_per_model,
            clocks_too_far,
            thread_streams,
            anomalies: None,
        }
    }

    /// Reports the times of each thread's events. Returns the number of selected events of each stream.
    pub fn finish(&mut self) -> Vec<u64> {
        let mut out = ProcessObserver { builder: self.builder, processes: &self.threads.processes };
        for played in self.streams.iter().filter(|played| played.events > 0) {
            self.interpreter.extend_to(played.thread, played.last, &mut out);
            out.builder.events(played.thread, played.events, played.first, played.last);
        }
        if let Some(anomalies) = self.anomalies.take() {
            self.builder.set_anomalies(anomalies);
        }
        self.streams.iter().map(|played| played.selected).collect()
    }
}

impl Player for ModelPlayer<'_> {
    #[inline(always)]
    fn event(&mut self, event: TimedEvent<'_>) {
        if event.is_in_range != self.anomalies.is_none() {
            let own = self.anomalies.take();
            let other = self.builder.take_anomalies();
            match own {
                Some(own) => self.builder.set_anomalies(own),
                None => self.anomalies = Some(other),
            }
        }
        self.clocks_too_far += u64::from(event.is_too_far && event.is_in_range);
        self.events_per_model[event.code.model() as usize] += u64::from(event.is_selected);
        let played = &mut self.streams[event.stream as usize];
        played.took(1, event.at, event.at);
        played.selected += u64::from(event.is_selected);
        let mut out = ProcessObserver { builder: self.builder, processes: &self.threads.processes };
        if let Some(recorder) = played.recorder {
            self.interpreter.speaks(played.thread, recorder);
        }
        self.interpreter.event(played.thread, event.at, event.code, event.payload, &mut out);
    }

    #[inline(always)]
    fn own_events(&mut self, stream: u32, events: OwnEvents<'_, '_>) -> u64 {
        let played = &mut self.streams[stream as usize];
        // Another thread's event may request own events when there are none: a polling call continues.
        if self.interpreter.is_polling(played.thread) && events.is_empty() {
            return 0;
        }
        let mut out = ProcessObserver { builder: self.builder, processes: &self.threads.processes };
        let mut own = self.interpreter.own_events(played.thread, &mut out);
        let (mut count, mut first, mut last) = (0, u64::MAX, 0);
        for OwnEvent { at, is_too_far, code, kind } in events.iter() {
            count += 1;
            // Their clocks do not fall.
            (first, last) = (first.min(at), at);
            self.clocks_too_far += u64::from(is_too_far);
            self.events_per_model[usize::from(code.model())] += 1;
            own.event(at, code, kind);
        }
        played.took(count, first, last);
        played.selected += count;
        count
    }

    #[inline(always)]
    fn reaches(&mut self, event: &TimedEvent<'_>, streams: &mut Vec<u32>) {
        let played = &self.streams[event.stream as usize];
        if let Some(recorder) = played.recorder {
            self.interpreter.speaks(played.thread, recorder);
        }
        self.interpreter.reaches(played.thread, event.code, event.payload, |other| {
            streams.extend(self.thread_streams.get(other.index()).copied().flatten());
        });
    }
}
