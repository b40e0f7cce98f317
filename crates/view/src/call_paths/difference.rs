//! What changed between two trees of call paths.

use super::columns::{is_count, key_of, show, word_of};
use super::{BOLD, DIM};
use crate::format::{Unit, count, fit};
use serde_json::{Value, json};
use std::fmt::Write;
use taskscope_analysis::call_views::{self as views, Column};
use taskscope_profile::named::CallTree;

/// What changed between two trees, ready to be shown.
pub struct PathsDifference {
    /// As JSON.
    pub json: Value,
    column: Column,
    sums: (u64, u64),
    rows: Vec<(String, u64, u64)>,
    more: usize,
    names: [String; 2],
}

/// Compares two trees by a column; `names` are those of the runs.
pub fn paths_difference(
    before: &CallTree,
    after: &CallTree,
    column: Column,
    names: [String; 2],
    top: usize,
) -> PathsDifference {
    let (both, changes) = views::difference(before, after, column);
    let sums = (views::total(&before.tree, column), views::total(&after.tree, column));
    let named: Vec<(Vec<String>, u64, u64)> = (changes.iter())
        .filter(|change| !change.path.is_empty())
        .map(|change| (change.path.iter().map(|f| both.text_of(*f)).collect(), change.before, change.after))
        .collect();
    let json = json!({
        "schema": "taskscope-diff/1",
        "before": names[0],
        "after": names[1],
        "column": key_of(column),
        "before_total": sums.0,
        "after_total": sums.1,
        "paths": named.iter().map(|(frames, before, after)| {
            json!({ "frames": frames, "before": before, "after": after })
        }).collect::<Vec<_>>(),
    });
    let more = named.len().saturating_sub(top);
    let rows = named.into_iter().take(top).map(|(frames, b, a)| (frames.join(" ▸ "), b, a)).collect();
    PathsDifference { json, column, sums, rows, more, names }
}

impl PathsDifference {
    /// As lines with ANSI styles.
    pub fn text(&self, width: usize) -> String {
        let mut out = String::new();
        let (before, after) = self.sums;
        let unit = Unit::for_total(before.max(after));
        let unit_word = if is_count(self.column) { "" } else { unit.short() };
        let value = |value: u64| if is_count(self.column) { count(value) } else { unit.show(value) };
        // Values outside of the table, with their unit.
        let told = |shown: String| if unit_word.is_empty() { shown } else { format!("{shown} {unit_word}") };
        let signed = |before: u64, after: u64| {
            let sign = if after >= before { '+' } else { '−' };
            let size = after.abs_diff(before);
            format!("{sign}{}", value(size))
        };
        let _ = writeln!(
            out,
            "{BOLD}{}{BOLD:#} in {}: {}   in {}: {}   {}",
            word_of(self.column, false),
            fit(&self.names[0], 40),
            told(value(before)),
            fit(&self.names[1], 40),
            told(value(after)),
            told(signed(before, after))
        );
        if self.rows.is_empty() {
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
        for (path, before, after) in &self.rows {
            let room = width.saturating_sub(37).max(24);
            // The innermost steps say most.
            let shown = if path.chars().count() > room {
                let cut: String =
                    path.chars().rev().take(room - 1).collect::<Vec<_>>().into_iter().rev().collect();
                format!("…{cut}")
            } else {
                path.clone()
            };
            let _ = writeln!(
                out,
                "  {:>10} {:>10} {:>10}  {shown}",
                signed(*before, *after),
                show(unit, self.column, *before),
                show(unit, self.column, *after)
            );
        }
        if self.more > 0 {
            let _ =
                writeln!(out, "  {DIM}… {} more: --top {}{DIM:#}", self.more, self.more + self.rows.len());
        }
        out
    }
}
