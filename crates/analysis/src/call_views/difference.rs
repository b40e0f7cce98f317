//! Changes between the trees of two runs.

use super::column::{Column, own};
use rustc_hash::FxHashMap;
use taskscope_profile::named::CallTree;
use taskscope_profile::{Frame, FrameKind, NodeId, ROOT};

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
