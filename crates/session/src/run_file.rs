//! `taskscope-run.json`: what `taskscope record` knows about the run.

use serde::Deserialize;
use std::path::Path;

/// Name of the file in a trace's directory.
pub const RUN_FILE: &str = "taskscope-run.json";

/// A fact about the recording that changes how its numbers are to be read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Notice {
    /// Stable name.
    pub name: String,
    /// One sentence.
    pub text: String,
}

/// The content of the file; what it does not say is empty.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct RunFile {
    /// The command as typed.
    pub command: Vec<String>,
    /// Working directory.
    pub cwd: String,
    /// Host name.
    pub host: String,
    /// Nanoseconds since 1970 (UTC) at the start of the program.
    pub start_unix_ns: Option<u64>,
    /// From just before the start to just after the end of the program.
    pub wall_ns: Option<u64>,
    /// The program's exit code.
    pub exit_code: Option<i32>,
    /// The signal that killed the program.
    pub signal: Option<i32>,
    /// Measured on the recording host.
    pub recording_cost_ns_per_event: Option<f64>,
    /// Degraded modes and the like.
    pub notices: Vec<Notice>,
}

impl RunFile {
    /// Reads the file beside a trace. `Ok(None)` if there is none.
    ///
    /// # Errors
    /// A sentence that says why the file that is there cannot be used.
    pub fn load(directory: &Path) -> Result<Option<RunFile>, String> {
        let bytes = match std::fs::read(directory.join(RUN_FILE)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(format!("cannot read {RUN_FILE}: {error}")),
        };
        serde_json::from_slice(&bytes)
            .map(Some)
            .map_err(|error| format!("{RUN_FILE} cannot be used: {error}"))
    }
}
