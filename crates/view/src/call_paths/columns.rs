//! Columns of call paths: names and formats of values.

use crate::format::{Unit, count};
use taskscope_analysis::call_views::Column;
use taskscope_profile::MetricUnit;

/// The kind of times by path that samples decide: the page's titles and the text's legend name any but `Workers`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum TimeKind {
    /// The workers' ledger.
    Workers,
    /// Samples.
    Samples,
    /// The workers' ledger, and time of other threads.
    Both,
}

impl TimeKind {
    /// The shown columns of this kind, and the kind: `time, no CPU (samples)`; empty if all are from the
    /// ledger.
    pub(super) fn legend(self, shown: &[Column]) -> String {
        let kind = match self {
            TimeKind::Workers => return String::new(),
            TimeKind::Samples => "samples",
            TimeKind::Both => "all threads",
        };
        let names: Vec<String> =
            shown.iter().filter(|column| is_of_samples(**column)).map(|column| word_of(*column)).collect();
        if names.is_empty() { String::new() } else { format!("{} ({kind})", names.join(", ")) }
    }
}

/// Whether samples decide the time of a column.
fn is_of_samples(column: Column) -> bool {
    use Column::{Blocked, OutOfCpu, Runtime, Time, Work};
    matches!(column, Time | Work | Runtime | Blocked | OutOfCpu)
}

/// The title of a column.
pub(super) fn word_of(column: Column) -> String {
    match column {
        Column::Time => "time".to_string(),
        Column::Work => "work".to_string(),
        Column::Blocked => "blocked".to_string(),
        Column::Runtime => "runtime".to_string(),
        Column::OutOfCpu => "no CPU".to_string(),
        Column::Waiting => "waiting".to_string(),
        Column::Blame => "blame".to_string(),
        Column::Idleness => "idleness".to_string(),
        Column::Samples => "samples".to_string(),
        Column::Tasks => "tasks".to_string(),
        Column::TaskTime => "task time".to_string(),
        Column::Of(metric) => metric
            .name()
            .map_or_else(String::new, |name| name.to_string())
            .replace("_ns", "")
            .replace('_', " "),
    }
}

/// A column's name in JSON.
pub(crate) fn key_of(column: Column) -> String {
    match column {
        Column::Of(metric) => metric.name().map(|name| name.to_string()).unwrap_or_default(),
        column => column.name().to_string(),
    }
}

pub(super) fn is_count(column: Column) -> bool {
    match column {
        Column::Samples | Column::Tasks => true,
        Column::Of(metric) => metric.unit() == MetricUnit::Count,
        _ => false,
    }
}

pub(super) fn show(unit: Unit, column: Column, value: u64) -> String {
    if value == 0 {
        String::new()
    } else if is_count(column) {
        count(value)
    } else {
        unit.show(value)
    }
}
