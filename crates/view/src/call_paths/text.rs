//! Call paths as lines.

use super::columns::{TimeKind, is_count, show, word_of};
use super::{BOLD, CallPaths, DIM, PathsOptions, PathsView, SHORTEST_NAME, flat_name};
use crate::format::{Unit, columns, fit, percent};
use anstyle::Style;
use std::fmt::Write;
use taskscope_analysis::call_views::{self as views, Choice, Column, FlatBy};
use taskscope_profile::NodeId;
use taskscope_profile::named::{CallTree, What};

impl CallPaths {
    /// The views as lines with ANSI styles.
    pub fn text(&self, options: &PathsOptions) -> String {
        let mut out = String::new();
        let tree = self.shown(options.runtime);
        let sort = options.sort.unwrap_or_else(|| Column::main_of(&tree.tree));
        if views::total(&tree.tree, sort) == 0 {
            let _ = writeln!(out, "  Call paths: none with {}\n", word_of(sort));
            self.notes(&mut out, options.width);
            return out;
        }
        for view in &options.views {
            match view {
                PathsView::TopDown => {
                    heading(&mut out, "Call paths, top-down", "callers above what they call", options.width);
                    let tree = self.tree.functions_and_loops(options.runtime);
                    tree_rows(&mut out, &tree, sort, options, (false, self.time_kind()));
                }
                PathsView::BottomUp => {
                    heading(
                        &mut out,
                        "Call paths, bottom-up",
                        "where it was spent, its callers below",
                        options.width,
                    );
                    tree_rows(&mut out, &views::bottom_up(&tree), sort, options, (true, self.time_kind()));
                }
                PathsView::Flat(by) => {
                    let title = match by {
                        FlatBy::Function => "Functions",
                        FlatBy::Loop => "Loops",
                        FlatBy::Line => "Lines",
                    };
                    heading(&mut out, title, "own time first", options.width);
                    let tree = self.shown_flat(*by, options.runtime);
                    flat_rows(&mut out, &tree, *by, (sort, self.time_kind()), options);
                }
            }
            out.push('\n');
        }
        self.notes(&mut out, options.width);
        out
    }

    fn notes(&self, out: &mut String, width: usize) {
        for note in self.note_lines() {
            for line in crate::format::wrap(&note, width.saturating_sub(2).max(38)) {
                let _ = writeln!(out, "  {DIM}{line}{DIM:#}");
            }
        }
    }
}

fn heading(out: &mut String, title: &str, what: &str, width: usize) {
    let what = format!("  ({what}; ▸ the hot path)");
    let fits = 2 + columns(title) + columns(&what) <= width;
    let _ = writeln!(out, "  {BOLD}{title}{BOLD:#}{DIM}{}{DIM:#}", if fits { what.as_str() } else { "" });
}

/// A legend above the names of rows, or on its own line if they leave no room.
fn legend(out: &mut String, legend: &str, (room, width): (usize, usize)) -> String {
    if legend.is_empty() || columns(legend) <= room {
        return if legend.is_empty() { String::new() } else { format!("    {legend}") };
    }
    for line in crate::format::wrap(legend, width.saturating_sub(2).max(38)) {
        let _ = writeln!(out, "  {DIM}{line}{DIM:#}");
    }
    String::new()
}

/// The columns beside the sort column: sampled off-CPU time, symptom and causes, if present.
fn side_columns(tree: &CallTree, sort: Column) -> Vec<Column> {
    let all = [Column::Blocked, Column::OutOfCpu, Column::Waiting, Column::Blame, Column::Idleness];
    // Every thread loses its CPU, or sleeps, for a moment now and then.
    let is_off = |column| matches!(column, Column::Blocked | Column::OutOfCpu);
    let least = |column| if is_off(column) { views::total(&tree.tree, Column::Time) / 100 } else { 0 };
    all.into_iter()
        .filter(|column| *column != sort && views::total(&tree.tree, *column) > least(*column))
        .collect()
}

/// Characters before a step in a tree view: its numbers, and the mark of the hot path.
const NUMBERS: usize = 2 + 10 + 1 + 7 + 1 + 8 + 2 + 2;
/// Those of each column beside.
const SIDE_COLUMN: usize = 9;
/// Those that a name has as long as there is room.
const NAME: usize = 24;
/// Those that the name of a step has at least: a line fits 40 columns.
const SHORTEST_STEP: usize = 40 - NUMBERS;

fn tree_rows(
    out: &mut String,
    tree: &CallTree,
    sort: Column,
    options: &PathsOptions,
    (callers, kind): (bool, TimeKind),
) {
    // Columns that do not fit beside the names are omitted.
    let room = options.width.saturating_sub(NUMBERS);
    let mut side = side_columns(tree, sort);
    if options.samples_alone {
        side.retain(|column| matches!(column, Column::Blocked | Column::OutOfCpu));
    }
    side.truncate(room.saturating_sub(NAME) / SIDE_COLUMN);
    let room = room.saturating_sub(SIDE_COLUMN * side.len()).max(SHORTEST_STEP);
    let is_asked = options.sort.is_some();
    let choice = Choice { sort, beside: &side, is_asked, floor: 0.001, most: options.top };
    let rows = views::rows(&tree.tree, &choice);
    let sums: Vec<Vec<u64>> = side.iter().map(|column| views::inclusive(&tree.tree, *column)).collect();
    let whole = views::total(&tree.tree, sort);
    let unit = Unit::for_total(whole);
    let unit_word = if is_count(sort) { String::new() } else { format!(" {}", unit.short()) };
    let own_word = if callers { "" } else { "own" };
    let shown: Vec<Column> = [sort].into_iter().chain(side.iter().copied()).collect();
    let legend = legend(out, &kind.legend(&shown), (room, options.width));
    let _ =
        write!(out, "  {DIM}{:>10} {:>7} {:>8}", format!("{}{unit_word}", word_of(sort)), "share", own_word);
    side.iter().for_each(|column| {
        let _ = write!(out, " {:>8}", word_of(*column));
    });
    let _ = writeln!(out, "{legend}{DIM:#}");
    for row in &rows {
        let own = if callers { String::new() } else { show(unit, sort, row.own) };
        let _ =
            write!(out, "  {:>10} {:>7} {:>8}", show(unit, sort, row.total), percent(row.total, whole), own);
        for (column, sums) in side.iter().zip(&sums) {
            let _ = write!(out, " {:>8}", show(unit, *column, sums[row.node.0 as usize]));
        }
        let indent = row.depth.min(40).min(room.saturating_sub(NAME));
        let name = fit(&name_of(tree, row.node), room - indent);
        let mark = if row.hot { "▸" } else { " " };
        let style = if row.hot { BOLD } else { Style::new() };
        let _ = writeln!(out, "  {:indent$}{mark} {style}{name}{style:#}", "");
    }
    // So that the outermost rows sum to the whole.
    let outermost: Vec<usize> =
        rows.iter().filter(|row| row.depth == 0).map(|row| row.node.0 as usize).collect();
    let rest_of = |column: Column| {
        let sums = views::inclusive(&tree.tree, column);
        outermost.iter().fold(sums[0], |rest, node| rest.saturating_sub(sums[*node]))
    };
    let (rest, beside) = (rest_of(sort), side.iter().map(|column| rest_of(*column)).collect::<Vec<u64>>());
    if rest > 0 || beside.iter().any(|rest| *rest > 0) {
        let _ = write!(out, "  {:>10} {:>7} {:>8}", show(unit, sort, rest), percent(rest, whole), "");
        for (column, rest) in side.iter().zip(&beside) {
            let _ = write!(out, " {:>8}", show(unit, *column, *rest));
        }
        let _ = writeln!(out, "    {DIM}{}{DIM:#}", fit("the rest", room));
    }
}

/// A step, with the line from which it was called, or which waits.
fn name_of(tree: &CallTree, node: NodeId) -> String {
    let frame = tree.tree.frame(node);
    let text = tree.text_of(frame);
    match tree.label(node).or_else(|| tree.place_of(frame)) {
        Some(label) if label.what == What::Function || frame.marker().is_some() => match label.place() {
            Some(place) => format!("{text}  ({place})"),
            None => text,
        },
        _ => text,
    }
}

fn flat_rows(
    out: &mut String,
    tree: &CallTree,
    by: FlatBy,
    (sort, kind): (Column, TimeKind),
    options: &PathsOptions,
) {
    let rows = views::flat(tree, by, sort);
    if !rows.iter().any(|row| by == FlatBy::Function || row.label.as_ref().is_some_and(|l| l.line.is_some()))
    {
        let _ =
            writeln!(out, "  {DIM}none is known (lines need debug information, loops machine code){DIM:#}");
    }
    if rows.is_empty() {
        return;
    }
    let whole = views::total(&tree.tree, sort);
    let unit = Unit::for_total(whole);
    let unit_word = if is_count(sort) { String::new() } else { format!(" {}", unit.short()) };
    let room = options.width.saturating_sub(2 + 10 + 1 + 7 + 2);
    let has_room = room >= 13 + NAME;
    let with_callees = |text: String| if has_room { format!(" {text:>12}") } else { String::new() };
    let head = with_callees("with callees".to_string());
    let room = room.saturating_sub(head.len()).max(SHORTEST_NAME);
    let legend = legend(out, &kind.legend(&[sort]), (room, options.width));
    let _ = writeln!(out, "  {DIM}{:>10} {:>7}{head}{legend}{DIM:#}", format!("own{unit_word}"), "share");
    for row in rows.iter().take(options.top) {
        let name = fit(&flat_name(row), room);
        let (own, total) = (show(unit, sort, row.own), with_callees(show(unit, sort, row.total)));
        let _ = writeln!(out, "  {own:>10} {:>7}{total}  {name}", percent(row.own, whole));
    }
    let rest = views::rest_of(tree, rows.iter().take(options.top), sort);
    if rest > 0 {
        let (rest, share) = (show(unit, sort, rest), percent(rest, whole));
        let total = with_callees(String::new());
        let _ = writeln!(out, "  {rest:>10} {share:>7}{total}  {DIM}the rest{DIM:#}");
    }
    if rows.len() > options.top {
        let _ = writeln!(out, "  {DIM}… {} more: --top {}{DIM:#}", rows.len() - options.top, rows.len());
    }
}
