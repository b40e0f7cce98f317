//! Waiting in barriers by path: to the last that arrives, then to the tasks that still run.
//!
//! One passage of a team through a barrier is an instance: the n-th barrier of each member in the region.
//! Until its last member arrives, all waiting is charged to that member, for its work since its own last
//! synchronisation in the region: a barrier, or a wait for tasks that is long enough to be one. Waiting after
//! that is charged to explicit tasks which members run inside the barrier, or else to no thread: the runtime
//! releases the team.
//!
//! If the trace ends before a member has arrived (the program was killed), that member was waited for until
//! then.
//!
//! Each nanosecond of the waiting before that is charged to all the work of the last member, in turns.

use super::contexts::Contexts;
use super::part::Amount;
use super::running::{Running, give_to_running};
use rustc_hash::{FxHashMap, FxHashSet};
use taskscope_execution::{
    Execution, Group, RegionIndex, Section, Starts, State, TaskIndex, Thread, ThreadIndex,
};
use taskscope_profile::{Marker, Metric, NodeId, Tree};

/// A shorter wait for tasks found all of them done (LLVM's runtime yields to the system once). In nanoseconds; profiles
/// use the same limit.
const MIN_WAIT_FOR_TASKS_NS: u64 = 2_000;

/// A passage through a barrier: region, kind, number.
type Key = (RegionIndex, Marker, u32);

/// The number in the key of waits that belong to no passage, or to an unknown team.
const OF_NO_TEAM: u32 = u32::MAX;

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
    /// Time of its last synchronisation in the region, or of joining it.
    since: u64,
}

/// A member that is still in its region when the trace ends.
struct Member {
    region: RegionIndex,
    /// The end of the trace, as its arrival at the missed barrier.
    end: Arrival,
    /// The current passage.
    passes: Option<Key>,
    /// Barriers inside the region that it reached.
    barriers: u32,
    /// Barriers at the region's end that it reached.
    joins: u32,
}

impl Member {
    /// Whether it has not reached this passage.
    fn misses(&self, (region, marker, number): Key) -> bool {
        let came_to = if marker == Marker::JoinBarrier { self.joins } else { self.barriers };
        self.region == region && number >= came_to
    }
}

/// Passages of teams, and their members at the end of the trace.
#[derive(Default)]
struct Passages {
    instances: FxHashMap<Key, Instance>,
    members: Vec<Member>,
}

impl Passages {
    /// The members that had not arrived when the trace ended, by passage that other members were in.
    fn missing(&self) -> FxHashMap<Key, Vec<Arrival>> {
        let missing_in = |key: Key| {
            let members = self.members.iter().filter(|member| member.misses(key));
            (key, members.map(|member| member.end).collect())
        };
        let under_way: FxHashSet<Key> = self.members.iter().filter_map(|member| member.passes).collect();
        under_way
            .into_iter()
            .map(missing_in)
            .filter(|(_, missing): &(Key, Vec<_>)| !missing.is_empty())
            .collect()
    }
}

/// Charges the waiting in barriers to the awaited members and tasks; `leaves` are the nodes of the samples.
pub fn add_last_arrivers(contexts: &mut Contexts<'_>, tree: &mut Tree, leaves: &[NodeId]) {
    let execution = contexts.execution;
    let mut passages = Passages::default();
    for (thread, _) in execution.workers() {
        passages_of(contexts, thread, &mut passages);
    }
    let missing = passages.missing();
    let instances = passages.instances;
    let mut keys: Vec<Key> = instances.keys().copied().collect();
    keys.sort_unstable();
    for key in keys {
        let instance = &instances[&key];
        let last = || instance.arrivals.iter().max_by_key(|arrival| (arrival.at, arrival.thread));
        let last = match missing.get(&key) {
            Some(missing) => missing,
            None => last().map_or(&[][..], std::slice::from_ref),
        };
        settle_instance(contexts, tree, leaves, (key.1, instance), last);
    }
}

/// An open barrier of a thread, which may contain tasks and inner regions.
struct OpenBarrier {
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

fn passages_of(contexts: &Contexts<'_>, thread: ThreadIndex, passages: &mut Passages) {
    let execution = contexts.execution;
    let instances = &mut passages.instances;
    let is_asked = contexts.part.has_thread(thread);
    let mut open: Vec<OpenBarrier> = Vec::new();
    let mut counts: FxHashMap<(RegionIndex, Marker), u32> = FxHashMap::default();
    let mut since: FxHashMap<RegionIndex, u64> = FxHashMap::default();
    // The region of the current wait for tasks, which may run some in between.
    let mut waits_for_tasks: Option<RegionIndex> = None;
    for span in execution.cut_spans_of_run(thread).map(|cut| cut.span) {
        let section = &span.section;
        let marker = barrier_of(section);
        if !section.region.is_some() {
            open.clear();
            // The waiting team is unknown, and so is the awaited thread.
            if let Some(marker) = marker {
                let instance = instances.entry((section.region, marker, OF_NO_TEAM)).or_default();
                instance.waits.extend(is_asked.then_some((span.start, span.end)));
            }
            continue;
        }
        since.entry(section.region).or_insert(span.start);
        if section.task == TaskIndex::NONE {
            let is_for_tasks =
                matches!(section.state, State::Taskwait | State::TaskwaitDepend | State::Taskgroup);
            let is_long = span.end - span.start >= MIN_WAIT_FOR_TASKS_NS;
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
                        open.push(OpenBarrier { region: section.region, marker, number });
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
                // A barrier inside a task cannot be written in a program; this keeps the sum right.
                let instance = instances.entry((section.region, marker, OF_NO_TEAM)).or_default();
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
    let process = &execution.processes[execution.threads[thread.index()].process.index()];
    let passed = |region, marker| counts.get(&(region, marker)).copied().unwrap_or(0);
    for region in regions_at_end(execution, thread) {
        if let Some(since) = since.get(&region) {
            let passes = open.iter().find(|open| open.region == region);
            passages.members.push(Member {
                region,
                end: Arrival { thread, at: process.last, since: *since },
                passes: passes.map(|open| (region, open.marker, open.number)),
                barriers: passed(region, Marker::Barrier),
                joins: passed(region, Marker::JoinBarrier),
            });
        }
    }
}

/// The regions of a thread, innermost first, that are open when the trace ends; none if the thread has ended.
fn regions_at_end(execution: &Execution, thread: ThreadIndex) -> Vec<RegionIndex> {
    let Thread { ended, track, .. } = &execution.threads[thread.index()];
    let last = track.len().checked_sub(1).filter(|_| !ended).map(|row| track.span(row).section.region);
    let parent = |region: &RegionIndex| {
        let parent = execution.regions.get(region.index())?.parent;
        // A damaged trace may contain a cycle.
        Some(parent).filter(|parent| parent.is_some() && parent < region)
    };
    std::iter::successors(last.filter(|region| region.is_some()), parent).collect()
}

/// Charges the waits of an instance. `last` are the awaited members: the last to arrive, or all that had not arrived when
/// the trace ended.
fn settle_instance(
    contexts: &mut Contexts<'_>,
    tree: &mut Tree,
    leaves: &[NodeId],
    (marker, instance): (Marker, &Instance),
    last: &[Arrival],
) {
    let all_here = last.first().map_or(0, |last| last.at);
    let mut owed = Amount::default();
    for (start, end) in &instance.waits {
        contexts.part.add(&mut owed, *start, (*end).min(all_here).max(*start));
        let rest = (*start).max(all_here);
        if rest < *end {
            give_to_running(contexts, tree, marker, (rest, *end), &instance.tasks);
        }
    }
    if owed.ns == 0 {
        return;
    }
    for (last, owed) in last.iter().zip(owed.classes(&vec![1; last.len()])) {
        let (nodes, weights): (Vec<NodeId>, Vec<u128>) =
            work_of(contexts, tree, leaves, last).into_iter().unzip();
        for (node, ns) in nodes.into_iter().zip(owed.in_turns(&weights)) {
            tree.add(node, Metric::given(marker), ns);
        }
    }
}

/// The work of the last to arrive since its last synchronisation: by its samples, else its sections.
fn work_of(
    contexts: &mut Contexts<'_>,
    tree: &mut Tree,
    leaves: &[NodeId],
    last: &Arrival,
) -> Vec<(NodeId, u128)> {
    let execution = contexts.execution;
    let samples = execution.samples.thread_samples(last.thread, last.since, last.at);
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
            let node = contexts.section_node(tree, &span.section).1;
            shares.push((node, length as u128));
        }
    }
    if shares.is_empty() {
        // It waited all the time, for a lock perhaps; its section at that time is its own path.
        let section = contexts.section_at(last.thread, last.at.min(track.end()).saturating_sub(1));
        let node = contexts.section_node(tree, &section).1;
        shares.push((node, 1));
    }
    shares
}
