//! Many runs of a program in their order: their numbers and the changes of these.
//!
//! Data flow: each run gives its [`RunNumbers`], those of `diff`. [`History::of`] puts them in the order of their starts, makes a series of each
//! number, and looks for [`change_points`]. Constructs keep their series if their lines move, as in `diff`. [`crate::html::history`] puts the
//! document into one file.
//!
//! Invariants: each series has a place for every run, null if the run does not have the number; a change names the first run of the new level.

use crate::report_rows::FACTORS;
use crate::run_difference::{at_common_depth, time};
use crate::run_lines::under_newest_lines;
use crate::run_numbers::{Fact, NumberGroup, RunNumbers};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use taskscope_analysis::change_points::{MIN_VALUES, change_points, median};

/// Series of findings and of task types in the document: those with most time.
const MAX_SERIES: usize = 12;
/// Share of the capacity below which a cause or a finding has no series.
const FLOOR: f64 = 0.001;
/// Growth, or share of the capacity, below which a time has not changed; of efficiency the difference.
const EQUAL: f64 = 0.01;

/// A run before it has its place.
pub struct DatedRun {
    /// The trace as given.
    pub name: String,
    /// Start, nanoseconds since 1970 (UTC), if known.
    pub start_unix_ns: Option<u64>,
    /// Its numbers.
    pub numbers: RunNumbers,
}

/// Runs of a program in the order of their starts.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-history/1")]
pub struct History {
    /// The changes of the wall time, in one sentence.
    pub verdict: String,
    /// Whether the order is that of the runs' starts; else they are in the order given.
    pub is_by_start: bool,
    /// The runs.
    pub runs: Vec<HistoryRun>,
    /// Their numbers: of the whole run (wall time first), factors of the efficiency, causes, findings, task types.
    pub series: Vec<Series>,
    /// Notes on the numbers, in sentences.
    pub notes: Vec<String>,
}

/// A run.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct HistoryRun {
    /// The trace as given.
    pub name: String,
    /// Start, nanoseconds since 1970 (UTC); null if unknown.
    pub start_unix_ns: Option<u64>,
    /// Facts about the run that differ from those of the run before it: name, value.
    pub changed_facts: Vec<(&'static str, String)>,
}

/// A number of all runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Series {
    /// The group of the number.
    #[schemars(extend("enum" = NumberGroup::ALL.map(NumberGroup::name)))]
    pub group: &'static str,
    /// Its name: with `_ns` or of a group of times, nanoseconds; of the group efficiency, a share of 1.
    pub name: String,
    /// Its name in words.
    pub label: String,
    /// Its value in each run; null if the run does not have it.
    pub values: Vec<Option<f64>>,
    /// Its changes of level.
    pub changes: Vec<SeriesChange>,
}

/// A change of level.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SeriesChange {
    /// The first run of the new level, by its place among the runs.
    pub run: usize,
    /// Median before, since the last change.
    pub before: f64,
    /// Median after, up to the next change.
    pub after: f64,
    /// Probability of such a split in a series without a change.
    pub chance: f64,
}

impl History {
    /// Puts runs in order and looks for changes.
    pub fn of(mut runs: Vec<DatedRun>) -> History {
        let is_by_start = runs.iter().all(|run| run.start_unix_ns.is_some());
        if is_by_start {
            runs.sort_by_key(|run| run.start_unix_ns);
        }
        let numbers: Vec<RunNumbers> = runs.iter().map(|run| run.numbers.clone()).collect();
        let (numbers, moved) = under_newest_lines(&numbers);
        let (mut series, mut notes) = series_of(&numbers);
        notes.extend(moved.note("lines in the newest run"));
        keep_large(&mut series);
        let capacity = largest(&series, "capacity_ns");
        for row in &mut series {
            row.changes = changes_of(row, capacity);
        }
        if runs.len() < MIN_VALUES {
            notes.push(format!(
                "changes are sought among {MIN_VALUES} runs or more; of fewer, any order may be chance"
            ));
        }
        let changed = |row: usize| {
            let facts = Fact::ALL.into_iter().filter_map(|fact| {
                let value = numbers[row].value_of(fact)?;
                let before = row.checked_sub(1).map(|before| numbers[before].value_of(fact));
                (before != Some(Some(value))).then(|| (fact.label(), value.to_owned()))
            });
            facts.collect()
        };
        let rows = runs.iter().enumerate().map(|(row, run)| HistoryRun {
            name: run.name.clone(),
            start_unix_ns: run.start_unix_ns,
            changed_facts: changed(row),
        });
        let rows: Vec<HistoryRun> = rows.collect();
        History { verdict: verdict(&series, &rows), is_by_start, runs: rows, series, notes }
    }
}

/// A series of each number, at the level of detail that all runs have, and notes on omissions.
fn series_of(runs: &[RunNumbers]) -> (Vec<Series>, Vec<String>) {
    let (table, _, notes) = at_common_depth(runs, &[]);
    let labels: BTreeMap<&String, &String> = runs.iter().flat_map(RunNumbers::labels).collect();
    let keys: BTreeSet<&(NumberGroup, String)> = table.iter().flat_map(BTreeMap::keys).collect();
    let series = keys.into_iter().map(|key| {
        let (group, name) = key;
        // A cause or a finding that a run does not have took no time in it.
        let none = [NumberGroup::Cause, NumberGroup::Finding].contains(group).then_some(0.0);
        let values = table.iter().map(|numbers| numbers.get(key).copied().or(none)).collect();
        let label = labels.get(name).map_or_else(|| group.label(name), |label| (*label).clone());
        Series { group: group.name(), name: name.clone(), label, values, changes: Vec::new() }
    });
    let mut series: Vec<Series> = series.collect();
    let sum = |row: &Series| row.values.iter().flatten().sum::<f64>();
    let factor = |row: &Series| FACTORS.iter().position(|(key, _)| *key == row.name);
    let group = |row: &Series| NumberGroup::ALL.into_iter().position(|group| group.name() == row.group);
    series.sort_by(|a, b| {
        let by_size = || match a.group == NumberGroup::Run.name() {
            true => (a.name != "wall_ns").cmp(&(b.name != "wall_ns")),
            false => sum(b).total_cmp(&sum(a)),
        };
        let by_factor = || factor(a).cmp(&factor(b));
        group(a).cmp(&group(b)).then_with(by_factor).then_with(by_size).then_with(|| a.name.cmp(&b.name))
    });
    (series, notes)
}

/// The changes of a series. Runs without the number are passed over.
fn changes_of(series: &Series, capacity: f64) -> Vec<SeriesChange> {
    let known: Vec<(usize, f64)> =
        series.values.iter().enumerate().filter_map(|(run, value)| Some((run, (*value)?))).collect();
    let values: Vec<f64> = known.iter().map(|(_, value)| *value).collect();
    let floor = match series.group {
        group if group == NumberGroup::Efficiency.name() => EQUAL,
        group if group == NumberGroup::Cause.name() || group == NumberGroup::Finding.name() => {
            capacity * EQUAL
        }
        _ => median(&values) * EQUAL,
    };
    let change = |change: taskscope_analysis::change_points::ChangePoint| SeriesChange {
        run: known[change.at].0,
        before: change.before,
        after: change.after,
        chance: change.chance,
    };
    change_points(&values, floor).into_iter().map(change).collect()
}

/// Leaves out series of causes, findings and types with little time.
fn keep_large(series: &mut Vec<Series>) {
    let floor = largest(series, "capacity_ns") * FLOOR;
    let size = |row: &Series| row.values.iter().flatten().copied().fold(0.0, f64::max);
    for group in [NumberGroup::Cause, NumberGroup::Finding, NumberGroup::TaskType] {
        let most = if group == NumberGroup::Cause { usize::MAX } else { MAX_SERIES };
        let mut sizes: Vec<f64> = series.iter().filter(|row| row.group == group.name()).map(size).collect();
        sizes.sort_by(|a, b| b.total_cmp(a));
        let least = sizes.get(most).copied().unwrap_or(-1.0);
        let mut equal = most - sizes.iter().take(most).filter(|own| **own > least).count();
        series.retain(|row| {
            if row.group != group.name() {
                return true;
            }
            let is_equal = size(row) == least && equal > 0;
            equal -= usize::from(is_equal);
            (size(row) > least || is_equal) && (group == NumberGroup::TaskType || size(row) >= floor)
        });
    }
}

fn largest(series: &[Series], name: &str) -> f64 {
    let matching_rows = series.iter().filter(|row| row.group == NumberGroup::Run.name() && row.name == name);
    matching_rows.flat_map(|row| row.values.iter().flatten().copied()).fold(0.0, f64::max)
}

/// The changes of the wall time in words.
fn verdict(series: &[Series], runs: &[HistoryRun]) -> String {
    let wall = series.iter().find(|row| row.name == "wall_ns");
    let words = |change: &SeriesChange| {
        let word = if change.after > change.before { "grew" } else { "fell" };
        let growth = (change.after / change.before - 1.0).abs() * 100.0;
        let (before, after) = (time(change.before), time(change.after));
        format!("{word} by {growth:.1} % at {} ({before} → {after})", runs[change.run].name)
    };
    match wall.map(|wall| wall.changes.as_slice()) {
        _ if runs.len() < MIN_VALUES => format!("{} runs are too few to find changes.", runs.len()),
        None => "The wall time of the runs is not known.".to_owned(),
        Some([]) => format!("The wall time did not change in {} runs.", runs.len()),
        Some(changes) => {
            let all: Vec<String> = changes.iter().map(words).collect();
            format!("The wall time {}.", all.join("; it "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(walls: &[f64], is_dated: bool) -> Vec<DatedRun> {
        let run = |(row, wall): (usize, &f64)| DatedRun {
            name: format!("{row}.trace"),
            // Given in the reverse order of their starts.
            start_unix_ns: is_dated.then(|| 1_000_000 - row as u64),
            numbers: RunNumbers::from_totals(*wall),
        };
        walls.iter().enumerate().map(run).collect()
    }

    #[test]
    fn runs_are_in_the_order_of_their_starts_and_the_change_names_its_run() {
        let walls: Vec<f64> = (0..16).map(|row| if row < 8 { 2e9 } else { 1e9 } + row as f64 * 1e5).collect();
        let history = History::of(runs(&walls, true));
        assert!(history.is_by_start);
        assert_eq!(history.runs[0].name, "15.trace");
        let wall = &history.series[0];
        assert_eq!((wall.name.as_str(), wall.values.len()), ("wall_ns", 16));
        let changes: Vec<usize> = wall.changes.iter().map(|change| change.run).collect();
        assert_eq!(changes, [8]);
        assert!(
            history.verdict.starts_with("The wall time grew by 99.8 % at 7.trace (1.00 s → 2.00 s)"),
            "{}",
            history.verdict
        );
        let history = History::of(runs(&walls, false));
        assert_eq!((history.is_by_start, history.runs[0].name.as_str()), (false, "0.trace"));
        assert!(history.verdict.contains("fell by 50.0 % at 8.trace"), "{}", history.verdict);
    }

    #[test]
    fn a_construct_keeps_its_series_if_its_line_moves() {
        let mut dated = runs(&[1e9; 3], false);
        for (row, line) in [21, 22, 22].into_iter().enumerate() {
            let name = format!("main [task at a.c:{line}]");
            dated[row].numbers.constructs.insert(name.clone());
            dated[row].numbers.numbers.insert((NumberGroup::TaskType, name), 1000.0 + row as f64);
        }
        let history = History::of(dated);
        let types: Vec<&Series> =
            history.series.iter().filter(|row| row.group == NumberGroup::TaskType.name()).collect();
        assert_eq!(types.len(), 1, "{types:?}");
        assert_eq!(types[0].name, "main [task at a.c:22]");
        assert_eq!(types[0].values, [Some(1000.0), Some(1001.0), Some(1002.0)]);
        assert!(history.notes.iter().any(|note| note.starts_with("1 construct with other lines")));
    }

    #[test]
    fn the_first_of_equally_large_types_are_kept() {
        let mut dated = runs(&[1e9], true);
        for number in 0..20 {
            dated[0].numbers.numbers.insert((NumberGroup::TaskType, format!("type {number:02}")), 1000.0);
        }
        let history = History::of(dated);
        let types: Vec<&str> = (history.series.iter())
            .filter(|row| row.group == NumberGroup::TaskType.name())
            .map(|row| row.name.as_str())
            .collect();
        assert_eq!((types.len(), types[0], types[11]), (MAX_SERIES, "type 00", "type 11"));
    }

    #[test]
    fn few_runs_have_no_changes_and_a_note() {
        let history = History::of(runs(&[1e9, 1e9, 5e9, 5e9], true));
        assert!(history.series.iter().all(|row| row.changes.is_empty()));
        assert!(history.verdict.contains("too few") && history.notes.len() == 1, "{history:?}");
        assert!(History::of(Vec::new()).series.is_empty());
    }
}
