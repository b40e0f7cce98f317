//! The end of the program, for those of its streams that do not have it.
//!
//! A process that is killed, aborts or leaves by `_exit` cannot record its end. Its recorder keeps a sign of life
//! ([`taskscope_event::alive`]) up to date, which ends up to some tens of milliseconds earlier. The process that was started here
//! has a known end: it is stored in the place of the last sign of life.

use super::child::Outcome;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use taskscope_event::{StreamFile, alive, layout};
use taskscope_files::write_file;

/// Stores the end of the program for its unfinished streams in `trace`. If that fails, the last sign of life remains.
pub fn store(trace: &Path, outcome: &Outcome) {
    let Some(end) = outcome.end_monotonic_ns else { return };
    if let Some(process) = newest_process(trace, outcome.pid).filter(|process| has_unfinished_stream(process))
    {
        let _ = store_in(&process.join(alive::FILE), end);
    }
}

/// The directory of the process with this id; of several, which `exec` makes, the last one.
fn newest_process(trace: &Path, pid: u32) -> Option<PathBuf> {
    let name = format!("{}{pid}", layout::PROCESS_PREFIX);
    let is_it = |path: &PathBuf| {
        let rest = path.file_name().and_then(|file| file.to_str()?.strip_prefix(&name));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let processes = directories(trace).flat_map(|loom| directories(&loom)).filter(is_it);
    let born = |path: &PathBuf| {
        fs::metadata(path).and_then(|about| about.created().or_else(|_| about.modified())).ok()
    };
    processes.max_by_key(born)
}

/// A stream that has ended properly has no tail.
fn has_unfinished_stream(process: &Path) -> bool {
    directories(process)
        .any(|thread| thread.join(StreamFile::Standard.tail_name()).symlink_metadata().is_ok())
}

fn directories(path: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

fn store_in(path: &Path, end: u64) -> io::Result<()> {
    match File::options()
        .read(true)
        .write(true)
        .custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK)
        .open(path)
    {
        Ok(file) => {
            let mut page = [0; alive::BYTES];
            file.read_exact_at(&mut page, 0)?;
            if alive::until(&page).is_some_and(|until| until < end) {
                file.write_all_at(&end.to_le_bytes(), alive::UNTIL_OFFSET)?;
            }
            Ok(())
        }
        Err(why) if why.kind() == io::ErrorKind::NotFound => {
            let mut page = [0; alive::BYTES];
            for (offset, value) in [alive::MARK, (alive::UNTIL_OFFSET, end)] {
                page[offset as usize..][..8].copy_from_slice(&value.to_le_bytes());
            }
            write_file(path, |file| file.write_all(&page))
        }
        Err(why) => Err(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn end_is_stored_for_the_unfinished_process_alone() {
        let root = tempfile::tempdir().unwrap();
        let thread = |process: &str, tail: bool| {
            let thread = root.path().join("loom.host").join(process).join("thread.7");
            fs::create_dir_all(&thread).unwrap();
            if tail {
                fs::write(thread.join("stream.tail"), "").unwrap();
            }
        };
        for (process, tail) in [("proc.7", true), ("proc.77", true), ("proc.8", false)] {
            thread(process, tail);
        }
        let until = |process: &str| {
            let page = fs::read(root.path().join("loom.host").join(process).join(alive::FILE)).ok()?;
            alive::until(&page)
        };
        let status = std::process::ExitStatus::from_raw(9);
        for (pid, end) in [(7, 500), (8, 500), (7, 400), (7, 600)] {
            store(root.path(), &Outcome::of(status, pid, end));
        }
        assert_eq!((until("proc.7"), until("proc.77"), until("proc.8")), (Some(600), None, None));
    }
}
