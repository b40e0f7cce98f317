//! `taskscope diff` by numbers: two runs or two sets of runs, each a trace or a profile.

use super::args::Args;
use crate::messages::Failure;
use crate::newest::{is_profile, is_trace};
use crate::output;
use crate::verbs::profiles::open_profile;
use anyhow::Context;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_event::layout;
use taskscope_session::graph::read_graph;
use taskscope_view::format::narrowed;
use taskscope_view::{CallPaths, RunNumbers, compare_runs};

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
    let grown = match (args.fail_over, difference.of_run(args.of.name())) {
        (Some(percent), Some(comparison)) => comparison.has_grown_over(percent / 100.0),
        _ => false,
    };
    if grown {
        eprintln!("taskscope: {} has grown by more than {} %", args.of.name(), args.fail_over.unwrap_or(0.0));
    }
    Ok(ExitCode::from(u8::from(grown)))
}

/// The numbers of one run, or of each trace of a set.
fn runs_of(path: &Path) -> anyhow::Result<Vec<RunNumbers>> {
    let mut traces: Vec<PathBuf> = Vec::new();
    match path.to_str() {
        Some(list) if !path.exists() && list.contains(',') => {
            traces.extend(list.split(',').filter(|part| !part.is_empty()).map(PathBuf::from));
        }
        _ if path.is_dir() && !is_trace(path) && !is_profile(path) => {
            let entries =
                std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
            traces.extend(entries.flatten().map(|entry| entry.path()).filter(|entry| is_trace(entry)));
            traces.sort();
            if traces.is_empty() {
                let failure = Failure::new(format!("{} is not a trace, nor a set of traces", path.display()));
                return Err(failure.why("it contains no trace").into());
            }
        }
        _ => traces.push(path.to_owned()),
    }
    traces.iter().map(|trace| numbers_of(trace)).collect()
}

fn numbers_of(trace: &Path) -> anyhow::Result<RunNumbers> {
    if trace.join(layout::GRAPH_METADATA).exists()
        && let Ok(Some(graph)) = read_graph(trace)
    {
        return Ok(RunNumbers::of_graph(&graph.graph));
    }
    if let Some((profile, kept)) = open_profile(trace)? {
        return Ok(RunNumbers::of_profile(&CallPaths::of(&profile, kept, None)));
    }
    let session = crate::opening::open(trace)?;
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    Ok(RunNumbers::of_session(&session, &analysis))
}
