//! The section `idle`: starvation, latency, overhead and tail.

use super::options::{CausesOptions, number};
use crate::format::{self, Cell};
use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::fmt::Write;
use taskscope_analysis::slo::{Interval, Mode, Slo, window_times};
use taskscope_analysis::{FineNanos, Letter, Shares};
use taskscope_execution::graph::TaskGraph;

const LETTERS: [(Letter, &str); 3] =
    [(Letter::Starvation, "starvation"), (Letter::Latency, "latency"), (Letter::Overhead, "overhead")];

/// Starvation, latency and overhead of idle workers.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IdleTimes {
    /// Accounting of waits for a worker that is idle itself.
    #[schemars(extend("enum" = Mode::ALL.map(Mode::name)))]
    pub mode: &'static str,
    /// Sums over all workers.
    #[serde(flatten)]
    pub total: LetterTimes,
    /// `tail_drain_ns` + `tail_shutdown_ns`.
    pub tail_ns: u64,
    /// Nanoseconds after a worker's last task while others still ran.
    pub tail_drain_ns: u64,
    /// Nanoseconds after the end of all tasks.
    pub tail_shutdown_ns: u64,
    /// Starvation, latency and overhead together, nanoseconds.
    pub idle_ns: i64,
    /// Nanoseconds in which workers executed tasks.
    pub execution_ns: u64,
    /// `execution_ns` + `idle_ns` + `tail_ns`.
    pub capacity_ns: u64,
    /// Times by worker id.
    pub by_worker: IndexMap<String, LetterTimes>,
    /// Times by node id.
    pub by_node: IndexMap<String, LetterTimes>,
    /// Culprits of each letter with their nanoseconds, largest first; they sum to the letter.
    pub blame: IndexMap<&'static str, IndexMap<String, Nanos>>,
    /// Partial sums in windows; only with `--window`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub windows: Option<Vec<IdleWindow>>,
    /// Every idle interval; only with `--intervals`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intervals: Option<Vec<IdleInterval>>,
}

/// Idle time by letter.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LetterTimes {
    /// No work was there.
    pub starvation_ns: Nanos,
    /// Work was under way.
    pub latency_ns: Nanos,
    /// The runtime had it.
    pub overhead_ns: Nanos,
}

/// Partial sums of a window.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IdleWindow {
    /// Begin by the trace's clock, nanoseconds.
    pub begin_ns: u64,
    /// End by the trace's clock, nanoseconds.
    pub end_ns: u64,
    /// Idle time in it.
    #[serde(flatten)]
    pub idle: LetterTimes,
    /// Nanoseconds in which workers executed tasks.
    pub execution_ns: u64,
    /// Nanoseconds of the tail.
    pub tail_ns: u64,
    /// Worker-nanoseconds in all.
    pub capacity_ns: u64,
    /// Begin of its part in the range, nanoseconds since the begin of the run.
    pub run_begin_ns: u64,
    /// End of its part in the range, nanoseconds since the begin of the run.
    pub run_end_ns: u64,
}

/// An idle interval of a worker.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct IdleInterval {
    /// The worker's id.
    pub worker: u64,
    /// Begin by the trace's clock, nanoseconds.
    pub begin_ns: u64,
    /// End by the trace's clock, nanoseconds.
    pub end_ns: u64,
    /// Number in its process of the task that followed; null for code outside of tasks.
    pub task: Option<u64>,
    /// Its process (rank 1, process 4711), if there are several.
    pub task_process: Option<String>,
    /// Idle time in it.
    #[serde(flatten)]
    pub idle: LetterTimes,
    /// Id of the data that was produced last.
    pub last_produced: Option<u64>,
    /// Id of the data that arrived last.
    pub last_arrived: Option<u64>,
}

/// Nanoseconds, to six decimals unless they are a whole number.
#[derive(Clone, Copy, Debug, JsonSchema)]
pub struct Nanos(#[schemars(with = "f64")] FineNanos);

impl Nanos {
    /// Whole nanoseconds.
    fn whole(self) -> u64 {
        self.0.rounded().max(0) as u64
    }
}

impl Serialize for Nanos {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        number(self.0).serialize(serializer)
    }
}

impl From<&Shares> for LetterTimes {
    fn from(shares: &Shares) -> LetterTimes {
        LetterTimes {
            starvation_ns: Nanos(shares.get(Letter::Starvation)),
            latency_ns: Nanos(shares.get(Letter::Latency)),
            overhead_ns: Nanos(shares.get(Letter::Overhead)),
        }
    }
}

impl LetterTimes {
    /// The times in the order of [`LETTERS`].
    fn letters(&self) -> [Nanos; 3] {
        [self.starvation_ns, self.latency_ns, self.overhead_ns]
    }
}

/// The section's numbers.
pub(super) fn times(graph: &TaskGraph, slo: &Slo, options: &CausesOptions) -> IdleTimes {
    let workers = graph.workers.iter().zip(&slo.by_worker).filter(|(worker, _)| worker.selected);
    let nodes = graph.nodes.iter().zip(&slo.by_node);
    let blame = LETTERS.map(|(letter, name)| {
        let rows = named_blame(graph, slo, letter).into_iter();
        (name, rows.map(|(who, time)| (who, Nanos(time))).collect())
    });
    let window = |((begin, end), row): (&(u64, u64), &Shares)| {
        let (first, last) = graph.range();
        let part = within(options.range, (*begin, *end));
        let times = window_times(graph, part);
        let since = |at: u64| at.min(last).saturating_sub(first);
        IdleWindow {
            begin_ns: *begin,
            end_ns: *end,
            idle: row.into(),
            execution_ns: times.execution_ns,
            tail_ns: times.tail_ns,
            capacity_ns: times.capacity_ns,
            run_begin_ns: since(part.0),
            run_end_ns: since(part.1),
        }
    };
    let windows = options.windows.iter().zip(&slo.windows);
    IdleTimes {
        mode: slo.mode.name(),
        total: (&slo.total).into(),
        tail_ns: slo.drain_ns + slo.shutdown_ns,
        tail_drain_ns: slo.drain_ns,
        tail_shutdown_ns: slo.shutdown_ns,
        idle_ns: slo.total.total(),
        execution_ns: slo.execution_ns,
        capacity_ns: slo.capacity_ns,
        by_worker: workers.map(|(worker, row)| (worker.id.to_string(), row.into())).collect(),
        by_node: nodes.map(|(node, row)| (node.id.to_string(), row.into())).collect(),
        blame: blame.into_iter().collect(),
        windows: (!options.windows.is_empty()).then(|| windows.map(window).collect()),
        intervals: options.intervals.then(|| slo.intervals.iter().map(|row| interval(graph, row)).collect()),
    }
}

/// Clips a window to the range.
fn within(range: (u64, u64), (begin, end): (u64, u64)) -> (u64, u64) {
    let (begin, end) = (begin.max(range.0), end.min(range.1));
    (begin, end.max(begin))
}

fn interval(graph: &TaskGraph, row: &Interval) -> IdleInterval {
    IdleInterval {
        worker: graph.workers[row.worker as usize].id,
        begin_ns: row.begin,
        end_ns: row.end,
        task: graph.tasks.number(row.task as usize),
        task_process: graph.process_of(row.task).map(Into::into),
        idle: (&row.shares).into(),
        last_produced: graph.data_number(row.deciding.last_produced),
        last_arrived: graph.data_number(row.deciding.last_arrived),
    }
}

/// Culprits of a letter by their names, largest first; types of one name are one row.
fn named_blame(graph: &TaskGraph, slo: &Slo, letter: Letter) -> Vec<(String, FineNanos)> {
    let mut by_name: IndexMap<String, FineNanos> = IndexMap::new();
    for blame in slo.blame.iter().filter(|blame| blame.letter == letter) {
        *by_name.entry(blame.who.label(graph)).or_default() += blame.time;
    }
    let mut rows: Vec<(String, FineNanos)> = by_name.into_iter().collect();
    rows.sort_by_key(|(_, time)| std::cmp::Reverse(*time));
    rows
}

/// The section as text.
pub(super) fn text(idle: &IdleTimes, top: usize, out: &mut String) {
    let capacity = idle.capacity_ns;
    let mode = idle.mode;
    let _ = writeln!(out, "  Idle time, mode {mode} ({} of capacity)", format::Unit::Seconds.show(capacity));
    let mut line = |name: &str, ns: u64| {
        let share = format::percent(ns, capacity);
        let _ = writeln!(out, "   {name:<24}{:>12}{share:>9}", format::time(ns));
    };
    line("executing tasks", idle.execution_ns);
    for ((_, name), time) in LETTERS.iter().zip(idle.total.letters()) {
        line(name, time.whole());
    }
    line("tail: others still run", idle.tail_drain_ns);
    line("tail: all tasks done", idle.tail_shutdown_ns);
    windows_text(idle.windows.as_deref().unwrap_or_default(), out);
    for (name, rows) in idle.blame.iter().filter(|(_, rows)| !rows.is_empty()) {
        let _ = writeln!(out, "  {name} is due to");
        for (who, time) in rows.iter().take(top) {
            let (who, ns) = (Cell(format::fit(who, 40)), time.whole());
            let _ = writeln!(out, "   {who:<40}{:>12}{:>9}", format::time(ns), format::percent(ns, capacity));
        }
        if rows.len() > top {
            let _ = writeln!(out, "   … and {} more (--top {})", rows.len() - top, rows.len());
        }
    }
}

/// A row for each window: its part of the lines above.
fn windows_text(windows: &[IdleWindow], out: &mut String) {
    if windows.is_empty() {
        return;
    }
    let names = ["executing", "starvation", "latency", "overhead", "tail"];
    let mut line = |name: &str, cells: [String; 5]| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>11}")).collect();
        let _ = writeln!(out, "   {name:<22}{cells}");
    };
    line("windows of the run", names.map(str::to_owned));
    for window in windows {
        let [starvation, latency, overhead] = window.idle.letters().map(Nanos::whole);
        let cells = [window.execution_ns, starvation, latency, overhead, window.tail_ns].map(format::time);
        let (begin, end) = (window.run_begin_ns, window.run_end_ns);
        line(&format!("{}..{}", format::time(begin), format::time(end)), cells);
    }
}
