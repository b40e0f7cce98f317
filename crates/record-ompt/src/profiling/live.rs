//! Totals so far, at an interval while the program runs: one JSON object a line in `HOST.PID.live.jsonl`.
//!
//! They are read off the same accounts that the profile's totals come from at the end.

use std::time::Duration;

use super::run::{Run, Totals};
use super::states::State;

/// Seconds between two lines.
pub const INTERVAL_VARIABLE: &str = "TASKSCOPE_LIVE";
const MIN_SECONDS: f64 = 0.01;

/// Snapshot interval from the environment.
pub fn interval() -> Option<Duration> {
    let seconds: f64 = std::env::var(INTERVAL_VARIABLE).ok()?.trim().parse().ok()?;
    (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds.max(MIN_SECONDS)).ok())?
}

/// Appends a line.
pub fn write_line(run: &Run) {
    let Some(files) = run.files() else { return };
    let _ = files.append_line(&line(&run.totals()));
}

fn line(Totals { wall, workers, sums, .. }: &Totals) -> String {
    let by_state = || State::ALL.into_iter().zip(sums.iter().copied()).filter(|(_, ns)| *ns > 0);
    let capacity: u64 = sums.iter().sum();
    let useful: u64 = by_state().filter(|(state, _)| state.is_useful()).map(|(_, ns)| ns).sum();
    let efficiency = if capacity == 0 { 0.0 } else { useful as f64 / capacity as f64 };
    let mut line = format!(
        "{{\"wall_ns\":{wall},\"workers\":{workers},\"capacity_ns\":{capacity},\"useful_ns\":{useful},\
         \"efficiency\":{efficiency:.4}"
    );
    let losses = by_state().filter(|(state, _)| !state.is_useful());
    if let Some((state, ns)) = losses.max_by_key(|(_, ns)| *ns) {
        line += &format!(",\"largest_loss\":\"{}\",\"largest_loss_ns\":{ns}", state.name());
    }
    let states: Vec<String> = by_state().map(|(state, ns)| format!("\"{}\":{ns}", state.name())).collect();
    line + &format!(",\"states\":{{{}}}}}\n", states.join(","))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profiling::no_cpu::Moved;
    use crate::profiling::states::STATES;

    #[test]
    fn a_line_has_the_main_figures() {
        let mut sums = [0; STATES];
        sums[State::Task as usize] = 60;
        sums[State::Serial as usize] = 15;
        sums[State::Idle as usize] = 25;
        assert_eq!(
            line(&Totals { wall: 50, workers: 2, sums, moved: Moved::NONE, late: Vec::new() }),
            "{\"wall_ns\":50,\"workers\":2,\"capacity_ns\":100,\"useful_ns\":75,\"efficiency\":0.7500,\
             \"largest_loss\":\"idle\",\"largest_loss_ns\":25,\"states\":{\"task\":60,\"serial\":15,\"idle\":25}}\n"
        );
    }
}
