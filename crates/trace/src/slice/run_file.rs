//! The run file of a slice: the command of the whole, its notices, and one about the slice.

use super::os_time::OS_TIME;
use super::request::Slice;
use crate::stream::Stream;
use crate::trace::Trace;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use taskscope_event::layout;
use taskscope_event::models::{device, system};
use taskscope_files::{read_regular, write_file};
use taskscope_metadata::{MAX_RUN_FILE_BYTES, run_file_without_command};

/// Fields that hold for each part of a run.
const KEPT: [&str; 11] = [
    "taskscope",
    "command",
    "program",
    "mode",
    "cwd",
    "host",
    "launcher",
    "settings",
    "start_unix_ns",
    "recording_cost_ns_per_event",
    "notices",
];

impl Trace {
    /// Whether it may have times that the operating system took, which [`Slice::off_cpu`] keeps as the whole run has them: recorded
    /// ones, or those of more threads than CPUs.
    pub fn may_have_os_times(&self) -> bool {
        let cpus = |stream: &Stream| stream.metadata.loom_cpus.as_ref().map_or(0, Vec::len);
        let loom_streams = |loom| self.streams().iter().filter(move |stream| stream.loom() == loom);
        self.locations().iter().any(|location| location.metadata["kind"] == OS_TIME)
            || self.streams().iter().any(|stream| {
                let cpus = cpus(stream);
                cpus > 0 && loom_streams(stream.loom()).nth(cpus).is_some()
            })
    }

    /// Reasons why causes in this slice may differ from those of the same time in the whole run, in sentences.
    /// `is_shifted` is that of the written slice.
    pub fn limits_of_slice(&self, slice: &Slice, is_shifted: bool) -> Vec<&'static str> {
        let locations_of_kind =
            |kind| self.locations().iter().filter(move |location| location.metadata["kind"] == kind);
        let is_sum = |code| matches!(code, system::RUN_DELAY | system::BLOCKED_SUM);
        let has_sums =
            || locations_of_kind(OS_TIME).any(|location| location.events().any(|event| is_sum(event.code)));
        let mut limits = Vec::new();
        let knows_times = slice.off_cpu.is_some();
        let lacks_devices = is_shifted || !slice.keeps_model(device::OPERATION);
        if lacks_devices && locations_of_kind("device-queue").next().is_some() {
            limits.push(match knows_times {
                true => "device queues are not in it, so waits for them have no operations",
                false => {
                    "device queues are not in it, and time of waits for them counts to the states of the threads"
                }
            });
        }
        if slice.waits.is_none() && self.has_thread_waits() {
            limits.push(
                "waits of threads for each other that reach across its borders may lack what ended them",
            );
        }
        if !knows_times && has_sums() {
            limits.push(
                "sums of times off the CPU that reach across its borders are spread over what is in it",
            );
        }
        limits
    }
}

/// Writes the run file of a slice of `trace` into `output`. The duration and the exit status are those of the whole run, and
/// left out; `part` has the begin and the end of the range, by the clock of its streams.
pub(super) fn write_run_file(
    trace: &Trace,
    slice: &Slice,
    is_shifted: bool,
    output: &Path,
) -> io::Result<()> {
    let bytes = read_regular(&trace.root().join(layout::RUN_FILE), MAX_RUN_FILE_BYTES).unwrap_or_default();
    let whole: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let mut run = run_file_without_command();
    for key in KEPT {
        if let Some(value) = whole.get(key) {
            run[key] = value.clone();
        }
    }
    // The trace may be a slice itself.
    let begin =
        |begin: i64| whole["part"]["begin_ns"].as_i64().map_or(begin, |whole_limit| whole_limit.max(begin));
    let end = |end: i64| whole["part"]["end_ns"].as_i64().map_or(end, |whole_limit| whole_limit.min(end));
    if !is_shifted && (slice.clocks.is_some() || whole["part"].is_object()) {
        let clocks = slice.clocks.unwrap_or((i64::MIN, i64::MAX));
        let (begin, end) = (begin(clocks.0), end(clocks.1));
        run["part"] = json!({ "begin_ns": begin, "end_ns": (end != i64::MAX).then_some(end) });
    }
    let limits = trace.limits_of_slice(slice, is_shifted);
    let text = std::iter::once("part of a run").chain(limits).collect::<Vec<_>>().join("; ");
    if !run["notices"].is_array() {
        run["notices"] = json!([]);
    }
    if let Some(notices) = run["notices"].as_array_mut() {
        notices.retain(|notice| notice["name"] != "slice");
        notices.push(json!({ "name": "slice", "text": text }));
    }
    write_file(&output.join(layout::RUN_FILE), |out| out.write_all(format!("{run:#}\n").as_bytes()))
}
