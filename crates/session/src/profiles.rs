//! Profiles on disk: one file, or a directory with those of many processes, merged one after the other.

use std::io;
use std::path::{Path, PathBuf};
use taskscope_event::layout;
use taskscope_files::{open_regular, read_regular};
use taskscope_profile::{Profile, ReadError, form};

/// Longest profile of a process.
pub const MAX_PROFILE_BYTES: u64 = 1 << 30;
/// Directories within directories.
const DEEPEST: usize = 8;

/// A file that could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ProfileProblem {
    /// Cannot be read.
    #[error("{path} cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Is not a profile, or is damaged.
    #[error("{path} is no whole profile: {error}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The damage.
        error: ReadError,
    },
}

/// Profiles that became one.
#[derive(Debug, Default)]
pub struct MergedProfiles {
    /// All together.
    pub profile: Profile,
    /// Files that are part of it.
    pub files: usize,
    /// Files that are not.
    pub problems: Vec<ProfileProblem>,
}

/// The profile files at `path`: itself, or those below it, by name. None for a directory with streams of a trace, or
/// without a profile.
pub fn profile_files(path: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    if path.is_file() {
        if is_profile(path) {
            files.push(path.to_path_buf());
        }
        return files;
    }
    let mut has_streams = false;
    collect(path, DEEPEST, &mut files, &mut has_streams);
    if has_streams {
        files.clear();
    }
    files.sort();
    files
}

fn is_profile(path: &Path) -> bool {
    let named = path.extension().is_some_and(|extension| extension == form::EXTENSION);
    let begins = || -> io::Result<bool> {
        let mut first = [0; form::MAGIC.len()];
        io::Read::read_exact(&mut open_regular(path)?.0, &mut first)?;
        Ok(first == form::MAGIC)
    };
    named || begins().unwrap_or(false)
}

/// Stops at the first stream.
fn collect(directory: &Path, depth: usize, files: &mut Vec<PathBuf>, has_streams: &mut bool) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if *has_streams {
            return;
        }
        let path = entry.path();
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() && depth > 0 {
            collect(&path, depth - 1, files, has_streams);
        } else if path.extension().is_some_and(|extension| extension == form::EXTENSION) {
            files.push(path);
        } else if entry.file_name() == layout::STREAM_METADATA {
            *has_streams = true;
        }
    }
}

/// Reads files one after the other and merges each: memory is that of the distinct paths and of one file. Unreadable
/// files are reported and skipped.
pub fn merge_profiles(files: &[PathBuf]) -> MergedProfiles {
    let mut merged = MergedProfiles::default();
    for path in files {
        match read_profile(path) {
            Ok(profile) => {
                merged.files += 1;
                merged.profile.merge(&profile);
            }
            Err(problem) => merged.problems.push(problem),
        }
    }
    merged
}

fn read_profile(path: &Path) -> Result<Profile, ProfileProblem> {
    let unreadable = |source| ProfileProblem::Unreadable { path: path.to_path_buf(), source };
    let bytes = read_regular(path, MAX_PROFILE_BYTES).map_err(unreadable)?;
    Profile::read(&bytes).map_err(|error| ProfileProblem::Damaged { path: path.to_path_buf(), error })
}

#[cfg(test)]
mod tests {
    use super::*;
    use taskscope_profile::{Frame, Metric, ROOT};

    #[test]
    fn many_files_are_merged_and_damaged_ones_reported() {
        let here = tempfile::tempdir().unwrap();
        std::fs::create_dir(here.path().join("node2")).unwrap();
        for (number, directory) in [(0, ""), (1, "node2"), (2, "node2")] {
            let mut profile = Profile::default();
            let node = profile.tree.descend(ROOT, [Frame::user(u32::MAX, 7), Frame::user(u32::MAX, number)]);
            profile.tree.add(node, Metric::TIME, 10);
            let mut bytes = Vec::new();
            profile.write(&mut bytes).unwrap();
            std::fs::write(here.path().join(directory).join(format!("n.{number}.tsprof")), bytes).unwrap();
        }
        std::fs::write(here.path().join("n.9.tsprof"), b"tsprof\r\n\x01\x00").unwrap();
        std::fs::write(here.path().join("other.txt"), b"no profile").unwrap();
        let files = profile_files(here.path());
        assert_eq!(files.len(), 4);
        let merged = merge_profiles(&files);
        assert_eq!((merged.files, merged.problems.len()), (3, 1));
        assert_eq!((merged.profile.tree.len(), merged.profile.tree.total(Metric::TIME)), (5, 30));
        assert!(profile_files(&here.path().join("other.txt")).is_empty());
        std::fs::write(here.path().join(layout::STREAM_METADATA), b"{}").unwrap();
        assert!(profile_files(here.path()).is_empty(), "a trace is no profile");
    }
}
