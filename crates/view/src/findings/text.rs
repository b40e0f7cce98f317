//! Findings as lines for a terminal.

use super::{FindingRow, Losses};
use crate::format::{Unit, counted, percent, wrap};
use crate::sheet::{MIN_NAME_COLUMNS, Sheet};
use taskscope_cause::Cause;

/// Columns of findings: lost time, share, confidence.
const COLUMNS: [usize; 3] = [11, 9, 12];

/// Room that the number of a finding and the space after its sentence take.
const BESIDE_SENTENCE: usize = 5;

/// The findings as lines of at most `width` characters: `top` rows, those below a share `floor` of the time as one.
pub fn findings_text(losses: Losses<'_>, top: usize, floor: f64, width: usize) -> String {
    let mut sheet = Sheet::new(width);
    losses.write(&mut sheet, top, floor);
    sheet.text
}

/// The verdict as lines of at most `width` characters; empty without one.
pub fn verdict_text(verdict: Option<&str>, width: usize) -> String {
    let mut sheet = Sheet::new(width);
    if let Some(verdict) = verdict {
        sheet.verdict(verdict);
    }
    sheet.text
}

/// Commands for more, each whole, after an empty line.
pub fn next_text(commands: &[String], width: usize) -> String {
    let mut sheet = Sheet::new(width);
    sheet.next(commands);
    sheet.text
}

impl Losses<'_> {
    /// Writes the rows; `top` of them, those below `floor` as one line.
    pub(crate) fn write(&self, sheet: &mut Sheet, top: usize, floor: f64) {
        let unit = Unit::for_total(self.base_ns);
        let (worth, small): (Vec<_>, Vec<_>) =
            self.rows.iter().partition(|finding| self.is_worth(finding, floor));
        let columns =
            [(self.whose.unit(unit), COLUMNS[0]), ("share", COLUMNS[1]), ("confidence", COLUMNS[2])];
        let shown = || worth.iter().take(top);
        // It is in no efficiency, so it comes after all losses, however large it is.
        let start_is_larger = shown()
            .zip(shown().skip(1))
            .any(|(before, finding)| finding.cause.0 == Cause::MpiStart && finding.ns > before.ns);
        let title = match start_is_larger {
            true => "Findings, largest first, start of MPI last",
            false => "Findings, largest first",
        };
        sheet.heading(title, &columns);
        // The product of 0.07 and 100 is not 7.
        let floor_percent = (floor * 1e8).round() / 1e6;
        let least = format!("{floor_percent} % of the {}' time", self.whose.name());
        if worth.is_empty() {
            sheet.line(&format!("  no loss takes {least}"));
        }
        for (number, finding) in worth.iter().take(top).enumerate() {
            self.write_finding(sheet, finding, unit, number == 0);
            // The largest is printed separately.
            if number == 0 && worth.len().min(top) > 1 {
                sheet.line("");
            }
        }
        sheet.more(worth.len().saturating_sub(top), "findings", top);
        let small: Vec<_> = small.into_iter().filter(|finding| finding.ns > 0).collect();
        if !small.is_empty() {
            let ns = small.iter().map(|finding| finding.ns).sum();
            let name = format!("{} below {least} together", counted(small.len() as u64, "finding"));
            let (lost, part) = (unit.show(ns), percent(ns, self.base_ns));
            sheet.row(0, &name, &[(&lost, COLUMNS[0]), (&part, COLUMNS[1]), ("", COLUMNS[2])]);
        }
    }

    /// The lines of a finding; the largest has its evidence too.
    fn write_finding(&self, sheet: &mut Sheet, finding: &FindingRow, unit: Unit, is_largest: bool) {
        let (lost, part) = (unit.show(finding.ns), percent(finding.ns, self.base_ns));
        let columns = [(&*lost, COLUMNS[0]), (&*part, COLUMNS[1]), (finding.confidence.0.name(), COLUMNS[2])];
        let room = sheet.width.saturating_sub(2 + COLUMNS.iter().sum::<usize>() + BESIDE_SENTENCE);
        if room < MIN_NAME_COLUMNS * 2 {
            sheet.row(0, &finding.id, &columns);
            for line in wrap(&finding.text, sheet.width - 7) {
                sheet.row(4, &line, &[]);
            }
        } else {
            for (number, line) in wrap(&finding.text, room).iter().enumerate() {
                match number {
                    0 => sheet.row(0, &format!("{:<3} {line}", finding.id), &columns),
                    _ => sheet.row(4, line, &[]),
                }
            }
        }
        sheet.aside("try", &finding.remedy);
        if is_largest && !finding.evidence.is_empty() {
            sheet.aside("evidence", &finding.evidence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::findings::Whose;

    #[test]
    fn the_floor_is_shown_as_it_was_given() {
        for percent in ["7", "14", "0.5", "100"] {
            let losses = Losses { rows: &[], base_ns: 1000, whose: Whose::Workers };
            let floor = percent.parse::<f64>().unwrap() / 100.0;
            let text = findings_text(losses, 3, floor, 100);
            assert!(text.contains(&format!("no loss takes {percent} % of the workers' time")), "{text}");
        }
    }
}
