//! The bottom-up view: each value with its callers.

use super::column::{Column, own};
use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{Frame, FrameKind, Marker, Metric, NodeId, ROOT, Tree};

/// The inverted tree: outermost the innermost frame of each value, then its callers. On the outermost level,
/// functions are merged over call sites and waits over lines. Each row's parts sum to it. Idle workers have
/// no callers: their row contains the concurrent work of the others, by share. The row's own part is the time
/// in which none worked.
pub fn bottom_up(tree: &CallTree) -> CallTree {
    bottom_up_to(tree, MAX_TURNED)
}

/// Rows of a bottom-up view at most: a file may have values at each step of endless paths. Without room, outer callers are left out.
const MAX_TURNED: usize = 1 << 24;

pub(super) fn bottom_up_to(tree: &CallTree, most: usize) -> CallTree {
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
