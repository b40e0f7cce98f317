//! The newest events of a program with tails in memory.
//!
//! On network file systems, and on those that cannot reserve blocks, a stream's tail is a file in `/dev/shm` with a
//! link in the trace (`taskscope_record`'s `tail_place`). While the program runs, a thread of ours stores the regions
//! that its threads have sealed, so that none of them waits for the file system ([`taskscope_record::drain`]). A stream
//! that ends properly removes its tail. After a crash the tails are moved into the trace directory here, so that copies
//! of the trace are complete, and nothing stays in memory.

use super::environment::Environment;
use nix::errno::Errno;
use nix::sys::signal::kill;
use nix::unistd::Pid;
use std::fs;
use std::io;
use std::path::Path;
use taskscope_event::layout;
use taskscope_files::{NewFile, open_regular};
use taskscope_record::drain::{DRAINER_VARIABLE, Drainer, Refused};
use taskscope_record::{TAIL_DIRECTORY_VARIABLE, tail_place_for};
use taskscope_view::format::counted;

/// Starts to store the tails of the trace in `directory`, if they are elsewhere, and announces it to the program.
/// Without the drainer, the program's threads store themselves.
pub fn drain(directory: &Path, environment: &mut Environment) -> Option<Drainer> {
    let place = tail_place_for(directory)?;
    let (drainer, name) = Drainer::start(&place).ok()?;
    environment.set(DRAINER_VARIABLE, name);
    // The program may change its directory before it starts recording.
    if std::env::var_os(TAIL_DIRECTORY_VARIABLE).is_some_and(|chosen| !chosen.is_empty()) {
        environment.set(TAIL_DIRECTORY_VARIABLE, place);
    }
    Some(drainer)
}

/// The refused parts and their consequences.
pub fn refused_sentence(refused: &Refused) -> Option<String> {
    let why = refused.why.as_ref()?;
    let streams = counted(refused.streams, "stream");
    Some(format!(
        "taskscope: {streams} could not be stored for the program ({why}); its threads tried themselves from then on"
    ))
}

/// Brings the tails of ended processes into the trace. Returns how many could not be brought, and the
/// first reason.
pub fn bring_home(directory: &Path) -> Option<(u64, io::Error)> {
    let mut failed = None;
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        let failure = if kind.is_dir() {
            bring_home(&path)
        } else if kind.is_symlink()
            && path.extension().is_some_and(|extension| extension == layout::TAIL_EXTENSION)
        {
            bring(&path).err().map(|why| (1, why))
        } else {
            None
        };
        failed = match (failed, failure) {
            (Some((before, why)), Some((more, _))) => Some((before + more, why)),
            (before, now) => before.or(now),
        };
    }
    failed
}

/// Puts the file in the place of the link to it.
fn bring(link: &Path) -> io::Result<()> {
    let place = fs::read_link(link)?;
    let writer = place.file_name().and_then(|name| name.to_str()).and_then(writer_of);
    // Links that no recorder made are left alone, and so are tails that are still written.
    if writer.is_none_or(is_alive) || !place.is_file() {
        return Ok(());
    }
    match copy(&place, link) {
        Ok(()) => fs::remove_file(&place),
        Err(why) if link.is_symlink() => Err(why),
        // Another rank's recorder on this host has brought it meanwhile.
        Err(_) => Ok(()),
    }
}

fn copy(place: &Path, link: &Path) -> io::Result<()> {
    let (mut tail, _) = open_regular(place)?;
    let mut file = NewFile::in_place_of_link(link)?;
    io::copy(&mut tail, &mut file)?;
    file.replace_link()
}

/// The process that made a tail of this name (`taskscope-PID-NUMBER-TIME.tail`).
fn writer_of(name: &str) -> Option<Pid> {
    let numbers = name.strip_prefix("taskscope-")?.strip_suffix(".tail")?;
    let pid = numbers.split('-').next()?.parse().ok().filter(|pid| *pid > 0)?;
    Some(Pid::from_raw(pid))
}

fn is_alive(process: Pid) -> bool {
    kill(process, None) != Err(Errno::ESRCH)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_tails_of_ended_processes_are_collected() {
        let here = tempfile::tempdir().unwrap();
        let root = here.path();
        let (trace, memory) = (root.join("trace/loom/thread"), root.join("memory"));
        fs::create_dir_all(&trace).unwrap();
        fs::create_dir_all(&memory).unwrap();
        // Process ids end far below this one.
        let ended = memory.join("taskscope-2147483000-0-17.tail");
        let alive = memory.join(format!("taskscope-{}-0-17.tail", std::process::id()));
        let foreign = memory.join("somebody.tail");
        for (target, name) in [(&ended, "stream"), (&alive, "taskscope"), (&foreign, "other")] {
            fs::write(target, name).unwrap();
            symlink(target, trace.join(name).with_extension("tail")).unwrap();
        }
        symlink(memory.join("taskscope-2147483000-1-17.tail"), trace.join("gone.tail")).unwrap();

        assert!(bring_home(&root.join("trace")).is_none());
        assert!(!ended.exists() && alive.exists() && foreign.exists());
        let home = trace.join("stream.tail");
        assert!(!home.is_symlink());
        assert_eq!(fs::read(home).unwrap(), b"stream");
        for name in ["taskscope.tail", "other.tail", "gone.tail"] {
            assert!(trace.join(name).is_symlink(), "{name}");
        }
    }
}
