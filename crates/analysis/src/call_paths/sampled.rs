//! Samples by path.

use super::contexts::{Contexts, OUTSIDE};
use taskscope_event::models::samples::{flag, state};
use taskscope_execution::samples::Sample;
use taskscope_execution::{RegionIndex, TaskIndex};
use taskscope_profile::{Frame, FrameKind, Marker, Metric, NodeId, ROOT, Tree};

/// The place of a sample in the tree.
#[derive(Clone, Copy)]
pub struct Placed {
    /// The node without the sampled state, if there is any other step.
    pub user: NodeId,
    /// The sampled state, which is none in the program's own code, and its node.
    pub state: Option<(Marker, NodeId)>,
    /// The innermost node, frames of the runtime included.
    pub node: NodeId,
}

/// Adds the paths of all samples of the run and counts those of the part. The time comes from
/// [`add_times`](super::times::add_times).
pub fn add_samples(contexts: &mut Contexts<'_>, tree: &mut Tree) -> Vec<Placed> {
    let (execution, part) = (contexts.execution, contexts.part);
    let rows = &execution.samples.rows;
    let place = |sample: &Sample| {
        let placed = add(contexts, tree, sample);
        if part.has_thread(sample.thread) && part.has(sample.at) {
            tree.add(placed.node, Metric::SAMPLES, 1);
        }
        placed
    };
    rows.iter().map(place).collect()
}

/// The marker of a sampled state; `None` for the program's own code.
fn marker_of(number: u32) -> Option<Marker> {
    Some(match number {
        state::BARRIER_PARALLEL | state::BARRIER_TEAMS => Marker::JoinBarrier,
        state::BARRIER_WORKSHARE | state::BARRIER_EXPLICIT | state::BARRIER_IMPLEMENTATION => Marker::Barrier,
        state::TASKWAIT => Marker::Taskwait,
        state::TASKGROUP => Marker::Taskgroup,
        state::TASKWAIT_DEPEND => Marker::TaskwaitDepend,
        state::LOCK => Marker::Lock,
        state::CRITICAL => Marker::Critical,
        state::ATOMIC => Marker::Atomic,
        state::ORDERED => Marker::Ordered,
        state::NEST_LOCK => Marker::NestLock,
        state::TARGET => Marker::Target,
        state::IDLE => Marker::Idle,
        state::OVERHEAD => Marker::Runtime,
        _ => return None,
    })
}

fn add(contexts: &mut Contexts<'_>, tree: &mut Tree, sample: &Sample) -> Placed {
    let execution = contexts.execution;
    let process = contexts.process(sample.thread);
    let stack = execution.samples.frames(sample);
    let levels = execution.samples.levels(sample);
    // The first address is the instruction itself, the others follow a call.
    let address = |at: usize| stack[at].wrapping_sub(u64::from(at > 0));
    // Until a runtime reports its entry frame (a first fork, a lock), its own frames look like the program's:
    // frames inwards of the outermost of them do not belong to the program.
    let mut first = levels.first().map_or(0, |level| usize::from(level.first));
    if let Some(level) = levels.first().filter(|_| contexts.takes_tools(process)) {
        let own = usize::from(level.first)..usize::from(level.end);
        let outermost = own.rev().find(|at| contexts.in_runtime(process, address(*at), sample.at));
        first = outermost.map_or(first, |outermost| outermost + 1);
    }
    let (task, region) = levels.first().map_or((TaskIndex::NONE, RegionIndex::NONE), |l| (l.task, l.region));
    let mut context = OUTSIDE;
    let mut node = ROOT;
    if contexts.takes_execution() {
        // Frames further out on its master's stack are the path of its creation.
        let outermost = levels.iter().rposition(|level| level.region.is_some());
        if let Some(outermost) = outermost {
            context = contexts.region_context(tree, levels[outermost].region);
            node = contexts.node(context);
            if levels[outermost].task.is_some() {
                node = contexts.body(tree, context);
            }
        }
        for level in levels[..outermost.map_or(levels.len(), |outermost| outermost + 1)].iter().rev() {
            let mut kind = match (level.task.is_some(), level.region.is_some()) {
                (true, _) => FrameKind::Task,
                (_, true) => FrameKind::Region,
                _ => FrameKind::User,
            };
            let innermost = std::ptr::eq(level, &levels[0]);
            let from = if innermost { first } else { level.first.into() };
            if !innermost && level.first == level.end && kind != FrameKind::User {
                node = tree.child(node, Frame::body(kind));
            }
            for at in (from..level.end.into()).rev() {
                let frame = contexts.frame(kind, process, address(at), sample.at);
                node = tree.child(node, frame);
                kind = FrameKind::User;
            }
        }
    } else {
        if task.is_some() || region.is_some() {
            context = contexts.around(tree, task, region);
            node = contexts.node(context);
        }
        let goes_on = levels.first().is_some_and(|level| usize::from(level.end) == stack.len());
        if sample.flags & flag::REACHED_ROOT == 0 && goes_on {
            node = tree.child(node, Frame::cut());
        }
        if let Some(level) = levels.first().filter(|level| first < level.end.into()) {
            let own = (first..level.end.into()).map(address);
            if node == contexts.node(context) {
                node = contexts.put(tree, context, (process, sample.at), own);
                contexts.note_sampled(tree, context, node);
            } else {
                for at in own.rev() {
                    let frame = contexts.frame(FrameKind::User, process, at, sample.at);
                    node = tree.child(node, frame);
                }
            }
        }
    }
    let in_runtime = sample.flags & flag::IN_RUNTIME != 0 || (first > 0 && !levels.is_empty());
    let marker = marker_of(sample.state).or(in_runtime.then_some(Marker::Runtime));
    if node == contexts.node(context) && marker.is_none_or(Marker::is_in_body) {
        node = contexts.body(tree, context);
    }
    let (mut user, mut state) = (node, None);
    if let Some(marker) = marker {
        node = tree.child(node, Frame::state(marker));
        state = Some((marker, node));
        if user == ROOT && marker == Marker::Runtime {
            // The runtime works by itself: ends its threads, say.
            user = node;
        }
        let runtime = if levels.is_empty() { stack.len() } else { first };
        for at in (0..runtime).rev() {
            let frame = contexts.frame(FrameKind::Runtime, process, address(at), sample.at);
            node = tree.child(node, frame);
        }
    }
    Placed { user, state, node }
}
