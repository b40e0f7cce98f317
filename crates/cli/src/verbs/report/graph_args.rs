//! Options of the sections of the task graph.

use crate::verbs::choices::Choice;
use taskscope_analysis::slo::Mode;
use taskscope_filter::TimeRange;
use taskscope_view::WhatIf;

/// Options of the sections of the task graph.
#[derive(clap::Args)]
pub struct GraphArgs {
    /// Cause of waiting for a worker that is itself idle (section idle).
    #[arg(long, value_name = "MODE", value_enum, default_value = "root")]
    pub mode: Choice<Mode>,
    /// With --json: list every idle interval (section idle).
    #[arg(long)]
    pub intervals: bool,
    /// Partial sums in section idle: BEGIN..END as in --range, or BEGIN:END in nanoseconds of the trace's clock. Can be
    /// repeated.
    #[arg(long, value_name = "BEGIN..END", value_parser = Window::parse)]
    pub window: Vec<Window>,
    /// Replay the run with these factors (section whatif), for example runtime=0, network=0.5, gemm=0.5 (work of task
    /// types with that name), workers=8 (on each node). Commas join changes. Can be repeated.
    #[arg(long, value_name = "CHANGES", value_parser = WhatIf::parse)]
    pub what_if: Vec<WhatIf>,
}

/// A window of time.
#[derive(Clone, Copy, Debug)]
pub enum Window {
    /// Since the begin of the run, or shares of it.
    Range(TimeRange),
    /// Times of the trace's clock.
    Clock(u64, u64),
}

impl Window {
    fn parse(text: &str) -> Result<Window, String> {
        let Some((begin, end)) = text.split_once(':') else {
            return TimeRange::parse(text).map(Window::Range).map_err(|error| error.text);
        };
        let number =
            |text: &str| text.parse::<u64>().map_err(|_| format!("`{text}` is not a number of nanoseconds"));
        match (number(begin)?, number(end)?) {
            (begin, end) if begin <= end => Ok(Window::Clock(begin, end)),
            _ => Err("it ends before it begins".to_owned()),
        }
    }

    /// Begin and end by the trace's clock.
    pub fn in_run(self, run: (u64, u64)) -> (u64, u64) {
        match self {
            Window::Range(range) => clocks_of(range, run),
            Window::Clock(begin, end) => (begin, end),
        }
    }
}

/// Begin and end of a range by the trace's clock, in a run from one time to another.
pub fn clocks_of(range: TimeRange, (first, last): (u64, u64)) -> (u64, u64) {
    let (begin, end) = range.resolve((last - first) as i64);
    let clock = |ns: i64| first.saturating_add_signed(ns.max(0));
    (clock(begin), if end == i64::MAX { u64::MAX } else { clock(end) })
}
