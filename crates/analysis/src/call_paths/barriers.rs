//! Waiting in barriers by path: to the last that arrives, then to the tasks that still run.
//!
//! One passage of a team through a barrier is an instance: the n-th barrier of each member in the region.
//! Until its last member arrives, all waiting is that member's, for what it did since its own last
//! synchronisation in the region: a barrier, or a wait for tasks that is long enough to be one. Waiting after that is for explicit tasks which members run inside
//! the barrier, or else nobody's: the runtime lets the team go.

use super::contexts::Contexts;
use super::running::{Running, give_to_running};
use rustc_hash::FxHashMap;
use taskscope_execution::{Execution, Group, RegionIndex, Section, Starts, State, TaskIndex, ThreadIndex};
use taskscope_profile::{Marker, Metric, NodeId, Tree, settle};

/// A shorter wait for tasks has found nothing to wait for (LLVM's runtime yields to the system once). In ns; as in profiles.
const SHORTEST_WAIT_FOR_TASKS: u64 = 2_000;

/// A passage through a barrier: region, kind, number.
type Key = (RegionIndex, Marker, u32);

#[derive(Default)]
struct Instance {
    arrivals: Vec<Arrival>,
    /// Waiting, on any thread.
    waits: Vec<(u64, u64)>,
    /// Explicit tasks run inside it.
    tasks: Running,
}

#[derive(Clone, Copy)]
struct Arrival {
    thread: ThreadIndex,
    at: u64,
    /// When it had passed its last synchronisation in the region, or joined.
    since: u64,
}

/// Gives the waiting in barriers to those that were waited for; `leaves` are the nodes of the samples.
pub fn add_last_arrivers(contexts: &mut Contexts<'_>, tree: &mut Tree, leaves: &[NodeId]) {
    let execution = contexts.execution;
    let mut instances: FxHashMap<Key, Instance> = FxHashMap::default();
    for (thread, _) in execution.workers() {
        passages_of(execution, thread, &mut instances);
    }
    let mut keys: Vec<Key> = instances.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        settle_instance(contexts, tree, leaves, key.1, &instances[&key]);
    }
}

/// A barrier that a thread is in, maybe with tasks and inner regions inside.
struct Open {
    region: RegionIndex,
    marker: Marker,
    number: u32,
}

fn barrier_of(section: &Section) -> Option<Marker> {
    match section.state {
        State::Barrier => Some(Marker::Barrier),
        State::JoinBarrier => Some(Marker::JoinBarrier),
        _ => None,
    }
}

fn passages_of(execution: &Execution, thread: ThreadIndex, instances: &mut FxHashMap<Key, Instance>) {
    let is_asked = execution.is_selected(thread);
    let mut open: Vec<Open> = Vec::new();
    let mut counts: FxHashMap<(RegionIndex, Marker), u32> = FxHashMap::default();
    let mut since: FxHashMap<RegionIndex, u64> = FxHashMap::default();
    // Of which region a wait for tasks is under way, which may run some in between.
    let mut waits_for_tasks: Option<RegionIndex> = None;
    for span in execution.cut_spans_of_run(thread).map(|cut| cut.span) {
        let section = &span.section;
        let marker = barrier_of(section);
        if !section.region.is_some() {
            open.clear();
            // Which team waits is not known, so neither is whom it waits for.
            if let Some(marker) = marker {
                let instance = instances.entry((section.region, marker, u32::MAX)).or_default();
                instance.waits.extend(is_asked.then_some((span.start, span.end)));
            }
            continue;
        }
        since.entry(section.region).or_insert(span.start);
        if section.task == TaskIndex::NONE {
            let is_for_tasks =
                matches!(section.state, State::Taskwait | State::TaskwaitDepend | State::Taskgroup);
            let is_long = span.end - span.start >= SHORTEST_WAIT_FOR_TASKS;
            if is_for_tasks && (is_long || waits_for_tasks == Some(section.region)) {
                waits_for_tasks = Some(section.region);
                since.insert(section.region, span.end);
            } else if section.state.is_useful() {
                waits_for_tasks = None;
            }
        }
        if let Some(depth) = open.iter().rposition(|o| o.region == section.region) {
            open.truncate(depth + 1);
            let inside = section.task.is_some()
                || matches!(section.state.group(), Group::Runtime | Group::Start | Group::Off)
                || marker == Some(open[depth].marker);
            if !inside {
                open.pop();
            }
        }
        let current = open.last().filter(|o| o.region == section.region);
        match (marker, current) {
            (Some(marker), current) if section.task == TaskIndex::NONE => {
                let number = match current {
                    Some(current) => current.number,
                    None => {
                        let count = counts.entry((section.region, marker)).or_insert(0);
                        let number = *count;
                        *count += 1;
                        open.push(Open { region: section.region, marker, number });
                        let instance = instances.entry((section.region, marker, number)).or_default();
                        instance.arrivals.push(Arrival {
                            thread,
                            at: span.start,
                            since: since[&section.region],
                        });
                        number
                    }
                };
                let instance = instances.entry((section.region, marker, number)).or_default();
                instance.waits.extend(is_asked.then_some((span.start, span.end)));
                since.insert(section.region, span.end);
            }
            (Some(marker), _) => {
                // A barrier inside a task is no barrier that a program can write; keep the sum right.
                let instance = instances.entry((section.region, marker, u32::MAX)).or_default();
                instance.waits.extend(is_asked.then_some((span.start, span.end)));
            }
            (None, Some(current)) if section.state == State::Task => {
                let key = (current.region, current.marker, current.number);
                let instance = instances.entry(key).or_default();
                instance.tasks.push(thread, (span.start, span.end, section.task));
            }
            _ => {}
        }
    }
}

fn settle_instance(
    contexts: &mut Contexts<'_>,
    tree: &mut Tree,
    leaves: &[NodeId],
    marker: Marker,
    instance: &Instance,
) {
    let last = instance.arrivals.iter().max_by_key(|arrival| (arrival.at, arrival.thread));
    let all_here = last.map_or(0, |last| last.at);
    let mut owed = 0;
    for (start, end) in &instance.waits {
        owed += (*end).min(all_here).saturating_sub(*start);
        let rest = (*start).max(all_here);
        if rest < *end {
            give_to_running(contexts, tree, marker, (rest, *end), &instance.tasks);
        }
    }
    if let Some(last) = last.filter(|_| owed > 0) {
        let shares = work_of(contexts, tree, leaves, last);
        settle(tree, Metric::given(marker), owed, &shares);
    }
}

/// What the last to arrive had done since its last synchronisation: by its samples, else its sections.
fn work_of(
    contexts: &mut Contexts<'_>,
    tree: &mut Tree,
    leaves: &[NodeId],
    last: &Arrival,
) -> Vec<(NodeId, u128)> {
    let execution = contexts.execution;
    let samples = execution.samples.of_thread(last.thread, last.since, last.at);
    if !samples.is_empty() {
        let first =
            execution.samples.rows.partition_point(|row| (row.thread, row.at) <= (last.thread, last.since));
        let own = &leaves[first..first + samples.len()];
        return own.iter().zip(samples).map(|(node, row)| (*node, row.weight_ns.max(1) as u128)).collect();
    }
    let track = &execution.threads[last.thread.index()].track;
    let first = track.starts().partition_point(|start| start < last.since);
    let rows = (first.saturating_sub(1)..track.len()).map(|row| track.span(row));
    let spans = rows.take_while(|span| span.start < last.at).filter(|span| span.end > last.since);
    let mut shares = Vec::new();
    for span in spans {
        let length = span.end.min(last.at).saturating_sub(span.start.max(last.since));
        let works = matches!(span.section.state.group(), Group::Useful | Group::Runtime | Group::Device);
        if works && length > 0 {
            let node = contexts.of_section(tree, &span.section).1;
            shares.push((node, length as u128));
        }
    }
    if shares.is_empty() {
        // It waited all the time, for a lock perhaps; what it is at then is its own path.
        let section = contexts.section_at(last.thread, last.at.saturating_sub(1));
        let node = contexts.of_section(tree, &section).1;
        shares.push((node, 1));
    }
    shares
}
