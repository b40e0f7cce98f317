//! `taskscope-run.json`: the command, its end, and all facts about the recording for readers of the trace. Written
//! before the program starts, and again, completed, after its end.

use super::launcher::Rank;
use super::settings::settings;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use taskscope_files::NewFile;
use taskscope_record::attached::Checker;

/// A fact about the recording that changes how its numbers are to be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notice {
    /// Stable, for `--allow NAME` and scripts.
    pub name: &'static str,
    /// One sentence, with its remedy if there is one.
    pub text: String,
}

impl Notice {
    /// Whether the notice alone means that nothing will be recorded.
    pub fn stops_recording(&self) -> bool {
        const NAMES: [&str; 5] =
            ["tool-disabled", "runtime-kept", "no-ompt-runtime", "own-tool", "cannot-load"];
        NAMES.contains(&self.name) || Checker::ALL.iter().any(|checker| checker.name() == self.name)
    }
}

/// Output of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, JsonSchema, clap::ValueEnum)]
#[serde(rename_all = "lowercase")]
pub enum RecordMode {
    /// Every event
    #[default]
    Trace,
    /// Sums by call path
    Profile,
}

impl RecordMode {
    /// The name on the command line and in the file.
    pub const fn name(self) -> &'static str {
        match self {
            RecordMode::Trace => "trace",
            RecordMode::Profile => "profile",
        }
    }
}

/// The content of the file. `wall_ns` is missing while the program runs, and for ever when it was
/// killed together with `taskscope`. Imports and slices have no settings, and the time of the start only if it is known.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-run/1")]
#[schemars(extend("required" = ["taskscope", "command", "program", "mode", "cwd", "host", "notices"]))]
pub struct RunFile {
    /// Version of taskscope.
    taskscope: &'static str,
    /// The command as typed; bytes that are not UTF-8 are replaced.
    pub command: Vec<String>,
    /// The file that was run.
    pub program: String,
    /// The requested mode.
    pub mode: RecordMode,
    /// Working directory.
    pub cwd: String,
    /// Host name.
    pub host: String,
    /// Position in a job of several processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rank: Option<u32>,
    /// The launcher of the job, and its number of processes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub launcher: Option<String>,
    /// Variables of the environment that set up runtimes and libraries.
    pub settings: BTreeMap<String, String>,
    /// The process that records: `PID:START`, its start as in field 22 of `/proc/PID/stat`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorder: Option<String>,
    /// Nanoseconds since 1970 (UTC) at the start of the program.
    pub start_unix_ns: u64,
    /// Time from just before the start to just after the end of the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wall_ns: Option<u64>,
    /// The program's exit code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that killed the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Measured on this host by a short calibration of the recorder.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording_cost_ns_per_event: Option<f64>,
    /// Degraded modes and the like.
    pub notices: Vec<Notice>,
    /// The range that a slice was cut to; items outside of it are in the slice only for their effects in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<Part>,
    /// The reason why the run left neither events nor profiles.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_recorded: Option<NotRecorded>,
}

/// The range of a slice, by the clock of its streams.
#[derive(Clone, Copy, Debug, Serialize, JsonSchema)]
pub struct Part {
    /// First nanosecond.
    pub begin_ns: i64,
    /// First nanosecond after it; null if it has no end.
    pub end_ns: Option<i64>,
}

/// The reason that a run left no events.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NotRecorded {
    /// Stable, for scripts: the name of a notice, or one of [`REASONS`].
    pub reason: &'static str,
    /// One sentence without a full stop.
    pub text: String,
    /// The facilities that the programs use.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub found: Vec<Found>,
    /// Most threads of one process at one time, as far as they were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<u64>,
    /// Processes that were seen.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
    /// Commands and hints, each with its effect.
    pub remedies: Vec<String>,
}

/// Reasons that are not notices.
pub const REASONS: [&str; 8] = [
    "static",
    "preload-replaced",
    "signal",
    "openmp-not-attached",
    "ovni-off",
    "other-runtime",
    "nothing-parallel",
    "no-profile",
];

/// Something that a program uses, and the file that shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Found {
    /// Stable key, such as `tbb`.
    pub key: &'static str,
    /// The common name.
    pub name: &'static str,
    /// Name of a library or program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

impl RunFile {
    /// The file of a program that is about to start.
    pub fn begin(
        command: Vec<String>,
        program: &Path,
        mode: RecordMode,
        rank: Option<Rank>,
        notices: Vec<Notice>,
    ) -> Self {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let host = nix::unistd::gethostname().unwrap_or_default();
        RunFile {
            taskscope: env!("CARGO_PKG_VERSION"),
            command,
            program: program.display().to_string(),
            mode,
            cwd: std::env::current_dir().unwrap_or_default().display().to_string(),
            host: host.to_string_lossy().into_owned(),
            rank: rank.as_ref().map(|rank| rank.rank),
            launcher: rank.map(|rank| rank.launcher),
            settings: settings(),
            recorder: taskscope_record::drain::this_process(),
            start_unix_ns: since_1970.as_nanos() as u64,
            wall_ns: None,
            exit_code: None,
            signal: None,
            recording_cost_ns_per_event: None,
            notices,
            part: None,
            not_recorded: None,
        }
    }

    /// Writes the file whole or not at all, with these permissions at most.
    pub fn write(&self, path: &Path, mode: u32) -> io::Result<()> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        let mut file = NewFile::with_mode(path, mode)?;
        file.write_all(&text)?;
        file.commit()
    }
}
