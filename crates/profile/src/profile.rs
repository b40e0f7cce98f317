//! A profile: the tree with the modules of its frames, the process, and sums for the whole run.

use crate::{Frame, FrameKind, Marker, Metric, NO_MODULE, NodeId, ROOT, Tree, WaitRow};
use std::collections::{BTreeMap, HashMap};

/// A file that was loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Module {
    /// Build id in hexadecimal; may be empty.
    pub build_id: String,
    /// Path at run time.
    pub path: String,
}

/// Keys of [`Process`] that readers know. Times are decimal numbers of nanoseconds.
pub mod key {
    /// Host name.
    pub const HOST: &str = "host";
    /// Process id.
    pub const PID: &str = "pid";
    /// Rank in the job.
    pub const RANK: &str = "rank";
    /// The command.
    pub const COMMAND: &str = "command";
    /// Start, nanoseconds since 1970.
    pub const START_UNIX_NS: &str = "start_unix_ns";
    /// From the first to the last moment that the profile is about.
    pub const WALL_NS: &str = "wall_ns";
    /// Most workers at a time.
    pub const WORKERS: &str = "workers";
    /// CPUs that the process may use: its affinity mask and the limit of its control group.
    pub const CPUS: &str = "cpus";
    /// Source of time without a CPU: `schedstat`, or `none` if the system lacks it.
    pub const NO_CPU: &str = "no_cpu";
    /// Threads seen.
    pub const THREADS: &str = "threads";
    /// Affinity mask of the process in hexadecimal: two digits for each eight CPUs, those of CPUs 0 to 7 first.
    pub const CPU_MASK: &str = "cpu_mask";
    /// CPUs that were online on the node.
    pub const CPUS_ONLINE: &str = "cpus_online";
    /// Lowest CPU limit of its control groups, in thousandths of a CPU.
    pub const CPU_QUOTA: &str = "cpu_quota_millicpus";
    /// Enforcement periods in which a CPU limit of its control groups was reached.
    pub const THROTTLED_PERIODS: &str = "throttled_periods";
    /// Time that this cost, summed over CPUs.
    pub const THROTTLED_NS: &str = "throttled_ns";
    /// Times that signals stopped the process.
    pub const STOPS: &str = "stops";
    /// How long, nanoseconds.
    pub const STOPPED_NS: &str = "stopped_ns";
    /// Nominal time between two samples of a thread.
    pub const SAMPLE_PERIOD_NS: &str = "sample_period_ns";
    /// Clock of the samples: `cpu` or `wall` time.
    pub const SAMPLE_CLOCK: &str = "sample_clock";
    /// Whether a task's path is that of its creation (`creation`) or of the thread that ran it
    /// (`execution`).
    pub const TASK_CONTEXT: &str = "task_context";
    /// Samples that could not be kept.
    pub const LOST_SAMPLES: &str = "lost_samples";
    /// Whether the process ended before it wrote this (`yes`), or was still running (`no`).
    pub const FINISHED: &str = "finished";
}

/// Names in [`Profile::totals`], and in [`Process`], of the use of CPUs beside waits of threads, CPU-nanoseconds. They are there if the kernel's sums are
/// known. With those of parts of waits they sum to the capacity, but for fractions and time that is not divided yet.
pub mod cpu_sum {
    /// CPUs that the process may use, in thousandths.
    pub const MILLICPUS: &str = "cpus.millicpus";
    /// These CPUs, over the time from the first to the last thread.
    pub const CAPACITY_NS: &str = "cpus.capacity_ns";
    /// Thread-nanoseconds of all threads.
    pub const THREADS_NS: &str = "cpus.threads_ns";
    /// Threads ran, outside of waits.
    pub const USED_NS: &str = "cpus.used_ns";
    /// Threads had no CPU, or waited for such threads.
    pub const NO_CPU_NS: &str = "cpus.no_cpu_ns";
    /// Thread-nanoseconds of those without a CPU.
    pub const NO_CPU_THREADS_NS: &str = "cpus.no_cpu_threads_ns";
    /// Threads were blocked in calls that are not recorded.
    pub const BLOCKED_NS: &str = "cpus.blocked_ns";
    /// Thread-nanoseconds of these.
    pub const BLOCKED_THREADS_NS: &str = "cpus.blocked_threads_ns";
    /// Too few threads had work.
    pub const ALONE_NS: &str = "cpus.alone_ns";
    /// No thread had work.
    pub const IDLE_NS: &str = "cpus.idle_ns";
}

/// When a process writes its first profile, milliseconds after its start: of a shorter run it would be a large part.
pub const FIRST_MS: u64 = 500;

/// Metadata of a process, by [`key`]; unknown keys are kept.
pub type Process = BTreeMap<String, String>;

/// A profile of one process, or of many after [`merge`](Profile::merge).
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// The processes.
    pub processes: Vec<Process>,
    /// Loaded files, by [`Frame::module`].
    pub modules: Vec<Module>,
    /// Paths and metrics.
    pub tree: Tree,
    /// Exact sums over the run that belong to no path, by name: `wall_ns` (the longest of several processes),
    /// `capacity_ns`, and `state.NAME` nanoseconds of the workers by the names of
    /// `taskscope_execution::State`. Two states are estimated parts of others, `state.out_of_cpu` and
    /// `state.oversubscribed` (more workers than CPUs): `no_cpu.NAME` is the time moved there from a state.
    /// `runnable_ns` is the workers' run delay, as `run_delay` counts it: it includes delays without a loss,
    /// while others ran that they waited for. `stopped_ns` is their time in stops by signals; without workers, that of all threads.
    /// `thread_waits.NAME` is about [`thread_waits`](Self::thread_waits): `threads_ns`, the life of all threads; `lost` and `lost_ns`,
    /// waits that found no room before they were summed up; `unfit`, waits and parts without a row of their own. [`cpu_sum`] has the
    /// names of the use of CPUs.
    pub totals: BTreeMap<String, u64>,
    /// Waits of threads for each other (`record --threads`).
    pub thread_waits: Vec<WaitRow>,
}

/// Adds the sums of a run in parallel to this one: elapsed time is not added.
pub(crate) fn merge_totals(totals: &mut BTreeMap<String, u64>, other: &BTreeMap<String, u64>) {
    for (name, value) in other {
        let total = totals.entry(name.clone()).or_default();
        *total = if name == key::WALL_NS { (*total).max(*value) } else { total.saturating_add(*value) };
    }
}

impl Profile {
    /// Adds all of `other`. Memory grows with the number of distinct paths, not of profiles. Files are equal
    /// by build id, or by path if they have none.
    pub fn merge(&mut self, other: &Profile) {
        let mut known: HashMap<(&str, &str), u32> = HashMap::new();
        for (index, module) in self.modules.iter().enumerate() {
            known.entry(identity(module)).or_insert(index as u32);
        }
        let mut next = self.modules.len() as u32;
        let mut new = Vec::new();
        let here: Vec<u32> = (other.modules.iter())
            .map(|module| {
                *known.entry(identity(module)).or_insert_with(|| {
                    new.push(module.clone());
                    next += 1;
                    next - 1
                })
            })
            .collect();
        self.modules.extend(new);
        let module_here = |module: u32| here.get(module as usize).copied().unwrap_or(NO_MODULE);
        let nodes = self.tree.absorb(&other.tree, |tree, parent, frame| {
            let module = module_here(frame.module);
            // Numbers of regions are meaningless outside their process.
            let offset = if frame.kind == FrameKind::Pending { 0 } else { frame.offset };
            tree.child(parent, Frame { module, offset, ..frame })
        });
        let node_here = |node: NodeId| nodes.get(node.0 as usize).copied().unwrap_or(ROOT);
        let first_process = self.processes.len() as u32;
        let moved = |row: &WaitRow| row.clone().moved(first_process, node_here, module_here);
        self.thread_waits.extend(other.thread_waits.iter().map(moved));
        merge_totals(&mut self.totals, &other.totals);
        self.processes.extend(other.processes.iter().cloned());
    }

    /// A number in a process's metadata.
    pub fn number(process: &Process, key: &str) -> Option<u64> {
        process.get(key)?.parse().ok()
    }
}

fn identity(module: &Module) -> (&str, &str) {
    if module.build_id.is_empty() { ("", &module.path) } else { (&module.build_id, "") }
}

/// Totals of one kind of waiting: taken, given, shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Balance {
    /// Kind of waiting.
    pub wait: Marker,
    /// Waiting time, at the paths of the waiting threads.
    pub taken: u64,
    /// Charged to the one that was waited for.
    pub given: u64,
    /// Shared by those that worked.
    pub shared: u64,
}

impl Balance {
    /// Whether every nanosecond that was charged was waited, and the other way round.
    pub fn holds(&self) -> bool {
        let fits = |sum: u64| sum == 0 || sum == self.taken;
        fits(self.given) && fits(self.shared)
    }
}

/// The balance of every kind of waiting that occurs.
pub fn conservation(tree: &Tree) -> Vec<Balance> {
    let waits = Marker::ALL.into_iter().filter(|marker| marker.has_metrics());
    waits
        .map(|wait| Balance {
            wait,
            taken: tree.total(Metric::taken(wait)),
            given: tree.total(Metric::given(wait)),
            shared: tree.total(Metric::shared(wait)),
        })
        .filter(|balance| balance.taken > 0 || balance.given > 0 || balance.shared > 0)
        .collect()
}

/// Divides waiting among paths in proportion to their `shares`, in whole numbers that sum to it, and adds it
/// as `metric` (of the family given or shared). Without shares it is unattributed.
pub fn settle(tree: &mut Tree, metric: Metric, owed: u64, shares: &[(NodeId, u128)]) {
    let total: u128 = shares.iter().map(|(_, share)| share).sum();
    // Keeps the products within 128 bits; the lost bits are far below a nanosecond in a year.
    let spare = (128 - total.leading_zeros()).saturating_sub(63);
    let total: u128 = shares.iter().map(|(_, share)| share >> spare).sum();
    if total == 0 {
        let nobody = tree.child(ROOT, Frame::state(Marker::Nobody));
        tree.add(nobody, metric, owed);
        return;
    }
    // Each gets the increase of the running sum: no part is off by more than one, and the last completes
    // `owed`.
    let (mut running, mut given) = (0_u128, 0_u64);
    for (node, share) in shares {
        running += share >> spare;
        let until = (running * owed as u128 / total) as u64;
        tree.add(*node, metric, until - given);
        given = until;
    }
}

/// Moves `ns` of a metric's total from all nodes, in proportion to their values, to the place of `marker`, in
/// whole numbers. The total is unchanged, and time moved before is not moved again.
pub fn move_to(tree: &mut Tree, metric: Metric, marker: Marker, ns: u64) {
    let keeps = |frame: Frame| matches!(frame.marker(), Some(Marker::OutOfCpu | Marker::Oversubscribed));
    let nodes: Vec<(NodeId, u64)> = (std::iter::once(ROOT).chain(tree.ids()))
        .filter(|node| !keeps(tree.frame(*node)))
        .map(|node| (node, tree.value(node, metric)))
        .filter(|(_, value)| *value > 0)
        .collect();
    let total = nodes.iter().fold(0_u64, |sum, (_, value)| sum.saturating_add(*value));
    let ns = ns.min(total);
    if ns == 0 {
        return;
    }
    let (mut running, mut moved) = (0_u128, 0_u64);
    for (node, value) in nodes {
        running += u128::from(value);
        let until = (running * u128::from(ns) / u128::from(total)).min(ns.into()) as u64;
        let part = (until - moved).min(value);
        tree.take(node, metric);
        tree.add(node, metric, value - part);
        moved += part;
    }
    let place = tree.child(ROOT, Frame::state(marker));
    tree.add(place, metric, moved);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(build_id: &str, path: &str) -> Module {
        Module { build_id: build_id.to_string(), path: path.to_string() }
    }

    fn profile(modules: Vec<Module>, paths: &[(&[Frame], u64)]) -> Profile {
        let mut profile = Profile { modules, processes: vec![Process::new()], ..Profile::default() };
        for (path, ns) in paths {
            let node = profile.tree.descend(ROOT, path.iter().copied());
            profile.tree.add(node, Metric::TIME, *ns);
        }
        profile.totals.insert("wall_ns".to_string(), 10);
        profile.totals.insert("capacity_ns".to_string(), 20);
        profile
    }

    #[test]
    fn merged_paths_join_where_their_files_are_the_same() {
        let a = profile(
            vec![module("aa", "/x/prog"), module("", "/lib/plain.so")],
            &[(&[Frame::user(0, 1), Frame::user(1, 2)], 5)],
        );
        let b = profile(
            vec![module("", "/lib/plain.so"), module("aa", "/elsewhere/prog"), module("bb", "/x/prog")],
            &[(&[Frame::user(1, 1), Frame::user(0, 2)], 7), (&[Frame::user(2, 1)], 1)],
        );
        let mut all = Profile::default();
        all.merge(&a);
        all.merge(&b);
        assert_eq!(
            all.modules,
            [module("aa", "/x/prog"), module("", "/lib/plain.so"), module("bb", "/x/prog")]
        );
        assert_eq!(all.tree.len(), 4);
        assert_eq!(all.tree.value(NodeId(2), Metric::TIME), 12);
        assert_eq!((all.totals["wall_ns"], all.totals["capacity_ns"], all.processes.len()), (10, 40, 2));
    }

    #[test]
    fn merging_gives_the_same_sums_in_any_order() {
        let parts: Vec<Profile> = (0..5_u64)
            .map(|i| profile(vec![module("", "a")], &[(&[Frame::user(0, i % 3), Frame::user(0, i)], i + 1)]))
            .collect();
        let join = |order: &[usize]| {
            let mut all = Profile::default();
            order.iter().for_each(|i| all.merge(&parts[*i]));
            let mut rows: Vec<(Vec<Frame>, u64)> = all
                .tree
                .ids()
                .map(|n| (all.tree.path(n).collect(), all.tree.value(n, Metric::TIME)))
                .collect();
            rows.sort();
            rows
        };
        assert_eq!(join(&[0, 1, 2, 3, 4]), join(&[4, 2, 0, 3, 1]));
    }

    #[test]
    fn moving_keeps_the_sum() {
        let mut tree = Tree::growing();
        let metric = Metric::given(Marker::Barrier);
        let nodes = [7, 0, 90, 3].map(|value| {
            let node = tree.child(ROOT, Frame::user(0, value));
            tree.add(node, metric, value);
            node
        });
        let at = |tree: &Tree, marker| {
            tree.find(ROOT, Frame::state(marker)).map_or(0, |node| tree.value(node, metric))
        };
        move_to(&mut tree, metric, Marker::OutOfCpu, 50);
        move_to(&mut tree, metric, Marker::Oversubscribed, 20);
        assert_eq!((at(&tree, Marker::OutOfCpu), at(&tree, Marker::Oversubscribed)), (50, 20));
        assert_eq!(tree.total(metric), 100);
        assert!((26..=28).contains(&tree.value(nodes[2], metric)), "in proportion");
        move_to(&mut tree, metric, Marker::Oversubscribed, u64::MAX);
        assert_eq!(
            (tree.total(metric), at(&tree, Marker::Oversubscribed)),
            (100, 50),
            "no more than there is"
        );
    }

    #[test]
    fn a_balance_of_the_largest_numbers_is_not_left_out() {
        let mut tree = Tree::growing();
        for metric in [Metric::taken(Marker::Lock), Metric::given(Marker::Lock)] {
            tree.add(ROOT, metric, 1 << 63);
        }
        assert_eq!(conservation(&tree).len(), 1);
    }

    #[test]
    fn settled_parts_sum_to_the_debt() {
        for (owed, shares) in [(10, vec![1_u128, 1, 1]), (7, vec![0, 5, u128::MAX / 4, 3]), (9, vec![0, 0])] {
            let mut tree = Tree::growing();
            let rows: Vec<_> = (shares.iter().enumerate())
                .map(|(i, share)| (tree.child(ROOT, Frame::user(0, i as u64)), *share))
                .collect();
            let waiter = tree.child(ROOT, Frame::state(Marker::Lock));
            tree.add(waiter, Metric::taken(Marker::Lock), owed);
            settle(&mut tree, Metric::given(Marker::Lock), owed, &rows);
            let balances = conservation(&tree);
            assert_eq!(balances.len(), 1);
            assert!(balances[0].holds() && balances[0].given == owed, "{balances:?}");
        }
    }
}
