//! The table of `examples/pic`: the breakdown of a run's worker time, from the begin of its parallel region to the end,
//! as T_S, T_L, T_O, ThreadT, tail and WallT, all in worker-nanoseconds (`docs/pic.md`).

use std::fmt::Write;
use std::path::Path;
use taskscope_analysis::slo::{Mode, SloOptions, WindowTimes, attribute, window_times};
use taskscope_analysis::{Letter, Shares};
use taskscope_execution::NO_TIME;
use taskscope_session::Session;

/// One run.
#[derive(Clone, Debug)]
pub struct Row {
    /// Nodes and workers of each.
    pub shape: (usize, usize),
    /// Idle time by the published formula.
    pub direct: Shares,
    /// Idle time by its root cause.
    pub root: Shares,
    /// Capacity of the window, execution and tail in it.
    pub times: WindowTimes,
}

/// The row of a trace: of all its workers, from the begin of the first parallel region to the end of the last.
///
/// # Errors
/// The trace cannot be read, or has no parallel region.
pub fn row(trace: &Path) -> Result<Row, String> {
    let session = Session::open(trace).map_err(|error| error.to_string())?;
    let regions = || session.execution.regions.iter().filter(|region| region.begin != NO_TIME);
    let begin = regions().map(|region| region.begin).min().ok_or("the trace has no parallel region")?;
    let ends = regions().map(|region| region.end).filter(|end| *end != NO_TIME);
    let window = (begin, ends.max().unwrap_or(begin));
    let (graph, _) = session.task_graph().map_err(|errors| format!("{errors:?}"))?;
    let options = SloOptions { windows: vec![window], ..SloOptions::default() };
    let of = |mode| attribute(&graph, mode, &options).windows[0];
    let nodes = graph.nodes.len();
    Ok(Row {
        shape: (nodes, graph.workers.len() / nodes.max(1)),
        direct: of(Mode::Direct),
        root: of(Mode::Root),
        times: window_times(&graph, window),
    })
}

impl Row {
    /// Whether T_S + T_L + T_O + ThreadT + tail is WallT, to the nanosecond.
    pub fn is_exact(&self) -> bool {
        let busy = (self.times.execution_ns + self.times.tail_ns) as i64;
        [&self.direct, &self.root].iter().all(|idle| idle.total() + busy == self.times.capacity_ns as i64)
    }

    /// Nanoseconds lost to a letter in a mode.
    pub fn lost(&self, idle: &Shares, letter: Letter) -> u64 {
        idle.get(letter).rounded() as u64
    }
}

/// The table as text.
pub fn table(rows: &[Row]) -> String {
    let mut text = format!("{:<18}", "nodes × workers");
    for column in ["TS", "TL", "TO", "ThreadT", "tail", "WallT"] {
        let _ = write!(text, "{column:>18}");
    }
    text.push('\n');
    for row in rows {
        for (mode, idle) in [("direct", &row.direct), ("root", &row.root)] {
            let shape =
                if mode == "direct" { format!("{} × {}", row.shape.0, row.shape.1) } else { String::new() };
            let _ = write!(text, "{shape:<10}{mode:<8}");
            let lost = |letter| row.lost(idle, letter);
            for ns in [
                lost(Letter::Starvation),
                lost(Letter::Latency),
                lost(Letter::Overhead),
                row.times.execution_ns,
                row.times.tail_ns,
                row.times.capacity_ns,
            ] {
                let share = 100.0 * ns as f64 / row.times.capacity_ns.max(1) as f64;
                let _ = write!(text, "{:>18}", format!("{:.3} s {share:5.1} %", ns as f64 / 1e9));
            }
            text.push('\n');
        }
        let sum = if row.is_exact() {
            "TS + TL + TO + ThreadT + tail = WallT exactly"
        } else {
            "the sum is not exact"
        };
        let _ = writeln!(text, "{:<18}{sum}", "");
    }
    text
}
