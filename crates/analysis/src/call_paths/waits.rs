//! Exact waiting by path: the waiting path, the lock's holder, the children still running.

use super::awaited::Awaited;
use super::contexts::Contexts;
use super::creator::{Creator, creator_of};
use super::running::{Running, give_to_running};
use crate::blame::split_lock_waits;
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::{
    Execution, NO_TIME, ObjectIndex, Place, RegionIndex, Section, Span, State, TaskIndex, ThreadIndex,
};
use taskscope_profile::{Frame, Marker, Metric, NodeId, ROOT, Tree};

/// Maximum depth of descendants of a group, each of which outlives its creator, that count as awaited.
const MAX_GENERATIONS: usize = 1 << 10;

/// The marker of a state in the tree, if it is a wait.
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

/// Begins of one thread's open waits: tasks that it runs meanwhile may wait, too.
#[derive(Default)]
pub struct Begun(FxHashMap<(TaskIndex, RegionIndex), (Place, u64)>);

impl Begun {
    /// The thread is in a part of a wait; returns when the wait began.
    pub fn waits(&mut self, span: &Span) -> u64 {
        let Section { task, region, place, .. } = span.section;
        let begun = self.0.entry((task, region)).or_insert((place, span.start));
        if begun.0 != place {
            *begun = (place, span.start);
        }
        begun.1
    }

    /// Records that it works: the awaited objects of the same task are done.
    pub fn works(&mut self, span: &Span) {
        if !self.0.is_empty() && span.section.state.is_useful() {
            self.0.remove(&(span.section.task, span.section.region));
        }
    }
}

/// The node of the caller of a part of a wait; idle workers have no caller.
pub fn place_of(
    contexts: &mut Contexts<'_>,
    tree: &mut Tree,
    marker: Marker,
    (thread, span): (ThreadIndex, &Span),
    begun: &mut Begun,
) -> NodeId {
    match marker {
        Marker::Idle => ROOT,
        _ => contexts.wait_node(tree, &span.section, (thread, begun.waits(span))),
    }
}

/// Adds the time taken by all waits, and the time given to holders and children.
pub fn add_waits(contexts: &mut Contexts<'_>, tree: &mut Tree) {
    let (execution, part) = (contexts.execution, contexts.part);
    for thread in part.workers() {
        let mut begun = Begun::default();
        for span in execution.cut_spans_of_run(thread).map(|cut| cut.span) {
            let Some(marker) = marker_of(execution, &span.section) else {
                begun.works(&span);
                continue;
            };
            let place = place_of(contexts, tree, marker, (thread, &span), &mut begun);
            let node = tree.child(place, Frame::state(marker));
            let ns = part.ns_of(span.start, span.end);
            tree.add(node, Metric::taken(marker), ns);
            // A device works for the construct that waits for it.
            if marker == Marker::Target {
                tree.add(place, Metric::given(marker), ns);
            }
        }
    }
    split_lock_waits(execution, |wait| {
        let Some(marker) = marker_of(execution, &wait.section) else { return };
        let asked = part.within(wait.start, wait.end).filter(|_| part.has_thread(wait.thread));
        let Some((start, end)) = asked else { return };
        let node = match wait.holder {
            Some(hold) => {
                let context = contexts.around_hold(tree, &hold);
                contexts.at_call(tree, context, hold.site, (hold.thread, hold.start))
            }
            None => tree.child(ROOT, Frame::state(Marker::Nobody)),
        };
        let taken_by_system_ns = execution.system_ns(wait.thread, start, end);
        tree.add(node, Metric::given(marker), end - start - taken_by_system_ns);
    });
    let waits_for_group = |span: &Span| span.section.state == State::Taskgroup;
    let groups: FxHashSet<Creator> = part
        .workers()
        .flat_map(|thread| {
            let waits = execution.cut_spans_of_run(thread).map(|cut| cut.span).filter(waits_for_group);
            waits.map(move |span| creator_of(span.section.task, thread, span.section.region))
        })
        .collect();
    let (children, members) = lives_by_creator(execution, &groups);
    let awaited = Awaited::of(contexts);
    let childless = Running::default();
    for thread in part.workers() {
        for span in execution.cut_spans_of_run(thread).map(|cut| cut.span) {
            let marker = match span.section.state {
                State::Taskwait | State::Taskyield => Marker::Taskwait,
                State::TaskwaitDepend => Marker::TaskwaitDepend,
                State::Taskgroup => Marker::Taskgroup,
                _ => continue,
            };
            let creator = creator_of(span.section.task, thread, span.section.region);
            let awaited = awaited.until(creator, span.end).filter(|_| marker == Marker::TaskwaitDepend);
            let alive = if waits_for_group(&span) { &members } else { &children };
            let running = awaited.or_else(|| alive.get(&creator)).unwrap_or(&childless);
            give_to_running(contexts, tree, marker, (span.start, span.end), running);
        }
    }
}

/// The lifetimes of tasks by waiting creator.
type Lives = FxHashMap<Creator, Running>;

/// The lifetimes of each creator's children, and, for creators that wait for `groups`, of the descendants
/// that outlive their own creator: during its lifetime the creator itself is waited for.
fn lives_by_creator(execution: &Execution, groups: &FxHashSet<Creator>) -> (Lives, Lives) {
    let tasks = &execution.tasks;
    let (mut children, mut members) = (Lives::default(), Lives::default());
    let mut order: Vec<usize> = (0..tasks.len()).filter(|row| tasks.began[*row] != NO_TIME).collect();
    order.sort_unstable_by_key(|row| tasks.began[*row]);
    for row in order {
        let life = (tasks.began[row], tasks.ended[row], TaskIndex(row as u32));
        let creator_of = |row: usize| creator_of(tasks.parent[row], tasks.creator[row], tasks.region[row]);
        children.entry(creator_of(row)).or_default().push(tasks.runner[row], life);
        if groups.is_empty() {
            continue;
        }
        let mut at = row;
        // A damaged trace may contain a cycle.
        for _ in 0..MAX_GENERATIONS {
            let creator = creator_of(at);
            if groups.contains(&creator) {
                members.entry(creator).or_default().push(tasks.runner[row], life);
            }
            at = tasks.parent[at].index();
            if tasks.ended.get(at).is_none_or(|ended| *ended >= tasks.ended[row]) {
                break;
            }
        }
    }
    (children, members)
}
