//! Views of a call tree: top-down, bottom-up, flat; the hot path; changes between two runs.
//!
//! All work on sums of one tree, so that they agree to the nanosecond: the parts of a bottom-up row are
//! its callers and sum to it, all outermost rows of a view sum to the whole.

use crate::path_lines::PathLines;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cmp::Reverse;
use taskscope_profile::named::{CallTree, Label, StepKind};
use taskscope_profile::{Frame, FrameKind, Marker, Metric, NodeId, ROOT, Tree};

/// A column of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Time of the samples.
    Time,
    /// That part in the program's own code.
    Work,
    /// That part in which the program's code was blocked in the kernel.
    Blocked,
    /// That part in the runtime, not waiting.
    Runtime,
    /// That part in which the program's own code had no CPU.
    OutOfCpu,
    /// Waiting that was taken here: the symptom.
    Waiting,
    /// Waiting of others that was caused here, if there is a culprit.
    Blame,
    /// Waiting of others while this worked: the cause, shared by all that worked.
    Idleness,
    /// Samples.
    Samples,
    /// Tasks created here.
    Tasks,
    /// Time of the tasks created here.
    TaskTime,
    /// One metric.
    Of(Metric),
}

impl Column {
    /// The columns of every view.
    pub const ALL: [Column; 11] = [
        Column::Time,
        Column::Work,
        Column::Blocked,
        Column::Runtime,
        Column::OutOfCpu,
        Column::Waiting,
        Column::Blame,
        Column::Idleness,
        Column::Samples,
        Column::Tasks,
        Column::TaskTime,
    ];

    /// The name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Column::Time => "time_ns",
            Column::Work => "work_ns",
            Column::Blocked => "blocked_ns",
            Column::Runtime => "runtime_ns",
            Column::OutOfCpu => "out_of_cpu_ns",
            Column::Waiting => "waiting_ns",
            Column::Blame => "blame_ns",
            Column::Idleness => "idleness_ns",
            Column::Samples => "samples",
            Column::Tasks => "tasks",
            Column::TaskTime => "task_time_ns",
            Column::Of(_) => "metric",
        }
    }

    /// The column of a name; single metrics by theirs.
    pub fn named(name: &str) -> Option<Column> {
        let plain = Column::ALL
            .into_iter()
            .find(|column| column.name() == name || column.name().strip_suffix("_ns") == Some(name));
        plain.or_else(|| Metric::named(name).map(Column::Of))
    }

    /// Whether a metric is part of it.
    pub fn takes(self, metric: Metric) -> bool {
        match self {
            Column::Time => metric == Metric::TIME,
            Column::Work => metric == Metric::WORK,
            Column::Blocked => metric == Metric::BLOCKED,
            Column::Runtime => metric == Metric::RUNTIME,
            Column::OutOfCpu => metric == Metric::OUT_OF_CPU,
            Column::Waiting => metric.is_taken(),
            Column::Blame => metric.is_given(),
            Column::Idleness => metric.is_idleness(),
            Column::Samples => metric == Metric::SAMPLES,
            Column::Tasks => metric == Metric::TASKS,
            Column::TaskTime => metric == Metric::TASK_TIME,
            Column::Of(one) => metric == one,
        }
    }

    /// The default sort column of a tree: time if sampled, waiting otherwise. CPU time if threads slept for
    /// most of the sampled time; else threads that always wait for work would come first.
    pub fn main_of(tree: &Tree) -> Column {
        if total(tree, Column::Work) > 0 && total(tree, Column::Blocked) > total(tree, Column::Time) / 2 {
            return Column::Work;
        }
        let candidates = [Column::Time, Column::Waiting, Column::TaskTime, Column::Tasks];
        candidates.into_iter().find(|column| total(tree, *column) > 0).unwrap_or(Column::Time)
    }
}

/// A column of one node itself.
pub fn own(tree: &Tree, node: NodeId, column: Column) -> u64 {
    let values = tree.values(node).filter(|(metric, _)| column.takes(*metric));
    values.fold(0, |sum, (_, value)| sum.saturating_add(value))
}

/// A column over the whole tree.
pub fn total(tree: &Tree, column: Column) -> u64 {
    std::iter::once(ROOT).chain(tree.ids()).fold(0, |sum, node| sum.saturating_add(own(tree, node, column)))
}

/// A column of every node with all that is further in, by node.
pub fn inclusive(tree: &Tree, column: Column) -> Vec<u64> {
    let mut sums: Vec<u64> = std::iter::once(ROOT).chain(tree.ids()).map(|n| own(tree, n, column)).collect();
    for node in tree.ids().rev() {
        let outer = tree.parent(node).0 as usize;
        sums[outer] = sums[outer].saturating_add(sums[node.0 as usize]);
    }
    sums
}

/// The children of every node.
pub fn children(tree: &Tree) -> Vec<Vec<NodeId>> {
    let mut children = vec![Vec::new(); tree.len()];
    for node in tree.ids() {
        children[tree.parent(node).0 as usize].push(node);
    }
    children
}

/// A row of a view that is a tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Row {
    /// The node of the view's tree.
    pub node: NodeId,
    /// Steps from the outermost.
    pub depth: usize,
    /// The column by which the view is sorted, with all that is further in.
    pub total: u64,
    /// Own value of the step.
    pub own: u64,
    /// Whether it is on the hot path.
    pub hot: bool,
    /// Rows further in that are not shown because they are small.
    pub folded: usize,
}

/// Selection and order of a tree's rows.
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// The column that sorts.
    pub sort: Column,
    /// The columns shown beside it: a path with a value in only one of these is a row, too.
    pub beside: &'a [Column],
    /// Whether the user chose the sort column: then its largest values come before those of others.
    pub is_asked: bool,
    /// Rows with less than this of every column are left out.
    pub floor: f64,
    /// Maximum number; the smallest go first.
    pub most: usize,
}

/// Rows of a tree in the order of reading, largest first.
pub fn rows(tree: &Tree, choice: &Choice<'_>) -> Vec<Row> {
    let sums = inclusive(tree, choice.sort);
    let beside: Vec<Vec<u64>> = choice.beside.iter().map(|column| inclusive(tree, *column)).collect();
    let children = children(tree);
    let hot: FxHashSet<NodeId> = hot_path(&sums, &children).into_iter().collect();
    // A column with a small total has no more weight than the time it represents.
    let share = |of: &[u64], node: NodeId| of[node.0 as usize] as f64 / of[0].max(sums[0]).max(1) as f64;
    // Never more than the size of the caller, so that no row is shown without its callers.
    let sizes: Vec<(f64, f64)> = std::iter::once(ROOT)
        .chain(tree.ids())
        .map(|node| {
            let own = share(&sums, node);
            let largest = beside.iter().fold(own, |most, sums| most.max(share(sums, node)));
            (if choice.is_asked { own } else { largest }, largest)
        })
        .collect();
    let order = |a: &(f64, f64), b: &(f64, f64)| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1));
    let mut largest: Vec<NodeId> = tree.ids().collect();
    // Ties go to the outer node, which has the lower number: a path that carries everything is shown from its
    // begin.
    largest.sort_by(|a, b| order(&sizes[b.0 as usize], &sizes[a.0 as usize]).then(a.cmp(b)));
    largest.truncate(choice.most);
    let largest: FxHashSet<NodeId> = largest.into_iter().collect();
    let is_shown = |node: &NodeId| {
        let size = &sizes[node.0 as usize];
        size.1 > 0.0 && size.1 >= choice.floor && largest.contains(node)
    };
    let mut rows = Vec::new();
    let mut open: Vec<(NodeId, usize)> = Vec::new();
    let push = |open: &mut Vec<(NodeId, usize)>, node: NodeId, depth: usize| -> usize {
        let mut inner = children[node.0 as usize].clone();
        let all = inner.len();
        inner.retain(is_shown);
        inner.sort_by(|a, b| {
            let (one, other) = (a.0 as usize, b.0 as usize);
            sums[one].cmp(&sums[other]).then(sizes[one].1.total_cmp(&sizes[other].1)).then(b.cmp(a))
        });
        let folded = all - inner.len();
        open.extend(inner.into_iter().map(|inner| (inner, depth)));
        folded
    };
    push(&mut open, ROOT, 0);
    while let Some((node, depth)) = open.pop() {
        let folded = push(&mut open, node, depth + 1);
        rows.push(Row {
            node,
            depth,
            total: sums[node.0 as usize],
            own: own(tree, node, choice.sort),
            hot: hot.contains(&node),
            folded,
        });
    }
    rows
}

/// Descends from the root while one step has at least half of its parent's value.
fn hot_path(sums: &[u64], children: &[Vec<NodeId>]) -> Vec<NodeId> {
    let mut path = Vec::new();
    let mut at = ROOT;
    while let Some(next) = children[at.0 as usize].iter().max_by_key(|n| (sums[n.0 as usize], Reverse(**n))) {
        let (inner, outer) = (sums[next.0 as usize], sums[at.0 as usize]);
        if inner == 0 || inner < outer.div_ceil(2) {
            break;
        }
        path.push(*next);
        at = *next;
    }
    path
}

/// The inverted tree: outermost the innermost frame of each value, then its callers. On the outermost level,
/// functions are merged over call sites and waits over lines. Each row's parts sum to it. Idle workers have
/// no callers: their row contains the concurrent work of the others, by share. The row's own part is the time
/// in which none worked.
pub fn bottom_up(tree: &CallTree) -> CallTree {
    bottom_up_to(tree, MAX_TURNED)
}

/// Rows of a bottom-up view at most: a file may have values at each step of endless paths. Without room, outer callers are left out.
const MAX_TURNED: usize = 1 << 24;

fn bottom_up_to(tree: &CallTree, most: usize) -> CallTree {
    let mut turned = tree.clone();
    turned.tree = Tree::growing_to(most);
    let mut idled = IDLE.map(|metric| (metric, 0_u64));
    for node in tree.nodes() {
        let mut values: Vec<(Metric, u64)> = tree.tree.values(node).collect();
        if tree.tree.parent(node) == ROOT && tree.tree.frame(node).marker() == Some(Marker::Idle) {
            values.retain(|(metric, value)| {
                let sum = idled.iter_mut().find(|(idle, _)| idle == metric);
                sum.map(|(_, sum)| *sum = sum.saturating_add(*value)).is_none()
            });
        }
        if values.is_empty() {
            continue;
        }
        let at = add_turned(tree, &mut turned, ROOT, node);
        for (metric, value) in values {
            turned.tree.add(at, metric, value);
        }
    }
    for (metric, ns) in idled.into_iter().filter(|(_, ns)| *ns > 0) {
        add_idle(tree, &mut turned, metric, ns);
    }
    turned
}

/// The times of idle workers.
const IDLE: [Metric; 4] = [Metric::taken(Marker::Idle), Metric::TIME, Metric::WAITING, Metric::OUT_OF_CPU];

/// Adds `idled` nanoseconds of a metric of idle workers, at the paths that share the blame for idling.
fn add_idle(tree: &CallTree, turned: &mut CallTree, metric: Metric, idled: u64) {
    let shared = Metric::shared(Marker::Idle);
    let row = turned.tree.child(ROOT, Frame::state(Marker::Idle));
    let whole = tree.tree.total(shared);
    let mut rest = idled;
    for node in tree.nodes().filter(|node| tree.tree.frame(*node).marker() != Some(Marker::Nobody)) {
        let share = own(&tree.tree, node, Column::Of(shared));
        // In a part of a run, more may be shared than was idle in it. The taken idle time is the shared time,
        // except for the system's part.
        let owed = if metric == Metric::taken(Marker::Idle) { idled.min(whole) } else { idled };
        let part = (u128::from(share) * u128::from(owed)).checked_div(whole.into());
        let part = part.and_then(|part| u64::try_from(part).ok()).unwrap_or(0).min(rest);
        if part > 0 {
            let at = add_turned(tree, turned, row, node);
            turned.tree.add(at, metric, part);
            rest -= part;
        }
    }
    if rest > 0 {
        turned.tree.add(row, metric, rest);
    }
}

/// Adds the steps of a node, innermost first, below a row of the turned tree; returns the last one.
fn add_turned(tree: &CallTree, turned: &mut CallTree, below: NodeId, node: NodeId) -> NodeId {
    let path: Vec<Frame> = tree.tree.path(node).collect();
    let mut at = below;
    for (depth, frame) in path.iter().enumerate() {
        // The line from which a step was called belongs to its caller's row.
        let inner = depth.checked_sub(1).map(|inner| path[inner]);
        let waiting = inner.and_then(|inner| tree.place_of(inner)).cloned();
        let inner = inner.and_then(|inner| tree.label_of(inner)).cloned().or_else(|| waiting.clone());
        let frame = match tree.label_of(*frame).cloned() {
            Some(mut label) if label.what == StepKind::Function => {
                (label.file, label.line) = inner.map_or((None, None), |inner| (inner.file, inner.line));
                Frame { module: turned.number(label), ..*frame }
            }
            // A construct has a line of its own: that of the wait in it is a row between.
            Some(_) => {
                if let Some(line) = waiting {
                    at = turned.child(at, FrameKind::User, line);
                }
                *frame
            }
            None => frame.without_place(),
        };
        let outer = turned.tree.child(at, frame);
        if outer == at {
            break;
        }
        at = outer;
    }
    at
}

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
            flat_by(tree, column, |names, path, steps| lines.of_path(names, path, steps))
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
        lines.of_path(&mut names, &path, &mut steps);
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

/// A path with different values in two runs.
#[derive(Clone, Debug, PartialEq)]
pub struct PathChange {
    /// The steps, outermost first.
    pub path: Vec<Frame>,
    /// The value before, with all that is further in.
    pub before: u64,
    /// The value after.
    pub after: u64,
}

/// Both trees in one tree of names, and the own values of each path: before, after. Paths are matched as by [`difference`].
pub fn joined(before: &CallTree, after: &CallTree, column: Column) -> (CallTree, Vec<(NodeId, [u64; 2])>) {
    let mut both = CallTree::default();
    let first = values_in(&mut both, before, column);
    let second = values_in(&mut both, after, column);
    let value = |own: &FxHashMap<NodeId, u64>, node| own.get(&node).copied().unwrap_or(0);
    let own = both.tree.ids().map(|node| (node, [value(&first, node), value(&second, node)]));
    let own = own.filter(|(_, values)| *values != [0, 0]).collect();
    (both, own)
}

/// The changes from one tree to another: both in one tree of names, and for each path the value in both.
/// Paths are matched by names, not by lines, so that a shifted line is not a change.
pub fn difference(before: &CallTree, after: &CallTree, column: Column) -> (CallTree, Vec<PathChange>) {
    let mut both = CallTree::default();
    let first = values_in(&mut both, before, column);
    let second = values_in(&mut both, after, column);
    let sums = |own: FxHashMap<NodeId, u64>| -> Vec<u64> {
        let mut sums = vec![0_u64; both.tree.len()];
        for (node, value) in own {
            sums[node.0 as usize] = value;
        }
        for node in both.tree.ids().rev() {
            let outer = both.tree.parent(node).0 as usize;
            sums[outer] = sums[outer].saturating_add(sums[node.0 as usize]);
        }
        sums
    };
    let (first, second) = (sums(first), sums(second));
    let mut changes: Vec<PathChange> = (both.nodes())
        .filter(|node| first[node.0 as usize] != second[node.0 as usize])
        .map(|node| {
            let mut path: Vec<Frame> = both.tree.path(node).collect();
            path.reverse();
            PathChange { path, before: first[node.0 as usize], after: second[node.0 as usize] }
        })
        .collect();
    let size = |change: &PathChange| change.after.abs_diff(change.before);
    changes.sort_by(|a, b| size(b).cmp(&size(a)).then_with(|| a.path.cmp(&b.path)));
    (both, changes)
}

fn values_in(both: &mut CallTree, tree: &CallTree, column: Column) -> FxHashMap<NodeId, u64> {
    let plain = tree.functions();
    let mut became = vec![ROOT];
    let mut values = FxHashMap::default();
    for node in plain.tree.ids() {
        let outer = became[plain.tree.parent(node).0 as usize];
        let frame = plain.tree.frame(node);
        let here = match plain.label(node).cloned() {
            Some(mut label) => {
                label.line = None;
                label.file = None;
                // A copy of the program has the same functions; one without a name has its file in its words.
                label.module.clear();
                both.child(outer, FrameKind::User, label)
            }
            None => both.tree.child(outer, frame.without_place()),
        };
        became.push(here);
    }
    for node in plain.nodes() {
        let sum: &mut u64 = values.entry(became[node.0 as usize]).or_default();
        *sum = sum.saturating_add(own(&plain.tree, node, column));
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeping_threads_are_not_sorted_first() {
        let mut tree = tree();
        assert_eq!(Column::main_of(&tree), Column::Time);
        let sleeps = tree.child(ROOT, Frame::user(0, 9));
        let all = total(&tree, Column::Time);
        tree.add(sleeps, Metric::TIME, 2 * all + 2);
        tree.add(sleeps, Metric::BLOCKED, 2 * all + 2);
        assert_eq!(Column::main_of(&tree), Column::Time, "what ran is not known");
        tree.add(sleeps, Metric::WORK, 1);
        assert_eq!(Column::main_of(&tree), Column::Work);
    }

    /// Two functions that were sampled, and a place that has blame alone.
    fn tree() -> Tree {
        let mut tree = Tree::growing();
        for (offset, time) in [(1, 60), (2, 40)] {
            let node = tree.child(ROOT, Frame::user(0, offset));
            tree.add(node, Metric::TIME, time);
        }
        let nobody = tree.child(ROOT, Frame::state(Marker::Nobody));
        tree.add(nobody, Metric::given(Marker::Lock), 5);
        tree
    }

    #[test]
    fn idleness_is_the_time_without_other_blame() {
        let mut tree = tree();
        let node = tree.child(ROOT, Frame::user(0, 1));
        tree.add(node, Metric::shared(Marker::Idle), 3);
        tree.add(node, Metric::shared(Marker::Barrier), 4);
        assert_eq!((total(&tree, Column::Idleness), total(&tree, Column::Blame)), (3, 5));
    }

    #[test]
    fn idle_time_lists_concurrent_work_below_it() {
        let mut run = CallTree::default();
        let label = |function: &str| Label {
            what: StepKind::Function,
            function: function.to_string(),
            file: None,
            line: None,
            module: String::new(),
        };
        let main = run.child(ROOT, FrameKind::User, label("main"));
        let [read, write] = ["read", "write"].map(|name| run.child(main, FrameKind::User, label(name)));
        let idle = run.tree.child(ROOT, Frame::state(Marker::Idle));
        for (read_share, write_share, idled) in [(70, 30, 100), (70, 30, 110), (140, 60, 100)] {
            let mut run = run.clone();
            run.tree.add(read, Metric::shared(Marker::Idle), read_share);
            run.tree.add(write, Metric::shared(Marker::Idle), write_share);
            run.tree.add(idle, Metric::taken(Marker::Idle), idled);
            let turned = bottom_up(&run);
            let waiting = inclusive(&turned.tree, Column::Waiting);
            let paths: Vec<(Vec<String>, u64)> = (turned.tree.ids())
                .map(|node| {
                    let mut steps: Vec<String> =
                        turned.tree.path(node).map(|frame| turned.text_of(frame)).collect();
                    steps.reverse();
                    (steps, waiting[node.0 as usize])
                })
                .filter(|(_, waiting)| *waiting > 0)
                .collect();
            let path =
                |steps: &[&str], waiting| (steps.iter().map(|step| step.to_string()).collect(), waiting);
            let expected: [(Vec<String>, u64); 5] = [
                path(&["<idle or absent>"], idled),
                path(&["<idle or absent>", "read"], 70),
                path(&["<idle or absent>", "read", "main"], 70),
                path(&["<idle or absent>", "write"], 30),
                path(&["<idle or absent>", "write", "main"], 30),
            ];
            assert_eq!(paths, expected);
            assert_eq!(total(&turned.tree, Column::Idleness), read_share + write_share);
        }
    }

    #[test]
    fn idle_time_in_which_nothing_works_is_the_rows_own() {
        let mut run = CallTree::default();
        let [idle, nobody] =
            [Marker::Idle, Marker::Nobody].map(|marker| run.tree.child(ROOT, Frame::state(marker)));
        run.tree.add(idle, Metric::taken(Marker::Idle), 100);
        run.tree.add(nobody, Metric::shared(Marker::Idle), 100);
        let turned = bottom_up(&run);
        let waiting = inclusive(&turned.tree, Column::Waiting);
        let rows: Vec<(String, u64)> = (turned.tree.ids())
            .map(|node| (turned.text_of(turned.tree.frame(node)), waiting[node.0 as usize]))
            .filter(|(_, waiting)| *waiting > 0)
            .collect();
        assert_eq!(rows, [("<idle or absent>".to_owned(), 100)]);
    }

    #[test]
    fn callers_without_room_are_left_out_of_the_bottom_up_view() {
        let mut run = CallTree::default();
        let mut at = ROOT;
        for step in 0..100 {
            let (function, module) = (step.to_string(), String::new());
            let label = Label { what: StepKind::Function, function, file: None, line: None, module };
            at = run.child(at, FrameKind::User, label);
            run.tree.add(at, Metric::TIME, 1);
        }
        assert_eq!(bottom_up(&run).tree.len(), 1 + 100 * 101 / 2);
        let turned = bottom_up_to(&run, 300);
        assert_eq!((turned.tree.len(), total(&turned.tree, Column::Time)), (300, 100));
    }

    #[test]
    fn functions_of_a_copy_are_the_same_but_for_those_without_a_name() {
        let run = |module: &str, nameless: &str| {
            let mut run = CallTree::default();
            let mut at = ROOT;
            for function in ["main", nameless] {
                let (function, module) = (function.to_string(), module.to_string());
                let label = Label { what: StepKind::Function, function, file: None, line: None, module };
                at = run.child(at, FrameKind::User, label);
            }
            run.tree.add(at, Metric::TIME, 7);
            run
        };
        let (before, after) = (run("program", "program+0x10"), run("copy", "copy+0x10"));
        let (both, changes) = difference(&before, &after, Column::Time);
        let changed: Vec<(String, u64, u64)> = (changes.iter())
            .map(|change| (both.text_of(change.path[change.path.len() - 1]), change.before, change.after))
            .collect();
        assert_eq!(changed, [("program+0x10".into(), 7, 0), ("copy+0x10".into(), 0, 7)]);
    }

    #[test]
    fn differences_of_the_largest_numbers_are_cut_off() {
        let mut run = CallTree::default();
        for line in [None, Some(1)] {
            let (function, module) = ("main".to_string(), String::new());
            let label = Label { what: StepKind::Function, function, file: None, line, module };
            let node = run.child(ROOT, FrameKind::User, label);
            run.tree.add(node, Metric::TIME, u64::MAX);
        }
        let (_, changes) = difference(&CallTree::default(), &run, Column::Time);
        assert!(changes.len() == 2 && changes.iter().all(|change| change.after == u64::MAX), "{changes:?}");
    }

    #[test]
    fn values_in_a_side_column_alone_make_a_row() {
        let mut tree = tree();
        let shown = |tree: &Tree, is_asked, most| -> Vec<u64> {
            let choice =
                Choice { sort: Column::Time, beside: &[Column::Blame], is_asked, floor: 0.001, most };
            rows(tree, &choice).iter().map(|row| tree.frame(row.node).offset).collect()
        };
        let nobody = Marker::Nobody as u64;
        assert_eq!(shown(&tree, false, 10), [1, 2, nobody]);
        assert_eq!(shown(&tree, false, 2), [1, 2], "40 % of the time is more than blame for 5 %");
        assert_eq!(shown(&tree, true, 2), [1, 2], "time was asked for");
        assert_eq!(shown(&tree, true, 10), [1, 2, nobody]);
        let row = tree.child(ROOT, Frame::state(Marker::Nobody));
        tree.add(row, Metric::given(Marker::Lock), 45);
        assert_eq!(shown(&tree, false, 2), [1, nobody], "blame for 50 % is more than 40 % of the time");
    }

    #[test]
    fn a_small_column_displaces_no_larger_time() {
        let mut tree = Tree::growing();
        let main = tree.child(ROOT, Frame::user(0, 100));
        tree.add(main, Metric::TIME, 67);
        let innermost = tree.descend(ROOT, (0..8).map(|offset| Frame::user(0, offset)));
        tree.add(innermost, Metric::TIME, 33);
        tree.add(innermost, Metric::OUT_OF_CPU, 30);
        let choice = Choice {
            sort: Column::Time,
            beside: &[Column::OutOfCpu],
            is_asked: false,
            floor: 0.001,
            most: 4,
        };
        let shown: Vec<u64> = rows(&tree, &choice).iter().map(|row| tree.frame(row.node).offset).collect();
        assert_eq!(shown, [100, 0, 1, 2]);
    }

    #[test]
    fn the_hottest_path_is_expanded_up_to_the_row_limit() {
        let mut tree = Tree::growing();
        let small = tree.child(ROOT, Frame::user(0, 100));
        tree.add(small, Metric::TIME, 6);
        let innermost = tree.descend(ROOT, (0..8).map(|offset| Frame::user(0, offset)));
        tree.add(innermost, Metric::TIME, 94);
        let shown = |most| -> Vec<u64> {
            let choice = Choice { sort: Column::Time, beside: &[], is_asked: false, floor: 0.001, most };
            rows(&tree, &choice).iter().map(|row| tree.frame(row.node).offset).collect()
        };
        assert_eq!(shown(5), [0, 1, 2, 3, 4]);
        assert_eq!(shown(9), [0, 1, 2, 3, 4, 5, 6, 7, 100]);
    }
}
