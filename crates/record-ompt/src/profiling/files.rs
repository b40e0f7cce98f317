//! The files of one process's profile.

use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use taskscope_profile::form;

/// More processes than this do not have the same number in one run.
const MOST_COPIES: u32 = 1 << 20;

/// Where they lie: `HOST.PID` with an extension, or `HOST.PID-2` where another process has had that number, as the program
/// has that this one replaced (`exec`), or one of another container.
pub struct Files {
    /// The profile.
    pub profile: PathBuf,
    /// The one that is being written.
    pub part: PathBuf,
    /// Totals so far.
    pub lines: PathBuf,
}

impl Files {
    fn named(directory: &Path, name: &str, copy: u32) -> Files {
        let mut base = directory.join(name).into_os_string();
        if copy > 1 {
            base.push(format!("-{copy}"));
        }
        // The name has points of its own.
        let with = |extension: &str| -> PathBuf {
            let mut path: OsString = base.clone();
            path.push(format!(".{extension}"));
            path.into()
        };
        Files { profile: with(form::EXTENSION), part: with("part"), lines: with("live.jsonl") }
    }

    /// Chooses the first name that no process has, and takes it by beginning [`part`](Self::part). Where no file can be
    /// made now, later ones are tried under the first name.
    pub fn choose(directory: &Path, name: &str) -> Files {
        let all = (1..MOST_COPIES).map(|copy| Files::named(directory, name, copy));
        let own = all.into_iter().find(|files| match File::create_new(&files.part) {
            Ok(_) if files.profile.exists() || files.lines.exists() => {
                let _ = std::fs::remove_file(&files.part);
                false
            }
            Ok(_) => true,
            Err(why) => why.kind() != ErrorKind::AlreadyExists,
        });
        own.unwrap_or_else(|| Files::named(directory, name, 1))
    }
}
