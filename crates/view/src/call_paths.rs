//! Call paths as text and as JSON: top-down, bottom-up, flat.

use crate::format::{Unit, count, counted, fit, percent};
use anstyle::Style;
use serde_json::{Value, json};
use std::fmt::Write;
use taskscope_analysis::call_paths::{CallPathOptions, SampleQuality, TaskContext, profile_of};
use taskscope_analysis::call_views::{self as views, Choice, Column, FlatBy, FlatRow};
use taskscope_execution::{Group, State};
use taskscope_profile::named::{CallTree, What};
use taskscope_profile::{
    FrameKind, Marker, Metric, NodeId, Profile, ROOT, Unit as MetricUnit, conservation, key,
};
use taskscope_session::Session;
use taskscope_symbol::Missing;

/// Which view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathsView {
    /// From the program's start inwards.
    TopDown,
    /// From where time was spent to its callers.
    BottomUp,
    /// Functions, lines or loops, wherever they were called.
    Flat(FlatBy),
}

impl PathsView {
    /// All views by their names on the command line.
    pub const ALL: [(&'static str, PathsView); 5] = [
        ("top-down", PathsView::TopDown),
        ("bottom-up", PathsView::BottomUp),
        ("flat", PathsView::Flat(FlatBy::Function)),
        ("loops", PathsView::Flat(FlatBy::Loop)),
        ("lines", PathsView::Flat(FlatBy::Line)),
    ];
}

/// How to show call paths.
#[derive(Clone, Debug)]
pub struct PathsOptions {
    /// The views, in this order.
    pub views: Vec<PathsView>,
    /// The column by which rows are sorted; chosen by what there is if not told.
    pub sort: Option<Column>,
    /// Whether the runtime's frames are shown.
    pub runtime: bool,
    /// Rows of each view.
    pub top: usize,
    /// Characters of a line.
    pub width: usize,
}

/// A named tree with what is to be said about it.
pub struct CallPaths {
    /// Paths with names.
    pub tree: CallTree,
    /// Why names are missing.
    pub missing: Vec<Missing>,
    /// Samples of a trace; none for a file of a profile.
    pub quality: Option<SampleQuality>,
    /// How often a path found no room in the recorder.
    pub unfit: u64,
    /// What a filter did to the numbers, if there was one.
    pub filtered: Vec<String>,
}

const BOLD: Style = Style::new().bold();
const DIM: Style = Style::new().dimmed();

/// Rows of each view in JSON, where nothing else is asked for.
pub const TOP_PATHS: usize = 1000;

impl CallPaths {
    /// The call paths of a recorded run.
    pub fn of_session(session: &Session, task_context: TaskContext) -> CallPaths {
        let (profile, quality) = profile_of(&session.execution, CallPathOptions { task_context });
        CallPaths {
            filtered: crate::words::notes_of_filter(session),
            ..CallPaths::of(&profile, Some(quality))
        }
    }

    /// Names the paths of a profile.
    pub fn of(profile: &Profile, quality: Option<SampleQuality>) -> CallPaths {
        let (tree, missing) = taskscope_session::name_call_paths(profile);
        CallPaths { tree, missing, quality, unfit: profile.tree.unfit(), filtered: Vec::new() }
    }

    fn shown(&self, runtime: bool) -> CallTree {
        if runtime { self.tree.functions_and_runtime() } else { self.tree.functions() }
    }

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
                    tree_rows(&mut out, &tree, sort, options, false);
                }
                PathsView::BottomUp => {
                    heading(
                        &mut out,
                        "Call paths, bottom-up",
                        "where it was spent, its callers below",
                        options.width,
                    );
                    tree_rows(&mut out, &views::bottom_up(&tree), sort, options, true);
                }
                PathsView::Flat(by) => {
                    let (title, source) = match by {
                        FlatBy::Function => ("Functions", &tree),
                        FlatBy::Loop => ("Loops", &self.tree),
                        FlatBy::Line => ("Lines", &self.tree),
                    };
                    heading(&mut out, title, "own time first", options.width);
                    flat_rows(&mut out, source, *by, sort, options);
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

    fn note_lines(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let total = |metric| self.tree.tree.total(metric);
        if let Some(quality) = self.quality.filter(|quality| quality.samples > 0) {
            notes.push(format!(
                "{} samples, {} followed to the root of the stack, {} taken inside the runtime",
                count(quality.samples),
                percent(quality.reached_root, quality.samples),
                percent(quality.in_runtime, quality.samples)
            ));
            if quality.levels_unknown > 0 {
                notes.push(format!(
                    "the tasks on the stack are not known of {} samples",
                    count(quality.levels_unknown)
                ));
            }
        } else if self.quality.is_some() {
            notes.push(
                "no samples: time by path is not known, waiting and blame are at the constructs' own lines \
                 (record --sample 100 takes samples)"
                    .to_string(),
            );
        } else if total(Metric::SAMPLES) > 0 {
            notes.push(format!("{} samples", count(total(Metric::SAMPLES))));
        }
        for balance in conservation(&self.tree.tree).iter().filter(|balance| !balance.holds()) {
            notes.push(format!(
                "of {}, {} ns were waited, {} charged to one, {} shared: the recorder lost some",
                balance.wait.name(),
                balance.taken,
                balance.given,
                balance.shared
            ));
        }
        if self.unfit > 0 {
            notes.push(format!(
                "the recorder's memory was full: {} times something was counted further out than it was",
                count(self.unfit)
            ));
        }
        notes.extend(self.filtered.iter().cloned());
        notes.extend(self.missing.iter().take(3).map(|missing| format!("names are missing: {missing}")));
        notes
    }

    /// The value of `call_paths` in `report --json`: all paths with their values, and the views. Sorted by the
    /// column that was asked for, else by one that there is.
    pub fn json(&self, runtime: bool, asked: Option<Column>, top: usize) -> Value {
        let tree = self.shown(runtime);
        let sort = asked.unwrap_or_else(|| Column::main_of(&tree.tree));
        let turned = views::bottom_up(&tree);
        let is_asked = asked.is_some();
        let choice = Choice { sort, beside: &Column::ALL, is_asked, floor: 0.0, most: top };
        json!({
            "sorted_by": key_of(sort),
            "totals": values(&tree, ROOT, true),
            "paths": paths(&tree, sort),
            "top_down": rows_json(&tree, &choice),
            "bottom_up": rows_json(&turned, &choice),
            "functions": flat_json(&tree, FlatBy::Function, sort, top),
            "loops": flat_json(&self.tree, FlatBy::Loop, sort, top),
            "lines": flat_json(&self.tree, FlatBy::Line, sort, top),
            "balances": conservation(&self.tree.tree).iter().map(|balance| json!({
                "wait": balance.wait.name(),
                "taken_ns": balance.taken,
                "given_ns": balance.given,
                "shared_ns": balance.shared,
            })).collect::<Vec<_>>(),
            "samples": {
                "count": self.tree.tree.total(Metric::SAMPLES),
                "reached_root": self.quality.map(|quality| quality.reached_root),
                "in_runtime": self.quality.map(|quality| quality.in_runtime),
                "levels_unknown": self.quality.map(|quality| quality.levels_unknown),
            },
            "counted_further_out": self.unfit,
            "run_totals": self.tree.totals,
            "efficiency": self.efficiency(),
            "processes": self.tree.processes,
            "notes": incomplete(&self.tree).into_iter().chain(self.note_lines()).collect::<Vec<_>>(),
        })
    }

    /// Of a profile: the useful part of the workers' time, and in which state most of the rest was spent.
    fn efficiency(&self) -> Option<Value> {
        let states = states_of(&self.tree);
        let capacity: u64 = states.iter().map(|(_, ns)| ns).sum();
        let (useful, largest) = useful_and_largest_loss(&states);
        (capacity > 0).then(|| {
            json!({
                "parallel": useful as f64 / capacity as f64,
                "useful_ns": useful,
                "capacity_ns": capacity,
                "largest_loss": largest.map(|(name, _)| name),
                "largest_loss_ns": largest.map_or(0, |(_, ns)| ns),
            })
        })
    }
}

fn heading(out: &mut String, title: &str, what: &str, width: usize) {
    let what = format!("  ({what}; ▸ the hot path)");
    let fits = 2 + title.chars().count() + what.chars().count() <= width;
    let _ = writeln!(out, "  {BOLD}{title}{BOLD:#}{DIM}{}{DIM:#}", if fits { what.as_str() } else { "" });
}

fn word_of(column: Column) -> String {
    match column {
        Column::Time => "time".to_string(),
        Column::Work => "work".to_string(),
        Column::Overhead => "overhead".to_string(),
        Column::Waiting => "waiting".to_string(),
        Column::Blame => "blame".to_string(),
        Column::Idleness => "idleness".to_string(),
        Column::Samples => "samples".to_string(),
        Column::Tasks => "tasks".to_string(),
        Column::TaskTime => "task time".to_string(),
        Column::Of(metric) => metric
            .name()
            .map_or_else(String::new, |name| name.to_string())
            .replace("_ns", "")
            .replace('_', " "),
    }
}

/// A column's name in JSON.
fn key_of(column: Column) -> String {
    match column {
        Column::Of(metric) => metric.name().map(|name| name.to_string()).unwrap_or_default(),
        column => column.name().to_string(),
    }
}

fn is_count(column: Column) -> bool {
    match column {
        Column::Samples | Column::Tasks => true,
        Column::Of(metric) => metric.unit() == MetricUnit::Count,
        _ => false,
    }
}

/// The columns beside the one that sorts: symptom and causes, where there are any.
fn side_columns(tree: &CallTree, sort: Column) -> Vec<Column> {
    let all = [Column::Waiting, Column::Blame, Column::Idleness];
    all.into_iter().filter(|column| *column != sort && views::total(&tree.tree, *column) > 0).collect()
}

fn show(unit: Unit, column: Column, value: u64) -> String {
    if value == 0 {
        String::new()
    } else if is_count(column) {
        count(value)
    } else {
        unit.show(value)
    }
}

/// Characters before a step in a view that is a tree: its numbers, and what marks the hot path.
const NUMBERS: usize = 2 + 9 + 1 + 7 + 1 + 8 + 2 + 2;
/// Those of each column beside.
const SIDE_COLUMN: usize = 9;
/// Those that a name has as long as there is room.
const NAME: usize = 24;
/// And those that it has in any case.
const SHORTEST_NAME: usize = 8;

fn tree_rows(out: &mut String, tree: &CallTree, sort: Column, options: &PathsOptions, callers: bool) {
    // What has no room beside the names is left out.
    let room = options.width.saturating_sub(NUMBERS);
    let mut side = side_columns(tree, sort);
    side.truncate(room.saturating_sub(NAME) / SIDE_COLUMN);
    let room = room.saturating_sub(SIDE_COLUMN * side.len()).max(SHORTEST_NAME);
    let is_asked = options.sort.is_some();
    let choice = Choice { sort, beside: &side, is_asked, floor: 0.001, most: options.top };
    let rows = views::rows(&tree.tree, &choice);
    let sums: Vec<Vec<u64>> = side.iter().map(|column| views::inclusive(&tree.tree, *column)).collect();
    let whole = views::total(&tree.tree, sort);
    let unit = Unit::for_total(whole);
    let unit_word = if is_count(sort) { String::new() } else { format!(" {}", unit.short()) };
    let own_word = if callers { "" } else { "own" };
    let _ =
        write!(out, "  {DIM}{:>9} {:>7} {:>8}", format!("{}{unit_word}", word_of(sort)), "share", own_word);
    side.iter().for_each(|column| {
        let _ = write!(out, " {:>8}", word_of(*column));
    });
    let _ = writeln!(out, "{DIM:#}");
    for row in &rows {
        let own = if callers { String::new() } else { show(unit, sort, row.own) };
        let _ =
            write!(out, "  {:>9} {:>7} {:>8}", show(unit, sort, row.total), percent(row.total, whole), own);
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
        let _ = write!(out, "  {:>9} {:>7} {:>8}", show(unit, sort, rest), percent(rest, whole), "");
        for (column, rest) in side.iter().zip(&beside) {
            let _ = write!(out, " {:>8}", show(unit, *column, *rest));
        }
        let _ = writeln!(out, "    {DIM}the rest{DIM:#}");
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

fn flat_rows(out: &mut String, tree: &CallTree, by: FlatBy, sort: Column, options: &PathsOptions) {
    let rows = views::flat(tree, by, sort);
    if rows.is_empty() {
        let _ =
            writeln!(out, "  {DIM}none is known (debug information tells lines, machine code loops){DIM:#}");
        return;
    }
    let whole = views::total(&tree.tree, sort);
    let unit = Unit::for_total(whole);
    let unit_word = if is_count(sort) { String::new() } else { format!(" {}", unit.short()) };
    let room = options.width.saturating_sub(2 + 9 + 1 + 7 + 2);
    let has_room = room >= 13 + NAME;
    let with_callees = |text: String| if has_room { format!(" {text:>12}") } else { String::new() };
    let head = with_callees("with callees".to_string());
    let room = room.saturating_sub(head.len()).max(SHORTEST_NAME);
    let _ = writeln!(out, "  {DIM}{:>9} {:>7}{head}{DIM:#}", format!("own{unit_word}"), "share");
    for row in rows.iter().take(options.top) {
        let name = fit(&flat_name(row), room);
        let (own, total) = (show(unit, sort, row.own), with_callees(show(unit, sort, row.total)));
        let _ = writeln!(out, "  {own:>9} {:>7}{total}  {name}", percent(row.own, whole));
    }
    if rows.len() > options.top {
        let _ = writeln!(out, "  {DIM}… {} more: --top {}{DIM:#}", rows.len() - options.top, rows.len());
    }
}

fn flat_name(row: &FlatRow) -> String {
    match (&row.label, row.marker) {
        (Some(label), _) if label.what == What::Line => {
            format!("{}  in {}", label.text(), label.function)
        }
        (Some(label), _) if !label.module.is_empty() && label.what == What::Function => {
            format!("{}  [{}]", label.text(), label.module)
        }
        (Some(label), _) => label.text(),
        (None, Some(marker)) => marker.label().to_string(),
        (None, None) => String::new(),
    }
}

/// All columns and metrics of a node that are not zero.
fn values(tree: &CallTree, node: NodeId, whole: bool) -> Value {
    let mut object = serde_json::Map::new();
    for column in Column::ALL {
        let value =
            if whole { views::total(&tree.tree, column) } else { views::own(&tree.tree, node, column) };
        if value > 0 {
            object.insert(column.name().to_string(), value.into());
        }
    }
    for metric in Metric::all().filter(|metric| metric.wait().is_some() || *metric == Metric::REGIONS) {
        let value = if whole { tree.tree.total(metric) } else { tree.tree.value(node, metric) };
        if let Some(name) = metric.name().filter(|_| value > 0) {
            object.insert(name.to_string(), value.into());
        }
    }
    Value::Object(object)
}

fn step_json(tree: &CallTree, node: NodeId) -> Value {
    let frame = tree.tree.frame(node);
    let mut step = json!({ "name": tree.text_of(frame) });
    let more = step.as_object_mut();
    let Some(more) = more else { return step };
    if frame.kind == FrameKind::Runtime {
        more.insert("runtime".into(), true.into());
    }
    if let Some(marker) = frame.marker() {
        more.insert("state".into(), marker.name().into());
        if let Some(place) = tree.place_of(frame) {
            more.insert("file".into(), json!(place.file));
            more.insert("line".into(), json!(place.line));
        }
    }
    if let Some(label) = tree.label(node) {
        let what = match label.what {
            What::Function => "function",
            What::Parallel => "parallel",
            What::Task => "task",
            What::Loop => "loop",
            What::Line => "line",
            What::Unknown => "unknown",
        };
        more.insert("what".into(), what.into());
        more.insert("function".into(), label.function.clone().into());
        more.insert("file".into(), json!(label.file));
        more.insert("line".into(), json!(label.line));
        more.insert("module".into(), label.module.clone().into());
    }
    step
}

/// Every path with values of its own, most first.
fn paths(tree: &CallTree, sort: Column) -> Vec<Value> {
    let mut rows: Vec<(u64, NodeId)> = (tree.nodes())
        .filter(|node| tree.tree.values(*node).any(|(_, value)| value > 0))
        .map(|node| (views::own(&tree.tree, node, sort), node))
        .collect();
    rows.sort_by_key(|(value, node)| (std::cmp::Reverse(*value), *node));
    rows.iter()
        .map(|(value, node)| {
            let mut frames: Vec<String> = tree.tree.path(*node).map(|frame| tree.text_of(frame)).collect();
            frames.reverse();
            let key = if is_count(sort) { "count" } else { "ns" };
            json!({ "frames": frames, key: value, "values": values(tree, *node, false) })
        })
        .collect()
}

fn rows_json(tree: &CallTree, choice: &Choice<'_>) -> Vec<Value> {
    let rows = views::rows(&tree.tree, choice);
    let sums: Vec<(Column, Vec<u64>)> =
        Column::ALL.iter().map(|column| (*column, views::inclusive(&tree.tree, *column))).collect();
    rows.iter()
        .map(|row| {
            let mut made = step_json(tree, row.node);
            if let Some(object) = made.as_object_mut() {
                object.insert("depth".into(), row.depth.into());
                object.insert("hot".into(), row.hot.into());
                object.insert("own".into(), row.own.into());
                for (column, sums) in &sums {
                    let value = sums[row.node.0 as usize];
                    if value > 0 {
                        object.insert(column.name().into(), value.into());
                    }
                }
            }
            made
        })
        .collect()
}

fn flat_json(tree: &CallTree, by: FlatBy, sort: Column, top: usize) -> Vec<Value> {
    (views::flat(tree, by, sort).iter().take(top))
        .map(|row| {
            json!({
                "name": flat_name(row),
                "function": row.label.as_ref().map(|label| &label.function),
                "file": row.label.as_ref().and_then(|label| label.file.as_ref()),
                "line": row.label.as_ref().and_then(|label| label.line),
                "state": row.marker.map(Marker::name),
                "own": row.own,
                "total": row.total,
            })
        })
        .collect()
}

/// The head of the report of profile files: what ran, and the sums over the run.
pub fn profile_summary(tree: &CallTree, width: usize) -> String {
    let mut out = String::new();
    let number = |process: &taskscope_profile::Process, key: &str| Profile::number(process, key).unwrap_or(0);
    let wall = tree.processes.iter().map(|process| number(process, key::WALL_NS)).max().unwrap_or(0);
    let threads: u64 = tree.processes.iter().map(|process| number(process, key::THREADS)).sum();
    let command = tree.processes.iter().find_map(|process| process.get(key::COMMAND));
    let what = format!(
        "{}  {}  {}",
        crate::format::time(wall),
        counted(tree.processes.len() as u64, "process"),
        counted(threads, "thread"),
    );
    let command = command.map_or("profile", String::as_str);
    // Where it cannot lie beside most of the command, it has a line of its own.
    let (room, between) = match width.checked_sub(what.chars().count() + 2) {
        Some(room) if room >= 20 => (room, " "),
        _ => (width.saturating_sub(1), "\n  "),
    };
    let _ = writeln!(out, "{}:{between}{what}", fit(command, room));
    let lost: u64 = tree.processes.iter().map(|process| number(process, key::LOST_SAMPLES)).sum();
    if lost > 0 {
        let _ = writeln!(out, "  {} were lost", crate::format::counted(lost, "sample"));
    }
    if let Some(note) = incomplete(tree) {
        let _ = writeln!(out, "  {note}");
    }
    let states = states_of(tree);
    let capacity: u64 = states.iter().map(|(_, ns)| ns).sum();
    if capacity > 0 {
        let (useful, largest) = useful_and_largest_loss(&states);
        let _ = write!(out, "\n  {BOLD}Parallel efficiency {}{BOLD:#}", percent(useful, capacity));
        if let Some((name, ns)) = largest {
            let most = format!("most was lost to {}: {}", words_of(name), percent(ns, capacity));
            let fits = "  Parallel efficiency 100.0 %; ".len() + most.chars().count() <= width;
            let _ = write!(out, ";{}{most}", if fits { " " } else { "\n  " });
        }
        out.push('\n');
        let unit = Unit::for_total(capacity);
        let _ = writeln!(out, "\n  {BOLD}Where the time went{BOLD:#}  {DIM}({}){DIM:#}", unit.of_workers());
        for (name, ns) in states {
            let name = fit(&words_of(name), width.saturating_sub(24).max(SHORTEST_NAME));
            let _ = writeln!(out, "  {:>12} {:>7}  {name}", unit.show(ns), percent(ns, capacity));
        }
    }
    out.push('\n');
    out
}

/// Says that processes had not ended when their profiles were written.
fn incomplete(tree: &CallTree) -> Option<String> {
    let has_not_ended = |process: &&taskscope_profile::Process| {
        process.get(key::FINISHED).is_some_and(|finished| finished == "no")
    };
    let unfinished = tree.processes.iter().filter(has_not_ended).count();
    let all = tree.processes.len();
    (unfinished > 0).then(|| {
        format!(
            "incomplete: {unfinished} of {} had not ended when this was written",
            counted(all as u64, "process")
        )
    })
}

/// The workers' time by state, most first.
fn states_of(tree: &CallTree) -> Vec<(&str, u64)> {
    let mut states: Vec<(&str, u64)> = (tree.totals.iter())
        .filter_map(|(name, ns)| Some((name.strip_prefix("state.")?, *ns)))
        .filter(|(_, ns)| *ns > 0)
        .collect();
    states.sort_by_key(|(name, ns)| (std::cmp::Reverse(*ns), *name));
    states
}

fn state_named(name: &str) -> Option<State> {
    State::ALL.iter().copied().find(|state| state.name() == name)
}

fn words_of(name: &str) -> String {
    state_named(name).map_or_else(|| name.replace('_', " "), |state| state.label().to_string())
}

/// As `--live` tells them: useful nanoseconds, and the state in which most others were spent.
fn useful_and_largest_loss<'a>(states: &[(&'a str, u64)]) -> (u64, Option<(&'a str, u64)>) {
    let is_useful = |name: &str| state_named(name).is_some_and(|state| state.group() == Group::Useful);
    let (useful, lost): (Vec<_>, Vec<_>) = states.iter().copied().partition(|(name, _)| is_useful(name));
    (useful.iter().map(|(_, ns)| ns).sum(), lost.first().copied())
}

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
            word_of(self.column),
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
