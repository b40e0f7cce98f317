//! Traces that tests replay, and the replay of many at once.
//!
//! The repository has some traces. The reference traces, of ovni's own tests and of recorded runtimes, are in `shared/corpus`
//! beside a checkout, if it has them.

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The directory of reference traces, which may not exist.
pub fn reference_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus")
}

/// Traces stored in the repository, sorted.
pub fn stored_traces() -> Vec<PathBuf> {
    traces_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/traces"), "")
}

/// Recordings with output in the documentation, sorted; they are in the repository, too.
pub fn shown_traces() -> Vec<PathBuf> {
    fn find(directory: &Path, traces: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.extension() {
                Some(extension) if extension == "trace" && path.is_dir() => traces.push(path),
                _ if path.is_dir() => find(&path, traces),
                _ => {}
            }
        }
    }
    let mut traces = Vec::new();
    find(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../cli/tests/shown"), &mut traces);
    traces.sort();
    traces
}

/// Reference traces, sorted: ovni's, then those of runtimes. If there are none, the skipped test is reported.
pub fn reference_traces() -> Vec<PathBuf> {
    let corpus = reference_directory();
    if !corpus.is_dir() {
        taskscope_prerequisite::skip(format_args!("no reference traces in {}", corpus.display()));
    }
    let mut traces = traces_in(&corpus.join("ovni"), "ovni");
    traces.extend(traces_in(&corpus.join("runtimes"), "trace"));
    traces
}

/// Reference traces, then stored traces.
pub fn all_traces() -> Vec<PathBuf> {
    let mut traces = reference_traces();
    traces.extend(stored_traces());
    traces
}

/// Directories `below` those of a directory.
fn traces_in(directory: &Path, below: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let paths = entries.map(|entry| entry.unwrap().path().join(below));
    let mut traces: Vec<PathBuf> = paths.filter(|path| path.is_dir()).collect();
    traces.sort();
    traces
}

/// Runs `work` for each item, with its index, on all CPUs. Returns the results in the order of the items.
///
/// # Panics
///
/// If `work` panics.
pub fn on_all_cpus<T: Sync, R: Send>(items: &[T], work: impl Fn(usize, &T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let index = next.fetch_add(1, Ordering::Relaxed)
                    && let Some(item) = items.get(index)
                {
                    let result = work(index, item);
                    done.lock().unwrap().push((index, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap();
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}
