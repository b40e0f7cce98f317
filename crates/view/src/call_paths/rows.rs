//! Rows of the tables of call paths.

use super::columns::{is_count, key_of};
use super::flat_name;
use crate::documents::Word;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use taskscope_analysis::call_views::{self as views, Choice, Column, FlatBy, FlatRow};
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{FrameKind, Metric, NodeId, ROOT};

/// Columns and metrics of a path that are not zero: nanoseconds, unless they are counts.
///
/// `taken_*`: waiting at the path of those that waited (symptom); `given_*`: at the path of the one that was waited
/// for; `shared_*`: shared by those that worked meanwhile (causes).
pub type PathValues = BTreeMap<String, u64>;

/// A path with values of its own.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// Frames, outermost first.
    pub frames: Vec<String>,
    /// The column that rows are sorted by, if it is of nanoseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ns: Option<u64>,
    /// The column that rows are sorted by, if it is a count.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    /// All its values.
    pub values: PathValues,
}

/// A row of a tree in the order of reading, largest first. Its columns (time, waiting, blame, …; only those that are
/// not zero) are sums with all that is further in. Of more than 1000 rows (`--top`) the smallest are summed in a row
/// (`rest`) below the step that they are in.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PathRow {
    /// The step's name.
    pub name: String,
    /// Whether it is a frame of the runtime; absent otherwise.
    #[serde(default, skip_serializing_if = "is_false")]
    pub runtime: bool,
    /// State of the thread outside its own code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Word>,
    /// The kind of step.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["function", "parallel", "task", "loop", "line", "unknown", "no-path", "rest"]))]
    pub what: Option<Word>,
    /// Its function.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Its source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Its line; of a function the line from which it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Its module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Steps around it.
    pub depth: usize,
    /// Whether it is on the hot path.
    pub hot: bool,
    /// The part of the column that rows are sorted by without a step further in.
    #[serde(flatten)]
    pub own: OwnPart,
    /// Columns.
    #[serde(flatten)]
    pub columns: PathValues,
}

/// The part of a row's value that has no step further in.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OwnPart {
    /// Top-down: the part without a step further in.
    Own(u64),
    /// Bottom-up: the part without a further caller.
    Outermost(u64),
}

/// A function, loop or line, most of its own first.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlaceRow {
    /// Its name.
    pub name: String,
    /// `rest` in the last row, if there are more than `--top`: the sum of the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["rest"]))]
    pub what: Option<Word>,
    /// Its function.
    pub function: Option<String>,
    /// Its source file.
    pub file: Option<String>,
    /// Its line.
    pub line: Option<u32>,
    /// State of the threads outside their own code.
    pub state: Option<Word>,
    /// The column that rows are sorted by, of the place alone.
    pub own: u64,
    /// Value including callees; null for the rest.
    pub total: Option<u64>,
}

/// Work of a line, from samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LineWork {
    /// The source file.
    pub file: String,
    /// The line.
    pub line: u32,
    /// Nanoseconds of work in the line, and in code of other files that it calls.
    pub work_ns: u64,
}

/// Number of functions, loops and lines.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RowCounts {
    /// Functions.
    pub functions: RowCount,
    /// Loops.
    pub loops: RowCount,
    /// Lines.
    pub lines: RowCount,
}

/// Number of rows of a table.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct RowCount {
    /// All rows.
    pub all: usize,
    /// Rows with a known line.
    pub with_line: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn is_false(flag: &bool) -> bool {
    !flag
}

impl PathRow {
    /// Whether it is the sum of rows that are left out.
    pub(super) fn is_rest(&self) -> bool {
        self.what.as_deref() == Some("rest")
    }

    /// A column of the row.
    pub(super) fn value(&self, column: Column) -> u64 {
        self.columns.get(&key_of(column)).copied().unwrap_or(0)
    }

    /// The step, with the line from which it was called, or which waits.
    pub(super) fn label(&self) -> String {
        let has_place = self.what.as_deref() == Some("function") || self.state.is_some();
        let file = self.file.as_deref().and_then(|file| file.rsplit('/').next());
        match file.zip(self.line).filter(|_| has_place) {
            Some((file, line)) => format!("{}  ({file}:{line})", self.name),
            None => self.name.clone(),
        }
    }
}

/// All columns and metrics of a node that are not zero.
pub(super) fn values(tree: &CallTree, node: NodeId, whole: bool) -> PathValues {
    let columns = Column::ALL.into_iter().map(|column| {
        let value =
            if whole { views::total(&tree.tree, column) } else { views::own(&tree.tree, node, column) };
        (column.name().to_string(), value)
    });
    let metrics = Metric::all().filter(|metric| metric.wait().is_some() || *metric == Metric::REGIONS);
    let metrics = metrics.filter_map(|metric| {
        let value = if whole { tree.tree.total(metric) } else { tree.tree.value(node, metric) };
        Some((metric.name()?.to_string(), value))
    });
    columns.chain(metrics).filter(|(_, value)| *value > 0).collect()
}

/// The row of a step, without its values.
pub(super) fn row_of(tree: &CallTree, node: NodeId, depth: usize, own: OwnPart) -> PathRow {
    let frame = tree.tree.frame(node);
    let mut row = PathRow {
        name: tree.text_of(frame),
        runtime: frame.kind == FrameKind::Runtime,
        state: None,
        what: None,
        function: None,
        file: None,
        line: None,
        module: None,
        depth,
        hot: false,
        own,
        columns: PathValues::new(),
    };
    if let Some(marker) = frame.marker() {
        row.state = Some(marker.name().into());
        if let Some(place) = tree.place_of(frame) {
            (row.file, row.line) = (place.file.clone(), place.line);
        }
    }
    if let Some(label) = tree.label(node) {
        let what = match label.what {
            StepKind::Function => "function",
            StepKind::Parallel => "parallel",
            StepKind::Task => "task",
            StepKind::Loop => "loop",
            StepKind::Line => "line",
            StepKind::Unknown => "unknown",
            StepKind::NoPath => "no-path",
        };
        row.what = Some(what.into());
        (row.function, row.module) = (Some(label.function.clone()), Some(label.module.clone()));
        (row.file, row.line) = (label.file.clone(), label.line);
    }
    row
}

/// Every path with values of its own, most first.
pub(super) fn paths(tree: &CallTree, sort: Column) -> Vec<Path> {
    let mut rows: Vec<(u64, NodeId)> = (tree.nodes())
        .filter(|node| tree.tree.values(*node).any(|(_, value)| value > 0))
        .map(|node| (views::own(&tree.tree, node, sort), node))
        .collect();
    rows.sort_by_key(|(value, node)| (std::cmp::Reverse(*value), *node));
    rows.iter()
        .map(|(value, node)| {
            let mut frames: Vec<String> = tree.tree.path(*node).map(|frame| tree.text_of(frame)).collect();
            frames.reverse();
            let (ns, count) = if is_count(sort) { (None, Some(*value)) } else { (Some(*value), None) };
            Path { frames, ns, count, values: values(tree, *node, false) }
        })
        .collect()
}

/// Rows in depth-first order. A row for the omitted rest follows below a step, so that rows sum to their
/// parent. `own` names the part of a row's value outside its inner steps.
pub(super) fn rows(
    tree: &CallTree,
    choice: &Choice<'_>,
    columns: &[Column],
    own: fn(u64) -> OwnPart,
) -> Vec<PathRow> {
    let rows = views::rows(&tree.tree, choice);
    let sums = columns.iter().map(|column| (*column, views::inclusive(&tree.tree, *column)));
    let sums: Vec<(Column, Vec<u64>)> = sums.collect();
    let mut rest = sums.clone();
    for (column, rest) in &mut rest {
        for node in tree.tree.ids() {
            let own = views::own(&tree.tree, node, *column);
            rest[node.0 as usize] = rest[node.0 as usize].saturating_sub(own);
        }
    }
    for row in &rows {
        let outer = tree.tree.parent(row.node).0 as usize;
        for ((_, sums), (_, rest)) in sums.iter().zip(&mut rest) {
            rest[outer] = rest[outer].saturating_sub(sums[row.node.0 as usize]);
        }
    }
    let mut made = Vec::new();
    let mut around = vec![ROOT];
    for row in &rows {
        close(&mut around, row.depth + 1, &rest, &mut made, own);
        around.push(row.node);
        let columns = columns_of(row.node, &sums);
        let step = row_of(tree, row.node, row.depth, own(row.own));
        made.push(PathRow { hot: row.hot, columns, ..step });
    }
    close(&mut around, 0, &rest, &mut made, own);
    made
}

/// Closes steps until at most `open` remain; adds a row for the omitted rest of each.
fn close(
    around: &mut Vec<NodeId>,
    open: usize,
    rest: &[(Column, Vec<u64>)],
    made: &mut Vec<PathRow>,
    own: fn(u64) -> OwnPart,
) {
    while around.len() > open {
        let columns = around.pop().map(|node| columns_of(node, rest)).unwrap_or_default();
        if !columns.is_empty() {
            made.push(PathRow {
                name: "the rest".into(),
                runtime: false,
                state: None,
                what: Some("rest".into()),
                function: None,
                file: None,
                line: None,
                module: None,
                depth: around.len(),
                hot: false,
                own: own(0),
                columns,
            });
        }
    }
}

/// The columns of a node that are not zero.
fn columns_of(node: NodeId, sums: &[(Column, Vec<u64>)]) -> PathValues {
    let values = sums.iter().map(|(column, sums)| (key_of(*column), sums[node.0 as usize]));
    values.filter(|(_, value)| *value > 0).collect()
}

/// Rows sorted by their own value. The omitted rest, or time outside loops, is the last row, without callees.
pub(super) fn flat(tree: &CallTree, by: FlatBy, sort: Column, top: usize) -> (Vec<PlaceRow>, RowCount) {
    let rows = views::flat(tree, by, sort);
    let line_of = |row: &FlatRow| row.label.as_ref().and_then(|label| label.line);
    let count = RowCount { all: rows.len(), with_line: rows.iter().filter_map(line_of).count() };
    let mut made: Vec<PlaceRow> = (rows.iter().take(top))
        .map(|row| PlaceRow {
            name: flat_name(row),
            what: None,
            function: row.label.as_ref().map(|label| label.function.clone()),
            file: row.label.as_ref().and_then(|label| label.file.clone()),
            line: line_of(row),
            state: row.marker.map(|marker| marker.name().into()),
            own: row.own,
            total: Some(row.total),
        })
        .collect();
    let rest = views::rest_of(tree, rows.iter().take(top), sort);
    if rest > 0 {
        made.push(PlaceRow {
            name: "the rest".into(),
            what: Some("rest".into()),
            function: None,
            file: None,
            line: None,
            state: None,
            own: rest,
            total: None,
        });
    }
    (made, count)
}

/// Work by line, most first.
pub(super) fn line_works(tree: &CallTree, top: usize) -> Vec<LineWork> {
    let rows = views::work_by_line(tree).into_iter().take(top);
    rows.map(|((file, line), work_ns)| LineWork { file, line, work_ns }).collect()
}
