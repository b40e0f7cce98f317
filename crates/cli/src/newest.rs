//! The trace that a subcommand reads by default: the newest one in the working directory.

use crate::messages::Failure;
use crate::verbs::is_being_recorded;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;
use taskscope_event::layout;
use taskscope_session::{RunFile, profile_files};
use taskscope_view::format::counted;

/// The value of a trace's argument that was left out; no path that a user types.
pub const UNNAMED: &str = "\u{1}";
/// Names of other traces in the message.
const MAX_OTHERS: usize = 3;

/// A trace in the working directory.
struct Candidate {
    path: PathBuf,
    /// Nanoseconds since 1970 when its program started, else when the directory was changed last.
    start_ns: u64,
    is_running: bool,
}

/// Replaces an argument that was left out by the newest trace, which is printed on stderr.
///
/// # Errors
/// If there is none.
pub fn choose(trace: &mut PathBuf) -> anyhow::Result<()> {
    if trace.as_os_str() == UNNAMED {
        *trace = newest()?;
    }
    Ok(())
}

/// The newest trace in the working directory, or this directory if it is one. Prints which it is.
///
/// # Errors
/// If there is none.
pub fn newest() -> anyhow::Result<PathBuf> {
    let here = Path::new(".");
    if is_trace(here) {
        eprintln!("taskscope: reading the trace in this directory");
        return Ok(here.to_owned());
    }
    let entries = std::fs::read_dir(here)
        .map_err(|error| Failure::new("cannot look for a trace in this directory").why(error.to_string()))?;
    // Without `./`.
    let names: Vec<PathBuf> = entries.flatten().map(|entry| PathBuf::from(entry.file_name())).collect();
    let mut candidates: Vec<Candidate> =
        names.iter().filter(|path| is_trace(path)).cloned().map(Candidate::of).collect();
    candidates.sort_by(|a, b| b.start_ns.cmp(&a.start_ns).then_with(|| a.path.cmp(&b.path)));
    let Some((chosen, others)) = candidates.split_first() else {
        let failure = Failure::new("found no trace in this directory");
        let closed = |path: &&PathBuf| {
            std::fs::read_dir(path).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
        };
        let failure = match names.iter().find(closed) {
            Some(closed) => failure.why(format!("{} cannot be read: permission denied", closed.display())),
            None => failure,
        };
        return Err(failure
            .remedy("taskscope record -- COMMAND…        (records one)\ngive the path of a trace as the last argument")
            .into());
    };
    let running = if chosen.is_running { ", which is still being recorded (the events so far)" } else { "" };
    let which = match others {
        [] => String::new(),
        _ => {
            let shown: Vec<String> =
                others.iter().take(MAX_OTHERS).map(|other| other.path.display().to_string()).collect();
            let more = if others.len() > MAX_OTHERS { ", …" } else { "" };
            let all = counted(candidates.len() as u64, "trace");
            format!(", the newest of {all} here (others: {}{more})", shown.join(", "))
        }
    };
    eprintln!("taskscope: reading {}{which}{running}", chosen.path.display());
    Ok(chosen.path.clone())
}

impl Candidate {
    fn of(path: PathBuf) -> Candidate {
        let run = RunFile::load(&path).ok().flatten().unwrap_or_default();
        let changed = || {
            let changed = std::fs::metadata(&path).and_then(|about| about.modified()).unwrap_or(UNIX_EPOCH);
            changed.duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos() as u64
        };
        let start_ns = run.start_unix_ns.unwrap_or_else(changed);
        Candidate { start_ns, is_running: is_being_recorded(&run), path }
    }
}

/// Whether `path` is a profile or a directory of profiles.
pub fn is_profile(path: &Path) -> bool {
    !profile_files(path).is_empty()
}

/// Whether a directory holds a trace or profiles, by the names in it.
pub fn is_trace(path: &Path) -> bool {
    let belongs_to_trace = |entry: std::fs::DirEntry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        name == layout::RUN_FILE
            || name.ends_with(".tsprof")
            || [layout::LOOM_PREFIX, layout::DEVICES_PREFIX].iter().any(|prefix| name.starts_with(prefix))
            || name.starts_with(layout::THREAD_PREFIX) && entry.path().join(layout::STREAM_METADATA).exists()
    };
    path.join(layout::GRAPH_METADATA).exists()
        || path.is_dir()
            && std::fs::read_dir(path).is_ok_and(|entries| entries.flatten().any(belongs_to_trace))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_are_recognised_as_traces_by_their_files() {
        let root = tempfile::tempdir().unwrap();
        let with = |directory: &str, file: &str| {
            let path = root.path().join(directory);
            std::fs::create_dir_all(path.join(file).parent().unwrap()).unwrap();
            std::fs::write(path.join(file), "").unwrap();
            path
        };
        assert!(is_trace(&with("a", "taskscope-run.json")));
        assert!(is_trace(&with("b", "loom.host.1/x")));
        assert!(is_trace(&with("c", "host.1.tsprof")));
        assert!(is_trace(&with("d", "graph/taskscope.json")));
        assert!(!is_trace(&with("e", "graph/other")));
        assert!(!is_trace(&with("f", "thread.rs")));
        assert!(!is_trace(&root.path().join("a/taskscope-run.json")));
    }
}
