//! Views of a call tree: top-down, bottom-up, flat; the hot path; changes between two runs.
//!
//! All work on sums of one tree, so that they agree to the nanosecond: the parts of a bottom-up row are
//! its callers and sum to it, all outermost rows of a view sum to the whole.

mod bottom_up;
mod column;
mod difference;
mod flat;

pub use bottom_up::bottom_up;
pub use column::{Column, inclusive, own, total};
pub use difference::{PathChange, difference, joined};
pub use flat::{FlatBy, FlatRow, flat, rest_of, work_by_line};

use rustc_hash::FxHashSet;
use std::cmp::Reverse;
use taskscope_profile::{NodeId, ROOT, Tree};

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

#[cfg(test)]
mod tests {
    use super::bottom_up::bottom_up_to;
    use super::*;
    use taskscope_profile::named::{CallTree, Label, StepKind};
    use taskscope_profile::{Frame, FrameKind, Marker, Metric};

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
