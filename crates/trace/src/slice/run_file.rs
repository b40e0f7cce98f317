//! The run file of a slice: the command of the whole, its notices, and one about the slice.

use crate::trace::Trace;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use taskscope_event::layout;
use taskscope_files::{read_regular, write_file};

/// Larger ones are not run files.
const MAX_BYTES: u64 = 8 << 20;
/// Fields that hold for each part of a run.
const KEPT: [&str; 6] = ["command", "program", "mode", "cwd", "host", "notices"];

impl Trace {
    /// Records that decide causes and are not in slices, as words; `None` if the trace has none.
    pub fn left_out_of_slices(&self) -> Option<&'static str> {
        let has = |kind: &str| self.locations().iter().any(|location| location.metadata["kind"] == kind);
        match (has("os-time"), has("device-queue")) {
            (true, true) => Some("times off the CPU and device queues"),
            (true, false) => Some("times off the CPU"),
            (false, true) => Some("device queues"),
            (false, false) => None,
        }
    }
}

/// Writes the run file of a slice of `trace` into `output`. Times and the exit status are those of the whole run, and
/// left out.
pub(super) fn write_run_file(trace: &Trace, output: &Path) -> io::Result<()> {
    let bytes = read_regular(&trace.root().join(layout::RUN_FILE), MAX_BYTES).unwrap_or_default();
    let whole: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut run = json!({});
    for key in KEPT {
        if let Some(value) = whole.get(key) {
            run[key] = value.clone();
        }
    }
    let text = match trace.left_out_of_slices() {
        Some(left_out) => format!(
            "part of a run: {left_out} are not in it, and that time counts to what the threads were in"
        ),
        None => "part of a run".to_owned(),
    };
    if !run["notices"].is_array() {
        run["notices"] = json!([]);
    }
    if let Some(notices) = run["notices"].as_array_mut() {
        notices.retain(|notice| notice["name"] != "slice");
        notices.push(json!({ "name": "slice", "text": text }));
    }
    write_file(&output.join(layout::RUN_FILE), |out| out.write_all(format!("{run:#}\n").as_bytes()))
}
