//! Opens a trace.

use crate::devices::{self, work};
use crate::names::Places;
use crate::playing::replay::ReadProgress;
use crate::playing::threads::requires;
use crate::playing::uncertain::known_until;
use crate::playing::{self, Counts, Played};
use crate::run_file::{PartOfRun, RunFile};
use crate::selection::{Extent, Part, Selection};
use crate::session::{Session, StreamInfo};
use crate::side;
use rustc_hash::FxHashSet;
use std::path::Path;
use taskscope_event::models::MODELS;
use taskscope_execution::{Execution, ThreadIndex, ThreadKind};
use taskscope_filter::TimeRange;
use taskscope_trace::{OpenError, OpenOptions, Trace};

impl Session {
    /// Opens the trace in `root` and replays it.
    ///
    /// # Errors
    /// If the directory has no stream to read.
    pub fn open(root: impl AsRef<Path>) -> Result<Session, OpenError> {
        Session::open_part(root, &Selection::default(), &ReadProgress::default())
    }

    /// Opens a trace for interactive use, with progress: a long run is stored on a second thread, for less time and
    /// more processor time (`docs/performance.md`).
    ///
    /// # Errors
    /// If the directory has no stream to read.
    pub fn open_soon(root: impl AsRef<Path>, progress: &ReadProgress) -> Result<Session, OpenError> {
        open(root.as_ref(), &Selection::default(), progress, true)
    }

    /// Opens the trace in `root` and replays the selected part. For a range, the whole is replayed and then cut, so
    /// that states in it are those of the whole; events that do not pass the filter make no states (see [`selection`](crate::selection)).
    ///
    /// # Errors
    /// If the directory has no stream to read.
    pub fn open_part(
        root: impl AsRef<Path>,
        selection: &Selection,
        progress: &ReadProgress,
    ) -> Result<Session, OpenError> {
        open(root.as_ref(), selection, progress, false)
    }
}

/// Opens the trace, replays the selection, adds facts from outside of events, and cuts the range out.
fn open(
    root: &Path,
    selection: &Selection,
    progress: &ReadProgress,
    is_waited_for: bool,
) -> Result<Session, OpenError> {
    // A part of the trace replays all events in order.
    let options = OpenOptions { turns: selection.is_everything(), ..OpenOptions::default() };
    let trace = Trace::open(root, &options)?;
    let (run, run_file_problem) = RunFile::load(root).map_or_else(|why| (None, Some(why)), |run| (run, None));
    let played = playing::play(&trace, selection, progress, is_waited_for)?;
    let range = clocks_of_range(&trace, selection, played.latest);
    let sliced = run.as_ref().and_then(|run| run.part).map(PartOfRun::clocks);
    let Played { mut execution, places, threads, parts, counts, unreadable_samples, .. } = played;
    let devices = devices::read_devices(&trace);
    side::add_facts(&trace, &threads, &devices, &mut execution);
    let times = both(sliced, range.filter(|_| !selection.whole));
    let range = both(sliced, range);
    if let Some((begin, end)) = times {
        execution.cut(begin, end);
    }
    mark_selected(&mut execution, &trace, &threads.threads, &parts);
    add_counts(&mut execution, &trace, &threads.threads, &counts);
    execution.filtered = selection.filter.is_some() && parts.contains(&Part::Passing);
    work::add_target_waits(&mut execution, &devices);
    Ok(Session {
        root: root.to_path_buf(),
        devices,
        places: places.map_or_else(|| Places::of(&execution), |places| places.with_calls_of(&execution)),
        unreadable_samples,
        filtered: execution.filtered,
        execution,
        range,
        times: times.unwrap_or((0, u64::MAX)),
        run,
        run_file_problem,
        streams: stream_infos(&trace, &threads.threads),
        part: selection.words.clone(),
        lacks_resting: lacks_resting(&trace),
        problems: trace.problems().iter().filter(|problem| problem.kind.is_reported()).cloned().collect(),
        clock_offsets: trace.clock_offsets().cloned(),
        events: counts.per_model.iter().sum(),
        clocks_too_far: counts.clocks_too_far,
        events_by_model: events_by_model(&counts),
    })
}

/// The common part of two ranges of time; `None` is all time.
fn both(one: Option<(u64, u64)>, other: Option<(u64, u64)>) -> Option<(u64, u64)> {
    match (one, other) {
        (Some((begin, end)), Some((from, to))) => {
            let begin = begin.max(from);
            Some((begin, end.min(to).max(begin)))
        }
        (one, other) => one.or(other),
    }
}

/// Begin and end of the selected range, nanoseconds of the trace's clock; `None` for the whole. Events with
/// clocks after `latest` were taken at that time.
fn clocks_of_range(trace: &Trace, selection: &Selection, latest: Option<u64>) -> Option<(u64, u64)> {
    let Extent { origin_ns, length_ns } = Extent::of(trace);
    let clock_at = |time_ns: i64| {
        let clock = origin_ns.saturating_add(time_ns).max(0) as u64;
        clock.min(latest.unwrap_or(u64::MAX))
    };
    let (begin_ns, end_ns) = selection.range.resolve(length_ns);
    (selection.range != TimeRange::default()).then(|| (clock_at(begin_ns.max(0)), clock_at(end_ns)))
}

/// Marks the unselected threads, and CPUs on which only such threads run.
fn mark_selected(execution: &mut Execution, trace: &Trace, threads: &[ThreadIndex], parts: &[Part]) {
    if !parts.contains(&Part::Others) {
        return;
    }
    let asked = |stream: &usize| parts[*stream] != Part::Others;
    let mut looms: FxHashSet<&str> = FxHashSet::default();
    let mut asked_threads: FxHashSet<ThreadIndex> = FxHashSet::default();
    for stream in (0..threads.len()).filter(asked) {
        looms.insert(trace.streams()[stream].loom().unwrap_or_default());
        asked_threads.insert(threads[stream]);
    }
    let processes = &execution.processes;
    let rows = execution.threads.iter().enumerate();
    let selected = rows.map(|(index, thread)| match thread.kind {
        ThreadKind::Cpu => looms.contains(processes[thread.process.index()].loom.as_str()),
        _ => asked_threads.contains(&ThreadIndex(index as u32)),
    });
    execution.select(&selected.collect::<Vec<_>>());
}

/// Adds the numbers of played and lost events to the threads. Recorders without a stream of their own count losses in the
/// metadata.
fn add_counts(execution: &mut Execution, trace: &Trace, threads: &[ThreadIndex], counts: &Counts) {
    let played = sum_by_thread(execution, threads.iter().zip(counts.per_stream.iter().copied()));
    let in_metadata = trace.streams().iter().map(|stream| stream.metadata.recorder.lost_events);
    let lost = sum_by_thread(execution, threads.iter().zip(in_metadata));
    for thread in threads {
        let row = &mut execution.threads[thread.index()];
        row.events = played[thread.index()];
        row.lost_events = lost[thread.index()].max(row.lost_events);
    }
}

/// Sums of numbers of streams by their threads, of which one may have several streams.
fn sum_by_thread<'a>(
    execution: &Execution,
    stream_numbers: impl Iterator<Item = (&'a ThreadIndex, u64)>,
) -> Vec<u64> {
    let mut sums = vec![0_u64; execution.threads.len()];
    for (thread, number) in stream_numbers {
        sums[thread.index()] = sums[thread.index()].saturating_add(number);
    }
    sums
}

fn stream_infos(trace: &Trace, threads: &[ThreadIndex]) -> Vec<StreamInfo> {
    let damaged = trace.problems().iter().filter(|problem| problem.kind.is_damage());
    let damaged: FxHashSet<&str> = damaged.map(|problem| problem.stream.as_str()).collect();
    (trace.streams().iter().zip(threads))
        .map(|(stream, thread)| StreamInfo {
            path: stream.relative_path.clone(),
            thread: *thread,
            finished: stream.is_finished(),
            whole: !damaged.contains(stream.relative_path.as_str()),
            events: stream.event_count(),
            last: known_until(stream).map(|clock| clock.max(0) as u64),
            clock_offset_ns: stream.clock.offset_ns,
        })
        .collect()
}

/// Whether nOS-V was recorded without its idle states.
fn lacks_resting(trace: &Trace) -> bool {
    trace
        .streams()
        .iter()
        .any(|stream| requires(stream, &["nosv"]) && stream.metadata.nosv_can_breakdown == Some(false))
}

/// Selected events per model, ovni's models first, zeros left out.
fn events_by_model(counts: &Counts) -> Vec<(&'static str, u64)> {
    let all = MODELS.iter().map(|model| (model.name, counts.per_model[model.letter as usize]));
    all.filter(|(_, events)| *events > 0).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_execution::ExecutionBuilder;

    #[test]
    fn a_thread_has_the_events_of_all_its_streams() {
        let mut builder = ExecutionBuilder::new();
        let process = builder.add_process("host.1", 1);
        let [one, other] = [1, 2].map(|tid| builder.add_thread(process, tid));
        let execution = builder.finish();
        let sums = sum_by_thread(&execution, [(&one, 3), (&other, 5), (&one, 0), (&one, 4)].into_iter());
        assert_eq!(sums, [7, 5]);
    }
}
