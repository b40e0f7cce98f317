//! Replay of the events of a trace to an execution.
//!
//! ```text
//! trace ─▶ threads (of streams) ─▶ replay (in order) ─▶ model_player ─▶ interpreter ─▶ builder ─▶ execution
//! ```

mod model_player;
pub(crate) mod replay;
mod spill_file;
pub(crate) mod threads;
pub(crate) mod uncertain;

use crate::names::Places;
use crate::recorders::ProcessObserver;
use crate::selection::{Part, Selected, Selection};
use model_player::ModelPlayer;
use replay::{NeedsOrder, ReadProgress};
use spill_file::SpillFile;
use std::collections::BTreeMap;
use std::sync::Arc;
use taskscope_event::StreamFile;
use taskscope_event::models::samples;
use taskscope_execution::{Execution, ExecutionBuilder, ThreadIndex};
use taskscope_model::semantic::Interpreter;
use taskscope_symbol::KeptModules;
use taskscope_trace::{OpenError, Stream, Trace};
use threads::Threads;

/// Events per task for the initial allocation. A task has at least three events of its own, and hardly ever fewer than
/// this with those around it. Otherwise memory is allocated later.
const EVENTS_OF_TASK: u64 = 8;

/// Everything that playing a trace gives.
pub(crate) struct Played {
    /// The states over time.
    pub execution: Execution,
    /// Places in words, if the execution has places.
    pub places: Option<Places>,
    /// The threads of the streams.
    pub threads: Threads,
    /// Per stream, which of its events were played.
    pub parts: Vec<Part>,
    /// Counts of the replay.
    pub counts: Counts,
    /// The latest possible time, if there is an event.
    pub latest: Option<u64>,
    /// Samples shorter than they say.
    pub unreadable_samples: u64,
}

/// Numbers of events.
pub(crate) struct Counts {
    /// Selected events per stream.
    pub per_stream: Vec<u64>,
    /// Selected events per model, by its letter.
    pub per_model: [u64; 256],
    /// Events with clocks beyond all that can be true.
    pub clocks_too_far: u64,
}

/// Replays the selection. For an interactive caller, long tracks are stored on a second thread.
///
/// # Errors
/// If the temporary file of long tracks cannot be read back.
pub(crate) fn play(
    trace: &Trace,
    selection: &Selection,
    progress: &ReadProgress,
    is_waited_for: bool,
) -> Result<Played, OpenError> {
    let (mut builder, mut interpreter) = (ExecutionBuilder::new(), Interpreter::new());
    let threads = threads::add_threads(trace, &mut builder, &mut interpreter);
    let spill_file = keep_long_tracks(trace, is_waited_for, &mut builder);
    // For a range, too, all events are played.
    if selection.filter.is_none() {
        expect_sizes(trace, &threads, &mut builder, &mut interpreter);
    }
    let selected = selection.of(trace);
    let parts = threads.parts(trace, &selected);
    let (counts, latest) =
        play_events(trace, selected, &parts, progress, &threads, &mut builder, &mut interpreter);
    extend_lives(trace, &threads, latest, &mut builder, &mut interpreter);
    let mut out = ProcessObserver { builder: &mut builder, processes: &threads.processes };
    interpreter.finish(&mut out);
    let unreadable_samples = read_samples(trace, &threads, latest, &mut interpreter, &mut out);
    let (execution, places) = finish(trace, &threads, builder);
    if let Some(error) = spill_file.as_ref().and_then(|file| file.failure()) {
        let (path, text) = (trace.root().to_path_buf(), error.to_string());
        return Err(OpenError::SpillFileUnreadable { path, text });
    }
    Ok(Played { execution, places, threads, parts, counts, latest, unreadable_samples })
}

/// Lets the tracks of a long run go to a file while they grow.
fn keep_long_tracks(
    trace: &Trace,
    is_waited_for: bool,
    builder: &mut ExecutionBuilder,
) -> Option<Arc<SpillFile>> {
    let file = SpillFile::for_events(trace.event_count())?;
    builder.keep_long_tracks_in(file.clone());
    if is_waited_for {
        builder.store_beside();
    }
    Some(file)
}

/// Reserves memory for as many sections and tasks as so many events can make.
fn expect_sizes(
    trace: &Trace,
    threads: &Threads,
    builder: &mut ExecutionBuilder,
    interpreter: &mut Interpreter,
) {
    // An event changes its thread's section at most once, with rare exceptions. A thread may have several streams.
    let mut events_per_thread: BTreeMap<ThreadIndex, u64> = BTreeMap::new();
    for (stream, thread) in trace.streams().iter().zip(&threads.threads) {
        let events = events_per_thread.entry(*thread).or_default();
        *events = events.saturating_add(stream.event_count());
    }
    for (thread, events) in events_per_thread {
        builder.expect_sections(thread, events);
    }
    let tasks = trace.event_count() / EVENTS_OF_TASK;
    builder.expect_tasks(tasks);
    interpreter.expect_tasks(tasks);
}

/// Plays the events; returns their numbers and the latest time that can be true.
fn play_events(
    trace: &Trace,
    selected: Selected<'_>,
    parts: &[Part],
    progress: &ReadProgress,
    threads: &Threads,
    builder: &mut ExecutionBuilder,
    interpreter: &mut Interpreter,
) -> (Counts, Option<u64>) {
    let all_in_order = match selected.is_everything() {
        true => threads.shared(),
        false => vec![true; threads.threads.len()],
    };
    let needs_order = NeedsOrder::with_all_of(all_in_order);
    let mut player = ModelPlayer::new(builder, interpreter, threads);
    let latest = replay::play(trace, selected, parts, &needs_order, progress, &mut player);
    let per_stream = player.finish();
    let ModelPlayer { events_per_model: per_model, clocks_too_far, .. } = player;
    (Counts { per_stream, per_model, clocks_too_far }, latest)
}

/// Extends the lives of killed threads to their last samples, or to the last signs of life of their processes: such a thread
/// may have been in one section for long.
fn extend_lives(
    trace: &Trace,
    threads: &Threads,
    latest: Option<u64>,
    builder: &mut ExecutionBuilder,
    interpreter: &mut Interpreter,
) {
    for (stream, thread) in trace.streams().iter().zip(&threads.threads) {
        let later = stream.last_clock_of(StreamFile::Samples).max(stream.alive_until_ns());
        if let Some(last) = later {
            let at = (last.max(0) as u64).min(latest.unwrap_or(u64::MAX));
            builder.lives_at(*thread, at);
            interpreter.lives_at(*thread, at);
        }
    }
}

/// Passes the samples of all streams to the interpreter; returns how many could not be read.
fn read_samples(
    trace: &Trace,
    threads: &Threads,
    latest: Option<u64>,
    interpreter: &mut Interpreter,
    out: &mut ProcessObserver<'_>,
) -> u64 {
    let mut unreadable = 0;
    for (number, stream) in trace.streams().iter().enumerate() {
        interpreter.speaks(threads.threads[number], threads.recorders[number]);
        unreadable += read_samples_of(stream, threads.threads[number], interpreter, out, latest);
    }
    unreadable
}

/// Passes the samples of a stream to the interpreter; returns how many could not be read.
fn read_samples_of(
    stream: &Stream,
    thread: ThreadIndex,
    interpreter: &Interpreter,
    out: &mut ProcessObserver<'_>,
    latest: Option<u64>,
) -> u64 {
    let mut unreadable = 0;
    for event in stream.events_of(StreamFile::Samples).filter(|event| event.code == samples::SAMPLE) {
        let at = (event.clock_ns.max(0) as u64).min(latest.unwrap_or(u64::MAX));
        unreadable += u64::from(!interpreter.sample(thread, at, event.payload, out));
    }
    unreadable
}

/// The execution, and its places in words, which distinguish constructs with several sites.
fn finish(trace: &Trace, threads: &Threads, builder: ExecutionBuilder) -> (Execution, Option<Places>) {
    let mut places = None;
    let execution = builder.finish_doubting(
        |catalog| {
            let kept = KeptModules::in_trace(trace.root());
            places.insert(Places::from_catalog(catalog).with_kept(kept)).joined()
        },
        |execution| uncertain::uncertain_parts(trace, &threads.threads, execution),
    );
    (execution, places)
}
