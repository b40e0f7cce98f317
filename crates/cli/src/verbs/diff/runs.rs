//! `taskscope diff` by numbers: two runs or two sets of runs, each a trace or a profile.

use super::args::Args;
use crate::messages::Failure;
use crate::output;
use crate::verbs::run_sets::{numbers_of, traces_of};
use anyhow::Context;
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use taskscope_files::write_named;
use taskscope_session::selection::Selection;
use taskscope_view::format::narrowed;
use taskscope_view::{Gate, RunNumbers, compare_runs};

/// Prints the changes.
///
/// # Errors
/// If a side has no trace, or the result cannot be written.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let (before, after) = (runs_of(&args.before)?, runs_of(&args.after)?);
    let difference = compare_runs(&before, &after);
    let names = [args.before.display().to_string(), args.after.display().to_string()];
    let names = [names[0].as_str(), names[1].as_str()];
    let mut out = output::results();
    let report = difference.report(names);
    match args.json {
        true => output::write_json(&mut out, &report)?,
        false => {
            out.write_all(narrowed(&report.text(args.width(), args.top.into()), args.width()).as_bytes())?
        }
    }
    out.flush().context("cannot write the comparison")?;
    let grown = match (args.fail_over, difference.run_comparison(args.of.name())) {
        (Some(percent), Some(comparison)) => comparison.has_grown_over(percent / 100.0),
        (Some(_), None) => {
            return Err(Failure::new(format!("--fail-over cannot judge {}", args.of.name()))
                .why("a side does not have this number")
                .remedy("--of wall")
                .into());
        }
        (None, _) => false,
    };
    let gate = Gate { of: args.of.name(), fail_over: args.fail_over, has_failed: grown };
    for (file, text) in [(&args.junit, report.junit(gate)), (&args.markdown, report.markdown(gate))] {
        if let Some(file) = file {
            write_named(file, |_| {}, |out| out.write_all(text.as_bytes())).map_err(|error| {
                Failure::new(format!("cannot write {}", file.display())).why(error.to_string())
            })?;
        }
    }
    if grown {
        eprintln!("taskscope: {} has grown by more than {} %", args.of.name(), args.fail_over.unwrap_or(0.0));
    }
    Ok(ExitCode::from(u8::from(grown)))
}

/// The numbers of one run, or of each trace of a set.
fn runs_of(path: &Path) -> anyhow::Result<Vec<RunNumbers>> {
    traces_of(path)?.iter().map(|trace| numbers_of(trace, &Selection::default())).collect()
}
