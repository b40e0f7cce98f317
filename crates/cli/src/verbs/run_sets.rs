//! Runs and sets of runs as the user names them, for subcommands that compare.

use crate::messages::Failure;
use crate::newest::{is_profile, is_trace};
use crate::opening::{a_profile, open_part};
use crate::verbs::profiles::open_profile;
use anyhow::Context;
use std::path::{Path, PathBuf};
use taskscope_event::layout;
use taskscope_session::graph::read_graph;
use taskscope_session::selection::Selection;
use taskscope_view::comparison::{ShownRun, Side};
use taskscope_view::{CallPaths, RunNumbers};

/// The traces of a path: itself, the traces in a directory, or those of a comma-separated list.
///
/// # Errors
/// If a directory contains none.
pub fn traces_of(path: &Path) -> anyhow::Result<Vec<PathBuf>> {
    match path.to_str() {
        Some(list) if !path.exists() && list.contains(',') => {
            Ok(list.split(',').filter(|part| !part.is_empty()).map(PathBuf::from).collect())
        }
        _ if path.is_dir() && !is_trace(path) && !is_profile(path) => {
            let entries =
                std::fs::read_dir(path).with_context(|| format!("cannot read {}", path.display()))?;
            let mut traces: Vec<PathBuf> =
                entries.flatten().map(|entry| entry.path()).filter(|entry| is_trace(entry)).collect();
            traces.sort();
            if traces.is_empty() {
                let failure = Failure::new(format!("{} is not a trace, nor a set of traces", path.display()));
                return Err(failure.why("it contains no trace").into());
            }
            Ok(traces)
        }
        _ => Ok(vec![path.to_owned()]),
    }
}

/// The numbers of a trace, a profile or an imported task graph.
///
/// # Errors
/// If there is nothing to read.
pub fn numbers_of(trace: &Path, selection: &Selection) -> anyhow::Result<RunNumbers> {
    if let Some(numbers) = numbers_without_timeline(trace, selection)? {
        return Ok(numbers.0);
    }
    let session = open_part(trace, selection)?;
    let (analysis, _) = taskscope_analysis::analyse(&session.execution);
    Ok(RunNumbers::from_session(&session, &analysis))
}

/// The numbers of an imported task graph or a profile, with the call paths of the latter.
///
/// # Errors
/// If the profile cannot be read, or if a part is selected: these numbers are of the whole run.
fn numbers_without_timeline(
    trace: &Path,
    selection: &Selection,
) -> anyhow::Result<Option<(RunNumbers, Option<CallPaths>)>> {
    if trace.join(layout::GRAPH_METADATA).exists()
        && let Ok(Some(graph)) = read_graph(trace)
    {
        if selection.words.is_some() {
            return Err(Failure::new(format!("{} is an imported task graph", trace.display()))
                .why("such graphs are compared as a whole")
                .remedy("leave out --range and --where")
                .into());
        }
        return Ok(Some((RunNumbers::from_graph(&graph.graph), None)));
    }
    let Some((profile, kept)) = open_profile(trace)? else { return Ok(None) };
    if selection.words.is_some() {
        return Err(a_profile(trace).into());
    }
    let paths = CallPaths::of(&profile, kept, None);
    Ok(Some((RunNumbers::from_profile(&paths), Some(paths))))
}

/// A side of a comparison. Of several runs, the one with the median wall time is shown.
///
/// # Errors
/// If there is nothing to read.
pub fn side_of(path: &Path, selection: &Selection) -> anyhow::Result<Side> {
    let name = path.display().to_string();
    let traces = traces_of(path)?;
    let (mut numbers, mut shown_trace) = (Vec::new(), traces.first().cloned());
    if traces.len() > 1 {
        for trace in &traces {
            numbers.push(numbers_of(trace, selection)?);
        }
        let mut order: Vec<usize> = (0..traces.len()).collect();
        order.sort_by(|a, b| numbers[*a].wall_ns().total_cmp(&numbers[*b].wall_ns()));
        shown_trace = order.get((order.len() - 1) / 2).map(|row| traces[*row].clone());
    }
    let Some(trace) = shown_trace else {
        return Err(Failure::new(format!("{name} names no trace")).into());
    };
    if let Some((own, paths)) = numbers_without_timeline(&trace, selection)? {
        let numbers = if numbers.is_empty() { vec![own] } else { numbers };
        return Ok(Side { name, numbers, shown: None, tree: paths.map(|paths| paths.tree) });
    }
    let (shown, tree) = ShownRun::of(open_part(&trace, selection)?);
    let numbers = if numbers.is_empty() { vec![shown.numbers.clone()] } else { numbers };
    Ok(Side { name, numbers, shown: Some(shown), tree })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_has_no_part() {
        let here = tempfile::tempdir().unwrap();
        let file = here.path().join("a.profile");
        let mut bytes = Vec::new();
        taskscope_profile::Profile::default().write(&mut bytes).unwrap();
        std::fs::write(&file, bytes).unwrap();
        assert!(numbers_of(&file, &Selection::default()).is_ok());
        let part = Selection { words: Some("--range '0%..50%'".to_owned()), ..Selection::default() };
        let error = numbers_of(&file, &part).err().unwrap();
        assert!(error.to_string().ends_with("is a profile"), "{error}");
        assert!(side_of(&file, &part).is_err());
    }
}
