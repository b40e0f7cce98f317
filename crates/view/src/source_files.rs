//! Source files of a run, found below directories that the user named.
//!
//! The name of a source file comes from debug information, which may come from anybody. So nothing outside of the roots is
//! read: a name is looked up below each root, as it is and without its first directories, and what is found must still be below
//! the root when links are followed, and be a regular file of bounded size. Nothing is fetched.

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::time::UNIX_EPOCH;
use taskscope_files::{open_regular, read_open};

/// Longest file that is read, bytes.
const MAX_FILE_BYTES: u64 = 8 << 20;
/// Longer names are those of no file (`PATH_MAX`), bytes: each of their ends is looked up.
const MAX_NAME_BYTES: usize = 4096;

/// Directories below which sources may be.
#[derive(Clone, Debug, Default)]
pub struct SourceRoots(Vec<PathBuf>);

/// A source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path, links followed.
    pub path: PathBuf,
    /// Its text; bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Time of its last change, nanoseconds since 1970; `None` if unknown.
    pub changed_unix_ns: Option<u64>,
}

impl SourceRoots {
    /// Roots in the order in which they are searched; those that do not exist are skipped.
    pub fn of(directories: impl IntoIterator<Item = PathBuf>) -> SourceRoots {
        let roots = directories.into_iter().filter_map(|root| root.canonicalize().ok());
        SourceRoots(roots.filter(|root| root.is_dir()).collect())
    }

    /// The directories.
    pub fn directories(&self) -> &[PathBuf] {
        &self.0
    }

    /// The file of a recorded name: the longest end of the name that exists below a root.
    ///
    /// # Errors
    /// A sentence: there is none, or it cannot be read.
    pub fn find(&self, recorded: &str) -> Result<SourceFile, String> {
        if recorded.len() > MAX_NAME_BYTES {
            return Err("its name is too long for a file".to_string());
        }
        // Names without `.` and `..`, which would lead out of a root.
        let parts: Vec<&std::ffi::OsStr> = (Path::new(recorded).components())
            .filter_map(|part| match part {
                Component::Normal(name) => Some(name),
                _ => None,
            })
            .collect();
        let mut problem = None;
        for first in 0..parts.len() {
            let end: PathBuf = parts[first..].iter().collect();
            // A recorded path that is below a root itself comes first.
            let own = (first == 0 && Path::new(recorded).is_absolute()).then(|| Path::new("/").join(&end));
            let below = self.0.iter().map(|root| (root, root.join(&end)));
            let own = self.0.iter().filter_map(|root| Some((root, own.clone()?)));
            for (root, path) in own.chain(below) {
                // Links may lead anywhere.
                let Some(path) = path.canonicalize().ok().filter(|path| path.starts_with(root)) else {
                    continue;
                };
                match read(path) {
                    Ok(file) => return Ok(file),
                    Err(why) => problem = problem.or(Some(why)),
                }
            }
        }
        Err(problem.unwrap_or_else(|| "it is not below the working directory or a --source-path".to_string()))
    }
}

fn read(path: PathBuf) -> Result<SourceFile, String> {
    let failed = |error: std::io::Error| format!("{}: {error}", path.display());
    let (file, length) = open_regular(&path).map_err(failed)?;
    if length > MAX_FILE_BYTES {
        return Err(format!("{} has more than {} MiB", path.display(), MAX_FILE_BYTES >> 20));
    }
    let changed_unix_ns = changed(&file);
    let bytes = read_open(file, length, MAX_FILE_BYTES).map_err(failed)?;
    Ok(SourceFile { text: String::from_utf8_lossy(&bytes).into_owned(), path, changed_unix_ns })
}

fn changed(file: &File) -> Option<u64> {
    let since = file.metadata().ok()?.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_regular_files_below_the_roots_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for directory in ["root/src", "other", "outside"] {
            std::fs::create_dir_all(at(directory)).unwrap();
        }
        std::fs::write(at("root/src/gemm.c"), "gemm").unwrap();
        std::fs::write(at("other/gemm.c"), "other").unwrap();
        std::fs::write(at("outside/secret"), "secret").unwrap();
        symlink(at("outside/secret"), at("root/secret")).unwrap();
        symlink(at("outside"), at("root/link")).unwrap();
        File::create(at("root/long.c")).unwrap().set_len(MAX_FILE_BYTES + 1).unwrap();
        let roots = SourceRoots::of([at("root"), at("other"), at("missing")]);
        assert_eq!(roots.directories().len(), 2);
        let text = |name: &str| roots.find(name).map(|file| file.text);
        for name in ["src/gemm.c", "/build/machine/src/gemm.c", "../../src/gemm.c", "./gemm.c/../src/gemm.c"]
        {
            let found = text(name);
            assert!(found == Ok("gemm".to_string()) || found == Ok("other".to_string()), "{name}: {found:?}");
        }
        // The longest end counts, then the order of the roots.
        assert_eq!(text("/build/src/gemm.c"), Ok("gemm".to_string()));
        assert_eq!(text("/build/lib/gemm.c"), Ok("other".to_string()));
        let own = at("root/src/gemm.c").display().to_string();
        assert_eq!(text(&own), Ok("gemm".to_string()));
        let outside = at("outside/secret").display().to_string();
        for name in ["secret", "link/secret", "../outside/secret", &outside, "/etc/passwd", "", "..", "src"] {
            assert!(text(name).is_err(), "{name}");
        }
        assert!(text("long.c").unwrap_err().contains("more than 8 MiB"));
        // Its ends are not looked up: there are too many.
        let endless = "a/".repeat(MAX_NAME_BYTES) + "src/gemm.c";
        assert!(text(&endless).unwrap_err().contains("too long"));
        assert!(SourceRoots::default().find(&own).is_err());
    }
}
