//! Call paths as lines.

use super::columns::{is_count, show, word_of};
use super::json::{CallPathTables, TableOptions};
use super::rows::{OwnPart, PathRow, PlaceRow};
use super::{BOLD, CallPaths, DIM, MIN_NAME_COLUMNS, PathsOptions, PathsView};
use crate::format::{Unit, columns, fit, percent};
use anstyle::Style;
use std::fmt::Write;
use taskscope_analysis::call_views::{self as views, Column, FlatBy};

impl PathsOptions {
    /// The selection of the rows that are printed of these paths.
    pub fn tables(&self, paths: &CallPaths) -> TableOptions {
        let tree = &paths.tree.tree;
        let sort = self.sort.unwrap_or_else(|| Column::main_of(&paths.shown(self.runtime).tree));
        let beside = self.side_columns(sort, |column| views::total(tree, column));
        let (views, runtime) = (Some(self.views.clone()), self.runtime);
        TableOptions { views, runtime, sort: self.sort, beside, floor: 0.001, top: self.top }
    }

    /// The columns beside the sort column: time off the CPU, symptom and causes, if present. Those that do not fit beside
    /// the names are left out.
    fn side_columns(&self, sort: Column, total: impl Fn(Column) -> u64) -> Vec<Column> {
        let all = [Column::Blocked, Column::OutOfCpu, Column::Waiting, Column::Blame, Column::Idleness];
        // Every thread loses its CPU, or sleeps, for a moment now and then.
        let is_off = |column| matches!(column, Column::Blocked | Column::OutOfCpu);
        let least = |column| if is_off(column) { total(Column::Time) / 100 } else { 0 };
        let is_shown = |column: &Column| {
            *column != sort && total(*column) > least(*column) && (!self.samples_alone || is_off(*column))
        };
        let most = self.width.saturating_sub(NUMBERS + NAME) / SIDE_COLUMN;
        all.into_iter().filter(is_shown).take(most).collect()
    }
}

impl CallPathTables {
    /// The views as lines with ANSI styles. The tables must have been made with these options.
    pub fn text(&self, options: &PathsOptions) -> String {
        let mut out = String::new();
        let sort = self.sort();
        if self.total(sort) == 0 {
            let _ = writeln!(out, "  Call paths: none with {}\n", word_of(sort));
            self.write_notes(&mut out, options.width);
            return out;
        }
        for view in &options.views {
            let (title, what) = match view {
                PathsView::TopDown => ("Call paths, top-down", "callers above what they call"),
                PathsView::BottomUp => ("Call paths, bottom-up", "where it was spent, its callers below"),
                PathsView::Flat(FlatBy::Function) => ("Functions", "own time first"),
                PathsView::Flat(FlatBy::Loop) => ("Loops", "own time first"),
                PathsView::Flat(FlatBy::Line) => ("Lines", "own time first"),
            };
            heading(&mut out, title, what, options.width);
            let counts = &self.row_counts;
            match view {
                PathsView::TopDown => self.write_tree(&mut out, (&self.top_down, "own"), options),
                PathsView::BottomUp => self.write_tree(&mut out, (&self.bottom_up, ""), options),
                PathsView::Flat(by) => {
                    let (rows, count) = match by {
                        FlatBy::Function => (&self.functions, counts.functions),
                        FlatBy::Loop => (&self.loops, counts.loops),
                        FlatBy::Line => (&self.lines, counts.lines),
                    };
                    let has_lines = *by == FlatBy::Function && count.all > 0 || count.with_line > 0;
                    self.write_flat(&mut out, (rows, count.all), has_lines, options);
                }
            }
            out.push('\n');
        }
        self.write_notes(&mut out, options.width);
        out
    }

    fn write_notes(&self, out: &mut String, width: usize) {
        for note in self.path_notes() {
            for line in crate::format::wrap(note, width.saturating_sub(2).max(38)) {
                let _ = writeln!(out, "  {DIM}{line}{DIM:#}");
            }
        }
    }

    /// Rows of a tree, with the title of their own part.
    fn write_tree(&self, out: &mut String, (rows, own_word): (&[PathRow], &str), options: &PathsOptions) {
        let (sort, width) = (self.sort(), options.width);
        let side = options.side_columns(sort, |column| self.total(column));
        let room = width.saturating_sub(NUMBERS + SIDE_COLUMN * side.len()).max(MIN_STEP_COLUMNS);
        let whole = self.total(sort);
        let unit = Unit::for_total(whole);
        let unit_word = if is_count(sort) { String::new() } else { format!(" {}", unit.short()) };
        let shown: Vec<Column> = [sort].into_iter().chain(side.iter().copied()).collect();
        let legend = legend(out, &self.time_kind().legend(&shown), (room, width));
        let head = format!("{}{unit_word}", word_of(sort));
        let _ = write!(out, "  {DIM}{head:>10} {:>7} {own_word:>8}", "share");
        side.iter().for_each(|column| {
            let _ = write!(out, " {:>8}", word_of(*column));
        });
        let _ = writeln!(out, "{legend}{DIM:#}");
        let write_numbers = |out: &mut String, row: &PathRow| {
            let own = match row.own {
                OwnPart::Own(own) if !row.is_rest() => show(unit, sort, own),
                _ => String::new(),
            };
            let total = row.value(sort);
            let _ = write!(out, "  {:>10} {:>7} {own:>8}", show(unit, sort, total), percent(total, whole));
            for column in &side {
                let _ = write!(out, " {:>8}", show(unit, *column, row.value(*column)));
            }
        };
        for row in rows.iter().filter(|row| !row.is_rest()) {
            write_numbers(out, row);
            let indent = row.depth.min(40).min(room.saturating_sub(NAME));
            let name = fit(&row.label(), room - indent);
            let mark = if row.hot { "▸" } else { " " };
            let style = if row.hot { BOLD } else { Style::new() };
            let _ = writeln!(out, "  {:indent$}{mark} {style}{name}{style:#}", "");
        }
        // So that the outermost rows sum to the whole.
        let has_value = |row: &&PathRow| shown.iter().any(|column| row.value(*column) > 0);
        let rest = rows.iter().rfind(|row| row.depth == 0 && row.is_rest()).filter(has_value);
        if let Some(rest) = rest {
            write_numbers(out, rest);
            let _ = writeln!(out, "    {DIM}{}{DIM:#}", fit(&rest.name, room));
        }
    }

    /// Rows of places, with the number of all.
    fn write_flat(
        &self,
        out: &mut String,
        (rows, count): (&[PlaceRow], usize),
        has_lines: bool,
        options: &PathsOptions,
    ) {
        let (sort, width) = (self.sort(), options.width);
        if !has_lines {
            let _ = writeln!(
                out,
                "  {DIM}none is known (lines need debug information, loops machine code){DIM:#}"
            );
        }
        if count == 0 {
            return;
        }
        let whole = self.total(sort);
        let unit = Unit::for_total(whole);
        let unit_word = if is_count(sort) { String::new() } else { format!(" {}", unit.short()) };
        let room = width.saturating_sub(2 + 10 + 1 + 7 + 2);
        let has_room = room >= 13 + NAME;
        let with_callees = |text: String| if has_room { format!(" {text:>12}") } else { String::new() };
        let head = with_callees("with callees".to_string());
        let room = room.saturating_sub(head.len()).max(MIN_NAME_COLUMNS);
        let legend = legend(out, &self.time_kind().legend(&[sort]), (room, width));
        let _ = writeln!(out, "  {DIM}{:>10} {:>7}{head}{legend}{DIM:#}", format!("own{unit_word}"), "share");
        for row in rows {
            let (own, share) = (show(unit, sort, row.own), percent(row.own, whole));
            match row.total {
                Some(total) => {
                    let (total, name) = (with_callees(show(unit, sort, total)), fit(&row.name, room));
                    let _ = writeln!(out, "  {own:>10} {share:>7}{total}  {name}");
                }
                None => {
                    let total = with_callees(String::new());
                    let _ = writeln!(out, "  {own:>10} {share:>7}{total}  {DIM}{}{DIM:#}", row.name);
                }
            }
        }
        if count > options.top {
            let _ = writeln!(out, "  {DIM}… {} more: --top {count}{DIM:#}", count - options.top);
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

/// Characters before a step in a tree view: its numbers, and the mark of the hot path.
const NUMBERS: usize = 2 + 10 + 1 + 7 + 1 + 8 + 2 + 2;
/// Characters of each further column.
const SIDE_COLUMN: usize = 9;
/// Characters of a name if the width allows.
const NAME: usize = 24;
/// Least characters of a step's name: a line fits 40 columns.
const MIN_STEP_COLUMNS: usize = 40 - NUMBERS;
