//! Options of the report as text.

use crate::call_paths::PathsOptions;
use crate::findings::next_text;
use crate::format::shell_word;
use crate::report_json::Report;
use crate::section::Section;
use crate::verdict::FLOOR;
use std::path::{Path, PathBuf};

/// Output options.
#[derive(Clone, Debug)]
pub struct ReportOptions {
    /// The sections to write. The report must have been made with them.
    pub sections: Vec<Section>,
    /// The trace in commands; by default the report's name of it.
    pub trace: Option<PathBuf>,
    /// Rows of each table; of the findings too.
    pub top: usize,
    /// Rows of each table of instrumentation.
    pub instrumentation_top: usize,
    /// Options of the call paths, which must have been made with them.
    pub paths: PathsOptions,
    /// Whether it is the short report, which ends with commands for more.
    pub short: bool,
    /// Characters of a line.
    pub width: usize,
    /// Names of notices that are not shown.
    pub allow: Vec<String>,
    /// Share of capacity below which findings are one line together.
    pub floor: f64,
    /// Size and name of the trace, when the report is the last word of a recording.
    pub recorded: Option<String>,
}

impl Default for ReportOptions {
    fn default() -> Self {
        ReportOptions {
            sections: Section::SHORT.to_vec(),
            trace: None,
            top: 3,
            instrumentation_top: 10,
            paths: PathsOptions::default(),
            short: true,
            width: 100,
            allow: Vec::new(),
            floor: FLOOR,
            recorded: None,
        }
    }
}

impl ReportOptions {
    /// Commands for more after the short report: the explanation of the first finding, then these with the trace.
    pub(super) fn next(&self, report: &Report, more: &[&str]) -> String {
        let trace = self.trace_word(report);
        let commands =
            ["taskscope explain F1"].iter().chain(more).map(|command| format!("{command} {trace}"));
        next_text(&commands.collect::<Vec<_>>(), self.width)
    }

    /// The trace in commands.
    pub(super) fn trace_word(&self, report: &Report) -> String {
        shell_word(self.trace.as_deref().unwrap_or(Path::new(&report.trace)))
    }
}
