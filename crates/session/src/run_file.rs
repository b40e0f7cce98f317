//! `taskscope-run.json`: facts of the run stored by `taskscope record`.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;
use taskscope_event::layout::{self, RUN_FILE};
use taskscope_files::read_regular;
use taskscope_metadata::MAX_RUN_FILE_BYTES;

/// A fact about the recording that changes how its numbers are to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Notice {
    /// Stable name.
    pub name: String,
    /// One sentence.
    pub text: String,
}

/// The reason why a run left neither events nor profiles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct NotRecorded {
    /// Stable name.
    pub reason: String,
    /// One sentence without a full stop.
    pub text: String,
    /// Commands and hints.
    pub remedies: Vec<String>,
}

/// The range of a slice, by the clock of its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct PartOfRun {
    /// First nanosecond.
    pub begin_ns: i64,
    /// First nanosecond after it; `None` if it has no end.
    pub end_ns: Option<i64>,
}

impl PartOfRun {
    /// Begin and end as clocks of an execution.
    pub(crate) fn clocks(self) -> (u64, u64) {
        let end = self.end_ns.map_or(u64::MAX, |end| end.max(0).cast_unsigned());
        (self.begin_ns.max(0).cast_unsigned(), end)
    }
}

/// The content of the file; missing values are empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunFile {
    /// The command as typed.
    pub command: Vec<String>,
    /// The file that was run.
    pub program: String,
    /// The requested mode: `trace` or `profile`.
    pub mode: String,
    /// Working directory.
    pub cwd: String,
    /// Host name.
    pub host: String,
    /// The launcher of the job, and its number of processes.
    pub launcher: Option<String>,
    /// Variables of the environment that set up runtimes and libraries; `None` if they were not recorded.
    pub settings: Option<BTreeMap<String, String>>,
    /// Nanoseconds since 1970 (UTC) at the start of the program.
    pub start_unix_ns: Option<u64>,
    /// Time from just before the start to just after the end of the program.
    pub wall_ns: Option<u64>,
    /// The program's exit code.
    pub exit_code: Option<i32>,
    /// The signal that killed the program.
    pub signal: Option<i32>,
    /// Measured on the recording host.
    pub recording_cost_ns_per_event: Option<f64>,
    /// Degraded modes and the like.
    pub notices: Vec<Notice>,
    /// The range that a slice was cut to; items outside of it are in the slice only for their effects in it.
    pub part: Option<PartOfRun>,
    /// The process that records, as `PID:START`.
    pub recorder: Option<String>,
    /// The reason why there is nothing to read.
    pub not_recorded: Option<NotRecorded>,
}

impl RunFile {
    /// Reads the file beside a trace. `Ok(None)` if there is none.
    ///
    /// # Errors
    /// A sentence that says why the file that is there cannot be used.
    pub fn load(directory: &Path) -> Result<Option<RunFile>, String> {
        let bytes = match read_regular(&directory.join(RUN_FILE), MAX_RUN_FILE_BYTES) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read {RUN_FILE}: {error}")),
        };
        let mut run: RunFile =
            serde_json::from_slice(&bytes).map_err(|error| format!("{RUN_FILE} cannot be used: {error}"))?;
        for rank in further_ranks(directory) {
            run.join(rank);
        }
        Ok(Some(run))
    }

    /// Adds facts from another rank of the same job.
    fn join(&mut self, rank: RunFile) {
        self.wall_ns = self.wall_ns.max(rank.wall_ns);
        self.signal = self.signal.or(rank.signal);
        if rank.exit_code.is_some_and(|code| code != 0) && self.exit_code == Some(0) {
            self.exit_code = rank.exit_code;
        }
        for notice in rank.notices {
            if !self.notices.contains(&notice) {
                self.notices.push(notice);
            }
        }
    }
}

/// The files `taskscope-run.<rank>.json` of the further ranks of a job; unusable ones are skipped.
fn further_ranks(directory: &Path) -> Vec<RunFile> {
    let Ok(entries) = std::fs::read_dir(directory) else { return Vec::new() };
    let is_rank = |name: &str| {
        let (begin, end) = layout::RUN_FILE_OF_RANK;
        let rank = name.strip_prefix(begin).and_then(|rest| rest.strip_suffix(end));
        rank.is_some_and(|rank| !rank.is_empty() && rank.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let mut paths: Vec<_> = (entries.flatten())
        .filter(|entry| entry.file_name().to_str().is_some_and(is_rank))
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
        .iter()
        .filter_map(|path| serde_json::from_slice(&read_regular(path, MAX_RUN_FILE_BYTES).ok()?).ok())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn further_ranks_add_their_notices_and_their_failure() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
        write("taskscope-run.json", r#"{ "command": ["a"], "wall_ns": 5, "exit_code": 0 }"#);
        write(
            "taskscope-run.1.json",
            r#"{ "wall_ns": 9, "exit_code": 3, "notices": [{ "name": "n", "text": "t" }] }"#,
        );
        write("taskscope-run.2.json", "no JSON");
        let run = RunFile::load(directory.path()).unwrap().unwrap();
        assert_eq!((run.wall_ns, run.exit_code, run.notices.len()), (Some(9), Some(3), 1));
        assert_eq!(run.command, ["a"]);
        write("taskscope-run.json", "no JSON");
        assert!(RunFile::load(directory.path()).is_err());
        assert_eq!(RunFile::load(&directory.path().join("none")), Ok(None));
    }
}
