//! Counts of callbacks on a thread: creations, time in tasks, waiting and blame, by place.

use taskscope_profile::{Frame, FrameKind, Marker, Metric, NodeId, ROOT, Tree};

use super::contexts::{ChargedPath, Contexts, body_of, descend, descend_path, expand};
use super::idleness::Charge;
use super::locks::Blame;
use super::places::Places;
use super::recent::{Sampled, Use};
use super::rows::Sums;
use super::samples::place_of_context;
use super::waits::{Owed, Settled};

/// Paths and values between two collections.
const NODES: usize = 2048;
const VALUES: usize = 6144;
/// Places of short waits that are remembered.
const SPOTS: usize = 32;

/// The counts of one thread since the last collection.
pub struct Counts {
    tree: Tree,
    contexts: Contexts,
    short: [Short; SPOTS],
    /// Nodes of the tree that were counted at lately.
    nodes: [Option<(Spot, NodeId)>; SPOTS],
    /// Node of unattributed waiting, if there was any.
    unattributed: Option<NodeId>,
}

/// A place, or a kind of wait there.
type Spot = (ChargedPath, Option<Marker>);

/// Waits too short to have a cause, the most frequent kind.
#[derive(Clone, Copy, Default)]
struct Short {
    context: u32,
    kind: Option<Marker>,
    codeptr: u64,
    ns: u64,
}

impl Counts {
    /// None yet.
    pub fn new() -> Self {
        Counts::in_tree(Tree::with_limit(NODES, VALUES))
    }

    /// Creates counts without memory, before their first use.
    pub fn without_memory() -> Self {
        Counts::in_tree(Tree::with_limit(0, 0))
    }

    fn in_tree(tree: Tree) -> Self {
        Counts {
            tree,
            contexts: Contexts::default(),
            short: [Short::default(); SPOTS],
            nodes: [None; SPOTS],
            unattributed: None,
        }
    }

    /// The context of a task or region that is created by `path` in the context `creator`.
    pub fn context(&mut self, creator: u32, path: u32, is_task: bool) -> u32 {
        self.contexts.of(creator, path, is_task)
    }

    /// Something of a context.
    pub fn add(&mut self, context: u32, metric: Metric, value: u64) {
        add_to_context(&mut self.tree, context, metric, value);
    }

    /// Counts an unattributed wait in the call that returns to `codeptr` (0: unknown).
    #[inline(always)]
    #[expect(clippy::indexing_slicing, reason = "below the length")]
    pub fn waited_shortly(&mut self, (kind, context, codeptr): (Marker, u32, u64), ns: u64) {
        let short = &mut self.short[spot_of(context, codeptr)];
        if short.codeptr == codeptr && short.context == context && short.kind == Some(kind) {
            short.ns += ns;
            return;
        }
        let before = core::mem::replace(short, Short { context, kind: Some(kind), codeptr, ns });
        flush_short(&mut self.tree, before);
    }

    /// Counts a completed wait at a place, with its blame.
    pub fn waited(&mut self, kind: Marker, place: ChargedPath, ns: u64, settled: &Settled<'_>) {
        if ns > 0 {
            let node = self.node_of((place, Some(kind)));
            self.tree.add(node, Metric::taken(kind), ns);
        }
        self.blame(kind, settled.blame);
        self.give_unattributed(kind, settled.unattributed);
        if let Some(Owed { ns, to, waits }) = settled.for_last {
            let mut left = ns;
            for (used, part) in to.parts_during(waits) {
                let ns = part.take_from(&mut left);
                let node = match used {
                    _ if ns == 0 => continue,
                    Use::Work(sample) => node_of_sample(&mut self.tree, sample),
                    Use::Awaited(Some(place)) => self.node_of((place, None)),
                    Use::Awaited(None) => {
                        self.give_unattributed(kind, ns);
                        continue;
                    }
                };
                self.tree.add(node, Metric::given(kind), ns);
            }
        }
    }

    /// Blame for waits that are counted elsewhere.
    pub fn blame(&mut self, kind: Marker, blame: &[Blame]) {
        for part in blame {
            match part.place {
                Some(place) => {
                    let node = self.node_of((place, None));
                    self.tree.add(node, Metric::given(kind), part.ns);
                }
                None => self.give_unattributed(kind, part.ns),
            }
        }
    }

    fn give_unattributed(&mut self, kind: Marker, ns: u64) {
        if ns > 0 {
            let node = *self.unattributed.get_or_insert_with(|| unattributed(&mut self.tree));
            self.tree.add(node, Metric::given(kind), ns);
        }
    }

    /// Idleness of others.
    pub fn idled(&mut self, charge: Charge<'_>) {
        charge.add_to(&mut self.tree, node_of, node_of_sample);
    }

    #[expect(clippy::indexing_slicing, reason = "below the length")]
    fn node_of(&mut self, spot: Spot) -> NodeId {
        let (place, wait) = spot;
        let known = &mut self.nodes[spot_of(place.0, u64::from(place.1) + u64::from(wait.is_some()))];
        match known {
            Some((of, node)) if *of == spot => *node,
            _ => known.insert((spot, find_node(&mut self.tree, spot))).1,
        }
    }

    /// Moves all counts to the process's tree, and clears them.
    pub fn merge_into(&mut self, merged: &mut Tree) {
        for short in &mut self.short {
            flush_short(&mut self.tree, core::mem::take(short));
        }
        (self.nodes, self.unattributed) = ([None; SPOTS], None);
        merged.absorb(&self.tree, place_of_context);
        self.tree.clear();
    }
}

/// Below [`SPOTS`].
#[inline(always)]
fn spot_of(context: u32, place: u64) -> usize {
    // A place has a few contexts, one after the other, which must not meet.
    ((place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 59) as usize + context as usize) % SPOTS
}

/// Adds a context's counts to the process's tree.
pub fn merge_row(merged: &mut Tree, context: u32, sums: Sums, codeptr: u64) {
    let node = expand(merged, context);
    // Contexts are of tasks or of regions.
    let created = if body_of(context) == FrameKind::Region { Metric::REGIONS } else { Metric::TASKS };
    for (metric, value) in [(created, sums.created), (Metric::TASK_TIME, sums.ns)] {
        if value > 0 {
            merged.add(node, metric, value);
        }
    }
    count_short(merged, (node, body_of(context)), Marker::Taskwait, (codeptr, sums.waited));
}

#[cold]
#[inline(never)]
fn flush_short(tree: &mut Tree, short: Short) {
    if let Some(kind) = short.kind {
        let node = context_node(tree, short.context);
        count_short(tree, (node, body_of(short.context)), kind, (short.codeptr, short.ns));
    }
}

fn count_short(
    tree: &mut Tree,
    (mut node, body): (NodeId, FrameKind),
    kind: Marker,
    (codeptr, ns): (u64, u64),
) {
    if ns == 0 {
        return;
    }
    if codeptr != 0 {
        node = descend(tree, node, body, &[codeptr]);
    }
    let node = tree.child(node, Frame::state(kind));
    tree.add(node, Metric::taken(kind), ns);
    let unattributed = unattributed(tree);
    tree.add(unattributed, Metric::given(kind), ns);
}

fn unattributed(tree: &mut Tree) -> NodeId {
    tree.child(ROOT, Frame::state(Marker::Nobody))
}

fn context_node(tree: &mut Tree, context: u32) -> NodeId {
    if context == 0 { ROOT } else { tree.child(ROOT, Frame::pending(u64::from(context))) }
}

fn node_of(tree: &mut Tree, (context, path): ChargedPath) -> NodeId {
    let from = context_node(tree, context);
    descend_path(tree, from, body_of(context), path)
}

fn find_node(tree: &mut Tree, (place, wait): Spot) -> NodeId {
    match wait {
        None => node_of(tree, place),
        Some(kind) => {
            // At a region's end no body is left.
            let is_join = kind == Marker::JoinBarrier;
            let node = if is_join { context_node(tree, place.0) } else { node_of(tree, place) };
            tree.child(node, Frame::state(kind))
        }
    }
}

/// Node at which the handler places a sample of work.
fn node_of_sample(tree: &mut Tree, Sampled { context, addresses, is_cut }: Sampled<'_>) -> NodeId {
    let (mut node, mut kind) = (context_node(tree, context), body_of(context));
    if addresses.is_empty() {
        return match (kind, node) {
            // The thread works without user frames, for example while it ends.
            (FrameKind::User, ROOT) => tree.child(ROOT, Frame::state(Marker::Runtime)),
            (FrameKind::User, _) => node,
            _ => tree.child(node, Frame::body(kind)),
        };
    }
    if is_cut {
        (node, kind) = (tree.child(node, Frame::cut()), FrameKind::User);
    }
    let mut places = Places::now();
    for index in (0..addresses.len()).rev() {
        node = tree.child(node, places.frame_of(kind, addresses, index));
        kind = FrameKind::User;
    }
    node
}

fn add_to_context(tree: &mut Tree, context: u32, metric: Metric, value: u64) {
    if value > 0 {
        let node = context_node(tree, context);
        tree.add(node, metric, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_of_the_runtime_is_its_own() {
        let mut tree = Tree::growing();
        let mut node = |addresses: &[u64]| {
            let node = node_of_sample(&mut tree, Sampled { context: 0, addresses, is_cut: false });
            tree.frame(node)
        };
        assert_eq!(node(&[]), Frame::state(Marker::Runtime));
        assert_eq!(node(&[8]).kind, FrameKind::User);
    }
}
