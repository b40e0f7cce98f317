//! Columns of call trees, and their sums.

use taskscope_profile::{Metric, NodeId, ROOT, Tree};

/// A column of a view.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Column {
    /// Time of the samples.
    Time,
    /// That part in the program's own code.
    Work,
    /// That part in which the program's code was blocked in the kernel.
    Blocked,
    /// That part in the runtime, not waiting.
    Runtime,
    /// That part in which the program's own code had no CPU.
    OutOfCpu,
    /// Waiting that was taken here: the symptom.
    Waiting,
    /// Waiting of others that was caused here, if there is a culprit.
    Blame,
    /// Waiting of others while this worked: the cause, shared by all that worked.
    Idleness,
    /// Samples.
    Samples,
    /// Tasks created here.
    Tasks,
    /// Time of the tasks created here.
    TaskTime,
    /// One metric.
    Of(Metric),
}

impl Column {
    /// The columns of every view.
    pub const ALL: [Column; 11] = [
        Column::Time,
        Column::Work,
        Column::Blocked,
        Column::Runtime,
        Column::OutOfCpu,
        Column::Waiting,
        Column::Blame,
        Column::Idleness,
        Column::Samples,
        Column::Tasks,
        Column::TaskTime,
    ];

    /// The name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Column::Time => "time_ns",
            Column::Work => "work_ns",
            Column::Blocked => "blocked_ns",
            Column::Runtime => "runtime_ns",
            Column::OutOfCpu => "out_of_cpu_ns",
            Column::Waiting => "waiting_ns",
            Column::Blame => "blame_ns",
            Column::Idleness => "idleness_ns",
            Column::Samples => "samples",
            Column::Tasks => "tasks",
            Column::TaskTime => "task_time_ns",
            Column::Of(_) => "metric",
        }
    }

    /// The column of a name; single metrics by theirs.
    pub fn named(name: &str) -> Option<Column> {
        let plain = Column::ALL
            .into_iter()
            .find(|column| column.name() == name || column.name().strip_suffix("_ns") == Some(name));
        plain.or_else(|| Metric::named(name).map(Column::Of))
    }

    /// Whether a metric is part of it.
    pub fn takes(self, metric: Metric) -> bool {
        match self {
            Column::Time => metric == Metric::TIME,
            Column::Work => metric == Metric::WORK,
            Column::Blocked => metric == Metric::BLOCKED,
            Column::Runtime => metric == Metric::RUNTIME,
            Column::OutOfCpu => metric == Metric::OUT_OF_CPU,
            Column::Waiting => metric.is_taken(),
            Column::Blame => metric.is_given(),
            Column::Idleness => metric.is_idleness(),
            Column::Samples => metric == Metric::SAMPLES,
            Column::Tasks => metric == Metric::TASKS,
            Column::TaskTime => metric == Metric::TASK_TIME,
            Column::Of(one) => metric == one,
        }
    }

    /// The default sort column of a tree: time if sampled, waiting otherwise. CPU time if threads slept for
    /// most of the sampled time; else threads that always wait for work would come first.
    pub fn main_of(tree: &Tree) -> Column {
        if total(tree, Column::Work) > 0 && total(tree, Column::Blocked) > total(tree, Column::Time) / 2 {
            return Column::Work;
        }
        let candidates = [Column::Time, Column::Waiting, Column::TaskTime, Column::Tasks];
        candidates.into_iter().find(|column| total(tree, *column) > 0).unwrap_or(Column::Time)
    }
}

/// A column of one node itself.
pub fn own(tree: &Tree, node: NodeId, column: Column) -> u64 {
    let values = tree.values(node).filter(|(metric, _)| column.takes(*metric));
    values.fold(0, |sum, (_, value)| sum.saturating_add(value))
}

/// A column over the whole tree.
pub fn total(tree: &Tree, column: Column) -> u64 {
    std::iter::once(ROOT).chain(tree.ids()).fold(0, |sum, node| sum.saturating_add(own(tree, node, column)))
}

/// A column of every node with all that is further in, by node.
pub fn inclusive(tree: &Tree, column: Column) -> Vec<u64> {
    let mut sums: Vec<u64> = std::iter::once(ROOT).chain(tree.ids()).map(|n| own(tree, n, column)).collect();
    for node in tree.ids().rev() {
        let outer = tree.parent(node).0 as usize;
        sums[outer] = sums[outer].saturating_add(sums[node.0 as usize]);
    }
    sums
}
