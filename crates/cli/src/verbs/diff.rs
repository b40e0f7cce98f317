//! `taskscope diff`: what changed between two runs, number by number (`diff_runs`) or by call paths.

use super::choices::Choice;
use crate::output;
use anyhow::Context;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::{Column, total};
use taskscope_view::paths_difference;

/// Compare two runs, or two sets of runs with confidence intervals; or by call paths.
///
/// A set is a directory that holds several traces (A/1.trace, A/2.trace, …), or traces with commas between
/// them. Means of both sets are compared; 95 % intervals of the differences are Welch's.
///
/// What changed in the runs themselves (command, workers, CPUs, runtime, …) comes first, then wall time, then causes. A
/// trace and a profile are compared as far as both know.
///
/// With --paths or --sort, call paths are compared. Paths are the same by the names of their functions, not by lines: a
/// function that moved in its file has not changed.
#[derive(clap::Args)]
pub struct Args {
    /// The run before, or several: a trace, a set of traces, a profile, or a directory of profiles.
    pub before: PathBuf,
    /// The run after.
    pub after: PathBuf,
    /// Compare call paths.
    #[arg(long)]
    paths: bool,
    /// The column of call paths that is compared: time, waiting, blame, idleness, … [default: time, or waiting without samples]
    #[arg(long, value_name = "COLUMN", value_enum)]
    sort: Option<Choice<Column>>,
    /// Rows.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub top: u16,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
    /// Exit with 1 if the number of --of, or the column's sum, has grown by more than this, for instance 5%;
    /// of two sets of runs, if it is not by chance.
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub fail_over: Option<f64>,
    /// What --fail-over looks at, but in call paths.
    #[arg(long, value_name = "NUMBER", value_enum, default_value = "wall")]
    pub of: RunNumber,
    /// Print lines of this many characters [default: the terminal's width, or 100].
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
    let number: f64 = text.trim_end_matches('%').parse().map_err(|_| format!("`{text}` is no percentage"))?;
    if number >= 0.0 && number.is_finite() { Ok(number) } else { Err("give a percentage from 0 on".into()) }
}

/// Prints what changed.
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
            // Time by samples against a run without: what both have.
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
