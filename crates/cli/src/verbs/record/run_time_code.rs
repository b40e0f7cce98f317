//! Names of code that the program generated at run time: the maps that just-in-time compilers write for perf
//! (`/tmp/perf-PID.map`), copied into the trace, as their numbers are used again.

use nix::libc;
use std::fs::{DirEntry, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;
use taskscope_event::layout;
use taskscope_session::KeptModules;

/// Directory of compilers' maps.
const DIRECTORY: &str = "/tmp";
/// Deepest directory of a process in a trace.
const MAX_DEPTH: usize = 4;

/// Copies the maps of the processes that were recorded into `trace` since `start`.
pub fn keep_maps(trace: &Path, start: SystemTime) {
    let mut processes = Vec::new();
    find_processes(trace, MAX_DEPTH, &mut processes);
    processes.sort_unstable();
    processes.dedup();
    for process in processes {
        // Names are missing then, which reports note.
        let _ = keep_map(trace, process, Path::new(DIRECTORY), start);
    }
}

/// Process ids in the names of a trace's directories (`proc.PID`) and profiles (`HOST.PID.tsprof`).
fn find_processes(directory: &Path, depth: usize, found: &mut Vec<u32>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        found.extend(process_of(&entry));
        if depth > 0 && entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            find_processes(&entry.path(), depth - 1, found);
        }
    }
}

fn process_of(entry: &DirEntry) -> Option<u32> {
    let name = entry.file_name().into_string().ok()?;
    if let Some(number) = name.strip_prefix(layout::PROCESS_PREFIX) {
        return number.parse().ok();
    }
    let number = name.strip_suffix(".tsprof")?.rsplit('.').next()?;
    number.split('-').next()?.parse().ok()
}

fn keep_map(trace: &Path, process: u32, directory: &Path, start: SystemTime) -> io::Result<()> {
    let name = format!("perf-{process}.map");
    let source = open_map(&directory.join(&name), start)?;
    let kept = trace.join(KeptModules::DIRECTORY);
    std::fs::create_dir_all(&kept)?;
    let place = kept.join(&name);
    let mut copy = File::create_new(&place)?;
    let copied = io::copy(&mut source.take(KeptModules::MAX_MAP_BYTES), &mut copy);
    if copied.is_err() {
        let _ = std::fs::remove_file(&place);
    }
    copied.map(drop)
}

/// Opens a map that this user wrote since `start`: any user may create files of that name.
fn open_map(path: &Path, start: SystemTime) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    let is_own = found.uid() == std::fs::metadata("/proc/self")?.uid() && found.nlink() == 1;
    let is_small = found.len() <= KeptModules::MAX_MAP_BYTES;
    if found.is_file() && is_own && is_small && found.modified()? >= start {
        return Ok(file);
    }
    Err(io::ErrorKind::PermissionDenied.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn maps_are_copied_if_they_are_the_runs_own() {
        let (maps, trace) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let start = SystemTime::now() - Duration::from_secs(60);
        let [own, linked, twice] = [1, 2, 3].map(|number| maps.path().join(format!("perf-{number}.map")));
        std::fs::write(&own, "1000 10 compiled\n").unwrap();
        std::os::unix::fs::symlink(&own, &linked).unwrap();
        std::fs::create_dir(trace.path().join("proc.1")).unwrap();
        std::fs::write(trace.path().join("node.a.22-2.tsprof"), "").unwrap();
        let mut processes = Vec::new();
        find_processes(trace.path(), MAX_DEPTH, &mut processes);
        processes.sort_unstable();
        assert_eq!(processes, [1, 22]);
        let keep = |number, start| keep_map(trace.path(), number, maps.path(), start).is_ok();
        assert!(!keep(1, SystemTime::now() + Duration::from_secs(60)));
        assert!(!keep(2, start));
        assert!(keep(1, start));
        assert!(!keep(1, start), "kept once");
        std::fs::hard_link(&own, &twice).unwrap();
        assert!(!keep(3, start));
        let kept = trace.path().join(KeptModules::DIRECTORY).join("perf-1.map");
        assert_eq!(std::fs::read_to_string(kept).unwrap(), "1000 10 compiled\n");
    }
}
