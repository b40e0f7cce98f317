//! Exact waiting by path: where it was taken, who held the lock, which children still ran.

use super::contexts::Contexts;
use super::running::{Running, give_to_running};
use crate::blame::split_lock_waits;
use rustc_hash::FxHashMap;
use taskscope_execution::{
    Execution, NO_TIME, ObjectIndex, RegionIndex, Section, State, TaskIndex, ThreadIndex,
};
use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree};

/// What a state is in the tree, if it is a wait.
pub fn marker_of(execution: &Execution, section: &Section) -> Option<Marker> {
    Some(match section.state {
        State::Barrier => Marker::Barrier,
        State::JoinBarrier => Marker::JoinBarrier,
        State::Taskwait | State::Taskyield => Marker::Taskwait,
        State::TaskwaitDepend => Marker::TaskwaitDepend,
        State::Taskgroup => Marker::Taskgroup,
        State::CriticalWait => Marker::Critical,
        State::LockWait if is_nest_lock(execution, section.object) => Marker::NestLock,
        State::LockWait => Marker::Lock,
        State::OrderedWait => Marker::Ordered,
        State::AtomicWait => Marker::Atomic,
        State::TargetWait => Marker::Target,
        State::Idle | State::Paused | State::NotStarted | State::Ended => Marker::Idle,
        _ => return None,
    })
}

fn is_nest_lock(execution: &Execution, object: ObjectIndex) -> bool {
    let kind = taskscope_event::models::wait::kind::NEST_LOCK;
    execution.catalog.objects.get(object.index()).is_some_and(|object| object.kind == kind)
}

/// The node at which waiting of a section is taken.
pub fn taken_at(contexts: &mut Contexts<'_>, tree: &mut Tree, section: &Section, marker: Marker) -> NodeId {
    let node = if marker == Marker::Idle { ROOT } else { contexts.of_section(tree, section).1 };
    tree.child(node, Frame::state(marker))
}

/// Adds what was taken of all waits, and what holders and children are given.
pub fn add_waits(contexts: &mut Contexts<'_>, tree: &mut Tree) {
    let execution = contexts.execution;
    for (thread, _) in execution.selected_workers() {
        for span in execution.cut_spans_of_run(thread).map(|cut| cut.span) {
            if let Some(marker) = marker_of(execution, &span.section) {
                let node = taken_at(contexts, tree, &span.section, marker);
                tree.add(node, Metric::taken(marker), span.end - span.start);
                // A device works for the construct that waits for it.
                if marker == Marker::Target {
                    let construct = contexts.of_section(tree, &span.section).1;
                    tree.add(construct, Metric::given(marker), span.end - span.start);
                }
            }
        }
    }
    split_lock_waits(execution, |part| {
        let Some(marker) = marker_of(execution, &part.section) else { return };
        let node = match part.holder {
            Some(hold) => {
                let region = contexts.section_at(hold.thread, hold.start).region;
                let context = contexts.around(tree, hold.task, region);
                contexts.at_site(tree, context, hold.site)
            }
            None => tree.child(ROOT, Frame::state(Marker::Nobody)),
        };
        tree.add(node, Metric::given(marker), part.ns);
    });
    let children = children_of(execution);
    let childless = Running::default();
    for (thread, _) in execution.selected_workers() {
        for span in execution.cut_spans_of_run(thread).map(|cut| cut.span) {
            let marker = match span.section.state {
                State::Taskwait | State::Taskyield => Marker::Taskwait,
                State::TaskwaitDepend => Marker::TaskwaitDepend,
                State::Taskgroup => Marker::Taskgroup,
                _ => continue,
            };
            let creator = creator_of(span.section.task, thread, span.section.region);
            let running = children.get(&creator).unwrap_or(&childless);
            give_to_running(contexts, tree, marker, (span.start, span.end), running);
        }
    }
}

/// Who creates: a task, or a thread's implicit task in a region.
type Creator = (TaskIndex, ThreadIndex, u32);

fn creator_of(task: TaskIndex, thread: ThreadIndex, region: RegionIndex) -> Creator {
    if task.is_some() { (task, ThreadIndex::NONE, 0) } else { (TaskIndex::NONE, thread, region.0) }
}

/// The lives of each creator's children.
fn children_of(execution: &Execution) -> FxHashMap<Creator, Running> {
    let tasks = &execution.tasks;
    let mut children: FxHashMap<Creator, Running> = FxHashMap::default();
    let mut order: Vec<usize> = (0..tasks.len()).filter(|row| tasks.began[*row] != NO_TIME).collect();
    order.sort_unstable_by_key(|row| tasks.began[*row]);
    for row in order {
        let creator = creator_of(tasks.parent[row], tasks.creator[row], tasks.region[row]);
        let life = (tasks.began[row], tasks.ended[row], TaskIndex(row as u32));
        children.entry(creator).or_default().push(tasks.runner[row], life);
    }
    children
}
