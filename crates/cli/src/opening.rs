//! The one way into a trace: choose it, open it, select a part, check that there is something to read.
//!
//! Subcommands that read events take a [`TracePart`]; those that report on execution take a [`Session`] of
//! [`open_part`]. Errors read alike.

use crate::messages::Failure;
use crate::newest::{self, UNNAMED, is_profile};
use crate::progress::Progress;
use crate::reading::{Interruption, print_problems};
use crate::verbs::no_streams;
use crate::watch::Watch;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use taskscope_check::emulation::{self, Played};
use taskscope_event::layout;
use taskscope_execution::view::ViewObserver;
use taskscope_filter::{Filter, TimeRange};
use taskscope_model::Machine;
use taskscope_session::selection::{Extent, FIELDS_OF_EVENTS, Selected, Selection};
use taskscope_session::{OpenError, Session};
use taskscope_trace::{ClockSource, MergedEvent, OpenOptions, Trace};
use taskscope_view::format::{counted, shell_word};

/// Help of the trace of a subcommand that changes it ([`TraceArgs::require_named`]).
pub const NAMED_TRACE: &str =
    "Trace directory, or a part of one (a loom, a process, a thread). Must be given, as it is changed";

/// The trace to read.
#[derive(clap::Args, Clone, Debug)]
pub struct TraceArgs {
    /// Trace directory, or a part of one (a loom, a process, a thread) [default: the newest in the working directory]
    #[arg(value_name = "TRACE", default_value = UNNAMED, hide_default_value = true)]
    pub trace: PathBuf,
    /// Offsets between the clocks of hosts (default: `clock-offsets.txt` in the trace)
    #[arg(short = 'c', long = "clock-offsets", value_name = "FILE")]
    pub clock_offsets: Option<PathBuf>,
}

impl TraceArgs {
    /// Replaces the default trace by the newest one.
    ///
    /// # Errors
    /// If there is none.
    pub fn chosen(mut self) -> anyhow::Result<TraceArgs> {
        newest::choose(&mut self.trace)?;
        Ok(self)
    }

    /// Fails without a named trace, for subcommands that change it.
    pub fn require_named(&self, verb: &str) -> anyhow::Result<()> {
        if self.trace.as_os_str() != UNNAMED {
            return Ok(());
        }
        Err(Failure::new(format!("{verb} needs the name of a trace"))
            .why("it changes the trace, so it does not choose the newest one")
            .remedy(format!("taskscope {verb} TRACE"))
            .into())
    }

    /// Opens all of the trace.
    ///
    /// # Errors
    /// If there is nothing to read.
    pub fn open(&self, own_events: bool) -> anyhow::Result<Trace> {
        let clocks = self.clock_offsets.clone().map_or(ClockSource::Beside, ClockSource::File);
        open_trace(&self.trace, &OpenOptions { clocks, own_events, ..OpenOptions::default() })
    }
}

/// Opens a trace.
///
/// # Errors
/// If there is nothing to read.
pub fn open_trace(trace: &Path, options: &OpenOptions) -> anyhow::Result<Trace> {
    Trace::open(trace, options).map_err(|error| cannot_open(trace, error).into())
}

/// The selected part of a trace, for subcommands that read its events.
pub struct TracePart {
    args: TraceArgs,
    /// The trace.
    pub trace: Trace,
    /// The selected part of it.
    pub selection: Selection,
}

impl TracePart {
    /// Opens the named trace, else the newest; with `own_events` also those of taskscope's own models.
    ///
    /// # Errors
    /// If there is nothing to read.
    pub fn open(args: TraceArgs, selection: Selection, own_events: bool) -> anyhow::Result<TracePart> {
        let args = args.chosen()?;
        let trace = args.open(own_events)?;
        Ok(TracePart { args, trace, selection })
    }

    /// Opens all events of the same trace again, after it was opened without those of taskscope's own models.
    ///
    /// # Errors
    /// If it cannot be read any more.
    pub fn reopened(&self) -> anyhow::Result<Trace> {
        self.args.open(true)
    }

    /// The selected part.
    pub fn selected(&self) -> Selected<'_> {
        self.selection.of(&self.trace)
    }

    /// Prints the problems of the trace on stderr.
    pub fn print_problems(self) -> TracePart {
        print_problems(&self.trace);
        self
    }

    /// Fails if damage leaves no event to read, so that an empty result is not taken for one.
    pub fn require_events(self) -> anyhow::Result<TracePart> {
        let trace = &self.trace;
        let has_events =
            trace.event_count() > 0 || trace.locations().iter().any(|place| place.events().next().is_some());
        let damage = trace.problems().iter().find(|problem| problem.kind.is_damage());
        match damage {
            Some(damage) if !has_events => {
                Err(nothing_to_read(&self.args.trace, damage.to_string(), trace.streams().len()).into())
            }
            _ => Ok(self),
        }
    }

    /// Fails if the range contains no instant of the trace.
    pub fn require_range(self) -> anyhow::Result<TracePart> {
        let selected = self.selected();
        require_range(&self.trace, (selected.begin_ns, selected.end_ns))?;
        Ok(self)
    }

    /// Fails if no thread has one of these ids.
    pub fn require_threads(self, threads: &[i64]) -> anyhow::Result<TracePart> {
        let tids = || self.trace.streams().iter().filter_map(|stream| stream.tid());
        match threads.iter().find(|tid| tids().all(|known| known != **tid)) {
            None => Ok(self),
            Some(tid) => {
                let known: Vec<String> = tids().take(10).map(|known| known.to_string()).collect();
                Err(Failure::new(format!("no thread has the id {tid}"))
                    .remedy(format!("ids are, among others: {}", known.join(", ")))
                    .into())
            }
        }
    }

    /// Note on a result without events, which would pass for one that was not made.
    pub fn note_if_empty(&self, is_empty: bool) -> Option<String> {
        is_empty.then(|| match &self.selection.words {
            Some(part) => format!("no events match {part}"),
            None => "the trace has no events".to_owned(),
        })
    }

    /// Prints that note on stderr.
    pub fn print_if_empty(&self, is_empty: bool) {
        if let Some(note) = self.note_if_empty(is_empty) {
            eprintln!("note: {note}");
        }
    }

    /// The progress of reading all events, on a terminal.
    pub fn progress(&self) -> Progress {
        Progress::new("reading", "events", self.trace.event_count())
    }

    /// Replays the events that `plays` accepts through a machine. `round` is called every some thousand events and at
    /// the end, and stops the run by an error or [`ControlFlow::Break`]; so does `^C`.
    ///
    /// # Errors
    /// Errors of `round`.
    pub fn play<'t, O: ViewObserver>(
        &'t self,
        machine: &mut Machine<'_, O>,
        interruption: &Interruption,
        plays: impl Fn(&MergedEvent<'t>) -> bool,
        mut round: impl FnMut(Played, &mut Machine<'_, O>) -> anyhow::Result<ControlFlow<()>>,
    ) -> anyhow::Result<Played> {
        let mut progress = self.progress();
        let mut failure = None;
        let played = emulation::play_part(&self.trace, machine, plays, |played, machine| {
            progress.show(played.events);
            match round(played, machine) {
                Ok(ControlFlow::Continue(())) if !interruption.is_requested() => ControlFlow::Continue(()),
                Ok(_) => ControlFlow::Break(()),
                Err(error) => {
                    failure = Some(error);
                    ControlFlow::Break(())
                }
            }
        });
        progress.finish();
        failure.map_or(Ok(played), Err)
    }
}

/// Fails if a range, nanoseconds since the trace's first event, contains no instant of the trace. The order of ends in
/// different units is known only for a trace.
pub fn require_range(trace: &Trace, (begin_ns, end_ns): (i64, i64)) -> Result<(), Failure> {
    let seconds = |ns: i64| format!("{:.9} s", ns as f64 / 1e9);
    let length_ns = Extent::of(trace).length_ns;
    let why = if begin_ns >= end_ns {
        format!("the range would begin at {} and end at {}", seconds(begin_ns), seconds(end_ns))
    } else if end_ns <= 0 {
        "the range ends before the trace's first event".to_owned()
    } else if begin_ns > length_ns {
        format!("the trace ends {} after its first event, before the range begins", seconds(length_ns))
    } else {
        return Ok(());
    };
    Err(Failure::new("no events are in this range").why(why))
}

/// Opens a trace that may be damaged or unfinished: its readable part.
///
/// # Errors
/// If there is nothing to read.
pub fn open(trace: &Path) -> anyhow::Result<Session> {
    open_part(trace, &Selection::default())
}

/// Opens it in less time, for more processor time.
///
/// # Errors
/// If there is nothing to read.
pub fn open_soon(trace: &Path, watch: &Watch) -> anyhow::Result<Session> {
    with_events(trace, &Selection::default(), Session::open_soon(trace, &watch.progress))
}

/// Opens the selected part of a trace.
///
/// # Errors
/// If there is nothing to read, or nothing is selected.
pub fn open_part(trace: &Path, selection: &Selection) -> anyhow::Result<Session> {
    open_part_watched(trace, selection, &Watch::start())
}

/// Opens the selected part of a trace, for a command that runs for long afterwards.
///
/// # Errors
/// If there is nothing to read, or nothing is selected.
pub fn open_part_watched(trace: &Path, selection: &Selection, watch: &Watch) -> anyhow::Result<Session> {
    with_events(trace, selection, Session::open_part(trace, selection, &watch.progress))
}

/// The opened trace, if it has an event; else the reason.
fn with_events(
    trace: &Path,
    selection: &Selection,
    opened: Result<Session, OpenError>,
) -> anyhow::Result<Session> {
    let session = opened.map_err(|error| cannot_open(trace, error))?;
    if session.events == 0 && trace.join(layout::GRAPH_METADATA).exists() {
        return Err(Failure::new(format!("{} has a task graph only", trace.display()))
            .why("it was imported; no threads with events are in it")
            .remedy(format!("taskscope report {}", shell_word(trace)))
            .into());
    }
    let (begin, end) = session.execution.range();
    if let Some(part) = session.part.as_deref().filter(|_| session.events == 0) {
        // In a range without events all threads continue earlier sections.
        let (from, to) = session.times;
        let mut operations = session.devices.queues.iter().flat_map(|queue| &queue.operations);
        // So do operations of devices, if the trace has nothing else.
        let has_operations = session.execution.threads.is_empty()
            && operations.any(|operation| operation.start < to && operation.end > from);
        if (begin < end || has_operations) && passes_at_any_time(trace, selection) {
            return Ok(session);
        }
        return Err(Failure::new(format!("no events match {part}"))
            .remedy(format!("taskscope top {}        (lists the events of the trace)", shell_word(trace)))
            .into());
    }
    if session.events == 0 && session.devices.is_empty() {
        let why = match session.problems.first() {
            Some(problem) => problem.to_string(),
            None => "its streams have no events".to_string(),
        };
        return Err(nothing_to_read(trace, why, session.streams.len()).into());
    }
    Ok(session)
}

/// Whether any event of the trace passes the filter, in the range or outside of it.
fn passes_at_any_time(root: &Path, selection: &Selection) -> bool {
    if selection.filter.is_none() || selection.range == TimeRange::default() {
        return selection.filter.is_none();
    }
    let Ok(trace) = Trace::open(root, &OpenOptions::default()) else { return false };
    let everywhere = Selection { range: TimeRange::default(), ..selection.clone() };
    let selected = everywhere.of(&trace);
    trace.merge().any(|merged| selected.passes(&merged))
}

/// A trace that cannot be opened.
fn cannot_open(trace: &Path, error: OpenError) -> Failure {
    let shown = trace.display();
    match error {
        _ if is_profile(trace) => a_profile(trace),
        OpenError::Unreadable { source, .. } => match source.kind() {
            ErrorKind::NotFound => Failure::new(format!("there is no trace {shown}"))
                .why("no such directory")
                .remedy("taskscope record -- COMMAND…        (records one)"),
            ErrorKind::NotADirectory => Failure::new(format!("{shown} is not a trace"))
                .why("it is a file; a trace is a directory")
                .remedy("give the directory that `taskscope record` or an ovni runtime wrote"),
            kind => {
                let failure = Failure::new(format!("cannot read {shown}")).why(source.to_string());
                // Command for the trace's owner that makes it readable.
                let remedy = format!("chmod -R go+rX {}        (by its owner)", shell_word(trace));
                if kind == ErrorKind::PermissionDenied { failure.remedy(remedy) } else { failure }
            }
        },
        OpenError::SpillFileUnreadable { text, .. } => {
            Failure::new(format!("cannot read the temporary track file of {shown}"))
                .why(text)
                .remedy("let XDG_CACHE_HOME name a directory on another disk")
        }
        OpenError::NoStreams { .. } => no_streams::why(trace),
        OpenError::ClockOffsets { text } => Failure::new("cannot use the clock offsets")
            .why(text)
            .remedy("a line per host below a header: rank, host, median, mean and deviation in nanoseconds"),
    }
}

/// A profile in the place of a trace.
pub fn a_profile(path: &Path) -> Failure {
    Failure::new(format!("{} is a profile", path.display()))
        .why("a profile has no timeline; record a trace instead")
        .remedy(format!("taskscope report {}", shell_word(path)))
}

/// A trace without a readable event.
fn nothing_to_read(trace: &Path, why: String, streams: usize) -> Failure {
    Failure::new(format!("nothing can be read from {}", trace.display()))
        .why(why)
        .kept(format!("{} without an event", counted(streams as u64, "stream")))
}

/// The events selected for a subcommand.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct SelectionArgs {
    /// Restrict to this time range, such as 1.5s..2s or 10%..20% (docs/filter.md)
    #[arg(long, value_name = "BEGIN..END")]
    pub range: Option<String>,
    /// Restrict to events that pass this filter, such as 'thread = 101 and event ~ VT*' (docs/filter.md)
    #[arg(long = "where", value_name = "FILTER")]
    pub filter: Option<String>,
}

impl SelectionArgs {
    /// Whether neither was given.
    pub fn is_empty(&self) -> bool {
        self.range.is_none() && self.filter.is_none()
    }

    /// Parses the selection.
    pub fn parse(&self) -> anyhow::Result<Selection> {
        let option =
            |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name} '{value}'"));
        let given: Vec<String> =
            [option("--range", &self.range), option("--where", &self.filter)].into_iter().flatten().collect();
        Ok(Selection {
            whole: false,
            filter: parse_filter(self.filter.as_deref())?,
            range: parse_range(self.range.as_deref())?,
            words: (!given.is_empty()).then(|| given.join(" ")),
        })
    }
}

/// Parses the filter of `--where`.
fn parse_filter(text: Option<&str>) -> anyhow::Result<Option<Filter>> {
    let Some(text) = text else { return Ok(None) };
    let filter = Filter::parse(text, &FIELDS_OF_EVENTS).map_err(|error| {
        Failure::new(format!("cannot understand --where '{text}'"))
            .why(error.to_string())
            .remedy("--where 'thread = 101 and event ~ VT*' (see docs/filter.md)")
    })?;
    Ok(Some(filter))
}

/// Parses `--range`.
pub fn parse_range(text: Option<&str>) -> anyhow::Result<TimeRange> {
    let Some(text) = text else { return Ok(TimeRange::default()) };
    TimeRange::parse(text).map_err(|error| {
        Failure::new(format!("cannot understand --range '{text}'"))
            .why(error.to_string())
            .remedy("--range 1.5s..2s, --range ..200ms, --range 10%..20%")
            .into()
    })
}
