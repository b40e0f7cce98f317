//! The numbers of many runs in their order, as one HTML file.

use super::page::write_page;
use crate::messages::Failure;
use crate::verbs::run_sets::{numbers_of, traces_of};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use taskscope_session::RunFile;
use taskscope_session::selection::Selection;
use taskscope_view::history::{DatedRun, History};
use taskscope_view::html;

/// Writes the page. A run that cannot be read is reported and left out.
///
/// # Errors
/// If no run can be read, or the page cannot be written.
pub fn run(file: &Path, paths: &[PathBuf], selection: &Selection) -> anyhow::Result<ExitCode> {
    let mut runs = Vec::new();
    for path in paths {
        for trace in traces_of(path)? {
            match numbers_of(&trace, selection) {
                Ok(numbers) => runs.push(DatedRun {
                    name: trace.display().to_string(),
                    start_unix_ns: RunFile::load(&trace).ok().flatten().and_then(|run| run.start_unix_ns),
                    numbers,
                }),
                Err(error) => eprintln!("warning: {} is left out: {error}", trace.display()),
            }
        }
    }
    if runs.is_empty() {
        return Err(Failure::new("found no run to read")
            .remedy("taskscope report --html history.html --history DIR…        (directories with traces)")
            .into());
    }
    write_page(file, &html::history(&History::of(runs)), None)
}
