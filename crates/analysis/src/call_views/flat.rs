//! Flat views: sums by function, loop or line.

use super::column::{Column, own, total};
use crate::path_lines::PathLines;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_profile::named::{CallTree, Label, StepKind};
use taskscope_profile::{Frame, Marker};

/// The kind of rows of the flat view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlatBy {
    /// Functions, bodies of constructs, states.
    Function,
    /// Loops.
    Loop,
    /// Lines.
    Line,
}

/// A row of the flat view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlatRow {
    /// Its label, without the call site; `None` for a state.
    pub label: Option<Label>,
    /// The state, if the row is one.
    pub marker: Option<Marker>,
    /// The column with all that was called.
    pub total: u64,
    /// The column of the step itself.
    pub own: u64,
}

/// Sums by function, loop or line, at any position in the tree; a recursion counts once. The own values of
/// functions and of lines sum to the whole; those of loops to the values in any loop. Lines are the program's
/// if the tree is without the runtime's frames ([`CallTree::without_runtime`]).
pub fn flat(tree: &CallTree, by: FlatBy, column: Column) -> Vec<FlatRow> {
    match by {
        FlatBy::Line => {
            let mut lines = PathLines::default();
            flat_by(tree, column, |names, path, steps| lines.push_path(names, path, steps))
        }
        FlatBy::Function | FlatBy::Loop => {
            // Steps as they are without the place from which they were called.
            let mut identity: FxHashMap<Frame, Option<Frame>> = FxHashMap::default();
            flat_by(tree, column, |names, path, steps| {
                steps.extend(path.iter().filter_map(|frame| {
                    *identity.entry(*frame).or_insert_with(|| function_or_loop(names, *frame, by))
                }));
            })
        }
    }
}

/// Work by file and line, most first. A path's work is at its innermost line of each file, so a line has its own work and that of
/// code in other files that it calls. The lines of one file sum to the work in it and below it.
pub fn work_by_line(tree: &CallTree) -> Vec<((String, u32), u64)> {
    let mut names = tree.clone();
    let mut lines = PathLines::default();
    let mut places: FxHashMap<Frame, Option<(u32, u32)>> = FxHashMap::default();
    let mut files: Vec<String> = Vec::new();
    let mut number_of: FxHashMap<String, u32> = FxHashMap::default();
    let mut sums: FxHashMap<(u32, u32), u64> = FxHashMap::default();
    let (mut path, mut steps, mut seen) = (Vec::new(), Vec::new(), FxHashSet::default());
    for node in tree.nodes() {
        let value = own(&tree.tree, node, Column::Work);
        if value == 0 {
            continue;
        }
        path.clear();
        path.extend(tree.tree.path(node));
        steps.clear();
        lines.push_path(&mut names, &path, &mut steps);
        seen.clear();
        for step in &steps {
            let place = *places.entry(*step).or_insert_with(|| {
                let label = names.label_of(*step)?;
                let (file, line) = label.file.as_ref().zip(label.line)?;
                let number = *number_of.entry(file.clone()).or_insert_with(|| {
                    files.push(file.clone());
                    files.len() as u32 - 1
                });
                Some((number, line))
            });
            let Some((file, line)) = place else { continue };
            if seen.insert(file) {
                let sum = sums.entry((file, line)).or_default();
                *sum = sum.saturating_add(value);
            }
        }
    }
    let mut rows: Vec<((String, u32), u64)> =
        sums.into_iter().map(|((file, line), ns)| ((files[file as usize].clone(), line), ns)).collect();
    rows.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    rows
}

/// The part of a column in none of these rows of its flat view: in smaller ones, or outside loops.
pub fn rest_of<'a>(tree: &CallTree, rows: impl Iterator<Item = &'a FlatRow>, column: Column) -> u64 {
    rows.fold(total(&tree.tree, column), |rest, row| rest.saturating_sub(row.own))
}

/// A step as a row of functions, or of loops.
fn function_or_loop(names: &mut CallTree, frame: Frame, by: FlatBy) -> Option<Frame> {
    let Some(label) = names.label_of(frame).cloned() else {
        return (by == FlatBy::Function).then_some(frame.without_place());
    };
    let wanted = match label.what {
        StepKind::Function | StepKind::Parallel | StepKind::Task | StepKind::Unknown | StepKind::NoPath => {
            by == FlatBy::Function
        }
        StepKind::Loop => by == FlatBy::Loop,
        StepKind::Line => false,
    };
    let place = label.what != StepKind::Function;
    let plain = Label { file: label.file.filter(|_| place), line: label.line.filter(|_| place), ..label };
    wanted.then(|| Frame { module: names.number(plain), ..frame })
}

/// Sums by the rows that `rows_of` returns for a path, both innermost first: the first row gets the path's
/// own value.
fn flat_by(
    tree: &CallTree,
    column: Column,
    mut rows_of: impl FnMut(&mut CallTree, &[Frame], &mut Vec<Frame>),
) -> Vec<FlatRow> {
    let mut names = tree.clone();
    let mut rows: FxHashMap<Frame, (u64, u64)> = FxHashMap::default();
    let (mut path, mut steps) = (Vec::new(), Vec::new());
    let mut seen = FxHashSet::default();
    for node in tree.nodes() {
        let value = own(&tree.tree, node, column);
        if value == 0 {
            continue;
        }
        path.clear();
        path.extend(tree.tree.path(node));
        steps.clear();
        rows_of(&mut names, &path, &mut steps);
        seen.clear();
        for (depth, step) in steps.iter().enumerate() {
            if seen.insert(*step) {
                let row = rows.entry(*step).or_default();
                row.0 = row.0.saturating_add(value);
                row.1 = row.1.saturating_add(if depth == 0 { value } else { 0 });
            }
        }
    }
    let mut rows: Vec<FlatRow> = (rows.into_iter())
        .map(|(frame, (total, own))| FlatRow {
            label: names.label_of(frame).cloned(),
            marker: frame.marker(),
            total,
            own,
        })
        .collect();
    rows.sort_by(|a, b| {
        (b.own, b.total).cmp(&(a.own, a.total)).then_with(|| (&a.label, a.marker).cmp(&(&b.label, b.marker)))
    });
    rows
}
