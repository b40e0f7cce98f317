//! Streams of locations that are not threads: device queues, workers of imported runs.
//!
//! Such a location is a directory with `taskscope.json` and `taskscope.obs`, and without `stream.json`, so that ovni's
//! tools skip it.

use crate::clock_drift::ClockCorrection;
use crate::decode::{Decoder, Event};
use crate::metadata::MAX_METADATA_BYTES;
use crate::options::ReadOrder;
use crate::problem::{Problem, ProblemKind};
use crate::stream::SurveyedFile;
use serde_json::Value;
use std::path::PathBuf;
use taskscope_event::{StreamFile, layout};
use taskscope_files::read_regular;

/// A location that is not a thread, with its stream.
pub struct Location {
    /// Path of its directory below the trace's root, `/` between parts.
    pub relative_path: String,
    /// Path of its directory.
    pub directory: PathBuf,
    /// Content of `taskscope.json`; null if unreadable.
    pub metadata: Value,
    own: Option<SurveyedFile>,
}

impl Location {
    pub(crate) fn load(directory: PathBuf, relative_path: String, problems: &mut Vec<Problem>) -> Location {
        let mut report = |kind, text: String| problems.push(Problem::in_stream(kind, &relative_path, text));
        let path = directory.join(layout::LOCATION_METADATA);
        let metadata = match read_regular(&path, MAX_METADATA_BYTES) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                report(ProblemKind::BadMetadata, format!("taskscope.json is no valid JSON: {error}"));
                Value::Null
            }),
            Err(error) => {
                report(ProblemKind::Unreadable, format!("cannot read taskscope.json: {error}"));
                Value::Null
            }
        };
        let finished = metadata["finished"] == 1;
        if !finished {
            report(
                ProblemKind::UnfinishedStream,
                "taskscope.json does not say that the stream is finished".to_owned(),
            );
        }
        let own = match SurveyedFile::load(&directory.join(StreamFile::Own.name()), !finished, false) {
            Ok(file) => {
                for finding in file.findings().filter(|f| f.kind != ProblemKind::UnfinishedStream) {
                    let mut problem = Problem::in_stream(finding.kind, &relative_path, finding.text.clone());
                    problem.file = Some(StreamFile::Own);
                    problem.offset = Some(finding.offset as u64);
                    problem.clock_ns = finding.clock;
                    problem.count = finding.count;
                    problems.push(problem);
                }
                Some(file)
            }
            Err(error) => {
                report(ProblemKind::Unreadable, format!("cannot read taskscope.obs: {error}"));
                None
            }
        };
        Location { relative_path, directory, metadata, own }
    }

    /// Its events in the order of time.
    pub fn events(&self) -> impl Iterator<Item = Event<'_>> {
        let decoder: Option<Decoder<'_>> =
            self.own.as_ref().map(|file| file.decoder(ClockCorrection::default(), ReadOrder::Repaired));
        decoder.into_iter().flatten()
    }

    /// Number of whole events.
    pub fn event_count(&self) -> u64 {
        self.own.as_ref().map_or(0, SurveyedFile::event_count)
    }
}
