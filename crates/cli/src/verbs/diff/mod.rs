//! `taskscope diff`: changes between two runs, number by number (`runs`) or by call paths.

mod args;
mod runs;

use crate::output;
use crate::verbs::profiles::open_tree;
use anyhow::Context;
pub use args::Args;
use std::io::Write;
use std::process::ExitCode;
use taskscope_analysis::call_paths::TaskContext;
use taskscope_analysis::call_views::{Column, total};
use taskscope_view::format::narrowed;
use taskscope_view::paths_difference;

/// Prints the comparison.
///
/// # Errors
/// If there is nothing to read, or the result cannot be written.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if !args.paths && args.sort.is_none() {
        return runs::run(&args);
    }
    let before = open_tree(&args.before, TaskContext::Creation)?;
    let after = open_tree(&args.after, TaskContext::Creation)?;
    let column = args.sort.map(|choice| choice.0).unwrap_or_else(|| {
        match (Column::main_of(&before.tree), Column::main_of(&after.tree)) {
            (one, other) if one == other => one,
            // A run with samples against one without: their common column.
            _ => Column::Waiting,
        }
    });
    let names = [args.before.display().to_string(), args.after.display().to_string()];
    let mut out = output::results();
    let width = args.width();
    let difference = paths_difference(&before, &after, column, names);
    if args.json {
        output::write_json(&mut out, &difference)?;
    } else {
        out.write_all(narrowed(&difference.text(width, args.top.into()), width).as_bytes())?;
    }
    out.flush().context("cannot write the comparison")?;
    let (first, second) = (total(&before.tree, column), total(&after.tree, column));
    let limit = args.fail_over.map(|percent| first as f64 * (1.0 + percent / 100.0));
    Ok(if limit.is_some_and(|limit| second as f64 > limit) { ExitCode::from(1) } else { ExitCode::SUCCESS })
}
