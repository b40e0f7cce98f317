//! Report section: states of the program's own instrumentation, with their times per thread or task.

use crate::documents::Word;
use crate::format::{Cell, count, counted, fit, percent, time};
use crate::sheet::{BOLD, DIM};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use taskscope_session::instrumentation::{Behaviour, By, Names, Row, Times, TimesOptions, Whose};
use taskscope_trace::Trace;

/// Default maximum of lanes in JSON.
pub const LANES_IN_JSON: usize = 100;

/// Time and count of each instrumented state, per thread or per task in its own time (docs/instrumenting.md).
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Instrumentation {
    /// The owner of the time.
    #[schemars(extend("enum" = By::ALL.map(By::name)))]
    pub per: Word,
    /// Effect of a task switch on open states.
    #[schemars(extend("enum" = behaviours()))]
    pub behaviour: Word,
    /// Nanoseconds of all lanes: threads from their first to their last event, tasks while they were on threads.
    pub time_ns: u64,
    /// Sums over all lanes.
    pub rows: Vec<ShownRow>,
    /// Threads or tasks, those with most time first; a hundred, or as many as `--top` says.
    pub lanes: Vec<ShownLane>,
    /// Number of all lanes.
    pub lane_count: u64,
}

/// Something that was shown.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownRow {
    /// Its kind: task, state, sub-state, burst, point, send or receive.
    pub kind: Word,
    /// Its name. For a burst or point: the key, with the value's name if it has one.
    pub name: String,
    /// Nanoseconds in which it was shown; twice at a time counts once.
    pub time_ns: u64,
    /// Number of times it was pushed, set or passed, including restores after a switch or a pop.
    pub begins: u64,
    /// Number of threads or tasks that showed it.
    pub lanes: u64,
}

/// The instrumented states of one thread or task.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ShownLane {
    /// The thread or task.
    #[serde(flatten)]
    pub whose: LaneOwner,
    /// Nanoseconds of its life.
    pub time_ns: u64,
    /// Its states.
    pub rows: Vec<ShownRow>,
}

/// The owner of a lane's time.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum LaneOwner {
    /// A thread's.
    Thread {
        /// Process id.
        pid: Option<i64>,
        /// Thread id.
        tid: Option<i64>,
        /// Its directory below the trace's root.
        stream: String,
    },
    /// A task's.
    Task {
        /// Process id.
        pid: Option<i64>,
        /// Its number in its process.
        task: u64,
        /// Its kind; empty if its creation was not recorded.
        task_kind: String,
    },
}

/// The names of behaviours that a report can have.
fn behaviours() -> Vec<&'static str> {
    let all = Behaviour::ALL.iter().filter(|behaviour| **behaviour != Behaviour::Raw);
    all.map(|behaviour| behaviour.name()).collect()
}

/// The times of a trace with the names of their owners.
pub struct ShownTimes<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// Names of the trace's instrumentation.
    pub names: &'a Names,
    /// The options of the computation.
    pub options: TimesOptions,
    /// The computed times.
    pub times: Times,
}

impl Instrumentation {
    /// The section as text, with so many rows of each table.
    pub(crate) fn text(&self, top: usize, width: usize) -> String {
        let mut page = String::new();
        let wide = width.saturating_sub(46).clamp(24, 60);
        let title = format!("Instrumentation per {}, {}", self.per, self.behaviour);
        let _ = writeln!(
            page,
            "\n  {BOLD}{:<wide$}{:>10}{:>9}{:>11}{:>11}{BOLD:#}",
            Cell(fit(&title, wide - 1)),
            "time",
            "of all",
            "begins",
            format!("{}s", self.per)
        );
        if self.rows.is_empty() {
            let _ = writeln!(page, "  {DIM}none: the program is not instrumented{DIM:#}");
            return page;
        }
        for row in self.rows.iter().take(top) {
            let _ = writeln!(page, "  {}{:>11}", cells(row, self.time_ns, wide), count(row.lanes));
        }
        left_out(&mut page, self.rows.len().saturating_sub(top) as u64, "row");
        for lane in self.lanes.iter().take(top) {
            let label = Cell(fit(&lane.whose.label(), wide - 1));
            let _ = writeln!(page, "\n  {BOLD}{label:<wide$}{:>10}{BOLD:#}", time(lane.time_ns));
            for row in lane.rows.iter().take(top) {
                let _ = writeln!(page, "    {}", cells(row, lane.time_ns, wide - 2));
            }
            left_out(&mut page, lane.rows.len().saturating_sub(top) as u64, "row");
        }
        let shown = self.lanes.len().min(top) as u64;
        left_out(&mut page, self.lane_count - shown, &self.per);
        page
    }
}

impl LaneOwner {
    /// The thread or task in words.
    fn label(&self) -> String {
        match self {
            LaneOwner::Thread { pid, tid, .. } => {
                format!("thread {} of process {}", tid.unwrap_or(0), pid.unwrap_or(0))
            }
            LaneOwner::Task { pid, task, task_kind } => {
                let kind = if task_kind.is_empty() { "task" } else { task_kind };
                format!("{kind} {task} of process {}", pid.unwrap_or(0))
            }
        }
    }
}

impl ShownTimes<'_> {
    /// The section as a document.
    pub fn facts(&self) -> Instrumentation {
        let rows = |rows: &[Row]| -> Vec<ShownRow> {
            let row = |row: &Row| ShownRow {
                kind: row.kind.name().into(),
                name: row.name.clone(),
                time_ns: row.ns,
                begins: row.begins,
                lanes: row.lanes,
            };
            rows.iter().map(row).collect()
        };
        let lanes = self.times.lanes.iter().map(|lane| ShownLane {
            whose: match &lane.whose {
                Whose::Thread(stream) => {
                    let stream = &self.trace.streams()[*stream];
                    let path = stream.relative_path.clone();
                    LaneOwner::Thread { pid: stream.pid(), tid: stream.tid(), stream: path }
                }
                Whose::Task { process, task, kind } => {
                    LaneOwner::Task { pid: self.pid(*process), task: *task, task_kind: kind.clone() }
                }
            },
            time_ns: lane.ns,
            rows: rows(&lane.rows),
        });
        Instrumentation {
            per: self.options.by.name().into(),
            behaviour: self.options.behaviour.name().into(),
            time_ns: self.times.ns,
            rows: rows(&self.times.rows),
            lanes: lanes.collect(),
            lane_count: self.times.lane_count,
        }
    }

    fn pid(&self, process: u32) -> Option<i64> {
        let stream = self.names.processes.iter().position(|of| *of == process)?;
        self.trace.streams()[stream].pid()
    }
}

fn cells(row: &ShownRow, whole_ns: u64, wide: usize) -> String {
    let label = Cell(fit(&format!("{:<10}{}", row.kind, row.name), wide - 1));
    match row.time_ns {
        0 => format!("{label:<wide$}{:>10}{:>9}{:>11}", "", "", count(row.begins)),
        ns => format!("{label:<wide$}{:>10}{:>9}{:>11}", time(ns), percent(ns, whole_ns), count(row.begins)),
    }
}

fn left_out(page: &mut String, rows: u64, what: &str) {
    if rows > 0 {
        let _ = writeln!(page, "  {DIM}and {} more (--top){DIM:#}", counted(rows, what));
    }
}
