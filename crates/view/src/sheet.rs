//! Lines of a report: headings, rows with columns, remarks.

use crate::format::{Cell, broken, columns as width_of, fit, wrap};
use anstyle::Style;

pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();

/// Columns of a name that must be seen beside its numbers.
pub(crate) const MIN_NAME_COLUMNS: usize = 16;

/// Lines with ANSI styles, none longer than the width.
pub(crate) struct Sheet {
    /// Columns of a line.
    pub width: usize,
    /// The lines so far.
    pub text: String,
}

impl Sheet {
    /// An empty sheet.
    pub fn new(width: usize) -> Sheet {
        Sheet { width: width.clamp(40, 140), text: String::new() }
    }

    /// Appends a line, wrapped if too long.
    pub fn line(&mut self, line: &str) {
        for line in broken(line.trim_end(), self.width) {
            self.text.push_str(&line);
            self.text.push('\n');
        }
    }

    /// A heading with the headings of its columns, right-aligned in their widths.
    pub fn heading(&mut self, title: &str, columns: &[(&str, usize)]) {
        let right: String = columns.iter().map(|(name, width)| format!("{:>width$}", Cell(name))).collect();
        let room = self.width.saturating_sub(2 + width_of(&right));
        self.line("");
        if room < width_of(title) + 1 {
            self.line(&format!("  {BOLD}{}{BOLD:#}", fit(title, self.width - 2)));
            return self.line(&format!("{DIM}{:>width$}{DIM:#}", Cell(right), width = self.width));
        }
        let pad = room.saturating_sub(width_of(title));
        self.line(&format!("  {BOLD}{title}{BOLD:#}{:pad$}{DIM}{right}{DIM:#}", ""));
    }

    /// A row: a name on the left, columns right-aligned in their widths.
    pub fn row(&mut self, indent: usize, name: &str, columns: &[(&str, usize)]) {
        let right: String = columns.iter().map(|(value, width)| format!("{:>width$}", Cell(value))).collect();
        let room = self.width.saturating_sub(2 + indent + width_of(&right));
        // A name that would be cut to nothing gets its own line.
        if room < width_of(name).min(MIN_NAME_COLUMNS) + 1 {
            self.line(&format!("  {:indent$}{}", "", fit(name, self.width.saturating_sub(2 + indent))));
            return self.line(&format!("{:>width$}", Cell(right), width = self.width));
        }
        let name = fit(name, room.saturating_sub(1));
        let pad = room.saturating_sub(width_of(&name));
        self.line(&format!("  {:indent$}{name}{:pad$}{right}", "", ""));
    }

    /// Appends a hint how to show the hidden rows of a section.
    pub fn more(&mut self, hidden: usize, section: &str, top: usize) {
        if hidden > 0 {
            self.line(&format!("  {DIM}… {hidden} more: --section {section} --top {}{DIM:#}", hidden + top));
        }
    }

    /// A text below a row, after its label.
    pub fn aside(&mut self, label: &str, text: &str) {
        let room = self.width.saturating_sub(8 + width_of(label));
        for (number, line) in wrap(text, room).iter().map(|line| fit(line, room)).enumerate() {
            let label = if number == 0 { format!("{label}: ") } else { " ".repeat(width_of(label) + 2) };
            self.line(&format!("      {DIM}{label}{line}{DIM:#}"));
        }
    }

    /// Appends commands for more, after an empty line: in one line if they fit, else each in its own, as they are there to
    /// be copied.
    pub fn next(&mut self, commands: &[String]) {
        let is_one = 2 + 7 + width_of(&commands.join("     ")) <= self.width;
        let between = if is_one { "     " } else { "\n         " };
        self.text.push_str(&format!("\n  {DIM}next:{DIM:#}  {}\n", commands.join(between)));
    }

    /// Appends a highlighted sentence, after an empty line.
    pub fn verdict(&mut self, text: &str) {
        self.line("");
        for line in wrap(text, self.width - 4) {
            self.line(&format!("  {BOLD}{}{BOLD:#}", fit(&line, self.width - 4)));
        }
    }
}
