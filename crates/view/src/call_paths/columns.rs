//! Columns of call paths: what they are called, how their values are shown.

use crate::format::{Unit, count};
use taskscope_analysis::call_views::Column;
use taskscope_profile::Unit as MetricUnit;

/// The title of a column; time of samples is not time of the ledger and says so.
pub(super) fn word_of(column: Column, is_sampled: bool) -> String {
    match column {
        Column::Time if is_sampled => "sampled".to_string(),
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
pub(super) fn key_of(column: Column) -> String {
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
