//! Call paths as JSON.

use super::columns::{is_count, key_of};
use super::totals::{cpu_note, incomplete_profiles, is_estimated, states_of, useful_and_largest_loss};
use super::{CallPaths, flat_name};
use serde_json::{Value, json};
use taskscope_analysis::call_views::{self as views, Choice, Column, FlatBy};
use taskscope_profile::named::{CallTree, What};
use taskscope_profile::{FrameKind, Marker, Metric, NodeId, ROOT, conservation};

impl CallPaths {
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
            "is_time_sampled": self.is_sampled(),
            "other_threads_ns": self.quality.map_or(0, |quality| quality.other_threads_ns),
            "totals": values(&tree, ROOT, true),
            "paths": paths(&tree, sort),
            "top_down": rows_json(&self.tree.functions_and_loops(runtime), &choice, "own"),
            "bottom_up": rows_json(&turned, &choice, "outermost"),
            "functions": flat_json(&tree, FlatBy::Function, sort, top),
            "loops": flat_json(&self.shown_flat(FlatBy::Loop, runtime), FlatBy::Loop, sort, top),
            "lines": flat_json(&self.shown_flat(FlatBy::Line, runtime), FlatBy::Line, sort, top),
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
            "notes": self.all_notes(),
        })
    }

    fn all_notes(&self) -> Vec<String> {
        let cpus = cpu_note(&self.tree, &states_of(&self.tree));
        incomplete_profiles(&self.tree.processes).into_iter().chain(cpus).chain(self.note_lines()).collect()
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
                "estimated": states.iter().map(|(name, _)| *name).filter(|name| is_estimated(name)).collect::<Vec<_>>(),
            })
        })
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
            What::NoPath => "no-path",
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

/// Rows in the order of reading. What of a step has no row of its own is one below it, so that rows sum to
/// what is around them. `own` names the part of a row's value that has no step further in: bottom-up, it is
/// that without further callers.
fn rows_json(tree: &CallTree, choice: &Choice<'_>, own: &str) -> Vec<Value> {
    let rows = views::rows(&tree.tree, choice);
    let sums = Column::ALL.map(|column| (column, views::inclusive(&tree.tree, column)));
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
        let mut step = step_json(tree, row.node);
        if let Some(object) = step.as_object_mut() {
            object.insert("depth".into(), row.depth.into());
            object.insert("hot".into(), row.hot.into());
            object.insert(own.into(), row.own.into());
            object.extend(columns_of(row.node, &sums));
        }
        made.push(step);
    }
    close(&mut around, 0, &rest, &mut made, own);
    made
}

/// Leaves steps until only so many are open; what of each has no row is one.
fn close(
    around: &mut Vec<NodeId>,
    open: usize,
    rest: &[(Column, Vec<u64>)],
    made: &mut Vec<Value>,
    own: &str,
) {
    while around.len() > open {
        let values = around.pop().map(|node| columns_of(node, rest)).unwrap_or_default();
        if !values.is_empty() {
            let mut row = serde_json::Map::new();
            row.insert("name".into(), "the rest".into());
            row.insert("what".into(), "rest".into());
            row.insert("depth".into(), around.len().into());
            row.insert("hot".into(), false.into());
            row.insert(own.into(), 0.into());
            row.extend(values);
            made.push(row.into());
        }
    }
}

/// The columns of a node that are not zero.
fn columns_of(node: NodeId, sums: &[(Column, Vec<u64>)]) -> serde_json::Map<String, Value> {
    let values = sums.iter().map(|(column, sums)| (column.name().to_string(), sums[node.0 as usize]));
    values.filter(|(_, value)| *value > 0).map(|(name, value)| (name, value.into())).collect()
}

/// Rows with most of their own first; what has no row, or is in no loop, is the last one, of whose callees nothing
/// is told.
fn flat_json(tree: &CallTree, by: FlatBy, sort: Column, top: usize) -> Vec<Value> {
    let rows = views::flat(tree, by, sort);
    let mut made: Vec<Value> = (rows.iter().take(top))
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
        .collect();
    let rest = views::rest_of(tree, rows.iter().take(top), sort);
    if rest > 0 {
        made.push(json!({ "name": "the rest", "what": "rest", "own": rest, "total": null }));
    }
    made
}
