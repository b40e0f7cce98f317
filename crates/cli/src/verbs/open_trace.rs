//! Opening a trace for a verb that reads it, with the errors in the form that users see.

use crate::messages::Failure;
use crate::watch::Watch;
use std::path::Path;
use taskscope_session::selection::Selection;
use taskscope_session::{OpenError, Session};
use taskscope_view::format::shell_word;

/// Opens a trace that may be damaged or unfinished: what can be read is there.
///
/// # Errors
/// If there is nothing to read.
pub fn open(trace: &Path) -> anyhow::Result<Session> {
    open_part(trace, &Selection::default())
}

/// The same for somebody who waits for it: in less time, for more processor time.
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

/// Opens the selected part of a trace, by a command that goes on for long afterwards.
///
/// # Errors
/// If there is nothing to read, or nothing is selected.
pub fn open_part_watched(trace: &Path, selection: &Selection, watch: &Watch) -> anyhow::Result<Session> {
    with_events(trace, selection, Session::open_part(trace, selection, &watch.progress))
}

/// What was opened, if there is an event in it; else why not.
fn with_events(
    trace: &Path,
    selection: &Selection,
    opened: Result<Session, OpenError>,
) -> anyhow::Result<Session> {
    let shown = trace.display();
    let session = opened.map_err(|error| match error {
        _ if super::profiles::is_profile(trace) => a_profile(trace),
        OpenError::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
            Failure::new(format!("there is no trace {shown}"))
                .why("no such directory")
                .remedy("taskscope record -- COMMAND…        (records one)")
        }
        OpenError::Unreadable { source, .. } if source.kind() == std::io::ErrorKind::NotADirectory => {
            Failure::new(format!("{shown} is not a trace"))
                .why("it is a file; a trace is a directory")
                .remedy("give the directory that `taskscope record` or an ovni runtime wrote")
        }
        OpenError::Unreadable { source, .. } => {
            let failure = Failure::new(format!("cannot read {shown}")).why(source.to_string());
            if is_denied(&source) { failure.remedy(for_others(trace)) } else { failure }
        }
        OpenError::PlayedLost { text, .. } => {
            Failure::new(format!("cannot read back what was played of {shown}"))
                .why(text)
                .remedy("let XDG_CACHE_HOME name a directory on another disk")
        }
        OpenError::NoStreams { .. } => super::no_streams::why(trace),
        OpenError::ClockOffsets { text } => Failure::new("cannot use the clock offsets").why(text),
    })?;
    if session.events == 0 && trace.join("graph/taskscope.json").exists() {
        return Err(Failure::new(format!("{shown} tells nothing but a task graph"))
            .why("it was imported; no threads with events are in it")
            .remedy(format!("taskscope report {}", shell_word(trace)))
            .into());
    }
    let (begin, end) = session.execution.range();
    if let Some(part) = session.part.as_deref().filter(|_| session.events == 0) {
        // In a stretch of time without an event everybody goes on with what was begun before.
        if selection.filter.is_none() && begin < end {
            return Ok(session);
        }
        return Err(Failure::new("no event is selected")
            .why(format!("none passes {part}"))
            .remedy(format!("taskscope top {}        (says which events there are)", shell_word(trace)))
            .into());
    }
    if session.events == 0 && session.devices.is_empty() {
        let why = match session.problems.first() {
            Some(problem) => problem.to_string(),
            None => "its streams have no events".to_string(),
        };
        return Err(crate::reading::nothing_to_read(trace, why, session.streams.len()));
    }
    Ok(session)
}

/// Whether the permissions forbid it.
pub fn is_denied(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::PermissionDenied
}

/// What the owner of a trace does so that others can read it.
pub fn for_others(trace: &Path) -> String {
    format!("chmod -R go+rX {}        (by its owner)", shell_word(trace))
}

/// A profile where a trace is needed.
pub fn a_profile(path: &Path) -> Failure {
    Failure::new(format!("{} is a profile", path.display()))
        .why("it holds sums by call path; only a trace tells what happened when")
        .remedy(format!("taskscope report {}", shell_word(path)))
}
