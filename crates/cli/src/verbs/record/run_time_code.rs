//! Names of code that the program generated at run time: the maps (`/tmp/perf-PID.map`) and dumps (`jit-PID.dump`) that just-in-time
//! compilers write for perf, copied into the trace, as their numbers are used again.

use nix::libc;
use std::fs::{DirEntry, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use taskscope_event::layout;
use taskscope_session::KeptModules;

/// Directory of compilers' maps.
const DIRECTORY: &str = "/tmp";
/// More directories of dumps are not searched.
const MAX_DIRECTORIES: usize = 64;
/// Deepest directory of a process in a trace.
const MAX_DEPTH: usize = 4;

/// Copies the maps of the processes that were recorded into `trace` since `start`.
pub fn keep_maps(trace: &Path, start: SystemTime) {
    let mut processes = Vec::new();
    find_processes(trace, MAX_DEPTH, &mut processes);
    processes.sort_unstable();
    processes.dedup();
    let directories = dump_directories();
    for process in processes {
        // Names are missing then, which reports note.
        let _ = keep(trace, &format!("perf-{process}.map"), Path::new(DIRECTORY), start);
        let dump = format!("jit-{process}.dump");
        let _ = directories.iter().find(|directory| keep(trace, &dump, directory, start).is_ok());
    }
}

/// Directories in which compilers write dumps: the present one (V8, wasmtime), that of maps (.NET), and, newest first, those that agents
/// of Java make, a run each.
fn dump_directories() -> Vec<PathBuf> {
    let mut all = vec![PathBuf::from("."), PathBuf::from(DIRECTORY)];
    let base = std::env::var_os("JITDUMPDIR").or_else(|| std::env::var_os("HOME"));
    let runs = base.and_then(|base| std::fs::read_dir(Path::new(&base).join(".debug/jit")).ok());
    let mut runs: Vec<_> = (runs.into_iter().flatten().flatten())
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| (entry.metadata().and_then(|found| found.modified()).ok(), entry.path()))
        .collect();
    runs.sort_by(|one, other| other.cmp(one));
    all.extend(runs.into_iter().map(|(_, path)| path).take(MAX_DIRECTORIES));
    all
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

fn keep(trace: &Path, name: &str, directory: &Path, start: SystemTime) -> io::Result<()> {
    let source = open_map(&directory.join(name), start)?;
    let kept = trace.join(KeptModules::DIRECTORY);
    std::fs::create_dir_all(&kept)?;
    let place = kept.join(name);
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
        let keep =
            |number, start| keep(trace.path(), &format!("perf-{number}.map"), maps.path(), start).is_ok();
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
