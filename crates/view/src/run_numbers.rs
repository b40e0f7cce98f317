//! The numbers of a run that two runs are compared by, and the comparison.

use crate::{format, words};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use taskscope_analysis::Analysis;
use taskscope_analysis::causes::book_causes;
use taskscope_analysis::compare::Comparison;
use taskscope_cause::Cause;
use taskscope_execution::graph::TaskGraph;
use taskscope_session::Session;

/// What kind of number it is; the order of the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// Of the whole run, nanoseconds.
    Run,
    /// Factors, shares of 1.
    Efficiency,
    /// Worker-nanoseconds by cause.
    Cause,
    /// Worker-nanoseconds by finding.
    Finding,
    /// Mean nanoseconds of a task of a type.
    TaskType,
}

impl Group {
    const ALL: [Group; 5] = [Group::Run, Group::Efficiency, Group::Cause, Group::Finding, Group::TaskType];

    const fn name(self) -> &'static str {
        match self {
            Group::Run => "run",
            Group::Efficiency => "efficiency",
            Group::Cause => "cause",
            Group::Finding => "finding",
            Group::TaskType => "task_type",
        }
    }

    const fn title(self) -> &'static str {
        match self {
            Group::Run => "The run",
            Group::Efficiency => "Efficiency",
            Group::Cause => "Worker-time by cause",
            Group::Finding => "Findings",
            Group::TaskType => "Mean task of a type",
        }
    }
}

/// The numbers of one run.
#[derive(Clone, Debug, Default)]
pub struct RunNumbers(BTreeMap<(Group, String), f64>);

impl RunNumbers {
    /// Those of a recorded run.
    pub fn of_session(session: &Session, analysis: &Analysis) -> RunNumbers {
        let mut numbers = RunNumbers::default();
        let (ledger, efficiency) = (&analysis.ledger, &analysis.efficiency);
        numbers.put(Group::Run, "wall_ns", ledger.wall_ns as f64);
        numbers.put(Group::Run, "capacity_ns", ledger.capacity_ns as f64);
        numbers.put(Group::Run, "lost_ns", (ledger.capacity_ns - efficiency.useful_ns) as f64);
        for (name, share) in [
            ("parallel", efficiency.parallel),
            ("cpu_availability", efficiency.cpu_availability),
            ("load_balance", efficiency.load_balance),
            ("serialization", efficiency.serialization),
            ("device_offload", efficiency.device_offload),
            ("blocked", efficiency.blocked),
            ("runtime_overhead", efficiency.runtime_overhead),
        ] {
            numbers.put(Group::Efficiency, name, share);
        }
        for (state, ns) in ledger.by_state.iter() {
            numbers.put(Group::Cause, state.cause().name(), ns as f64);
        }
        for finding in words::findings(session, analysis) {
            let name = format!("{}: {} {}", finding.cause.name(), finding.blamed.label(), finding.place);
            numbers.put(Group::Finding, name.trim_end(), finding.ns as f64);
        }
        for row in analysis.task_types.iter().filter(|row| row.began > 0) {
            numbers.put(Group::TaskType, &session.places.type_name(row.ty), row.mean_ns() as f64);
        }
        numbers
    }

    /// Those of an imported graph.
    pub fn of_graph(graph: &TaskGraph) -> RunNumbers {
        let mut numbers = RunNumbers::default();
        let causes = book_causes(graph);
        let (begin, end) = graph.range();
        let work = causes.by_cause[Cause::Work as usize];
        numbers.put(Group::Run, "wall_ns", (end - begin) as f64);
        numbers.put(Group::Run, "capacity_ns", causes.capacity_ns as f64);
        numbers.put(Group::Run, "lost_ns", (causes.capacity_ns - work) as f64);
        numbers.put(Group::Efficiency, "parallel", work as f64 / causes.capacity_ns.max(1) as f64);
        for (cause, ns) in Cause::ALL.iter().zip(causes.by_cause).filter(|(_, ns)| *ns > 0) {
            numbers.put(Group::Cause, cause.name(), ns as f64);
        }
        for row in causes.rows.iter().filter(|row| row.cause != Cause::Work) {
            let name = format!("{} {}", row.cause.name(), row.who.label(graph));
            *numbers.0.entry((Group::Finding, name)).or_default() += row.ns as f64;
        }
        let mut types: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for piece in graph.pieces.items() {
            let ty = &graph.types[graph.tasks.ty[piece.task as usize] as usize];
            types.entry(&ty.name).or_default().0 += piece.end - piece.start;
        }
        for ty in &graph.tasks.ty {
            types.entry(&graph.types[*ty as usize].name).or_default().1 += 1;
        }
        for (name, (ns, tasks)) in types {
            numbers.put(Group::TaskType, name, ns as f64 / tasks.max(1) as f64);
        }
        numbers
    }

    fn put(&mut self, group: Group, name: &str, value: f64) {
        *self.0.entry((group, name.to_owned())).or_default() += value;
    }
}

/// Two runs or two sets of runs, number by number.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-diff/1")]
pub struct RunDifferenceReport {
    /// The runs before.
    pub before: RunSet,
    /// The runs after.
    pub after: RunSet,
    /// Their numbers.
    pub rows: Vec<NumberDifference>,
}

/// A run or a set of runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunSet {
    /// As it was given.
    pub name: String,
    /// Number of runs.
    pub runs: usize,
}

/// A number of both sides: the means of their runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NumberDifference {
    /// What it is a number of.
    #[schemars(extend("enum" = Group::ALL.map(Group::name)))]
    pub group: &'static str,
    /// Its name: with `_ns` or of a group of times, nanoseconds; of the group efficiency, a share of 1.
    pub name: String,
    /// Mean before.
    pub before: f64,
    /// Mean after.
    pub after: f64,
    /// `after` − `before`.
    pub difference: f64,
    /// The difference as a share of `before`; null where that is 0.
    pub growth: Option<f64>,
    /// Welch's 95 % interval of the difference; null with one run on a side.
    pub interval_95: Option<[f64; 2]>,
    /// Whether the interval leaves out 0; null with one run on a side.
    pub certain: Option<bool>,
}

/// Two sets of runs, number by number.
#[derive(Clone, Debug)]
pub struct RunDifference {
    runs: (usize, usize),
    rows: Vec<(Group, String, Comparison)>,
}

/// Compares two sets of runs, each of at least one. What a run does not have counts as none in causes and findings;
/// means of task types are compared over the runs that have it, where both sides do.
pub fn compare_runs(before: &[RunNumbers], after: &[RunNumbers]) -> RunDifference {
    let mut keys: Vec<&(Group, String)> = before.iter().chain(after).flat_map(|run| run.0.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut rows: Vec<(Group, String, Comparison)> = Vec::new();
    for key in keys {
        let values = |runs: &[RunNumbers]| -> Vec<f64> {
            let values = runs.iter().map(|run| run.0.get(key).copied());
            match key.0 {
                Group::Cause | Group::Finding => values.map(Option::unwrap_or_default).collect(),
                _ => values.flatten().collect(),
            }
        };
        let (first, second) = (values(before), values(after));
        if !first.is_empty() && !second.is_empty() {
            rows.push((key.0, key.1.clone(), Comparison::of(&first, &second)));
        }
    }
    rows.sort_by(|a, b| {
        let size = |row: &(Group, String, Comparison)| row.2.difference().abs();
        // Within causes, findings and types the largest change comes first.
        a.0.cmp(&b.0)
            .then_with(|| if a.0 >= Group::Cause { size(b).total_cmp(&size(a)) } else { a.1.cmp(&b.1) })
    });
    RunDifference { runs: (before.len(), after.len()), rows }
}

impl RunDifference {
    /// The comparison of a number of the whole run: `wall`, `capacity` or `lost`.
    pub fn of_run(&self, name: &str) -> Option<&Comparison> {
        let name = format!("{name}_ns");
        self.rows.iter().find(|row| row.0 == Group::Run && row.1 == name).map(|row| &row.2)
    }

    /// As a document; `names` are those of the two sides.
    pub fn report(&self, names: [&str; 2]) -> RunDifferenceReport {
        let rows = self.rows.iter().map(|(group, name, comparison)| NumberDifference {
            group: group.name(),
            name: name.clone(),
            before: comparison.before,
            after: comparison.after,
            difference: comparison.difference(),
            growth: comparison.growth(),
            interval_95: comparison.interval.map(|(low, high)| [low, high]),
            certain: comparison.is_certain(),
        });
        RunDifferenceReport {
            before: RunSet { name: names[0].to_owned(), runs: self.runs.0 },
            after: RunSet { name: names[1].to_owned(), runs: self.runs.1 },
            rows: rows.collect(),
        }
    }

    /// As lines for a person, with `top` rows of each long table.
    pub fn text(&self, names: [&str; 2], top: usize) -> String {
        let mut out = String::new();
        let counted = |runs: usize| crate::format::counted(runs as u64, "run");
        let _ = writeln!(out, "  before  {} ({})", names[0], counted(self.runs.0));
        let _ = writeln!(out, "  after   {} ({})", names[1], counted(self.runs.1));
        for group in Group::ALL {
            let rows: Vec<_> = self.rows.iter().filter(|row| row.0 == group).collect();
            if rows.is_empty() {
                continue;
            }
            let sure = if self.runs.0 > 1 && self.runs.1 > 1 { "   95 % interval" } else { "" };
            let title = group.title();
            let _ = writeln!(out, "\n  {title:<44}{:>12}{:>12}{:>12}{sure}", "before", "after", "change");
            let shown = if group >= Group::Cause { top } else { rows.len() };
            for (_, name, comparison) in rows.iter().take(shown) {
                let _ = writeln!(out, "   {}", line(group, name, comparison));
            }
            if rows.len() > shown {
                let _ = writeln!(out, "   … and {} more (--top {})", rows.len() - shown, rows.len());
            }
        }
        if self.runs.0 == 1 || self.runs.1 == 1 {
            let _ = writeln!(
                out,
                "\n  one run a side tells nothing about chance: give directories with several traces each"
            );
        }
        out
    }
}

fn line(group: Group, name: &str, comparison: &Comparison) -> String {
    let name = format::fit(name.trim_end_matches("_ns"), 42);
    let share = group == Group::Efficiency;
    let value = |value: f64| {
        if share {
            format!("{value:.3}")
        } else {
            let sign = if value < 0.0 { "−" } else { "" };
            format!("{sign}{}", format::time(value.abs().round() as u64))
        }
    };
    let change = match comparison.growth() {
        _ if share => format!("{:+.3}", comparison.difference()),
        Some(growth) => format!("{:+.1} %", growth * 100.0),
        None => "new".to_owned(),
    };
    let (before, after) = (value(comparison.before), value(comparison.after));
    let interval = comparison.interval.map_or(String::new(), |(low, high)| {
        let sure = if comparison.is_certain() == Some(true) { "" } else { ", may be chance" };
        format!("   {} to {}{sure}", value(low), value(high))
    });
    format!("{name:<43}{before:>12}{after:>12}{change:>12}{interval}")
}
