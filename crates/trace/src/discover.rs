//! Finds the streams below a directory: every directory with a file called `stream.json`; and the locations that are
//! not threads: every other directory with a file called `taskscope.json`.

use crate::problem::{Problem, ProblemKind};
use rustc_hash::FxHashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use taskscope_event::{StreamFile, layout};

/// A directory that holds a stream.
pub(crate) struct Found {
    /// Absolute, or relative to the working directory, as the root was given.
    pub(crate) directory: PathBuf,
    /// Relative to the root, `/` between parts; invalid UTF-8 is replaced for display. The root itself has its name, so
    /// that its problems have a place.
    pub(crate) relative_path: String,
}

/// The name of a directory that was given as `.` or as a link, too.
fn name_of(root: &Path) -> String {
    let root = root.canonicalize().unwrap_or_else(|_| root.to_path_buf());
    root.file_name().map_or_else(|| ".".to_owned(), |name| name.to_string_lossy().into_owned())
}

/// All streams below `root`, ordered by the bytes of their relative paths (the order in which ovni
/// loads them, which decides ties of clocks). Symbolic links are followed; a directory that was
/// already visited is not entered again, so loops end.
pub(crate) fn find_streams(root: &Path, problems: &mut Vec<Problem>) -> (Vec<Found>, Vec<Found>) {
    let mut found: Vec<(Vec<u8>, Found)> = Vec::new();
    let mut locations: Vec<(Vec<u8>, Found)> = Vec::new();
    let mut visited: FxHashSet<(u64, u64)> = FxHashSet::default();
    let mut pending = vec![(root.to_path_buf(), Vec::<u8>::new())];
    while let Some((directory, relative)) = pending.pop() {
        let shown = match relative.is_empty() {
            true => name_of(root),
            false => String::from_utf8_lossy(&relative).into_owned(),
        };
        let entries = match fs::metadata(&directory).and_then(|metadata| {
            if visited.insert((metadata.dev(), metadata.ino())) {
                fs::read_dir(&directory).map(Some)
            } else {
                Ok(None)
            }
        }) {
            Ok(Some(entries)) => entries,
            Ok(None) => continue,
            Err(error) => {
                let text = format!("cannot read the directory: {error}");
                problems.push(Problem::in_stream(ProblemKind::Unreadable, &shown, text));
                continue;
            }
        };
        let (mut has_events, mut has_metadata) = (false, false);
        for entry in entries {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let text = format!("cannot read the directory to its end: {error}");
                    problems.push(Problem::in_stream(ProblemKind::Unreadable, &shown, text));
                    break;
                }
            };
            let name = entry.file_name();
            // Only links need the call that follows them; broken ones are not streams.
            let is_directory = match entry.file_type() {
                Ok(kind) if kind.is_symlink() => fs::metadata(entry.path()).is_ok_and(|m| m.is_dir()),
                Ok(kind) => kind.is_dir(),
                Err(_) => false,
            };
            if is_directory {
                let mut below = relative.clone();
                if !below.is_empty() {
                    below.push(b'/');
                }
                below.extend_from_slice(name.as_encoded_bytes());
                pending.push((entry.path(), below));
            } else if name == StreamFile::Standard.name() {
                has_events = true;
            } else if name == layout::STREAM_METADATA {
                has_metadata = true;
                let found_here = Found { directory: directory.clone(), relative_path: shown.clone() };
                found.push((relative.clone(), found_here));
            } else if name == layout::LOCATION_METADATA {
                let found_here = Found { directory: directory.clone(), relative_path: shown.clone() };
                locations.push((relative.clone(), found_here));
            }
        }
        if has_events && !has_metadata {
            let text = "there is a stream.obs and no stream.json: its events are left out".to_owned();
            problems.push(Problem::in_stream(ProblemKind::MissingMetadata, &shown, text));
        }
    }
    found.sort_by(|a, b| a.0.cmp(&b.0));
    locations.retain(|location| found.binary_search_by(|stream| stream.0.cmp(&location.0)).is_err());
    locations.sort_by(|a, b| a.0.cmp(&b.0));
    // A root that is a stream, and has one below it of its own name.
    if let [first, others @ ..] = &mut found[..]
        && first.0.is_empty()
        && others.iter().any(|(_, other)| other.relative_path == first.1.relative_path)
    {
        first.1.relative_path = ".".to_owned();
    }
    let without_keys = |list: Vec<(Vec<u8>, Found)>| list.into_iter().map(|(_, found)| found).collect();
    (without_keys(found), without_keys(locations))
}
