//! Changes between two trees of call paths.

use super::columns::{is_count, key_of, show, word_of};
use super::{BOLD, DIM};
use crate::format::{Unit, count, fit, fit_end};
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt::Write;
use taskscope_analysis::call_views::{self as views, Column};
use taskscope_profile::named::CallTree;

/// Differences between two trees of call paths in one column: nanoseconds, or a count.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-paths-diff/1")]
pub struct PathsDifferenceReport {
    /// The run before, as it was given.
    pub before: String,
    /// The run after.
    pub after: String,
    /// The column.
    #[serde(rename = "column")]
    pub column_name: String,
    /// Sum of the column before.
    pub before_total: u64,
    /// Sum of the column after.
    pub after_total: u64,
    /// Paths with changed own values, the largest change first.
    pub paths: Vec<PathDifference>,
}

/// A path with a changed own value.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct PathDifference {
    /// Frames, outermost first.
    pub frames: Vec<String>,
    /// Value before.
    pub before: u64,
    /// Value after.
    pub after: u64,
}

/// Compares two trees by a column; `names` are those of the runs.
pub fn paths_difference(
    before: &CallTree,
    after: &CallTree,
    column: Column,
    names: [String; 2],
) -> PathsDifferenceReport {
    let (both, changes) = views::difference(before, after, column);
    let paths = (changes.iter())
        .filter(|change| !change.path.is_empty())
        .map(|change| PathDifference {
            frames: change.path.iter().map(|frame| both.text_of(*frame)).collect(),
            before: change.before,
            after: change.after,
        })
        .collect();
    let [name_before, name_after] = names;
    PathsDifferenceReport {
        before: name_before,
        after: name_after,
        column_name: key_of(column),
        before_total: views::total(&before.tree, column),
        after_total: views::total(&after.tree, column),
        paths,
    }
}

impl PathsDifferenceReport {
    /// The lines with ANSI styles, with at most `top` paths.
    pub fn text(&self, width: usize, top: usize) -> String {
        let mut out = String::new();
        let column = Column::named(&self.column_name).unwrap_or(Column::Time);
        let (before, after) = (self.before_total, self.after_total);
        let unit = Unit::for_total(before.max(after));
        let unit_word = if is_count(column) { "" } else { unit.short() };
        let value = |value: u64| if is_count(column) { count(value) } else { unit.show(value) };
        // Values outside of the table, with their unit.
        let reported =
            |shown: String| if unit_word.is_empty() { shown } else { format!("{shown} {unit_word}") };
        let signed = |before: u64, after: u64| {
            let sign = if after >= before { '+' } else { '−' };
            let size = after.abs_diff(before);
            format!("{sign}{}", value(size))
        };
        let _ = writeln!(
            out,
            "{BOLD}{}{BOLD:#} in {}: {}   in {}: {}   {}",
            word_of(column),
            fit(&self.before, 40),
            reported(value(before)),
            fit(&self.after, 40),
            reported(value(after)),
            reported(signed(before, after))
        );
        if self.paths.is_empty() {
            let _ = writeln!(out, "  no path has changed");
            return out;
        }
        let _ = writeln!(
            out,
            "  {DIM}{:>10} {:>10} {:>10}  path{DIM:#}",
            format!("change {unit_word}"),
            "before",
            "after"
        );
        for PathDifference { frames, before, after } in self.paths.iter().take(top) {
            let path = frames.join(" ▸ ");
            let room = width.saturating_sub(37).max(24);
            // The innermost steps say most.
            let shown = fit_end(&path, room);
            let _ = writeln!(
                out,
                "  {:>10} {:>10} {:>10}  {shown}",
                signed(*before, *after),
                show(unit, column, *before),
                show(unit, column, *after)
            );
        }
        if self.paths.len() > top {
            let (more, all) = (self.paths.len() - top, self.paths.len());
            let _ = writeln!(out, "  {DIM}… {more} more: --top {all}{DIM:#}");
        }
        out
    }
}
