//! The comparison of two runs as lines for a terminal.

use crate::format::{self, Cell, columns, wrap};
use crate::run_difference::{FactDifference, NumberDifference, RunDifferenceReport, largest, time};
use crate::run_numbers::{Fact, NumberGroup};
use std::fmt::Write;

/// Width of a column of numbers.
const NUMBER: usize = 12;
/// Columns of a name at least, and of the 95 % interval.
const LEAST_NAME: usize = 24;
const INTERVAL: usize = 42;
/// Share of the capacity below which rows of times are summed in one line.
const FLOOR: f64 = 0.001;
/// Growth from which it is printed as a factor.
const FACTOR: f64 = 10.0;

impl RunDifferenceReport {
    /// The lines for a terminal of `width` columns, with `top` rows of each long table.
    pub fn text(&self, width: usize, top: usize) -> String {
        let mut out = String::new();
        for (label, set) in [("before", &self.before), ("after", &self.after)] {
            let runs = format::counted(set.runs as u64, "run");
            let _ = writeln!(out, "  {label:<7} {} ({runs})", format::harmless(&set.name));
        }
        self.write_facts(&mut out);
        if let Some(verdict) = &self.verdict {
            out.push('\n');
            for line in wrap(verdict, width.saturating_sub(4).max(LEAST_NAME)) {
                let _ = writeln!(out, "  {line}");
            }
        }
        for group in NumberGroup::ALL {
            self.write_group(group, (width, top), &mut out);
        }
        if !self.notes.is_empty() {
            out.push('\n');
        }
        for line in self.notes.iter().flat_map(|note| wrap(&format!("note: {note}"), 96)) {
            let _ = writeln!(out, "  {line}");
        }
        if self.before.runs == 1 || self.after.runs == 1 {
            let _ = writeln!(
                out,
                "\n  one run per side: no significance test is possible; give directories with several traces each"
            );
        }
        out
    }

    fn write_group(&self, group: NumberGroup, (width, top): (usize, usize), out: &mut String) {
        let rows = self.rows.iter().filter(|row| row.group == group.name());
        let floor = match group {
            NumberGroup::Cause | NumberGroup::Finding => largest(&self.rows) * FLOOR,
            NumberGroup::Run | NumberGroup::Efficiency | NumberGroup::TaskType => 0.0,
        };
        // A factor of 1 on both sides stands for a loss that the runs do not have.
        let is_shown = |row: &&NumberDifference| match group {
            NumberGroup::Efficiency => row.name == "parallel" || row.before.min(row.after) < 0.9995,
            _ => row.before.max(row.after) >= floor || row.certain == Some(true),
        };
        let (shown, small): (Vec<_>, Vec<_>) = rows.partition(is_shown);
        if shown.is_empty() {
            return;
        }
        let has_intervals = self.before.runs > 1 && self.after.runs > 1;
        let beside = 3 * NUMBER + if has_intervals { INTERVAL } else { 0 };
        let name = width.saturating_sub(4 + beside).clamp(LEAST_NAME, 60);
        let sure = if has_intervals { "   95 % interval" } else { "" };
        let title = Cell(group.title());
        let room = name + 1;
        let heads = format!("{:>NUMBER$}{:>NUMBER$}{:>NUMBER$}", "before", "after", "change");
        let _ = writeln!(out, "\n  {title:<room$}{heads}{sure}");
        let is_long = [NumberGroup::Cause, NumberGroup::Finding, NumberGroup::TaskType].contains(&group);
        let most = if is_long { top } else { shown.len() };
        for row in shown.iter().take(most) {
            row.write(group, name, out);
        }
        if shown.len() > most {
            let _ = writeln!(out, "   … and {} more (--top {})", shown.len() - most, shown.len());
        }
        let small: Vec<_> = small.into_iter().filter(|_| group != NumberGroup::Efficiency).collect();
        if !small.is_empty() {
            let sum = |of: fn(&NumberDifference) -> f64| small.iter().map(|row| of(row)).sum::<f64>();
            let (before, after) = (sum(|row| row.before), sum(|row| row.after));
            let label = format!("{} below {} % of the time", small.len(), FLOOR * 100.0);
            let _ = writeln!(out, "   {label:<name$}{:>NUMBER$}{:>NUMBER$}", time(before), time(after));
        }
    }

    /// Changes of the runs themselves, before any number.
    fn write_facts(&self, out: &mut String) {
        const WIDTH: usize = 30;
        let label =
            |name: &str| Fact::ALL.into_iter().find(|fact| fact.name() == name).map_or("", Fact::label);
        let changed: Vec<&FactDifference> =
            self.run.iter().filter(|fact| fact.changed == Some(true)).collect();
        if changed.is_empty() {
            let same = self.run.iter().filter(|fact| fact.changed.is_some()).map(|fact| label(fact.name));
            let same = same.collect::<Vec<_>>().join(", ");
            let _ = match same.as_str() {
                "" => writeln!(out, "\n  Nothing is known of the runs but their numbers"),
                same => {
                    let lines = wrap(&format!("Unchanged in the runs themselves: {same}"), 96);
                    writeln!(out, "\n  {}", lines.join("\n    "))
                }
            };
            return;
        }
        let title = "Changed in the runs themselves";
        let _ = writeln!(out, "\n  {title:<32}{:<WIDTH$}  after", "before");
        for fact in changed {
            let value = |value: &Option<String>| wrap(value.as_deref().unwrap_or(""), WIDTH);
            let (before, after) = (value(&fact.before), value(&fact.after));
            for line in 0..before.len().max(after.len()) {
                let name = if line == 0 { label(fact.name) } else { "" };
                let part =
                    |lines: &[String]| lines.get(line).map_or(String::new(), |text| format::fit(text, WIDTH));
                let row = format!("   {name:<31}{:<WIDTH$}  {}", Cell(part(&before)), part(&after));
                let _ = writeln!(out, "{}", row.trim_end());
            }
        }
    }
}

impl NumberDifference {
    /// Writes the row; a name that is too long has lines of its own, so that no two rows look alike.
    fn write(&self, group: NumberGroup, name: usize, out: &mut String) {
        let is_share = group == NumberGroup::Efficiency;
        let value = |value: f64| if is_share { format!("{value:.3}") } else { time(value) };
        let change = match self.growth {
            _ if is_share => format::signed(self.difference, 3),
            Some(_) if self.after == 0.0 => "gone".to_owned(),
            Some(growth) if growth >= FACTOR => format!("× {:.0}", growth + 1.0),
            Some(growth) => format::growth(growth),
            None => "new".to_owned(),
        };
        let (before, after) = (value(self.before), value(self.after));
        let interval = self.interval_95.map_or(String::new(), |[low, high]| {
            let sure = if self.certain == Some(true) { "" } else { ", may be chance" };
            let bound = |ns: f64| if is_share { format::signed(ns, 3) } else { time(ns) };
            format!("   {} to {}{sure}", bound(low), bound(high))
        });
        let mut lines = wrap(&self.label, name.saturating_sub(1));
        let last = lines.pop().unwrap_or_default();
        for line in lines {
            let _ = writeln!(out, "   {line}");
        }
        // A single word may be longer than its column.
        let (last, used) = match columns(&last) < name {
            true => (last.clone(), columns(&last)),
            false => (last + "\n   ", 0),
        };
        let pad = name - used;
        let _ =
            writeln!(out, "   {last}{:pad$}{before:>NUMBER$}{after:>NUMBER$}{change:>NUMBER$}{interval}", "");
    }
}

#[cfg(test)]
mod tests {
    use crate::run_difference::compare_runs;
    use crate::run_numbers::{Fact, RunNumbers};
    use taskscope_analysis::Confidence;
    use taskscope_cause::{Blamed, Cause};
    use taskscope_execution::State;

    /// A run of two findings whose places differ in the middle.
    fn run(capacity_ns: f64, places: [&str; 2]) -> RunNumbers {
        let found = places.map(|place| {
            let (losses, of) = ((Cause::Wait, Blamed::Loop), (State::Worksharing, place.to_owned()));
            crate::NamedFinding::new(losses, of, 1_000_000, Confidence::High)
        });
        let mut run = RunNumbers::from_totals(capacity_ns);
        run.put_rows(&found);
        run
    }

    #[test]
    fn facts_differ_in_values_that_are_not_shown() {
        let runs = |hosts: &str| -> Vec<RunNumbers> {
            let run = |host: char| {
                let mut run = RunNumbers::from_totals(1e6);
                run.facts.insert(Fact::Host, host.to_string());
                run
            };
            hosts.chars().map(run).collect()
        };
        let changed = |hosts: &str| {
            let report = compare_runs(&runs("abcde"), &runs(hosts)).report(["a", "b"]);
            let host = report.run.into_iter().find(|fact| fact.name == Fact::Host.name()).unwrap();
            assert_eq!(host.after.as_deref(), Some("a, b, c, d and 1 more"));
            host.changed
        };
        assert_eq!((changed("abcdf"), changed("edcba")), (Some(true), Some(false)));
    }

    #[test]
    fn rows_are_labelled_and_differ() {
        let place = |line: u32| {
            format!(
                "a_function_of_a_long_name_in_a_file [loop at directory/of/a/file.c:{line}], of a library"
            )
        };
        let (one, other) = (place(10), place(20));
        let before = run(4e6, [&one, &other]);
        let after = run(2e6, [&one, "short"]);
        let report = compare_runs(&[before], &[after]).report(["a", "b"]);
        let labels: Vec<&str> =
            report.rows.iter().filter(|row| row.group == "finding").map(|row| &*row.label).collect();
        assert!(labels.contains(&&*format!("uneven work in {one}")), "{labels:?}");
        assert!(labels.contains(&&*format!("uneven work in {other}")), "{labels:?}");
        for width in [60, 80, 100, 140] {
            let text = report.text(width, 20);
            let rows = text.split("Findings").nth(1).unwrap().replace(['\n', ' '], "");
            for place in [&one, &other] {
                assert!(rows.contains(&place.replace(' ', "")), "{width}: {text}");
            }
            assert!(!text.contains('…') && text.contains("gone") && text.contains("new"), "{text}");
            let names = text.lines().filter_map(|line| line.trim().split("  ").next());
            let raw: Vec<&str> = names.filter(|name| name.contains('_') && !name.contains("a_f")).collect();
            assert_eq!(raw, Vec::<&str>::new(), "{text}");
        }
        let verdict = report.verdict.unwrap();
        assert!(verdict.starts_with("The wall time fell by 50.0 % (4.00 ms → 2.00 ms)"), "{verdict}");
    }
}
