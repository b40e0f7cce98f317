//! A trace played through the machine: views for exports, violations for checks.

use rustc_hash::FxHashSet;
use std::ops::ControlFlow;
use taskscope_event::framing::{EVENT_HEADER_BYTES, JUMBO_HEADER_BYTES};
use taskscope_event::models::ovni;
use taskscope_event::{Code, Counted, StreamFile};
use taskscope_execution::view::ViewObserver;
use taskscope_model::{
    InputEvent, Machine, System, ThreadDescription, Violation, ViolationCode, build_system,
};
use taskscope_trace::{Event, MergedEvent, Problem, ProblemKind, Stream, Trace};

/// Events between two looks at the clock, at violations and at interruptions.
const EVENTS_PER_ROUND: u64 = 1 << 14;

/// Result of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Played {
    /// Events that were played.
    pub events: u64,
    /// Time of the last of them, nanoseconds since the first.
    pub end_ns: i64,
    /// Whether it was stopped before the end.
    pub interrupted: bool,
}

/// Reads off the streams' metadata which looms, processes, threads and CPUs there are. The
/// violations are those of the metadata and of reading the files.
pub fn system_of(trace: &Trace) -> (System, Vec<Violation>) {
    let descriptions: Vec<ThreadDescription> = trace.streams().iter().map(describe).collect();
    let (system, metadata_violations) = build_system(&descriptions);
    let problems = trace.problems().iter();
    let mut violations: Vec<Violation> =
        problems.filter_map(|problem| violation_of(trace, problem)).collect();
    // If no metadata could be parsed, missing keys are not reported as well.
    let unknown = trace.streams().iter().filter(|stream| !stream.metadata.is_known);
    let unknown: FxHashSet<&str> = unknown.map(|stream| &*stream.relative_path).collect();
    violations
        .extend(metadata_violations.into_iter().filter(|violation| !unknown.contains(&*violation.stream)));
    violations.extend(trace.streams().iter().filter_map(late_events));
    (system, violations)
}

/// Events that the program raised after the end of recording: their number, and which was the first.
fn late_events(stream: &Stream) -> Option<Violation> {
    let recorder = &stream.metadata.recorder;
    let late = Some(recorder.late_events).filter(|late| *late > 0)?;
    let first = recorder.late_first.as_deref().and_then(first_late_event);
    let first = first.map_or(String::new(), |first| format!("; the first: {first}"));
    Some(Violation {
        count: 1,
        code: ViolationCode::LateEvents,
        stream: stream.relative_path.clone(),
        event: None,
        offset: None,
        time_ns: None,
        text: format!(
            "the process raised at least {} after it had ended the recording{first}",
            Counted(late, "event")
        ),
    })
}

/// `"IPp 4711 12300"`, the code, the thread and the time since the stream was closed, in words.
fn first_late_event(text: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let code = words.next()?;
    let (thread, since) = (words.next()?, words.next()?.parse::<u64>().ok()?);
    let known =
        <[u8; 3]>::try_from(code.as_bytes()).ok().and_then(|c| taskscope_event::models::find(Code(c)));
    let name = known.map_or(String::new(), |event| format!(" ({})", event.name));
    Some(format!("`{code}`{name} on thread {thread}, {since} ns after this stream was closed"))
}

fn describe(stream: &Stream) -> ThreadDescription<'_> {
    ThreadDescription {
        path: &stream.relative_path,
        named: (stream.loom(), stream.pid(), stream.tid()),
        metadata: &stream.metadata,
        events: stream.event_count(),
    }
}

/// The violation for a problem of reading; `None` for problems that the metadata's own violations cover.
fn violation_of(trace: &Trace, problem: &Problem) -> Option<Violation> {
    let code = match problem.kind {
        ProblemKind::Unreadable | ProblemKind::MissingStream => ViolationCode::Unreadable,
        ProblemKind::MissingMetadata => ViolationCode::MissingMetadata,
        ProblemKind::BadMetadata | ProblemKind::MetadataVersion => ViolationCode::BadMetadata,
        ProblemKind::MissingAttribute | ProblemKind::UnknownPart | ProblemKind::UnfinishedStream => {
            return None;
        }
        ProblemKind::BadMagic | ProblemKind::StreamVersion => ViolationCode::BadStream,
        ProblemKind::EmptyStream => ViolationCode::EmptyStream,
        ProblemKind::TruncatedEvent | ProblemKind::TornEvent => ViolationCode::TruncatedEvent,
        ProblemKind::ZeroTail => ViolationCode::ZeroTail,
        ProblemKind::ClockGoesBack => ViolationCode::ClockGoesBack,
        ProblemKind::ClockTooLarge => ViolationCode::ClockTooLarge,
        ProblemKind::UnsortedRegion => ViolationCode::UnsortedRegion,
        ProblemKind::OpenUnsortedRegion => ViolationCode::OpenUnsortedRegion,
        ProblemKind::ClockOffsets => ViolationCode::ClockOffsets,
        ProblemKind::NoClockOffsets => ViolationCode::NoClockOffsets,
        ProblemKind::ClockGate => ViolationCode::ClockGate,
    };
    let times = if problem.count > 1 { format!(" ({} times)", problem.count) } else { String::new() };
    Some(Violation {
        count: problem.count.max(1),
        code,
        stream: problem.stream.clone(),
        event: None,
        offset: problem.offset,
        time_ns: problem.clock_ns.and_then(|clock| Some(clock.saturating_sub(trace.first_clock_ns()?))),
        text: format!("{}{times}", problem.text),
    })
}

/// The end of the events of each stream that did not end properly, or may be shorter than its thread.
fn ends_in_doubt(trace: &Trace) -> Vec<Option<u64>> {
    let damaged: FxHashSet<&str> =
        trace.problems().iter().filter(|p| p.kind.is_damage()).map(|p| p.stream.as_str()).collect();
    let is_doubtful = |stream: &Stream| {
        let ends = stream.file(StreamFile::Standard).is_none_or(|file| file.ends_with(ovni::THREAD_ENDS));
        !stream.is_finished() || !ends || damaged.contains(stream.relative_path.as_str())
    };
    let end = |stream: &Stream| Some(stream.file(StreamFile::Standard)?.used_bytes());
    trace.streams().iter().map(|stream| end(stream).filter(|_| is_doubtful(stream))).collect()
}

/// Begins and ends of times over which clocks go back, in time order: time of the views, stream, whether it is a begin.
fn clock_falls(trace: &Trace, origin: i64) -> Vec<(i64, usize, bool)> {
    let falls = trace.streams().iter().enumerate().flat_map(|(stream, of)| {
        of.clock_falls_ns().into_iter().map(move |(from, to)| (from.max(origin), to.max(origin), stream))
    });
    let time = |clock: i64| clock.saturating_sub(origin);
    let mut ends: Vec<_> = falls
        .filter(|(from, to, _)| from < to)
        .flat_map(|(from, to, stream)| [(time(from), stream, true), (time(to), stream, false)])
        .collect();
    ends.sort_unstable();
    ends
}

fn end_of(event: &Event<'_>) -> u64 {
    let header = if event.is_jumbo { JUMBO_HEADER_BYTES } else { EVENT_HEADER_BYTES };
    event.offset + (header + event.payload.len()) as u64
}

/// Plays all events. Between rounds of some thousand
/// events, `between` sees how many were played and the machine (to take its violations), and may
/// stop the run; it also sees the end, after [`Machine::finish`].
pub fn play<O: ViewObserver>(
    trace: &Trace,
    machine: &mut Machine<'_, O>,
    between: impl FnMut(Played, &mut Machine<'_, O>) -> ControlFlow<()>,
) -> Played {
    play_part(trace, machine, |_| true, between)
}

/// As [`play`], but leaves out events for which `plays` does not hold; they count as played all the same.
pub fn play_part<'t, O: ViewObserver>(
    trace: &'t Trace,
    machine: &mut Machine<'_, O>,
    plays: impl Fn(&MergedEvent<'t>) -> bool,
    mut between: impl FnMut(Played, &mut Machine<'_, O>) -> ControlFlow<()>,
) -> Played {
    let origin = trace.first_clock_ns().unwrap_or(0);
    let mut played = Played::default();
    let ends = ends_in_doubt(trace);
    let any_in_doubt = ends.iter().any(Option::is_some);
    let mut falls = clock_falls(trace, origin).into_iter().peekable();
    for merged in trace.merge() {
        let event = merged.event;
        let time_ns = event.clock_ns.saturating_sub(origin);
        while let Some((at, stream, begins)) = falls.next_if(|(at, ..)| *at <= time_ns) {
            machine.clock_goes_back(stream, at, begins);
        }
        let input = InputEvent {
            stream: merged.stream,
            time_ns,
            code: event.code,
            payload: event.payload,
            is_jumbo: event.is_jumbo,
            offset: event.offset,
        };
        if plays(&merged) {
            match merged.file {
                StreamFile::Standard => machine.play(input),
                StreamFile::Own | StreamFile::Samples => machine.play_own(input),
            }
        }
        if any_in_doubt
            && merged.file == StreamFile::Standard
            && ends.get(merged.stream) == Some(&Some(end_of(&event)))
        {
            machine.stream_ends(merged.stream, time_ns);
        }
        played.events += 1;
        played.end_ns = time_ns;
        if played.events.is_multiple_of(EVENTS_PER_ROUND) && between(played, machine).is_break() {
            played.interrupted = true;
            break;
        }
    }
    if !played.interrupted {
        machine.finish();
    }
    let _ = between(played, machine);
    played
}
