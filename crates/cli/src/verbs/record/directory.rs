//! Chooses the trace directory and takes possession of it, without a race between processes.
//!
//! A directory belongs to the process that creates the run file in it (`taskscope-run.json`; each further rank of
//! a job has its own). Ranks of one job thus meet in the first directory of their name in which
//! their own file does not exist yet, however they are ordered in time, and a second job of the same
//! name finds them all there and continues with the next number.

use super::launcher::Rank;
use crate::messages::Failure;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use taskscope_event::layout;
use taskscope_session::RunFile;
use taskscope_view::format::shell_word;

/// A directory that is ours to record into.
#[derive(Debug)]
pub struct TraceDirectory {
    /// Absolute.
    pub path: PathBuf,
    /// The run file, created empty.
    pub run_file: PathBuf,
    /// The first choice, when it was taken.
    pub instead_of: Option<PathBuf>,
    /// Directories that did not exist before, the innermost last.
    created: Vec<PathBuf>,
    share: bool,
}

/// Takes `output`, or the default for this command: `CMD.trace`, `CMD.JOB.trace` under a launcher,
/// each with the next free number when it is taken. With `share` others may read the run file.
pub fn take(
    output: Option<&Path>,
    command: &Path,
    rank: Option<&Rank>,
    share: bool,
) -> Result<TraceDirectory, Failure> {
    let wanted = match output {
        Some(output) => output.to_owned(),
        None => PathBuf::from(default_name(command, rank)),
    };
    take_numbered(&wanted, output.is_some(), rank, share).map_err(|error| {
        let failure = Failure::new(format!("cannot record into {}", wanted.display())).why(reason(&error));
        match output {
            Some(_) => failure,
            None => failure.remedy(format!(
                "taskscope record -o {} -- …",
                shell_word(&std::env::temp_dir().join(&wanted))
            )),
        }
    })
}

fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file of that name exists".to_owned()
        }
        io::ErrorKind::PermissionDenied => "no permission to write there".to_owned(),
        io::ErrorKind::StorageFull => "the file system is full".to_owned(),
        io::ErrorKind::ReadOnlyFilesystem => "the file system is read-only".to_owned(),
        _ => error.to_string(),
    }
}

fn default_name(command: &Path, rank: Option<&Rank>) -> String {
    let name = command.file_name().unwrap_or(command.as_os_str()).to_string_lossy();
    match rank {
        Some(rank) => format!("{name}.{}.trace", rank.job),
        None => format!("{name}.trace"),
    }
}

fn take_numbered(
    wanted: &Path,
    asked_for: bool,
    rank: Option<&Rank>,
    share: bool,
) -> io::Result<TraceDirectory> {
    let wanted = std::path::absolute(wanted)?;
    let run_file_name = match rank {
        Some(Rank { rank: 1.., .. }) => {
            let (begin, end) = layout::RUN_FILE_OF_RANK;
            format!("{begin}{}{end}", rank.map_or(0, |rank| rank.rank))
        }
        _ => layout::RUN_FILE.to_owned(),
    };
    for number in 1u32.. {
        let path = if number == 1 { wanted.clone() } else { numbered(&wanted, number) };
        let created = create_all(&path)?;
        let run_file = path.join(&run_file_name);
        let _lock = if asked_for || rank.is_some() { None } else { take_over(&path) };
        if is_usable(&path, &created, rank)? && create_new(&run_file, mode_of_run_file(share))? {
            let instead_of = (number > 1 && asked_for).then_some(wanted);
            return Ok(TraceDirectory { path, run_file, instead_of, created, share });
        }
    }
    Err(io::Error::other("every number is taken"))
}

fn numbered(wanted: &Path, number: u32) -> PathBuf {
    let mut name = wanted.as_os_str().to_owned();
    name.push(format!(".{number}"));
    PathBuf::from(name)
}

/// Creates a directory and its parents; returns those that did not exist.
fn create_all(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut created = Vec::new();
    let missing: Vec<&Path> = path.ancestors().take_while(|ancestor| !ancestor.exists()).collect();
    for directory in missing.into_iter().rev() {
        match fs::create_dir(directory) {
            Ok(()) => created.push(directory.to_owned()),
            // Another rank was quicker.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && directory.is_dir() => {}
            Err(error) => return Err(error),
        }
    }
    if !path.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(created)
}

/// A process alone never records into a directory that holds something; ranks share theirs.
fn is_usable(path: &Path, created: &[PathBuf], rank: Option<&Rank>) -> io::Result<bool> {
    Ok(rank.is_some()
        || created.iter().any(|directory| directory == path)
        || fs::read_dir(path)?.next().is_none())
}

/// Command lines hold passwords and names of people.
fn mode_of_run_file(share: bool) -> u32 {
    if share { 0o666 } else { 0o600 }
}

/// Empties a directory in which an earlier run left only the reason that it was not recorded. Others do not while the
/// returned file is open; the first creator of the run file has the directory.
fn take_over(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    rustix::fs::flock(&directory, rustix::fs::FlockOperation::NonBlockingLockExclusive).ok()?;
    let mut entries = fs::read_dir(path).ok()?;
    let only = entries.next()?.ok()?.file_name();
    let is_alone = entries.next().is_none() && only == layout::RUN_FILE;
    if is_alone && RunFile::load(path).ok()??.not_recorded.is_some() {
        fs::remove_file(path.join(only)).ok()?;
    }
    Some(directory)
}

fn create_new(file: &Path, mode: u32) -> io::Result<bool> {
    match File::options().write(true).create_new(true).mode(mode).open(file) {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

impl TraceDirectory {
    /// Permissions of the run file, which the umask cuts.
    pub fn run_file_mode(&self) -> u32 {
        mode_of_run_file(self.share)
    }

    /// Whether any process recorded something into it.
    pub fn has_streams(&self) -> bool {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let mut names = entries.into_iter().map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.any(|name| name.starts_with(layout::LOOM_PREFIX) || name.starts_with(layout::DEVICES_PREFIX))
    }

    /// The profiles that processes have left in it.
    pub fn profiles(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "tsprof"))
            .collect()
    }

    /// Removes the files of [`take`], as far as they are empty, for a program that never ran.
    pub fn give_back(&self) {
        // A directory that cannot be removed (another rank's file in it) is to stay.
        let _ = fs::remove_file(&self.run_file);
        for directory in self.created.iter().rev() {
            let _ = fs::remove_dir(directory);
        }
    }

    /// The path as a user would type it.
    pub fn shown(&self) -> String {
        as_typed(&self.path)
    }

    /// The word, quoted for a shell if necessary.
    pub fn word(&self) -> String {
        shell_word(Path::new(&self.shown()))
    }
}

/// Relative to the working directory if it is below that.
pub fn as_typed(path: &Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(here).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rank(rank: u32) -> Option<Rank> {
        Some(Rank { rank, job: "7".into(), launcher: "Slurm".into() })
    }

    #[test]
    fn a_process_alone_takes_the_next_free_number() {
        let root = tempfile::tempdir().unwrap();
        let wanted = root.path().join("deep/a.trace");
        let names: Vec<_> =
            (0..3).map(|_| take(Some(&wanted), Path::new("a"), None, false).unwrap().path).collect();
        assert_eq!(names, [wanted.clone(), numbered(&wanted, 2), numbered(&wanted, 3)]);
    }

    #[test]
    fn an_empty_directory_is_used_and_an_unused_one_given_back() {
        let root = tempfile::tempdir().unwrap();
        let taken = take(Some(root.path()), Path::new("a"), None, false).unwrap();
        assert_eq!(taken.path, root.path());
        taken.give_back();
        assert!(root.path().is_dir(), "it was there before us");
        let below = take(Some(&root.path().join("x/y")), Path::new("a"), None, false).unwrap();
        below.give_back();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_directory_with_nothing_but_a_reason_is_used_again() {
        let root = tempfile::tempdir().unwrap();
        let wanted = root.path().join("a.trace");
        let take = || take_numbered(&wanted, false, None, false).unwrap();
        fs::write(take().run_file, r#"{"not_recorded": {"reason": "static"}}"#).unwrap();
        assert_eq!(take().path, wanted);
        // The directory of a run in progress, and one with other files in it.
        assert_eq!(take().path, numbered(&wanted, 2));
        fs::write(wanted.join("taskscope-run.json"), r#"{"not_recorded": {}}"#).unwrap();
        fs::create_dir(wanted.join("loom.x")).unwrap();
        assert_eq!(take().path, numbered(&wanted, 3));
        fs::remove_dir(wanted.join("loom.x")).unwrap();
        let taken: Vec<PathBuf> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| take().path)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let distinct: std::collections::BTreeSet<_> = taken.iter().collect();
        assert_eq!(distinct.len(), taken.len());
    }

    #[test]
    fn ranks_of_one_job_share_a_directory_and_a_second_job_gets_the_next() {
        let root = tempfile::tempdir().unwrap();
        let wanted = root.path().join("a.7.trace");
        for number in 1..=3 {
            let expected = if number == 1 { wanted.clone() } else { numbered(&wanted, number) };
            let threads: Vec<_> = (0..8)
                .map(|index| {
                    let wanted = wanted.clone();
                    std::thread::spawn(move || {
                        take(Some(&wanted), Path::new("a"), rank(index).as_ref(), false).unwrap().path
                    })
                })
                .collect();
            for thread in threads {
                assert_eq!(thread.join().unwrap(), expected);
            }
        }
    }

    #[test]
    fn a_file_in_the_way_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a");
        fs::write(&file, "x").unwrap();
        for wanted in [file.clone(), file.join("below")] {
            let error = take(Some(&wanted), Path::new("a"), None, false).unwrap_err();
            assert!(error.to_string().contains("cannot record into"), "{error}");
        }
    }
}
