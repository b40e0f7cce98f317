//! What instrumented threads or tasks showed, and for how long: the report's section.

use crate::format::{count, fit, percent, time};
use anstyle::Style;
use serde_json::{Value, json};
use std::fmt::Write;
use taskscope_session::instrumentation::{By, LaneTimes, Names, Row, Times, TimesOptions, Whose};
use taskscope_trace::Trace;

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Lanes in JSON where nothing is said.
pub const LANES_IN_JSON: usize = 100;

/// The times of a trace with what they are of.
pub struct ShownTimes<'a> {
    /// The trace.
    pub trace: &'a Trace,
    /// What its instrumentation names.
    pub names: &'a Names,
    /// How it was looked at.
    pub options: TimesOptions,
    /// What was found.
    pub times: Times,
}

impl ShownTimes<'_> {
    /// The section as text, with so many rows of each table.
    pub fn text(&self, top: usize, width: usize) -> String {
        let mut page = String::new();
        let TimesOptions { by, behaviour, .. } = self.options;
        let wide = width.saturating_sub(46).clamp(24, 60);
        let title = format!("Instrumentation per {}, {}", by.name(), behaviour.name());
        let whose = match by {
            By::Thread => "threads",
            By::Task => "tasks",
        };
        let _ = writeln!(
            page,
            "\n  {BOLD}{:<wide$}{:>10}{:>9}{:>11}{:>11}{BOLD:#}",
            fit(&title, wide - 1),
            "time",
            "of all",
            "begins",
            whose
        );
        if self.times.rows.is_empty() {
            let _ = writeln!(page, "  {DIM}nothing: the program tells nothing of itself{DIM:#}");
            return page;
        }
        for row in self.times.rows.iter().take(top) {
            let _ = writeln!(page, "  {}{:>11}", cells(row, self.times.ns, wide), count(row.lanes));
        }
        left_out(&mut page, self.times.rows.len().saturating_sub(top) as u64, "row");
        for lane in self.times.lanes.iter().take(top) {
            let label = fit(&self.label(lane), wide - 1);
            let _ = writeln!(page, "\n  {BOLD}{label:<wide$}{:>10}{BOLD:#}", time(lane.ns));
            for row in lane.rows.iter().take(top) {
                let _ = writeln!(page, "    {}", cells(row, lane.ns, wide - 2));
            }
            left_out(&mut page, lane.rows.len().saturating_sub(top) as u64, "row");
        }
        let shown = self.times.lanes.len().min(top) as u64;
        left_out(&mut page, self.times.lane_count - shown, by.name());
        page
    }

    /// The section as JSON.
    pub fn json(&self) -> Value {
        let rows = |rows: &[Row]| -> Vec<Value> {
            let row = |row: &Row| json!({ "kind": row.kind.name(), "name": row.name, "time_ns": row.ns, "begins": row.begins, "lanes": row.lanes });
            rows.iter().map(row).collect()
        };
        let lanes = self.times.lanes.iter().map(|lane| {
            let mut own = match &lane.whose {
                Whose::Thread(stream) => {
                    let stream = &self.trace.streams()[*stream];
                    json!({ "pid": stream.pid(), "tid": stream.tid(), "stream": stream.relative_path })
                }
                Whose::Task { process, task, kind } => {
                    json!({ "pid": self.pid(*process), "task": task, "task_kind": kind })
                }
            };
            own["time_ns"] = lane.ns.into();
            own["rows"] = rows(&lane.rows).into();
            own
        });
        json!({
            "per": self.options.by.name(),
            "behaviour": self.options.behaviour.name(),
            "time_ns": self.times.ns,
            "rows": rows(&self.times.rows),
            "lanes": lanes.collect::<Vec<_>>(),
            "lane_count": self.times.lane_count,
        })
    }

    fn pid(&self, process: u32) -> Option<i64> {
        let stream = self.names.processes.iter().position(|of| *of == process)?;
        self.trace.streams()[stream].pid()
    }

    fn label(&self, lane: &LaneTimes) -> String {
        match &lane.whose {
            Whose::Thread(stream) => {
                let stream = &self.trace.streams()[*stream];
                format!("thread {} of process {}", stream.tid().unwrap_or(0), stream.pid().unwrap_or(0))
            }
            Whose::Task { process, task, kind } => {
                let kind = if kind.is_empty() { "task" } else { kind };
                format!("{kind} {task} of process {}", self.pid(*process).unwrap_or(0))
            }
        }
    }
}

fn cells(row: &Row, of_all: u64, wide: usize) -> String {
    let label = fit(&format!("{:<10}{}", row.kind.name(), row.name), wide - 1);
    match row.ns {
        0 => format!("{label:<wide$}{:>10}{:>9}{:>11}", "", "", count(row.begins)),
        ns => format!("{label:<wide$}{:>10}{:>9}{:>11}", time(ns), percent(ns, of_all), count(row.begins)),
    }
}

fn left_out(page: &mut String, rows: u64, what: &str) {
    if rows > 0 {
        let more = if rows == 1 { "" } else { "s" };
        let _ = writeln!(page, "  {DIM}and {} {what}{more} more (--top){DIM:#}", count(rows));
    }
}
