//! Call trees in the forms of other profilers.
//!
//! All three write every path with its own values, once, without the runtime's frames between the
//! program's. Sizes are known before writing: one line, sample or record a path.

mod folded;
mod pprof;
mod speedscope;

pub use folded::write_folded;
pub use pprof::write_pprof;
pub use speedscope::write_speedscope;

use taskscope_profile::named::{CallTree, StepKind};
use taskscope_profile::{FrameKind, Metric, NodeId};

/// A column: its name, its unit, the metrics that it sums.
pub struct ValueType {
    /// The name, in one word.
    pub name: &'static str,
    /// `nanoseconds` or `count`.
    pub unit: &'static str,
    /// Whether a metric is part of it.
    pub takes: fn(Metric) -> bool,
}

/// The exported columns, without empty ones.
pub const VALUE_TYPES: [ValueType; 7] = [
    ValueType { name: "time", unit: "nanoseconds", takes: |metric| metric.0 == Metric::TIME.0 },
    ValueType { name: "blocked", unit: "nanoseconds", takes: |metric| metric.0 == Metric::BLOCKED.0 },
    ValueType { name: "no_cpu", unit: "nanoseconds", takes: |metric| metric.0 == Metric::OUT_OF_CPU.0 },
    ValueType { name: "waiting", unit: "nanoseconds", takes: Metric::is_taken },
    ValueType { name: "blame", unit: "nanoseconds", takes: Metric::is_given },
    ValueType { name: "idleness", unit: "nanoseconds", takes: Metric::is_idleness },
    ValueType { name: "samples", unit: "count", takes: |metric| metric.0 == Metric::SAMPLES.0 },
];

fn value(tree: &CallTree, node: NodeId, ty: &ValueType) -> u64 {
    let own = tree.tree.values(node).filter(|(metric, _)| (ty.takes)(*metric));
    own.fold(0, |sum, (_, value)| sum.saturating_add(value))
}

/// Which columns occur.
fn occurring(tree: &CallTree) -> Vec<&'static ValueType> {
    let occurs = |ty: &&ValueType| tree.nodes().any(|node| value(tree, node, ty) > 0);
    VALUE_TYPES.iter().filter(occurs).collect()
}

/// Without the runtime's frames and loops; lines stay, which pprof can show.
fn with_lines(tree: &CallTree) -> CallTree {
    tree.kept(|frame, label| {
        frame.kind != FrameKind::Runtime && label.is_none_or(|label| label.what != StepKind::Loop)
    })
}
