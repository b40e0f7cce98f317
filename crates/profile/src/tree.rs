//! The calling-context tree: one node per distinct path, with the metrics that were counted there.
//!
//! A tree with a limit allocates all its memory when it is created; later operations do not allocate, lock or
//! panic, so a signal handler may use a tree of its own thread. The system provides pages of that memory on
//! first write, or all at once ([`Tree::touch`]). Nothing is lost when it is full: a path without room is
//! counted at its longest existing prefix, and the tree counts how often that happened.

use crate::{Frame, FrameKind, Metric, NO_MODULE};

/// A node of a [`Tree`]; its paths' numbers are never reused.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct NodeId(pub u32);

/// The node above all paths.
pub const ROOT: NodeId = NodeId(0);

const NONE: u32 = u32::MAX;
/// A slot of no node.
const FREE: u32 = ROOT.0;
/// Room for one value of every metric at the root, which is reserved so that no value is ever lost.
const RESERVE: usize = 64;
/// Slots that are a kilobyte: no page has fewer.
const SLOTS_TOUCHED: usize = 256;
/// Nodes of a tree without limit; beyond, an index could mean "none".
const MAX_NODES: usize = 1 << 31;

#[derive(Clone, Copy, Debug)]
struct Node {
    parent: NodeId,
    frame: Frame,
    /// First of its values.
    first: u32,
}

#[derive(Clone, Copy, Debug)]
struct Cell {
    metric: Metric,
    next: u32,
    value: u64,
}

/// A calling-context tree. Children come after their parents; node 0 is the root.
#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
    /// Open addressing: a node by its parent and frame. A power of two, at most half full. A free slot holds
    /// the root, which is never looked up: fresh memory is all free slots.
    slots: Vec<u32>,
    cells: Vec<Cell>,
    max_nodes: usize,
    max_cells: usize,
    limited: bool,
    unfit: u64,
}

impl Default for Tree {
    fn default() -> Self {
        Tree::growing()
    }
}

impl Tree {
    /// A tree that grows as it must.
    pub fn growing() -> Tree {
        Tree::make(MAX_NODES, MAX_NODES, false, 64)
    }

    /// A tree that grows to this many paths at most.
    pub fn growing_to(nodes: usize) -> Tree {
        Tree::make(nodes.clamp(1, MAX_NODES), MAX_NODES, false, 64)
    }

    /// Takes everything away; the memory stays.
    pub fn clear(&mut self) {
        if self.nodes.len() > 1 {
            self.slots.fill(FREE);
        }
        self.nodes.truncate(1);
        if let Some(root) = self.nodes.first_mut() {
            root.first = NONE;
        }
        self.cells.clear();
        self.unfit = 0;
    }

    /// A tree that holds `nodes` paths and `values` numbers, and never takes more memory: about
    /// 40 bytes a path and 16 a number, all of it taken here.
    pub fn with_limit(nodes: usize, values: usize) -> Tree {
        let nodes = nodes.clamp(1, MAX_NODES);
        let slots = (nodes * 2).next_power_of_two();
        let mut tree = Tree::make(nodes, values.min(MAX_NODES), true, slots);
        tree.nodes.reserve_exact(nodes - 1);
        tree.cells.reserve_exact(tree.max_cells + RESERVE);
        tree
    }

    /// Writes to the memory of an empty tree's first `nodes` paths and `values` numbers once, so that a signal handler
    /// meets no page fault there.
    pub fn touch(&mut self, nodes: usize, values: usize) {
        let blank = self.nodes[0];
        self.nodes.resize(nodes.clamp(1, self.nodes.capacity()), blank);
        let value = Cell { metric: Metric(0), next: 1, value: 1 };
        self.cells.resize(values.min(self.cells.capacity()), value);
        for value in [NONE, FREE] {
            // One access per page is enough.
            self.slots.iter_mut().step_by(SLOTS_TOUCHED).for_each(|slot| *slot = value);
            // Reads the memory, or the compiler would omit the stores.
            std::hint::black_box(&mut *self);
        }
        self.nodes.truncate(1);
        self.cells.clear();
    }

    fn make(max_nodes: usize, max_cells: usize, limited: bool, slots: usize) -> Tree {
        let frame = Frame { kind: FrameKind::State, module: NO_MODULE, offset: 0 };
        Tree {
            nodes: vec![Node { parent: ROOT, frame, first: NONE }],
            slots: vec![FREE; slots],
            cells: Vec::new(),
            max_nodes,
            max_cells,
            limited,
            unfit: 0,
        }
    }

    /// Number of nodes, the root included.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there is only the root, without values.
    pub fn is_empty(&self) -> bool {
        self.nodes.len() == 1 && self.cells.is_empty()
    }

    /// Number of times that a path or a value found no room and was counted further out.
    pub fn unfit(&self) -> u64 {
        self.unfit
    }

    /// The step that leads from the parent to `node`; of the root a state without meaning.
    pub fn frame(&self, node: NodeId) -> Frame {
        self.nodes.get(node.0 as usize).unwrap_or(&self.nodes[0]).frame
    }

    /// The node one step further out; of the root the root.
    pub fn parent(&self, node: NodeId) -> NodeId {
        self.nodes.get(node.0 as usize).map_or(ROOT, |node| node.parent)
    }

    /// All nodes but the root, parents before children.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = NodeId> + use<> {
        (1..self.nodes.len() as u32).map(NodeId)
    }

    /// The path of `node`, innermost first, without the root.
    pub fn path(&self, node: NodeId) -> impl Iterator<Item = Frame> + '_ {
        let mut at = node;
        std::iter::from_fn(move || {
            (at != ROOT).then(|| {
                let frame = self.frame(at);
                at = self.parent(at);
                frame
            })
        })
    }

    /// The node one step inwards of `parent`, made if it is new. Without room: `parent` itself, and
    /// [`unfit`](Self::unfit) grows.
    pub fn child(&mut self, parent: NodeId, frame: Frame) -> NodeId {
        if !self.limited && self.nodes.len() * 2 >= self.slots.len() {
            self.grow();
        }
        // A new path is created in one go, so that most nodes have a child right after them, in the same
        // cache line.
        let after = NodeId(parent.0.wrapping_add(1));
        if self.is_child(after, parent, frame) {
            return after;
        }
        let mask = self.slots.len() - 1;
        let mut slot = hash(parent, frame) & mask;
        while let Some(&found) = self.slots.get(slot).filter(|found| **found != FREE) {
            if self.is_child(NodeId(found), parent, frame) {
                return NodeId(found);
            }
            slot = (slot + 1) & mask;
        }
        if self.nodes.len() >= self.max_nodes {
            self.unfit += 1;
            return parent;
        }
        let node = NodeId(self.nodes.len() as u32);
        self.nodes.push(Node { parent, frame, first: NONE });
        if let Some(slot) = self.slots.get_mut(slot) {
            *slot = node.0;
        }
        node
    }

    /// The node of a path below `from`, outermost frame first.
    pub fn descend(&mut self, from: NodeId, frames: impl IntoIterator<Item = Frame>) -> NodeId {
        let (mut node, mut frames) = (from, frames.into_iter());
        while let Some(frame) = frames.next() {
            let inner = self.child(node, frame);
            if inner == node {
                // Steps further in might exist here, in other paths.
                self.unfit += frames.count() as u64;
                break;
            }
            node = inner;
        }
        node
    }

    /// The child of `parent` by this frame, if there is one.
    pub fn find(&self, parent: NodeId, frame: Frame) -> Option<NodeId> {
        let mask = self.slots.len() - 1;
        let mut slot = hash(parent, frame) & mask;
        while let Some(&found) = self.slots.get(slot).filter(|found| **found != FREE) {
            if self.is_child(NodeId(found), parent, frame) {
                return Some(NodeId(found));
            }
            slot = (slot + 1) & mask;
        }
        None
    }

    fn is_child(&self, node: NodeId, parent: NodeId, frame: Frame) -> bool {
        self.nodes.get(node.0 as usize).is_some_and(|node| node.parent == parent && node.frame == frame)
    }

    fn grow(&mut self) {
        let size = self.slots.len() * 4;
        self.slots.clear();
        self.slots.resize(size, FREE);
        for (index, node) in self.nodes.iter().enumerate().skip(1) {
            let mut slot = hash(node.parent, node.frame) & (size - 1);
            while self.slots[slot] != FREE {
                slot = (slot + 1) & (size - 1);
            }
            self.slots[slot] = index as u32;
        }
    }

    /// Adds to a metric of `node`; saturates. Adding zero has no effect.
    pub fn add(&mut self, node: NodeId, metric: Metric, value: u64) {
        if value == 0 {
            return;
        }
        let mut at = node;
        loop {
            if let Some(cell) = self.cell_mut(at, metric) {
                cell.value = cell.value.saturating_add(value);
                return;
            }
            let reserve = if at == ROOT { RESERVE } else { 0 };
            if self.cells.len() < self.max_cells + reserve {
                let cell = self.cells.len() as u32;
                let Some(node) = self.nodes.get_mut(at.0 as usize) else { return };
                self.cells.push(Cell { metric, next: node.first, value });
                node.first = cell;
                return;
            }
            if at == ROOT {
                // Only numbers that no version knows can fill the reserve.
                return;
            }
            self.unfit += 1;
            at = self.parent(at);
        }
    }

    fn cell_mut(&mut self, node: NodeId, metric: Metric) -> Option<&mut Cell> {
        let mut at = self.nodes.get(node.0 as usize)?.first;
        while at != NONE {
            let cell = self.cells.get(at as usize)?;
            if cell.metric == metric {
                return self.cells.get_mut(at as usize);
            }
            at = cell.next;
        }
        None
    }

    /// The values of `node` itself, without those further in; in no order.
    pub fn values(&self, node: NodeId) -> impl Iterator<Item = (Metric, u64)> + '_ {
        let mut at = self.nodes.get(node.0 as usize).map_or(NONE, |node| node.first);
        std::iter::from_fn(move || {
            let cell = self.cells.get(at as usize)?;
            at = cell.next;
            Some((cell.metric, cell.value))
        })
    }

    /// A metric of `node` itself.
    pub fn value(&self, node: NodeId, metric: Metric) -> u64 {
        self.values(node).find(|(own, _)| *own == metric).map_or(0, |(_, value)| value)
    }

    /// Removes a metric of `node`; returns its value.
    pub fn take(&mut self, node: NodeId, metric: Metric) -> u64 {
        self.cell_mut(node, metric).map_or(0, |cell| std::mem::take(&mut cell.value))
    }

    /// Sum of a metric over all nodes.
    pub fn total(&self, metric: Metric) -> u64 {
        let own = self.cells.iter().filter(|cell| cell.metric == metric);
        own.fold(0, |sum, cell| sum.saturating_add(cell.value))
    }

    /// Adds all of `other`; `place` may move its frames: it receives every node of `other` with its parent's
    /// node here, and returns its own node here. Returns the node here of each node there.
    pub fn absorb(
        &mut self,
        other: &Tree,
        mut place: impl FnMut(&mut Tree, NodeId, Frame) -> NodeId,
    ) -> Vec<NodeId> {
        let mut became = Vec::with_capacity(other.len());
        became.push(ROOT);
        // Whether a node, or one further out, found no room: steps further in might exist here, in other paths.
        let mut is_cut = vec![false];
        for node in other.ids() {
            let outer = other.parent(node).0 as usize;
            let parent = became.get(outer).copied().unwrap_or(ROOT);
            let unfit = self.unfit;
            if is_cut.get(outer) == Some(&true) {
                self.unfit += 1;
                became.push(parent);
            } else {
                became.push(place(self, parent, other.frame(node)));
            }
            is_cut.push(self.unfit > unfit);
        }
        for (node, here) in std::iter::once(ROOT).chain(other.ids()).zip(&became) {
            for (metric, value) in other.values(node) {
                self.add(*here, metric, value);
            }
        }
        self.unfit = self.unfit.saturating_add(other.unfit);
        became
    }

    pub(crate) fn set_unfit(&mut self, unfit: u64) {
        self.unfit = unfit;
    }
}

fn hash(parent: NodeId, frame: Frame) -> usize {
    const K: u64 = 0x9e37_79b9_7f4a_7c15;
    let key = (parent.0 as u64) << 32 | (frame.kind as u64) << 24 ^ frame.module as u64;
    let mixed = (key.wrapping_mul(K) ^ frame.offset).wrapping_mul(K);
    (mixed ^ mixed >> 29) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_path_has_one_node() {
        let mut tree = Tree::growing();
        let path = [Frame::user(0, 1), Frame::user(0, 2), Frame::runtime(1, 3)];
        let first = tree.descend(ROOT, path);
        assert_eq!(tree.descend(ROOT, path), first);
        assert_eq!(tree.len(), 4);
        assert!(tree.path(first).eq([Frame::runtime(1, 3), Frame::user(0, 2), Frame::user(0, 1)]));
        // The same offset with another kind or module is another path.
        assert_ne!(tree.descend(ROOT, [Frame::runtime(0, 1)]), tree.descend(ROOT, [Frame::user(0, 1)]));
        assert_eq!(tree.find(ROOT, Frame::user(0, 9)), None);
    }

    #[test]
    fn a_tree_grows_and_keeps_every_path() {
        let mut tree = Tree::growing();
        let nodes: Vec<NodeId> = (0..10_000)
            .map(|i| tree.descend(ROOT, [Frame::user(i % 7, i as u64), Frame::user(0, 1)]))
            .collect();
        for (i, node) in nodes.iter().enumerate() {
            let i = i as u32;
            assert_eq!(tree.descend(ROOT, [Frame::user(i % 7, i as u64), Frame::user(0, 1)]), *node);
        }
        assert_eq!(tree.len(), 20_001);
    }

    #[test]
    fn paths_that_do_not_fit_are_counted_at_an_outer_node_and_reported() {
        let mut tree = Tree::with_limit(3, 2);
        let capacity = (tree.nodes.capacity(), tree.cells.capacity(), tree.slots.capacity());
        let mut leaves = Vec::new();
        for i in 0..100 {
            let leaf = tree.descend(ROOT, [Frame::user(0, 1), Frame::user(0, 2), Frame::user(0, 3 + i)]);
            tree.add(leaf, Metric::TIME, 10);
            tree.add(leaf, Metric::SAMPLES, 1);
            tree.add(leaf, Metric::WORK, 5);
            leaves.push(leaf);
        }
        assert!(leaves.iter().all(|leaf| *leaf == NodeId(2)));
        assert_eq!(tree.len(), 3);
        let sums = [Metric::TIME, Metric::SAMPLES, Metric::WORK].map(|metric| tree.total(metric));
        assert_eq!(sums, [1000, 100, 500], "nothing is lost");
        assert_eq!(tree.value(ROOT, Metric::WORK), 500);
        assert!(tree.unfit() >= 100);
        assert_eq!(capacity, (tree.nodes.capacity(), tree.cells.capacity(), tree.slots.capacity()));
    }

    #[test]
    fn paths_that_do_not_fit_are_not_taken_for_others() {
        let [main, outer, inner] = [1, 2, 3].map(|offset| Frame::user(0, offset));
        let full = || {
            let mut tree = Tree::with_limit(3, 8);
            tree.descend(ROOT, [main, inner]);
            tree
        };
        let mut tree = full();
        assert_eq!(tree.descend(ROOT, [main, outer, inner]), NodeId(1));
        assert_eq!(tree.unfit(), 2);
        let mut other = Tree::growing();
        let leaf = other.descend(ROOT, [main, outer, inner]);
        other.add(leaf, Metric::TIME, 7);
        let mut tree = full();
        tree.absorb(&other, |tree, parent, frame| tree.child(parent, frame));
        assert_eq!((tree.value(NodeId(1), Metric::TIME), tree.unfit()), (7, 2));
    }

    #[test]
    fn a_tree_with_corrupted_memory_is_empty() {
        for limit in [1, 3, 100] {
            let mut tree = Tree::with_limit(limit, limit);
            for touched in [0, 2, limit, 1000] {
                tree.touch(touched, touched);
                assert!(tree.is_empty());
                assert!(tree.slots.iter().all(|slot| *slot == FREE));
                let leaf = tree.child(ROOT, Frame::user(0, 1));
                tree.add(leaf, Metric::TIME, 5);
                assert_eq!((tree.len(), tree.total(Metric::TIME)), (limit.min(2), 5));
                tree.clear();
                assert_eq!(tree.find(ROOT, Frame::user(0, 1)), None);
            }
        }
    }

    #[test]
    fn pending_paths_are_put_where_they_belong_when_trees_join() {
        let mut master = Tree::growing();
        let fork = master.descend(ROOT, [Frame::user(0, 1), Frame::user(0, 2)]);
        let mut worker = Tree::growing();
        let leaf = worker.descend(ROOT, [Frame::pending(7), Frame::user(0, 30)]);
        worker.add(leaf, Metric::TIME, 4);
        let became = master.absorb(&worker, |tree, parent, frame| match frame {
            Frame { kind: FrameKind::Pending, offset: 7, .. } => fork,
            frame => tree.child(parent, frame),
        });
        let leaf = became[leaf.0 as usize];
        assert_eq!((master.parent(leaf), master.value(leaf, Metric::TIME)), (fork, 4));
    }

    #[test]
    fn sums_stop_at_the_largest_number() {
        let mut tree = Tree::growing();
        tree.add(ROOT, Metric::TIME, u64::MAX);
        tree.add(ROOT, Metric::TIME, 2);
        assert_eq!(tree.take(ROOT, Metric::TIME), u64::MAX);
        assert_eq!(tree.total(Metric::TIME), 0);
    }
}
