//! Two runs or two sets of runs, number by number.

use crate::format;
use crate::report_rows::FACTORS;
use crate::run_lines::MovedLines;
use crate::run_numbers::{Fact, NumberGroup, RunNumbers, Source};
use schemars::JsonSchema;
use serde::Serialize;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use taskscope_analysis::compare::Comparison;
use taskscope_cause::Cause;

/// Two runs or two sets of runs, number by number.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(tag = "schema", rename = "taskscope-diff/1")]
pub struct RunDifferenceReport {
    /// The runs before.
    pub before: RunSet,
    /// The runs after.
    pub after: RunSet,
    /// Facts about the runs, those that are known of a side at least.
    pub run: Vec<FactDifference>,
    /// The change of the wall time, and the causes with the largest changes, in one sentence; null without a wall time.
    pub verdict: Option<String>,
    /// Notes on the comparison, in sentences.
    pub notes: Vec<String>,
    /// Their numbers: of the whole run (wall time first), by cause, then all others.
    pub rows: Vec<NumberDifference>,
}

/// A fact about the runs of both sides.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct FactDifference {
    /// The fact.
    #[schemars(extend("enum" = Fact::ALL.map(Fact::name)))]
    pub name: &'static str,
    /// Its values before, each once; null if unknown.
    pub before: Option<String>,
    /// Its values after.
    pub after: Option<String>,
    /// Whether they differ; null if one side is unknown.
    pub changed: Option<bool>,
}

/// A run or a set of runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RunSet {
    /// The name as given.
    pub name: String,
    /// Number of runs.
    pub runs: usize,
}

/// A number of both sides: the means of their runs.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NumberDifference {
    /// The group of the number.
    #[schemars(extend("enum" = NumberGroup::ALL.map(NumberGroup::name)))]
    pub group: &'static str,
    /// Its name: with `_ns` or of a group of times, nanoseconds; of the group efficiency, a share of 1.
    pub name: String,
    /// Its name in words, different from those of the other rows of its group.
    pub label: String,
    /// Mean before.
    pub before: f64,
    /// Mean after.
    pub after: f64,
    /// `after` − `before`.
    pub difference: f64,
    /// The difference as a fraction of `before`; null if that is 0.
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
    facts: Vec<FactDifference>,
    notes: Vec<String>,
    labels: BTreeMap<String, String>,
    rows: Vec<(NumberGroup, String, Comparison)>,
}

/// Compares two sets of runs, each of at least one. Causes and findings missing in a run count as zero. Means
/// of task types are compared over the runs that have the type, if both sides have such runs. Constructs keep their
/// numbers if their lines moved, under their names after.
pub fn compare_runs(before: &[RunNumbers], after: &[RunNumbers]) -> RunDifference {
    let moved = MovedLines::between(before, after);
    let before: &[RunNumbers] = &before.iter().map(|run| moved.renamed(run)).collect::<Vec<_>>();
    let facts = compare_facts(before, after);
    let labels = before.iter().chain(after).flat_map(|run| run.labels.clone()).collect();
    let (before, after, mut notes) = at_common_depth(before, after);
    notes.extend(moved.note("lines after"));
    let mut keys: Vec<&(NumberGroup, String)> =
        before.iter().chain(&after).flat_map(|numbers| numbers.keys()).collect();
    keys.sort();
    keys.dedup();
    let mut rows: Vec<(NumberGroup, String, Comparison)> = Vec::new();
    for key in keys {
        let values = |runs: &[BTreeMap<(NumberGroup, String), f64>]| -> Vec<f64> {
            let values = runs.iter().map(|numbers| numbers.get(key).copied());
            match key.0 {
                NumberGroup::Cause | NumberGroup::Finding => values.map(Option::unwrap_or_default).collect(),
                _ => values.flatten().collect(),
            }
        };
        let (first, second) = (values(&before), values(&after));
        if !first.is_empty() && !second.is_empty() {
            rows.push((key.0, key.1.clone(), Comparison::of(&first, &second)));
        }
    }
    rows.sort_by(|a, b| {
        let size = |row: &(NumberGroup, String, Comparison)| row.2.difference().abs();
        let is_sorted_by_size =
            [NumberGroup::Cause, NumberGroup::Finding, NumberGroup::TaskType].contains(&a.0);
        let is_wall = |row: &(NumberGroup, String, Comparison)| row.1 != "wall_ns";
        // Within causes, findings and types the largest change comes first, of the run its wall time.
        let factor =
            |row: &(NumberGroup, String, Comparison)| FACTORS.iter().position(|(key, _)| *key == row.1);
        let is_of_factors = a.0 == NumberGroup::Efficiency;
        let by_factor = || if is_of_factors { factor(a).cmp(&factor(b)) } else { Ordering::Equal };
        a.0.cmp(&b.0).then_with(by_factor).then_with(|| match is_sorted_by_size {
            true => size(b).total_cmp(&size(a)).then_with(|| a.1.cmp(&b.1)),
            false => is_wall(a).cmp(&is_wall(b)).then_with(|| a.1.cmp(&b.1)),
        })
    });
    RunDifference { runs: (before.len(), after.len()), facts, notes, labels, rows }
}

/// Facts of which a side at least knows something.
fn compare_facts(before: &[RunNumbers], after: &[RunNumbers]) -> Vec<FactDifference> {
    const MAX_VALUES: usize = 4;
    fn values(runs: &[RunNumbers], fact: Fact) -> Vec<&str> {
        let mut values: Vec<&str> =
            runs.iter().filter_map(|run| run.facts.get(&fact).map(String::as_str)).collect();
        values.sort_unstable();
        values.dedup();
        values
    }
    let words = |mut values: Vec<&str>| -> Option<String> {
        let more = values.len().saturating_sub(MAX_VALUES);
        values.truncate(MAX_VALUES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!values.is_empty()).then(|| values.join(", ") + &more)
    };
    let facts = Fact::ALL.into_iter().filter_map(|fact| {
        let (before, after) = (values(before, fact), values(after, fact));
        let changed = (!before.is_empty() && !after.is_empty()).then(|| before != after);
        let (before, after) = (words(before), words(after));
        (before.is_some() || after.is_some()).then(|| FactDifference {
            name: fact.name(),
            before,
            after,
            changed,
        })
    });
    facts.collect()
}

pub(crate) type Numbers = Vec<BTreeMap<(NumberGroup, String), f64>>;

/// The numbers of both sides at their common level of detail, and notes on the omitted ones.
pub(crate) fn at_common_depth(
    before: &[RunNumbers],
    after: &[RunNumbers],
) -> (Numbers, Numbers, Vec<String>) {
    let all = || before.iter().chain(after);
    let has = |source: Source| all().any(|run| run.source == source);
    let mut notes = Vec::new();
    let is_of_one = all().all(|run| Some(run.source) == all().next().map(|first| first.source));
    let cuts_graphs = has(Source::Graph) && !is_of_one;
    // Time of threads, of queues and of workers is not the same.
    let has_common_causes = is_of_one || !(has(Source::Samples) || has(Source::Queues));
    // Without times off the CPU, time blocked in program code counts as work.
    let joins_blocked =
        has_common_causes && all().any(RunNumbers::knows_blocked) && !all().all(RunNumbers::knows_blocked);
    if !has_common_causes {
        notes.push(
            "causes are not compared: time of workers, of threads and of queues is not the same".to_owned(),
        );
    }
    if cuts_graphs && has_common_causes {
        notes.push(
            "causes are compared by category where a side does not separate its causes (a task graph knows what workers wait for)".to_owned(),
        );
    }
    if joins_blocked {
        notes.push(
            "blocked is compared as a part of work: a side has no times off the CPU, and does not separate it".to_owned(),
        );
    }
    if !is_of_one {
        notes.push("findings are not compared: the sides name other places".to_owned());
    }
    let cause_of = |cause: Cause| match if cuts_graphs { Source::state_cause(cause) } else { cause } {
        Cause::Blocked if joins_blocked => Cause::Work,
        cause => cause,
    };
    let numbers = |runs: &[RunNumbers]| -> Numbers {
        let blocked_prefix = format!("{}: ", Cause::Blocked.name());
        let is_kept = |run: &RunNumbers, group: NumberGroup, name: &str| {
            let is_blocked = || name.starts_with(&blocked_prefix) || run.blocked.contains(name);
            group != NumberGroup::Finding || is_of_one && !(joins_blocked && is_blocked())
        };
        let kept_numbers = |run: &RunNumbers| {
            let kept = run.numbers.iter().filter(|((group, name), _)| is_kept(run, *group, name));
            let mut numbers: BTreeMap<_, _> = kept.map(|(key, value)| (key.clone(), *value)).collect();
            let blocked = run.causes.get(&Cause::Blocked).copied().filter(|_| joins_blocked);
            if let Some(blocked) = blocked {
                let start = run.causes.get(&Cause::MpiStart).copied().unwrap_or(0.0);
                join_blocked(&mut numbers, blocked, start);
            }
            for (cause, ns) in run.causes.iter().filter(|_| has_common_causes) {
                *numbers.entry((NumberGroup::Cause, cause_of(*cause).name().to_owned())).or_default() += ns;
            }
            numbers
        };
        runs.iter().map(kept_numbers).collect()
    };
    (numbers(before), numbers(after), notes)
}

/// Counts time blocked in code of the program as work. Efficiencies leave out the start of MPI.
fn join_blocked(numbers: &mut BTreeMap<(NumberGroup, String), f64>, blocked: f64, start: f64) {
    let key = |name: &str| (NumberGroup::Efficiency, name.to_owned());
    let share = |name: &str| numbers.get(&key(name)).copied();
    let capacity = numbers.get(&(NumberGroup::Run, "capacity_ns".to_owned())).copied().unwrap_or(1.0);
    let mut gained = blocked / (capacity - start).max(1.0);
    if let (Some(unblocked), Some(runtime)) = (share("blocked"), share("runtime_overhead")) {
        // The factors that come before it leave so much of the time.
        let before = ["cpu_availability", "serialization", "load_balance", "device_offload"];
        let left: f64 = before.into_iter().filter_map(share).product();
        gained = left * (1.0 - unblocked);
        numbers.insert(key("blocked"), 1.0);
        numbers.insert(key("runtime_overhead"), 1.0 - unblocked * (1.0 - runtime));
    }
    numbers.entry((NumberGroup::Run, "lost_ns".to_owned())).and_modify(|lost| *lost -= blocked);
    numbers.entry(key("parallel")).and_modify(|parallel| *parallel += gained);
}

impl RunDifference {
    /// The comparison of a number of the whole run: `wall`, `capacity` or `lost`.
    pub fn run_comparison(&self, name: &str) -> Option<&Comparison> {
        let name = format!("{name}_ns");
        self.rows.iter().find(|row| row.0 == NumberGroup::Run && row.1 == name).map(|row| &row.2)
    }

    /// The JSON document; `names` are those of the two sides.
    pub fn report(&self, names: [&str; 2]) -> RunDifferenceReport {
        let rows = self.rows.iter().map(|(group, name, comparison)| NumberDifference {
            group: group.name(),
            name: name.clone(),
            label: self.labels.get(name).cloned().unwrap_or_else(|| group.label(name)),
            before: comparison.before,
            after: comparison.after,
            difference: comparison.difference(),
            growth: comparison.growth(),
            interval_95: comparison.interval.map(|(low, high)| [low, high]),
            certain: comparison.is_certain(),
        });
        let mut rows: Vec<NumberDifference> = rows.collect();
        separate_labels(&mut rows);
        RunDifferenceReport {
            before: RunSet { name: names[0].to_owned(), runs: self.runs.0 },
            after: RunSet { name: names[1].to_owned(), runs: self.runs.1 },
            run: self.facts.clone(),
            verdict: verdict(&rows),
            notes: self.notes.clone(),
            rows,
        }
    }
}

/// A time, or a difference of times, in nanoseconds.
pub(crate) fn time(ns: f64) -> String {
    let sign = if ns < 0.0 { "−" } else { "" };
    format!("{sign}{}", format::time(ns.abs().round() as u64))
}

/// Growth of the wall time that counts as none, and share of the capacity below which a cause has not changed.
const EQUAL: f64 = 0.01;
/// Causes that the verdict names, beside the work.
const MAX_CAUSES: usize = 3;
/// The name of useful time among the causes.
const WORK: &str = taskscope_cause::Cause::Work.name();

/// The change of the wall time, and the causes with the largest changes; `None` without a wall time.
fn verdict(rows: &[NumberDifference]) -> Option<String> {
    let run_row =
        |name: &str| rows.iter().find(|row| row.group == NumberGroup::Run.name() && row.name == name);
    let wall = run_row("wall_ns")?;
    let growth = wall.growth?;
    let times = format!("({} → {})", time(wall.before), time(wall.after));
    let chance = if wall.certain == Some(false) { ", which may be chance" } else { "" };
    let change = match growth.abs() {
        small if small < EQUAL => format!("The wall time is about the same {times}"),
        size => {
            let word = if growth > 0.0 { "grew" } else { "fell" };
            format!("The wall time {word} by {:.1} % {times}{chance}", size * 100.0)
        }
    };
    let capacity = largest(rows);
    let is_large = |row: &&NumberDifference| {
        row.group == NumberGroup::Cause.name() && row.difference.abs() >= capacity * EQUAL
    };
    let large = || rows.iter().filter(is_large);
    let changed = large().filter(|row| row.certain != Some(false));
    // The work itself is named in any case: losses may follow from it.
    let named = changed.enumerate().filter(|(place, row)| *place < MAX_CAUSES || row.name == WORK);
    let causes: Vec<String> = named
        .map(|(_, row)| {
            let sign = if row.difference < 0.0 { "−" } else { "+" };
            format!("{} {sign}{}", row.label, time(row.difference.abs()))
        })
        .collect();
    let has_causes = rows.iter().any(|row| row.group == NumberGroup::Cause.name());
    Some(match causes.is_empty() {
        false => format!("{change}; largest changes by cause: {}.", causes.join(", ")),
        true if large().next().is_some() => {
            format!("{change}; no cause changed by more than 1 % of the time beyond chance.")
        }
        true if has_causes => format!("{change}; no cause changed by more than 1 % of the time."),
        true => format!("{change}."),
    })
}

/// The larger of both sides' capacities, or of other total times.
pub(crate) fn largest(rows: &[NumberDifference]) -> f64 {
    let run_rows = rows.iter().filter(|row| row.group == NumberGroup::Run.name());
    run_rows.map(|row| row.before.max(row.after)).fold(0.0, f64::max)
}

/// Adds the cause to labels that several rows of a group have, or else the whole name.
fn separate_labels(rows: &mut [NumberDifference]) {
    for uses_cause in [true, false] {
        let mut uses: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
        for row in rows.iter() {
            *uses.entry((row.group, row.label.clone())).or_default() += 1;
        }
        for row in rows.iter_mut() {
            if uses.get(&(row.group, row.label.clone())).is_some_and(|uses| *uses > 1) {
                let cause = row.name.split([':', ' ']).next().and_then(Cause::named).filter(|_| uses_cause);
                let more = cause.map_or_else(|| row.name.clone(), |cause| cause.label().to_owned());
                row.label += &format!(" ({more})");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NamedFinding;
    use taskscope_analysis::Confidence;
    use taskscope_cause::Blamed;
    use taskscope_execution::State;

    #[test]
    fn factors_multiply_to_the_efficiency_where_blocked_time_is_work() {
        let run = |off_cpu: &str| {
            let mut run = RunNumbers::from_totals(1000.0);
            run.facts.insert(Fact::OffCpu, off_cpu.to_owned());
            for (name, share) in
                [("parallel", 0.648), ("cpu_availability", 0.9), ("blocked", 0.8), ("runtime_overhead", 0.9)]
            {
                run.numbers.insert((NumberGroup::Efficiency, name.to_owned()), share);
            }
            run.numbers.insert((NumberGroup::Run, "lost_ns".to_owned()), 352.0);
            run.numbers.insert((NumberGroup::Finding, "blocked: code f".to_owned()), 180.0);
            run.causes.insert(Cause::Blocked, 180.0);
            // A wait in that time which the recorder of threads knows.
            let (losses, of) = ((Cause::Lock, Blamed::Holder), (State::LockWait, "g".to_owned()));
            let mut lock = NamedFinding::new(losses, of, 60, Confidence::High);
            lock.victims.add(State::Blocked, 60);
            run.put_rows(&[lock]);
            run
        };
        let (joined, _, _) = at_common_depth(&[run("context-switches")], &[run("none")]);
        let number = |group, name: &str| joined[0][&(group, name.to_owned())];
        assert_eq!(
            (number(NumberGroup::Run, "lost_ns"), number(NumberGroup::Efficiency, "blocked")),
            (172.0, 1.0)
        );
        assert!((number(NumberGroup::Efficiency, "parallel") - 0.828).abs() < 1e-9, "{joined:?}");
        assert!((number(NumberGroup::Efficiency, "runtime_overhead") - 0.92).abs() < 1e-9, "{joined:?}");
        assert!(joined[0].keys().all(|(group, _)| *group != NumberGroup::Finding), "{joined:?}");
    }

    #[test]
    fn verdicts_distinguish_no_change_from_chance() {
        let run = |lock_ns: f64| {
            let mut run = RunNumbers::from_totals(1000.0);
            run.causes.insert(Cause::Lock, lock_ns);
            run
        };
        let verdict = |after: [f64; 2]| {
            let after = after.map(run);
            compare_runs(&[run(100.0), run(101.0)], &after).report(["a", "b"]).verdict.unwrap()
        };
        let large = "no cause changed by more than 1 % of the time";
        let equal = verdict([100.0, 102.0]);
        assert!(equal.ends_with(&format!("{large}.")), "{equal}");
        let noise = verdict([100.0, 500.0]);
        assert!(noise.ends_with(&format!("{large} beyond chance.")), "{noise}");
        let growth = verdict([500.0, 501.0]);
        assert!(growth.contains("largest changes by cause: "), "{growth}");
    }

    #[test]
    fn constructs_keep_their_numbers_if_their_lines_move() {
        let run = |line: u32, ns: f64| {
            let mut run = RunNumbers::from_totals(1000.0);
            let name = format!("main [task at a.c:{line}]");
            run.constructs.insert(name.clone());
            run.numbers.insert((NumberGroup::Finding, format!("wait: code {name}")), 2.0 * ns);
            run.numbers.insert((NumberGroup::TaskType, name), ns);
            run
        };
        let report = compare_runs(&[run(21, 10.0)], &[run(22, 15.0)]).report(["a", "b"]);
        let row = |group: NumberGroup| {
            let mut rows = report.rows.iter().filter(|row| row.group == group.name());
            let row = rows.next().map(|row| (row.name.clone(), row.before, row.after));
            assert!(rows.next().is_none(), "{:?}", report.rows);
            row.unwrap()
        };
        assert_eq!(row(NumberGroup::TaskType), ("main [task at a.c:22]".to_owned(), 10.0, 15.0));
        assert_eq!(row(NumberGroup::Finding), ("wait: code main [task at a.c:22]".to_owned(), 20.0, 30.0));
        assert!(report.notes.iter().any(|note| note.starts_with("1 construct with other lines")));
    }
}
