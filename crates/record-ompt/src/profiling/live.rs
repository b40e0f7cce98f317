//! Totals so far, at an interval while the program runs: one JSON object a line in `HOST.PID.live.jsonl`.
//!
//! They are read off the same accounts that the profile's totals come from at the end.

use std::time::Duration;

use super::cause::Cause;
use super::run::{Run, Totals};

/// Seconds between two lines.
pub const INTERVAL_VARIABLE: &str = "TASKSCOPE_LIVE";
const SHORTEST: f64 = 0.01;

/// Snapshot interval from the environment.
pub fn interval() -> Option<Duration> {
    let seconds: f64 = std::env::var(INTERVAL_VARIABLE).ok()?.trim().parse().ok()?;
    (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds.max(SHORTEST)).ok())?
}

/// Appends a line.
pub fn write_line(run: &Run) {
    let Some(files) = run.files() else { return };
    let _ = files.append_line(&line(&run.totals()));
}

fn line(Totals { wall, workers, sums, .. }: &Totals) -> String {
    let by_cause = || Cause::ALL.into_iter().zip(sums.iter().copied()).filter(|(_, ns)| *ns > 0);
    let capacity: u64 = sums.iter().sum();
    let useful: u64 = by_cause().filter(|(cause, _)| cause.is_useful()).map(|(_, ns)| ns).sum();
    let efficiency = if capacity == 0 { 0.0 } else { useful as f64 / capacity as f64 };
    let mut line = format!(
        "{{\"wall_ns\":{wall},\"workers\":{workers},\"capacity_ns\":{capacity},\"useful_ns\":{useful},\
         \"efficiency\":{efficiency:.4}"
    );
    let losses = by_cause().filter(|(cause, _)| !cause.is_useful());
    if let Some((cause, ns)) = losses.max_by_key(|(_, ns)| *ns) {
        line += &format!(",\"largest_loss\":\"{}\",\"largest_loss_ns\":{ns}", cause.state().name());
    }
    let states: Vec<String> =
        by_cause().map(|(cause, ns)| format!("\"{}\":{ns}", cause.state().name())).collect();
    line + &format!(",\"states\":{{{}}}}}\n", states.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiling::cause::CAUSES;
    use crate::profiling::no_cpu::Moved;

    #[test]
    fn a_line_has_the_main_figures() {
        let mut sums = [0; CAUSES];
        sums[Cause::Task as usize] = 60;
        sums[Cause::Serial as usize] = 15;
        sums[Cause::Idle as usize] = 25;
        assert_eq!(
            line(&Totals { wall: 50, workers: 2, sums, moved: Moved::NONE, late: Vec::new() }),
            "{\"wall_ns\":50,\"workers\":2,\"capacity_ns\":100,\"useful_ns\":75,\"efficiency\":0.7500,\
             \"largest_loss\":\"idle\",\"largest_loss_ns\":25,\"states\":{\"task\":60,\"serial\":15,\"idle\":25}}\n"
        );
    }
}
