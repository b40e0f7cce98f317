//! A profile of a recorded run: samples and exact events by the user's call paths.
//!
//! A worker's path continues at its region's creation path in the master, at any nesting level, and a task's
//! at its creation path (or, on request, at the section of the executing thread). The time of all paths is
//! the workers' capacity: waits are at their own paths, and the ledger's time of each state and place is
//! apportioned among the samples taken there ([`times`]). Events give the rest, exactly and for every
//! nanosecond of every worker:
//!
//! | metric | at the path of | how |
//! | --- | --- | --- |
//! | taken | the waiting or idle threads | sections |
//! | given, locks | the holder, at its request of the lock | holds; Tallent et al., PPoPP 2010 |
//! | given, barriers | the last to arrive, since its last synchronisation; then tasks that still run | sections |
//! | given, taskwaits | the children still running | tasks |
//! | shared | the threads working meanwhile | Tallent and Mellor-Crummey, PPoPP 2009 |
//!
//! The path below the construct, which events lack, comes from samples: the path of a sample that called the
//! runtime from the same place in the same construct is used for the event, and the charges of a working
//! thread go to its samples of that time, by weight.
//!
//! Tasks that create tasks of their own kind by the same path are distinguished eight levels deep; further
//! ones count at the eighth, as a recursion makes too many paths to read.
//!
//! A part of a run is cut out of the analysis of the whole ([`part`]): each path has the part's nanoseconds of
//! its time in the run.

mod awaited;
mod barriers;
mod contexts;
mod creator;
mod kernel_times;
mod part;
mod running;
mod sampled;
mod shared;
mod times;
mod waits;

use contexts::Contexts;
pub use contexts::TaskContext;
use taskscope_event::models::samples::flag;
use taskscope_execution::{Execution, NO_TIME, RegionIndex, TaskIndex};
use taskscope_profile::{Metric, NodeId, Profile, ROOT, Tree, key};

/// Options for the call tree of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CallPathOptions {
    /// The outer continuation of a task's path.
    pub task_context: TaskContext,
}

/// Quality figures of the samples in a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct SampleQuality {
    /// Samples.
    pub samples: u64,
    /// Samples with a stack that was unwound to its root.
    pub reached_root: u64,
    /// Samples taken inside the runtime.
    pub in_runtime: u64,
    /// Samples with unknown task levels.
    pub levels_unknown: u64,
    /// Whether times by path are those of the samples (clock `cpu`), instead of the workers' ledger.
    pub is_time_sampled: bool,
    /// Nanoseconds of threads that are not workers, in times by path beside the ledger.
    pub other_threads_ns: u64,
    /// Whether samples are the only source of activity.
    pub knows_samples_alone: bool,
}

/// The profile of a run, with one process entry for each of its processes.
pub fn profile_of(execution: &Execution, options: CallPathOptions) -> (Profile, SampleQuality) {
    let (profile, quality, _) = profile_with_samples(execution, options);
    (profile, quality)
}

/// The profile of a run, and the innermost node of each sample of the whole run, in the order of its samples: the root for samples
/// outside of the part with a path of their own.
pub fn profile_with_samples(
    execution: &Execution,
    options: CallPathOptions,
) -> (Profile, SampleQuality, Vec<NodeId>) {
    let mut profile = Profile::default();
    for process in execution.processes.iter().filter(|process| !process.has_cpus) {
        profile.processes.push(taskscope_profile::Process::from([
            (key::HOST.to_string(), process.loom.clone()),
            (key::PID.to_string(), process.pid.to_string()),
            (key::WALL_NS.to_string(), (process.last - process.first).to_string()),
            (
                key::TASK_CONTEXT.to_string(),
                match options.task_context {
                    TaskContext::Creation => "creation".to_string(),
                    TaskContext::Execution => "execution".to_string(),
                },
            ),
        ]));
    }
    let mut contexts = Contexts::new(execution, &mut profile, options.task_context);
    let mut quality =
        SampleQuality { knows_samples_alone: execution.knows_samples_alone(), ..SampleQuality::default() };
    let (run, part) = (contexts.execution, contexts.part);
    for sample in run.samples.rows.iter().filter(|row| part.has_thread(row.thread) && part.has(row.at)) {
        quality.samples += 1;
        quality.reached_root += u64::from(sample.flags & flag::REACHED_ROOT != 0);
        quality.in_runtime += u64::from(sample.flags & flag::IN_RUNTIME != 0);
        quality.levels_unknown += u64::from(sample.flags & flag::LEVELS_UNKNOWN != 0);
    }
    let placed = sampled::add_samples(&mut contexts, &mut profile.tree);
    (quality.is_time_sampled, quality.other_threads_ns) =
        times::add_times(&mut contexts, &mut profile.tree, &placed);
    let leaves: Vec<NodeId> = placed.iter().map(|placed| placed.user).collect();
    waits::add_waits(&mut contexts, &mut profile.tree);
    barriers::add_last_arrivers(&mut contexts, &mut profile.tree, &leaves);
    shared::add_shared(&mut contexts, &mut profile.tree, &leaves);
    add_creations(&mut contexts, &mut profile.tree);
    let mut sample_nodes: Vec<NodeId> = placed.iter().map(|placed| placed.node).collect();
    if !part.is_whole() {
        let (tree, nodes) = with_values(&profile.tree);
        profile.tree = tree;
        sample_nodes.iter_mut().for_each(|node| *node = nodes[node.0 as usize]);
    }
    (profile, quality, sample_nodes)
}

/// Regions and tasks at the paths of their creation, with the tasks' time.
fn add_creations(contexts: &mut Contexts<'_>, tree: &mut Tree) {
    let execution = contexts.part.execution;
    for region in 0..execution.regions.len() {
        let region = execution.region_of_whole(RegionIndex(region as u32));
        let context = contexts.region_context(tree, region);
        tree.add(contexts.node(context), Metric::REGIONS, 1);
    }
    let whole_task = |task: usize| execution.task_of_whole(TaskIndex(task as u32));
    let asked = |task: &usize| execution.is_selected(execution.tasks.creator[*task]);
    for task in (0..execution.tasks.len()).filter(asked) {
        let context = contexts.created_at(tree, whole_task(task));
        tree.add(contexts.node(context), Metric::TASKS, 1);
    }
    // As in the table of task types: tasks that began on selected threads, wherever they ran.
    for (task, body_ns) in crate::body_times(execution).into_iter().enumerate() {
        let tasks = &execution.tasks;
        let began = tasks.began[task] != NO_TIME && execution.is_selected(tasks.runner[task]);
        if began && body_ns > 0 {
            let context = contexts.created_at(tree, whole_task(task));
            tree.add(contexts.node(context), Metric::TASK_TIME, body_ns);
        }
    }
}

/// The paths with values, as a part has none at paths of the rest of the run; and the new number of each node, the root for those that are
/// left out.
fn with_values(tree: &Tree) -> (Tree, Vec<NodeId>) {
    let mut has_values = vec![false; tree.len()];
    for node in tree.ids().rev() {
        has_values[node.0 as usize] |= tree.values(node).next().is_some();
        has_values[tree.parent(node).0 as usize] |= has_values[node.0 as usize];
    }
    let mut kept = Tree::growing();
    let mut nodes = vec![ROOT; tree.len()];
    for node in std::iter::once(ROOT).chain(tree.ids().filter(|node| has_values[node.0 as usize])) {
        if node != ROOT {
            let parent = nodes[tree.parent(node).0 as usize];
            nodes[node.0 as usize] = kept.child(parent, tree.frame(node));
        }
        tree.values(node).for_each(|(metric, value)| kept.add(nodes[node.0 as usize], metric, value));
    }
    (kept, nodes)
}
