//! The arguments of `taskscope diff`.

use crate::output;
use crate::verbs::choices::Choice;
use std::path::PathBuf;
use taskscope_analysis::call_views::Column;

/// Compare two runs, two sets of runs with confidence intervals, or call paths.
///
/// A set is a directory with several traces (A/1.trace, A/2.trace, …), or a comma-separated list of traces. Means of
/// both sets are compared, with Welch's 95 % intervals of the differences.
///
/// Changes of the runs themselves (command, workers, CPUs, runtime, …) come first, then wall time, then causes. A trace
/// and a profile are compared in the numbers that both have.
///
/// With --paths or --sort, call paths are compared by the names of their functions, not by lines: a function that moved
/// in its file is unchanged.
#[derive(clap::Args)]
pub struct Args {
    /// The run before, or several: a trace, a set of traces, a profile, or a directory of profiles.
    pub before: PathBuf,
    /// The run after.
    pub after: PathBuf,
    /// Compare call paths.
    #[arg(long)]
    pub paths: bool,
    /// Column of call paths to compare: time, waiting, blame, idleness, … [default: time, or waiting without samples]
    #[arg(long, value_name = "COLUMN", value_enum)]
    pub sort: Option<Choice<Column>>,
    /// Maximum rows.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub top: u16,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Exit with 1 if the number of --of, or the column's sum, has grown by more than this, for example 5%. For two
    /// sets of runs the growth must be significant.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_over: Option<f64>,
    /// Metric compared by --fail-over (ignored with --paths).
    #[arg(long, value_name = "NUMBER", value_enum, default_value = "wall")]
    pub of: RunNumber,
    /// Write the result of --fail-over to this file as JUnit's XML, for continuous integration.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "sort"])]
    pub junit: Option<PathBuf>,
    /// Write a summary to this file as Markdown, for example $GITHUB_STEP_SUMMARY.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["paths", "sort"])]
    pub markdown: Option<PathBuf>,
    /// Output width in columns [default: the terminal's width, or 100].
    #[arg(long, value_name = "N")]
    width: Option<u16>,
}

impl Args {
    /// Columns of the output.
    pub fn width(&self) -> usize {
        self.width.map(usize::from).or_else(output::terminal_width).unwrap_or(100)
    }
}

/// A number of the whole run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum RunNumber {
    /// Wall time
    Wall,
    /// Worker-time in all
    Capacity,
    /// Worker-time that was not useful
    Lost,
}

impl RunNumber {
    /// The name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            RunNumber::Wall => "wall",
            RunNumber::Capacity => "capacity",
            RunNumber::Lost => "lost",
        }
    }
}

fn percent(text: &str) -> Result<f64, String> {
    let number: f64 =
        text.trim_end_matches('%').parse().map_err(|_| format!("`{text}` is not a percentage"))?;
    if number >= 0.0 && number.is_finite() { Ok(number) } else { Err("give a percentage from 0 on".into()) }
}
