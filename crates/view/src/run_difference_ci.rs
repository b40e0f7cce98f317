//! The comparison of two runs for continuous integration: a summary in Markdown, and a JUnit file.
//!
//! Both show the numbers of the whole run and the judged one of them; its result is that of `diff --fail-over`.

use crate::format::{self, harmless};
use crate::run_difference::{NumberDifference, RunDifferenceReport, largest, time};
use crate::run_numbers::NumberGroup;
use std::fmt::Write;

/// Rows of causes in a summary.
const MAX_CAUSES: usize = 10;
/// Share of the capacity below which a cause is left out.
const FLOOR: f64 = 0.001;
const NS_PER_SECOND: f64 = 1e9;

/// The judgement of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate<'g> {
    /// The judged number: `wall`, `capacity` or `lost`.
    pub of: &'g str,
    /// The growth in percent that is allowed; none if nothing is judged.
    pub fail_over: Option<f64>,
    /// Whether it has grown by more.
    pub has_failed: bool,
}

impl RunDifferenceReport {
    /// A summary in Markdown (GitHub's tables).
    pub fn markdown(&self, gate: Gate<'_>) -> String {
        let mut out = String::new();
        let result = match gate.fail_over {
            None => "Comparison".to_owned(),
            Some(limit) if gate.has_failed => format!("❌ {} has grown by more than {limit} %", gate.of),
            Some(limit) => format!("✅ {} has not grown by more than {limit} %", gate.of),
        };
        let _ = writeln!(out, "### taskscope: {result}\n");
        for (label, set) in [("before", &self.before), ("after", &self.after)] {
            let _ =
                writeln!(out, "- {label}: {} ({})", cell(&set.name), format::counted(set.runs as u64, "run"));
        }
        for fact in self.run.iter().filter(|fact| fact.changed == Some(true)) {
            let [before, after] =
                [&fact.before, &fact.after].map(|value| cell(value.as_deref().unwrap_or("–")));
            let _ = writeln!(out, "- changed: {}: {before} → {after}", cell(fact.name));
        }
        if let Some(verdict) = &self.verdict {
            let _ = writeln!(out, "\n{}", cell(verdict));
        }
        let _ = writeln!(
            out,
            "\n| | before | after | change | 95 % interval |\n| --- | ---: | ---: | ---: | --- |"
        );
        self.rows_of(NumberGroup::Run).for_each(|row| markdown_row(row, &mut out));
        let floor = largest(&self.rows) * FLOOR;
        let causes = self.rows_of(NumberGroup::Cause).filter(|row| row.before.max(row.after) >= floor);
        causes.take(MAX_CAUSES).for_each(|row| markdown_row(row, &mut out));
        for note in &self.notes {
            let _ = writeln!(out, "\n> {}", cell(note));
        }
        out
    }

    /// A JUnit file: a test case for each number of the run. The judged one fails if it has grown by more than is allowed;
    /// the others are skipped.
    pub fn junit(&self, gate: Gate<'_>) -> String {
        let rows: Vec<&NumberDifference> = self.rows_of(NumberGroup::Run).collect();
        let judged =
            |row: &NumberDifference| gate.fail_over.is_some() && row.name == format!("{}_ns", gate.of);
        let skipped = rows.iter().filter(|row| !judged(row)).count();
        let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
        let counts = format!(
            "tests=\"{}\" failures=\"{}\" errors=\"0\" skipped=\"{skipped}\"",
            rows.len(),
            u8::from(gate.has_failed)
        );
        let name = xml(&format!("{} → {}", self.before.name, self.after.name));
        let _ = writeln!(out, "<testsuites name=\"taskscope diff\" {counts}>");
        let _ = writeln!(out, "  <testsuite name=\"{name}\" {counts}>");
        for row in rows {
            let (label, seconds) = (xml(&row.label), row.after / NS_PER_SECOND);
            let _ = write!(
                out,
                "    <testcase classname=\"taskscope.diff\" name=\"{label}\" time=\"{seconds:.9}\">"
            );
            let text = xml(&sentence(row));
            let _ = match (judged(row), gate.has_failed, gate.fail_over) {
                (true, true, Some(limit)) => {
                    let verdict = xml(self.verdict.as_deref().unwrap_or_default());
                    write!(out, "<failure message=\"{text}; the limit is {limit} %\">{verdict}</failure>")
                }
                (true, ..) => write!(out, "<system-out>{text}</system-out>"),
                (false, ..) => write!(out, "<skipped message=\"not judged: {text}\"/>"),
            };
            let _ = writeln!(out, "</testcase>");
        }
        out.push_str("  </testsuite>\n</testsuites>\n");
        out
    }

    fn rows_of(&self, group: NumberGroup) -> impl Iterator<Item = &NumberDifference> {
        self.rows.iter().filter(move |row| row.group == group.name())
    }
}

/// Growth in words.
fn change(row: &NumberDifference) -> String {
    match row.growth {
        Some(_) if row.after == 0.0 => "gone".to_owned(),
        Some(growth) => format::growth(growth),
        None if row.after == 0.0 => "0".to_owned(),
        None => "new".to_owned(),
    }
}

/// The 95 % interval in words; empty for single runs.
fn interval(row: &NumberDifference) -> String {
    let sure = if row.certain == Some(true) { "" } else { ", may be chance" };
    row.interval_95.map_or(String::new(), |[low, high]| format!("{} to {}{sure}", time(low), time(high)))
}

fn sentence(row: &NumberDifference) -> String {
    let interval = interval(row);
    let interval = if interval.is_empty() { interval } else { format!(", 95 % interval {interval}") };
    format!("{} → {} ({}{interval})", time(row.before), time(row.after), change(row))
}

fn markdown_row(row: &NumberDifference, out: &mut String) {
    let numbers = [time(row.before), time(row.after), change(row), interval(row)];
    let _ = writeln!(out, "| {} | {} |", cell(&row.label), numbers.join(" | "));
}

/// Text in a cell: no markup of its own, on one line.
fn cell(text: &str) -> String {
    let mut cell = String::new();
    for c in harmless(text).chars() {
        match c {
            '\n' => cell.push(' '),
            '\\' | '`' | '*' | '_' | '[' | ']' | '<' | '>' | '|' | '#' | '!' | '&' | '@' => {
                cell.extend(['\\', c])
            }
            c => cell.push(c),
        }
    }
    cell
}

/// Text in an attribute or an element.
pub(crate) fn xml(text: &str) -> String {
    let mut escaped = String::new();
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            // XML 1.0 has no other control characters.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_difference::compare_runs;
    use crate::run_numbers::RunNumbers;

    fn report(before: &[f64], after: &[f64]) -> RunDifferenceReport {
        let [before, after] =
            [before, after].map(|runs| runs.iter().map(|ns| RunNumbers::from_totals(*ns)).collect());
        let (before, after): (Vec<RunNumbers>, Vec<RunNumbers>) = (before, after);
        compare_runs(&before, &after).report(["a|b<c>", "d\"\u{1}"])
    }

    #[test]
    fn the_judged_number_fails_and_the_others_are_skipped() {
        let report = report(&[1e9, 1.1e9, 0.9e9], &[3e9, 3.1e9, 2.9e9]);
        let gate = Gate { of: "capacity", fail_over: Some(5.0), has_failed: true };
        let text = report.junit(gate);
        assert!(text.contains("failures=\"1\""), "{text}");
        assert!(text.contains("name=\"a|b&lt;c&gt; → d&quot;\u{fffd}\""), "{text}");
        assert_eq!(
            text.matches("<failure message=\"1.00 s → 3.00 s (+200.0 %, 95 % interval ").count(),
            1,
            "{text}"
        );
        assert_eq!(text.matches("<testcase ").count(), 1 + text.matches("<skipped ").count());
        let passed = report.junit(Gate { has_failed: false, ..gate });
        assert!(passed.contains("failures=\"0\"") && passed.contains("<system-out>"), "{passed}");
        let unjudged = report.junit(Gate { of: "wall", fail_over: None, has_failed: false });
        assert!(!unjudged.contains("<system-out>"), "{unjudged}");
    }

    #[test]
    fn summaries_have_no_markup_of_names() {
        let gate = Gate { of: "capacity", fail_over: Some(5.0), has_failed: true };
        let text = report(&[1e9], &[3e9]).markdown(gate);
        assert!(text.starts_with("### taskscope: ❌ capacity has grown by more than 5 %\n"), "{text}");
        assert!(text.contains("- before: a\\|b\\<c\\> (1 run)"), "{text}");
        assert!(text.contains("| 1.00 s | 3.00 s | +200.0 % |  |"), "{text}");
    }
}
