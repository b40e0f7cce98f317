//! The run file (`taskscope-run.json`) of a trace that `taskscope record` did not write: of an import, of a slice.

use serde_json::{Value, json};

/// Maximum size of a run file, bytes. Larger ones are not run files.
pub const MAX_RUN_FILE_BYTES: u64 = 8 << 20;

/// Returns the members that every run file has, for a run without a known command. The caller adds further ones.
pub fn run_file_without_command() -> Value {
    json!({
        "schema": "taskscope-run/1",
        "taskscope": env!("CARGO_PKG_VERSION"),
        "command": [],
        "program": "",
        "mode": "trace",
        "cwd": "",
        "host": "",
        "notices": [],
    })
}
