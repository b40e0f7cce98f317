//! The comparison of two runs, or of two sets of runs, as one HTML file.

use super::page::write_page;
use crate::verbs::run_sets::side_of;
use std::path::Path;
use std::process::ExitCode;
use taskscope_session::selection::Selection;
use taskscope_view::comparison::Comparison;
use taskscope_view::html;

/// Writes the page.
///
/// # Errors
/// If a side has nothing to read, or the page cannot be written.
pub fn run(file: &Path, before: &Path, after: &Path, selection: &Selection) -> anyhow::Result<ExitCode> {
    let (before, after) = (side_of(before, selection)?, side_of(after, selection)?);
    let comparison = Comparison::of(&before, &after);
    let pages = before.shown.as_ref().zip(after.shown.as_ref()).map(|(one, two)| [&one.page, &two.page]);
    let written = write_page(file, &html::comparison(&comparison, pages), None);
    // The process ends here: giving the memory of large runs back piece by piece would only take time.
    std::mem::forget((before, after));
    written
}
