//! What callbacks count on a thread: creations, time in tasks, waiting and blame, by place.

use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree};

use super::contexts::{Contexts, addresses_of, descend};
use super::locks::{Blame, Place};
use super::samples::{locate, place_of_context};
use super::waits::Settled;

/// Paths and values between two collections.
const NODES: usize = 2048;
const VALUES: usize = 6144;
/// Places of short waits that are remembered.
const SPOTS: usize = 32;
/// Contexts whose time in tasks is remembered.
const BODIES: usize = 16;

/// The counts of one thread since the last collection.
pub struct Counts {
    tree: Tree,
    contexts: Contexts,
    /// Time in the bodies of tasks by context: those counted lately.
    bodies: [(u32, u64); BODIES],
    short: [Short; SPOTS],
}

/// Waits too short to have a cause: what a program has most of.
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
        Counts {
            tree: Tree::with_limit(NODES, VALUES),
            contexts: Contexts::default(),
            bodies: [(0, 0); BODIES],
            short: [Short::default(); SPOTS],
        }
    }

    /// The context of a task or region that is created by `path` in the context `creator`.
    #[inline(always)]
    pub fn created(&mut self, creator: u32, path: u32, is_task: bool) -> u32 {
        let tree = &mut self.tree;
        let context = self.contexts.of(creator, path, u64::from(is_task), |context, tasks| {
            add_to_context(tree, context, Metric::TASKS, tasks);
        });
        if !is_task {
            add_to_context(&mut self.tree, context, Metric::REGIONS, 1);
        }
        context
    }

    /// A task of this context ran for so long.
    #[inline(always)]
    pub fn ran(&mut self, context: u32, ns: u64) {
        let Some(body) = self.bodies.get_mut(context as usize % BODIES) else { return };
        if body.0 != context {
            let (before, ns) = core::mem::replace(body, (context, 0));
            make_room(&mut self.tree, before, ns);
        }
        body.1 += ns;
    }

    /// A wait that is nobody's, in the call that returns to `codeptr` (0: not known).
    #[inline(always)]
    pub fn waited_shortly(&mut self, (kind, context, codeptr): (Marker, u32, u64), ns: u64) {
        let key = codeptr ^ u64::from(context) << 32 ^ kind as u64;
        let index = (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize % SPOTS;
        let Some(short) = self.short.get_mut(index) else { return };
        if (short.context, short.kind, short.codeptr) == (context, Some(kind), codeptr) {
            short.ns += ns;
            return;
        }
        let before = core::mem::replace(short, Short { context, kind: Some(kind), codeptr, ns });
        flush_short(&mut self.tree, before);
    }

    /// A wait at a place that is over, and who is to blame.
    pub fn waited(&mut self, kind: Marker, place: Place, ns: u64, settled: &Settled<'_>) {
        if ns > 0 {
            let node = node_of(&mut self.tree, place);
            let node = self.tree.child(node, Frame::state(kind));
            self.tree.add(node, Metric::taken(kind), ns);
        }
        self.blame(kind, settled.blame);
        give_to_nobody(&mut self.tree, kind, settled.nobody);
        if let Some((owed, work)) = settled.for_work {
            let (mut left, mut parts) = (owed, work.stacks().len() as u64);
            for (context, addresses) in work.stacks() {
                let part = left / parts.max(1);
                (left, parts) = (left - part, parts.saturating_sub(1));
                let node = node_of_sample(&mut self.tree, context, addresses);
                self.tree.add(node, Metric::given(kind), part);
            }
        }
    }

    /// Blame for waits that are counted elsewhere.
    pub fn blame(&mut self, kind: Marker, blame: &[Blame]) {
        for part in blame {
            match part.place {
                Some(place) => {
                    let node = node_of(&mut self.tree, place);
                    self.tree.add(node, Metric::given(kind), part.ns);
                }
                None => give_to_nobody(&mut self.tree, kind, part.ns),
            }
        }
    }

    /// A lock, critical or turn was taken in this context.
    pub fn took(&mut self, context: u32) {
        add_to_context(&mut self.tree, context, Metric::ACQUISITIONS, 1);
    }

    /// All of it goes to the process's tree, and the counts begin anew.
    pub fn merge_into(&mut self, merged: &mut Tree) {
        for body in &mut self.bodies {
            let (context, ns) = core::mem::take(body);
            add_to_context(&mut self.tree, context, Metric::TASK_TIME, ns);
        }
        let tree = &mut self.tree;
        self.contexts.drain(|context, tasks| add_to_context(tree, context, Metric::TASKS, tasks));
        for short in &mut self.short {
            flush_short(&mut self.tree, core::mem::take(short));
        }
        merged.absorb(&self.tree, place_of_context);
        self.tree.clear();
    }
}

/// Time in tasks whose context gives way to another's.
#[cold]
#[inline(never)]
fn make_room(tree: &mut Tree, context: u32, ns: u64) {
    add_to_context(tree, context, Metric::TASK_TIME, ns);
}

#[cold]
#[inline(never)]
fn flush_short(tree: &mut Tree, short: Short) {
    let Some(kind) = short.kind.filter(|_| short.ns > 0) else { return };
    let mut node = context_node(tree, short.context);
    if short.codeptr != 0 {
        node = descend(tree, node, &[short.codeptr]);
    }
    let node = tree.child(node, Frame::state(kind));
    tree.add(node, Metric::taken(kind), short.ns);
    give_to_nobody(tree, kind, short.ns);
}

fn give_to_nobody(tree: &mut Tree, kind: Marker, ns: u64) {
    if ns > 0 {
        let node = tree.child(ROOT, Frame::state(Marker::Nobody));
        tree.add(node, Metric::given(kind), ns);
    }
}

fn context_node(tree: &mut Tree, context: u32) -> NodeId {
    if context == 0 { ROOT } else { tree.child(ROOT, Frame::pending(u64::from(context))) }
}

fn node_of(tree: &mut Tree, (context, path): Place) -> NodeId {
    let from = context_node(tree, context);
    if path == 0 { from } else { descend(tree, from, &addresses_of(path)) }
}

/// As the handler places a sample of work.
fn node_of_sample(tree: &mut Tree, context: u32, addresses: &[u64]) -> NodeId {
    let mut node = context_node(tree, context);
    for (index, address) in addresses.iter().enumerate().rev() {
        let (module, offset) = locate(address.wrapping_sub(u64::from(index > 0)));
        node = tree.child(node, Frame::user(module, offset));
    }
    node
}

fn add_to_context(tree: &mut Tree, context: u32, metric: Metric, value: u64) {
    if value > 0 {
        let node = context_node(tree, context);
        tree.add(node, metric, value);
    }
}
