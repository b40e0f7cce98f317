//! `taskscope diff`: changes between two runs, number by number (`diff_runs`) or by call paths.

use super::choices::Choice;
use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::{Column, total};
use taskscope_view::paths_difference;

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
    paths: bool,
    /// Column of call paths to compare: time, waiting, blame, idleness, … [default: time, or waiting without samples]
    #[arg(long, value_name = "COLUMN", value_enum)]
    sort: Option<Choice<Column>>,
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
    /// Output width in columns [default: the terminal's width, or 100].
    #[arg(long, value_name = "N")]
    width: Option<u16>,
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

/// Prints the comparison.
///
/// # Errors
/// If there is nothing to read, or the result cannot be written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.paths && args.sort.is_none() {
        return super::diff_runs::run(&args);
    }
    let before = super::profiles::open_tree(&args.before, TaskContext::Creation)?;
    let after = super::profiles::open_tree(&args.after, TaskContext::Creation)?;
    let column = args.sort.map(|choice| choice.0).unwrap_or_else(|| {
        match (Column::main_of(&before.tree), Column::main_of(&after.tree)) {
            (one, other) if one == other => one,
            // A run with samples against one without: their common column.
            _ => Column::Waiting,
        }
    });
    let names = [args.before.display().to_string(), args.after.display().to_string()];
    let mut out = output::results();
    let width = args.width.map(usize::from).or_else(output::terminal_width).unwrap_or(100);
    let difference = paths_difference(&before, &after, column, names);
    if args.json {
        output::write_json(&mut out, &difference)?;
    } else {
        out.write_all(difference.text(width, args.top.into()).as_bytes())?;
    }
    out.flush().context("cannot write the comparison")?;
    let (first, second) = (total(&before.tree, column), total(&after.tree, column));
    let limit = args.fail_over.map(|percent| first as f64 * (1.0 + percent / 100.0));
    Ok(if limit.is_some_and(|limit| second as f64 > limit) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
