//! Samples of a thread: a tree that the handler counts into.

use taskscope_event::models::samples::state;
use taskscope_profile::{Frame, FrameKind, Marker, Metric, NodeId, ROOT, Tree};

use super::contexts::{body_of, expand};
use super::idleness::{self, Idled};
use super::locks::marker;
use super::places::Places;
use crate::task_stacks::levels::Levels;

/// Paths and values between two collections.
const NODES: usize = 4096;
const VALUES: usize = 12_288;
/// Nodes touched in advance: a page fault costs a microsecond, and most programs need no more. Beyond this,
/// one sample in many meets a page fault.
const TOUCHED_NODES: usize = 512;
const TOUCHED_VALUES: usize = 1024;

/// The handler's tree.
pub struct SampleTree(Tree);

/// The handler's data on a sample.
pub struct Sample<'a> {
    pub levels: &'a Levels,
    /// Context of the innermost level.
    pub context: u32,
    pub state: u32,
    pub weight: u64,
    /// The part of the weight without a CPU.
    pub no_cpu_ns: u64,
    /// The part of it blocked in the kernel.
    pub blocked_ns: u64,
    /// Whether frames of the innermost level may be missing.
    pub is_cut: bool,
    /// Its share of others' idleness.
    pub idled: Option<Idled>,
}

/// Whether a thread in this state works for the program.
pub fn is_work(state: u32) -> bool {
    matches!(state, state::WORK_SERIAL | state::WORK_PARALLEL | state::WORK_REDUCTION | state::NO_OPENMP)
}

impl Sample<'_> {
    /// Whether the program's own code ran.
    pub fn works(&self) -> bool {
        is_work(self.state)
    }

    /// The user's frames of the innermost level, innermost first.
    pub fn user_frames(&self) -> &[u64] {
        let level = self.levels.list().first();
        let frames = level.map_or(0..0, |level| usize::from(level.frames.0)..usize::from(level.frames.1));
        self.levels.addresses().get(frames).unwrap_or_default()
    }
}

impl SampleTree {
    /// Creates a tree without memory, before it is [prepared](Self::prepare).
    pub fn without_memory() -> Self {
        SampleTree(Tree::with_limit(0, 0))
    }

    /// Allocates the memory for the handler.
    pub fn prepare(&mut self) {
        self.0 = Tree::with_limit(NODES, VALUES);
        self.0.touch(TOUCHED_NODES, TOUCHED_VALUES);
    }

    /// Moves all counts to the process's tree, and clears this one.
    pub fn merge_into(&mut self, merged: &mut Tree) {
        merged.absorb(&self.0, place_of_context);
        self.0.clear();
    }

    /// Counts a sample. Async-signal-safe.
    pub fn take(&mut self, sample: &Sample<'_>) {
        let tree = &mut self.0;
        let (works, overhead) = (sample.works(), sample.state == state::OVERHEAD);
        let mut node = if sample.context == 0 {
            ROOT
        } else {
            tree.child(ROOT, Frame::pending(u64::from(sample.context)))
        };
        let addresses = sample.levels.addresses();
        let (first, end) = sample.levels.list().first().map_or((addresses.len(), addresses.len()), |level| {
            (usize::from(level.frames.0), usize::from(level.frames.1))
        });
        // Without user frames on this stack all of it is the runtime's, or of a body that is not known from its creator.
        let (first, end) = match first != end {
            true => (first, end),
            false if works => (0, 0),
            false => (addresses.len(), addresses.len()),
        };
        let marker = (!works).then(|| marker(sample.state));
        let (mut kind, mut places) = (body_of(sample.context), Places::now());
        if first == end && kind != FrameKind::User && marker.is_none_or(Marker::is_in_body) {
            node = tree.child(node, Frame::body(kind));
        }
        if sample.is_cut && first != end {
            (node, kind) = (tree.child(node, Frame::cut()), FrameKind::User);
        }
        for index in (first..end).rev() {
            node = tree.child(node, places.frame_of(kind, addresses, index));
            kind = FrameKind::User;
        }
        let mut code = node;
        if let Some(marker) = marker {
            node = tree.child(node, Frame::state(marker));
            if code == ROOT {
                code = node;
            }
        }
        for index in (0..first).rev() {
            node = tree.child(node, places.frame_of(FrameKind::Runtime, addresses, index));
        }
        // How long it waited is known better, from events.
        let metric = match (works, overhead) {
            (true, _) => Metric::WORK,
            (_, true) => Metric::RUNTIME,
            _ => Metric::WAITING,
        };
        tree.add(node, Metric::SAMPLES, 1);
        tree.add(node, Metric::TIME, sample.weight);
        tree.add(node, metric, sample.weight.saturating_sub(sample.no_cpu_ns + sample.blocked_ns));
        tree.add(node, Metric::OUT_OF_CPU, sample.no_cpu_ns);
        tree.add(node, Metric::BLOCKED, sample.blocked_ns);
        if let Some(idled) = &sample.idled {
            idleness::add_sample(tree, code, idled);
        }
    }
}

/// Returns the place of a thread-tree step in the process's tree.
pub fn place_of_context(tree: &mut Tree, parent: NodeId, frame: Frame) -> NodeId {
    match frame.kind {
        FrameKind::Pending => expand(tree, frame.offset as u32),
        _ => tree.child(parent, frame),
    }
}
